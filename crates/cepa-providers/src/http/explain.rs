//! What went wrong on the way, in words that say what to check. They name the host, never a key, header or address.

use std::{borrow::Cow, error::Error as StdError, io, time::Duration};

use cepa_core::{Error, ErrorKind};
use rustls::CertificateError;

use super::{
    connect::{ConnectError, Unresolved},
    heads::Endless,
    pool::SendError,
};
use crate::classify::line;

pub(super) fn cancelled(host: &str) -> Error {
    Error::new(ErrorKind::Cancelled, format!("the request to {host} was cancelled"))
}

/// Sent, and not answered in time: the server may still be working on it.
pub(super) fn no_answer(host: &str, limit: Duration) -> Error {
    let text =
        format!("{host} did not answer within {limit:?}: raise the timeout, or check whether the server is overloaded");
    Error::new(ErrorKind::Timeout, text)
}

pub(super) fn silent(host: &str, limit: Duration) -> Error {
    let text = format!(
        "{host} began to answer and then sent nothing for {limit:?}: raise the idle timeout, or check the server"
    );
    Error::new(ErrorKind::Timeout, text)
}

pub(super) fn endless(host: &str, limit: Duration) -> Error {
    let text = format!(
        "the answer of {host} was not complete within {limit:?}: raise the total timeout, ask for less, or check the server"
    );
    Error::new(ErrorKind::Timeout, text)
}

pub(super) fn too_large(host: &str, limit: usize) -> Error {
    Error::new(ErrorKind::Decode, format!("the answer of {host} is larger than {limit} bytes"))
}

pub(super) fn encoded(host: &str, encoding: &str) -> Error {
    let encoding = line(encoding, 40);
    let text =
        format!("{host} answered with the encoding {encoding:?}, which was not asked for: check what stands between");
    Error::new(ErrorKind::Decode, text)
}

pub(super) fn body_broke(host: &str, error: hyper::Error) -> Error {
    Error::new(ErrorKind::Network, format!("the connection to {host} broke in the middle of the answer"))
        .with_source(error)
}

pub(super) fn request_failed(host: &str, error: SendError) -> Error {
    let (kind, text, retryable) = match &error {
        SendError::Connect(error) => not_reached(host, error),
        SendError::Http(error) => not_served(host, error),
    };
    Error::new(kind, text).with_retryable(retryable).with_source(error)
}

type Told = (ErrorKind, Cow<'static, str>, bool);

/// Nothing was sent.
fn not_reached(host: &str, error: &ConnectError) -> Told {
    match error {
        ConnectError::Late(limit) => {
            let text =
                format!("{host} could not be reached within {limit:?}: check the network, a proxy, and the base URL");
            (ErrorKind::Network, text.into(), true)
        }
        ConnectError::Tcp(error) => (ErrorKind::Network, tcp(host, &**error), true),
        ConnectError::Tls(error) => tls(host, error),
        ConnectError::Roots(why) => {
            let text = format!(
                "the certificate of {host} cannot be checked, because no trusted roots could be read ({why}): \
                 install ca-certificates or set SSL_CERT_FILE"
            );
            (ErrorKind::Network, text.into(), false)
        }
        ConnectError::ProxySetting(why) => {
            (ErrorKind::InvalidConfig, format!("{why} (needed for {host})").into(), false)
        }
        ConnectError::Proxy(proxy, error) => {
            let why = root(&**error);
            let text =
                format!("the proxy {proxy} did not connect to {host} ({why}): check the proxy, its login, or NO_PROXY");
            (ErrorKind::Network, text.into(), true)
        }
    }
}

fn tcp(host: &str, error: &(dyn StdError + 'static)) -> Cow<'static, str> {
    if let Some(error) = find::<Unresolved>(error) {
        return format!("the name {host} cannot be resolved ({error}): check the base URL and the network").into();
    }
    let why = root(error);
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!(
                "nothing listens at {host} (connection refused): is the server running, and the base URL's port right?"
            )
        }
        _ => format!("{host} cannot be reached ({why}): check the network and the base URL"),
    }
    .into()
}

fn tls(host: &str, error: &io::Error) -> Told {
    let problem = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    // Whether the certificate or the protocol is wrong, the next try meets the same.
    let (advice, retryable) = match problem {
        Some(rustls::Error::InvalidCertificate(certificate)) => (
            match certificate {
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => "check the clock of this machine",
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    "the certificate is for another name: check the base URL"
                }
                _ => {
                    "if the server has a private authority, trust it through SSL_CERT_FILE or the root certificates setting"
                }
            },
            false,
        ),
        Some(rustls::Error::InvalidMessage(_)) => ("does the server speak https? try http://", false),
        Some(rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_)) => ("the server refused", false),
        _ => ("check the network and the base URL", true),
    };
    (ErrorKind::Network, format!("no secure connection to {host} ({error}): {advice}").into(), retryable)
}

/// Connected; then the request failed.
fn not_served(host: &str, error: &hyper::Error) -> Told {
    // hyper says so to servers only; to clients in words.
    if error.is_parse() && error.to_string().contains("too large") {
        let text =
            format!("{host} answered with too many or too large headers (100 are read): check what stands between");
        return (ErrorKind::Decode, text.into(), false);
    }
    if error.is_parse() || error.is_parse_status() {
        let text =
            format!("{host} answered with something that is not HTTP: check the base URL, its port, and http or https");
        return (ErrorKind::Decode, text.into(), false);
    }
    let inner =
        |error: &(dyn StdError + 'static)| error.downcast_ref::<io::Error>()?.get_ref().map(|e| e.is::<Endless>());
    if chain(error).any(|error| inner(error) == Some(true)) {
        let text = format!(
            "{host} sends interim answers (HTTP 1xx) without end and no reply: check the server and what stands between"
        );
        return (ErrorKind::Decode, text.into(), false);
    }
    let text = match find::<io::Error>(error) {
        Some(_) => format!("the connection to {host} broke before it answered ({})", root(error)),
        None => format!("{host} closed the connection before it answered"),
    };
    (ErrorKind::Network, text.into(), true)
}

/// An error and what caused it, one after another.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// The first error of this type in a chain.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// The words of the error that began a chain.
fn root(error: &(dyn StdError + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}
