//! Reaching a host: name, TCP, proxy, TLS, under one time limit, with an error that says which of them failed.

use std::{
    error::Error as StdError,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use http::{
    HeaderValue, Uri,
    uri::{Authority, Scheme},
};
use hyper_util::{
    client::legacy::connect::{
        HttpConnector,
        dns::{GaiAddrs, GaiResolver, Name},
        proxy::Tunnel,
    },
    rt::TokioIo,
};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::{
    HttpSettings,
    heads::Counted,
    proxy::{Proxies, Server},
    stream::Stream,
    tls::Tls,
};

type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
type BoxError = Box<dyn StdError + Send + Sync>;

/// Probes on a silent connection: a long answer must not look like a dead one to the routers between, and a dead one must be noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How long sent bytes may stay unacknowledged.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNHEARD: Duration = Duration::from_secs(45);

/// Why a host was not reached.
#[derive(Debug)]
pub(super) enum ConnectError {
    Tcp(BoxError),
    Tls(io::Error),
    /// The roots of trust could not be read.
    Roots(String),
    /// The proxy that is set cannot be used.
    ProxySetting(String),
    /// The proxy was asked and did not connect.
    Proxy(String, BoxError),
    Late(Duration),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(error) => write!(f, "{error}"),
            Self::Tls(error) => write!(f, "{error}"),
            Self::Roots(why) | Self::ProxySetting(why) => f.write_str(why),
            Self::Proxy(proxy, error) => write!(f, "proxy {proxy}: {error}"),
            Self::Late(limit) => write!(f, "no connection within {limit:?}"),
        }
    }
}

impl StdError for ConnectError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Tcp(error) | Self::Proxy(_, error) => Some(&**error),
            Self::Tls(error) => Some(error),
            Self::Roots(_) | Self::ProxySetting(_) | Self::Late(_) => None,
        }
    }
}

/// The name of a host could not be looked up.
#[derive(Debug)]
pub(super) struct Unresolved(io::Error);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl StdError for Unresolved {}

/// The system's resolver, with an error that can be told from others.
#[derive(Clone, Debug)]
struct Resolver(GaiResolver);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = Unresolved;
    type Future = BoxFuture<GaiAddrs, Unresolved>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        self.0.poll_ready(cx).map_err(Unresolved)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let looking = self.0.call(name);
        Box::pin(async move { looking.await.map_err(Unresolved) })
    }
}

/// Makes the connections of one client.
#[derive(Clone)]
pub(super) struct Connector(Arc<Shared>);

struct Shared {
    settings: Arc<HttpSettings>,
    tcp: HttpConnector<Resolver>,
    tls: Tls,
    proxies: OnceLock<Proxies>,
}

impl Connector {
    pub(super) fn new(settings: Arc<HttpSettings>) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE));
        tcp.set_keepalive_retries(Some(3));
        // A kept connection whose other end has vanished (a laptop that slept) would else hold a request until its timeout.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        tcp.set_tcp_user_timeout(Some(UNHEARD));
        Self(Arc::new(Shared { settings, tcp, tls: Tls::default(), proxies: OnceLock::new() }))
    }

    /// The login for a proxy that sees the request itself. (For https it goes with the tunnel.)
    pub(super) fn proxy_authorization(&self, url: &Uri) -> Option<HeaderValue> {
        let plain = url.scheme() == Some(&Scheme::HTTP);
        plain.then(|| self.0.proxies().route(url).ok().flatten()?.authorization.clone()).flatten()
    }

    /// A new connection.
    pub(super) async fn connect(&self, url: &Uri) -> Result<Counted, ConnectError> {
        let limit = self.0.settings.connect_timeout;
        match tokio::time::timeout(limit, self.0.connect(url.clone())).await {
            Ok(connected) => connected.map(Counted::new),
            Err(_) => Err(ConnectError::Late(limit)),
        }
    }
}

impl Shared {
    fn proxies(&self) -> &Proxies {
        self.proxies.get_or_init(|| Proxies::new(&self.settings.proxy, |name| std::env::var(name).ok()))
    }

    async fn connect(&self, url: Uri) -> Result<Stream, ConnectError> {
        let https = url.scheme() == Some(&Scheme::HTTPS);
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let proxy = self.proxies().route(&url).map_err(ConnectError::ProxySetting)?;
        let tcp = match proxy {
            None => self.tcp(url).await?,
            Some(proxy) if https => self.tunnel(proxy, url).await?,
            Some(proxy) => {
                let connected = self.tcp(proxy.url.clone()).await;
                return connected.map(Stream::ViaProxy).map_err(|error| behind(proxy, error.into()));
            }
        };
        if !https {
            return Ok(Stream::Plain(tcp));
        }
        let config = self.tls.config(&self.settings.roots).await?;
        let name = ServerName::try_from(host).map_err(|error| ConnectError::Tls(io::Error::other(error)))?;
        let tls = TlsConnector::from(config).connect(name, tcp).await.map_err(ConnectError::Tls)?;
        Ok(Stream::Tls(Box::new(tls)))
    }

    async fn tcp(&self, url: Uri) -> Result<TcpStream, ConnectError> {
        let connected = self.tcp.clone().call(url).await;
        connected.map(TokioIo::into_inner).map_err(|error| ConnectError::Tcp(error.into()))
    }

    async fn tunnel(&self, proxy: &Server, url: Uri) -> Result<TcpStream, ConnectError> {
        let mut tunnel = Tunnel::new(proxy.url.clone(), self.tcp.clone());
        if let Some(authorization) = proxy.authorization.clone() {
            tunnel = tunnel.with_auth(authorization);
        }
        let connected = tunnel.call(url).await;
        connected.map(TokioIo::into_inner).map_err(|error| behind(proxy, error.into()))
    }
}

fn behind(proxy: &Server, error: BoxError) -> ConnectError {
    ConnectError::Proxy(proxy.url.authority().map_or("", Authority::as_str).to_owned(), error)
}
