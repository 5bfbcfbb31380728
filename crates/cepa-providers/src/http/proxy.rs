//! Which proxy, if any, stands before a host. Pure: settings and environment in, a route out.

use std::net::IpAddr;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, Uri, uri::Scheme};

use super::{Proxy, request::is_host_and_port};

/// The proxies of a client, and the hosts that are asked directly.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    http: Option<Result<Server, String>>,
    https: Option<Result<Server, String>>,
    direct: Vec<Direct>,
}

/// One proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) url: Uri,
    pub(super) authorization: Option<HeaderValue>,
}

/// One entry of `NO_PROXY`.
#[derive(Debug, PartialEq, Eq)]
enum Direct {
    All,
    Network(IpAddr, u8),
    /// This name and all below it, at this port or any.
    Name(String, Option<u16>),
}

impl Proxies {
    /// `variable` reads the environment.
    pub(super) fn new(proxy: &Proxy, variable: impl Fn(&str) -> Option<String>) -> Self {
        match proxy {
            Proxy::None => Self::default(),
            Proxy::Url(url) => {
                let server = Some(server(url, "the proxy setting"));
                Self { http: server.clone(), https: server, direct: Vec::new() }
            }
            Proxy::Environment => {
                let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
                let first = |names: &[&str]| {
                    names.iter().find_map(|name| Some(server(&set(name)?, &format!("the environment variable {name}"))))
                };
                // A CGI program gets the header `Proxy:` of any request as HTTP_PROXY.
                let http: &[&str] = match set("REQUEST_METHOD") {
                    None => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
                    Some(_) => &["http_proxy", "all_proxy", "ALL_PROXY"],
                };
                let direct = set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default();
                Self {
                    http: first(http),
                    https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
                    direct: direct.split([',', ' ', '\t']).filter_map(Direct::parse).collect(),
                }
            }
        }
    }

    /// The proxy for this address; none to go there directly.
    ///
    /// # Errors
    /// Why the proxy that is set for it cannot be used.
    pub(super) fn route(&self, url: &Uri) -> Result<Option<&Server>, String> {
        let https = url.scheme() == Some(&Scheme::HTTPS);
        let Some(server) = (if https { &self.https } else { &self.http }) else { return Ok(None) };
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = url.port_u16().unwrap_or(if https { 443 } else { 80 });
        if is_this_machine(host) || self.direct.iter().any(|rule| rule.matches(host, port)) {
            return Ok(None);
        }
        server.as_ref().map(Some).map_err(Clone::clone)
    }
}

fn is_this_machine(host: &str) -> bool {
    host.parse::<IpAddr>().map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |ip| ip.is_loopback())
}

/// Reads `[http://][user[:password]@]host[:port]`. The text is in no message: it may hold a password.
fn server(text: &str, whence: &str) -> Result<Server, String> {
    let text = text.trim();
    let rest = match text.split_once("://") {
        None => text,
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some((scheme, _)) => {
            return Err(format!("{whence} names a {scheme} proxy: only http:// proxies are supported"));
        }
    };
    let (login, host) = match rest.rsplit_once('@') {
        Some((login, host)) => (Some(login), host),
        None => (None, rest),
    };
    let url = format!("http://{}/", host.trim_end_matches('/')).parse::<Uri>();
    let url = url.ok().filter(|url| url.path() == "/" && url.authority().is_some_and(is_host_and_port));
    let url = url.ok_or_else(|| format!("{whence} is not an address like http://host:port"))?;
    let authorization = login.map(|login| {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let mut plain = percent_decoded(user);
        plain.push(b':');
        plain.extend(percent_decoded(password));
        let value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(plain)));
        value.map(|mut value| {
            value.set_sensitive(true);
            value
        })
    });
    Ok(Server { url, authorization: authorization.and_then(Result::ok) })
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        match after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

impl Direct {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "" => return None,
            "*" => return Some(Self::All),
            _ => {}
        }
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Self::Network(ip, if ip.is_ipv4() { 32 } else { 128 }));
        }
        if let Some((network, bits)) = text.split_once('/') {
            return Some(Self::Network(network.parse().ok()?, bits.parse().ok()?));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (text, None),
        };
        let name = name.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Self::Name(name, port))
    }

    fn matches(&self, host: &str, port: u16) -> bool {
        match self {
            Self::All => true,
            Self::Network(network, bits) => host.parse::<IpAddr>().is_ok_and(|ip| is_in(ip, *network, *bits)),
            Self::Name(name, at) => {
                let host = host.to_ascii_lowercase();
                let below = host.strip_suffix(name.as_str()).is_some_and(|left| left.is_empty() || left.ends_with('.'));
                below && at.is_none_or(|at| at == port)
            }
        }
    }
}

fn is_in(ip: IpAddr, network: IpAddr, bits: u8) -> bool {
    let same = |a: u128, b: u128, width: u32| {
        let shift = width.saturating_sub(u32::from(bits));
        a.checked_shr(shift).unwrap_or(0) == b.checked_shr(shift).unwrap_or(0)
    };
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => same(ip.to_bits().into(), network.to_bits().into(), 32),
        (IpAddr::V6(ip), IpAddr::V6(network)) => same(ip.to_bits(), network.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
#[path = "../http_proxy_tests.rs"]
mod tests;
