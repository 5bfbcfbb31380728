//! The HTTP client of the wires: one request out, one response in, with every wait bounded and nothing repeated.
//!
//! Connections are kept and shared (HTTP/1.1, or HTTP/2 where the server offers it over TLS). Dropping a request or a
//! response closes its connection, or resets its HTTP/2 stream: the server learns that nobody listens any more.

mod connect;
mod explain;
mod heads;
mod pool;
mod proxy;
mod request;
mod response;
mod settings;
mod stream;
mod tls;

use std::{fmt, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use cepa_core::Error;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use connect::Connector;
use pool::Pool;
pub use request::HttpRequest;
pub(crate) use request::Prepared;
pub use response::HttpResponse;
use response::Limits;
pub use settings::{HttpSettings, Proxy};

/// A client with its settings and its pool of connections. Cloning it shares both.
///
/// Making one costs nothing and needs no runtime: roots of trust, proxies and connections are looked for at the first
/// request that needs them.
///
/// ```no_run
/// # async fn example() -> Result<(), cepa_core::Error> {
/// use cepa_providers::http::{HttpClient, HttpRequest, HttpSettings};
/// use tokio_util::sync::CancellationToken;
///
/// let client = HttpClient::new(HttpSettings::default());
/// let request = HttpRequest::get("http://127.0.0.1:11434/v1/models")?;
/// let response = client.send(request, &CancellationToken::new()).await?;
/// println!("{}: {:?}", response.status(), response.collect().await?);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HttpClient {
    settings: Arc<HttpSettings>,
    connector: Connector,
    pool: Pool,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(HttpSettings::default())
    }
}

/// The end of a call, whatever it does until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    /// The time from the begin of the call.
    pub(crate) total: Duration,
}

impl Deadline {
    /// A limit of one step, or what is left if that is less; then also how long the whole call may take.
    fn within(deadline: Option<Self>, limit: Duration) -> (Duration, Option<Duration>) {
        let left = deadline.map(|deadline| (deadline.at.saturating_duration_since(Instant::now()), deadline.total));
        left.filter(|(left, _)| *left < limit).map_or((limit, None), |(left, total)| (left, Some(total)))
    }
}

impl HttpClient {
    /// A client with these settings.
    pub fn new(settings: HttpSettings) -> Self {
        let settings = Arc::new(settings);
        let connector = Connector::new(settings.clone());
        let pool = Pool::new(connector.clone());
        Self { settings, connector, pool }
    }

    /// When a call that begins now is given up.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let total = self.settings.total_timeout?;
        Some(Deadline { at: Instant::now().checked_add(total)?, total })
    }

    /// Sends a request and waits for the head of its response. A response with an error status is a response.
    ///
    /// The request is sent once. (One exception, which no server can see: it goes to another connection when the kept one
    /// turns out to be closed before a byte of it was written.)
    ///
    /// # Errors
    /// `network` if the host was not reached (in time) or the connection broke, `timeout` if it was sent and not answered
    /// in time, `cancelled`, `decode` if what came back is not HTTP or has an encoding that was not asked for,
    /// `invalid_config` for an unusable proxy. Messages name the host and never the key.
    pub async fn send(&self, request: HttpRequest, cancel: &CancellationToken) -> Result<HttpResponse, Error> {
        let (request, body) = request.prepare(&self.settings);
        self.send_until(&request, body, cancel, self.deadline()).await
    }

    /// What is the same in each request like this one; its body is left out.
    pub(crate) fn prepare(&self, request: HttpRequest) -> Prepared {
        request.prepare(&self.settings).0
    }

    /// [`send`](Self::send) within a call that began before.
    pub(crate) async fn send_until(
        &self,
        to: &Prepared,
        body: Vec<Bytes>,
        cancel: &CancellationToken,
        deadline: Option<Deadline>,
    ) -> Result<HttpResponse, Error> {
        let start = Instant::now();
        let host = to.name();
        let request = to.request(body, self.connector.proxy_authorization(to.url()));
        let (limit, is_last) = Deadline::within(deadline, self.settings.response_timeout);
        let sending = pin!(self.pool.send(to, request));
        let sending = timeout(limit, sending);
        let (response, lease) = match cancel.run_until_cancelled(sending).await {
            None => return Err(explain::cancelled(host)),
            Some(Err(_)) if let Some(total) = is_last => return Err(explain::endless(host, total)),
            Some(Err(_)) => return Err(explain::no_answer(host, self.settings.response_timeout)),
            Some(Ok(Err(error))) => return Err(explain::request_failed(host, error)),
            Some(Ok(Ok(response))) => response,
        };
        let limits = Limits {
            start,
            total: self.settings.response_timeout,
            idle: self.settings.idle_timeout,
            deadline,
            bytes: self.settings.max_body_bytes,
        };
        HttpResponse::new(host.clone(), response, lease, limits, cancel.clone())
    }
}
