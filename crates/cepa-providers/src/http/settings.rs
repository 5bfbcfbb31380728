//! The settings of the HTTP client.

use std::{fmt, time::Duration};

use cepa_core::{Error, ErrorKind};
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::pki_types::{CertificateDer, pem::PemObject};

/// Limits, headers and routes of a client.
///
/// ```
/// use std::time::Duration;
/// use cepa_providers::http::{HttpSettings, Proxy};
///
/// let mut settings = HttpSettings::default().with_header("x-team", "search")?;
/// settings.response_timeout = Duration::from_secs(60);
/// settings.proxy = Proxy::None;
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone)]
pub struct HttpSettings {
    /// How long reaching the host may take: name, TCP and TLS together. Default 10 s.
    pub connect_timeout: Duration,
    /// How long the answer may take: the head of a stream's, the whole of any other's. Default 10 min, for models that
    /// think long before they say anything.
    pub response_timeout: Duration,
    /// How long a body may be silent between two pieces; comments of a stream count as life. Default 2 min.
    pub idle_timeout: Duration,
    /// How long a model call may take from its begin to the end of its reply, all its tries and a stream included: what ends
    /// neither by itself nor by silence, such as a byte each second, ends here. The text so far stays with the error. Default
    /// 1 h, longer than any provider lets a reply grow; a slow model of one's own may need more, and `None` is no limit.
    pub total_timeout: Option<Duration>,
    /// The largest body that is collected. Default 64 MiB. Streams have no limit as a whole.
    pub max_body_bytes: usize,
    /// Headers of every request. A request's own header of the same name wins.
    pub headers: HeaderMap,
    /// Which proxy to use. Default: what the environment says.
    pub proxy: Proxy,
    pub(super) roots: Vec<CertificateDer<'static>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            total_timeout: Some(Duration::from_secs(60 * 60)),
            max_body_bytes: 64 * 1024 * 1024,
            headers: HeaderMap::new(),
            proxy: Proxy::Environment,
            roots: Vec::new(),
        }
    }
}

impl fmt::Debug for HttpSettings {
    /// Without the values of headers, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("max_body_bytes", &self.max_body_bytes)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl HttpSettings {
    /// Adds a header to every request.
    ///
    /// # Errors
    /// `invalid_config` if name or value cannot be in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let invalid = |what: &str| Error::new(ErrorKind::InvalidConfig, format!("the header {name:?} has {what}"));
        let name = HeaderName::try_from(name).map_err(|_| invalid("a name that HTTP does not allow"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| invalid("a value with a line break or another character that HTTP does not allow"))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Trusts these certificates (PEM, one or more) beside the system's, for servers behind a private authority.
    ///
    /// # Errors
    /// `invalid_config` if there is no certificate in the text.
    pub fn with_root_certificates(mut self, pem: &[u8]) -> Result<Self, Error> {
        let unusable =
            |why: String| Error::new(ErrorKind::InvalidConfig, format!("the root certificates are unusable: {why}"));
        let before = self.roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            self.roots.push(certificate.map_err(|error| unusable(error.to_string()))?);
        }
        if self.roots.len() == before {
            return Err(unusable("the text holds no PEM certificate".to_owned()));
        }
        Ok(self)
    }
}

/// Which HTTP proxy requests go through. The machine itself (`localhost`, `127.0.0.1`, `[::1]`) is never asked for through one.
#[derive(Clone, PartialEq, Eq)]
pub enum Proxy {
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or not.
    Environment,
    /// No proxy.
    None,
    /// This proxy: `http://[user:password@]host:port`.
    Url(String),
}

impl fmt::Debug for Proxy {
    /// Without the address, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::None => "None",
            Self::Url(_) => "Url(…)",
        })
    }
}
