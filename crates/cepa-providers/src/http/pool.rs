//! The connections of a client: kept, and given to the next request for the same server.
//!
//! One of HTTP/1.1 carries a request at a time: who has it holds a [`Lease`] until the response was read. One of HTTP/2 is
//! shared.

use std::{
    error::Error as StdError,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use http::{Request, Response, Uri};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::{
    client::legacy::connect::Connection as _,
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::{
    runtime::{Handle, Id},
    task::{AbortHandle, JoinHandle, yield_now},
    time::{Instant, timeout},
};

use super::{
    connect::{ConnectError, Connector},
    request::{Pieces, Prepared},
};

/// An idle connection is closed after this time: a bit before the minute after which common load balancers close it,
/// so that a request does not meet a connection that is just going away.
const IDLE: Duration = Duration::from_secs(50);

/// A connection whose response was read is free in an instant, once its own task has seen that too. One that still sends the
/// body of a request that nobody waits for is not worth more.
const AT_ONCE: Duration = Duration::from_millis(10);

/// A connection that was idle for so long may be closed without anybody having seen it: the runtime does not look at its sockets
/// while a program of one thread does something else, as waiting for its user.
const UNWATCHED: Duration = Duration::from_millis(10);

/// HTTP/2 pings while a request is open, so that a connection that died unnoticed does not hold it until its timeout.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWER: Duration = Duration::from_secs(20);

/// Why there is no response.
#[derive(Debug)]
pub(super) enum SendError {
    /// Nothing was sent.
    Connect(ConnectError),
    Http(hyper::Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect(_) => "the server was not reached",
            Self::Http(_) => "the request failed",
        })
    }
}

impl StdError for SendError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Connect(error) => Some(error),
            Self::Http(error) => Some(error),
        }
    }
}

impl From<hyper::Error> for SendError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

/// Shared by the clones of a client.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    connector: Connector,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Those that were used last stand at the end.
    lines: Vec<Line>,
    /// Closes what nobody uses any more.
    sweeper: Option<JoinHandle<()>>,
}

/// A connection that requests can be sent on.
struct Line {
    /// An address there.
    url: Uri,
    sender: Sender,
    /// It leads to a proxy that wants the whole address in each request.
    is_proxied: bool,
    /// When it was used last.
    since: Instant,
    /// The runtime that drives it. It serves no request of another one, which goes on where this one may stand still.
    runtime: Option<Id>,
}

enum Sender {
    One(Own),
    Shared(http2::SendRequest<Pieces>),
}

/// A connection of HTTP/1.1 and who drives it.
struct Own {
    sender: http1::SendRequest<Pieces>,
    driver: AbortHandle,
}

impl Drop for Own {
    fn drop(&mut self) {
        // A free one says good-bye. Else whoever drives it would go on with the body of a request that was answered, as long as
        // the server takes it or not.
        if !self.sender.is_ready() {
            self.driver.abort();
        }
    }
}

/// A connection whose response is being read. Dropping it closes the connection.
pub(super) struct Lease {
    line: Line,
    pool: Weak<Shared>,
}

impl Lease {
    /// The response was read to its end: the connection serves the next request.
    pub(super) fn give_back(self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.keep(self.line);
        }
    }
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        Self(Arc::new(Shared { connector, kept: Mutex::default() }))
    }

    /// Sends a request and waits for the head of its response. It is sent once; only where a kept connection turns out to be
    /// closed before a byte was written, another one is taken.
    pub(super) async fn send(
        &self,
        to: &Prepared,
        mut request: Request<Pieces>,
    ) -> Result<(Response<Incoming>, Option<Lease>), SendError> {
        loop {
            let (mut line, was_kept) = match self.0.take(to.url()) {
                Some(mut line) => {
                    if line.since.elapsed() >= UNWATCHED {
                        look_at_sockets().await;
                    }
                    if !line.is_ready() {
                        match timeout(AT_ONCE, line.ready()).await {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) => continue,
                            Err(_) => {
                                self.0.drop_busy();
                                continue;
                            }
                        }
                    }
                    (line, true)
                }
                // Boxed: it is large and rare.
                None => (Box::pin(self.0.connect(to.url())).await?, false),
            };
            match line.sender {
                Sender::One(_) => to.address_http1(&mut request, line.is_proxied),
                Sender::Shared(_) => to.address_http2(&mut request),
            }
            match line.send(request).await {
                Ok(response) => {
                    let lease = match line.sender {
                        Sender::One(_) => Some(Lease { line, pool: Arc::downgrade(&self.0) }),
                        Sender::Shared(_) => None,
                    };
                    return Ok((response, lease));
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if was_kept => request = unsent,
                    _ => return Err(error.into_error().into()),
                },
            }
        }
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What is in it is whole between any two statements.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to this server that is free, or nearly.
    fn take(&self, url: &Uri) -> Option<Line> {
        let (mut kept, now, runtime) = (self.kept(), Instant::now(), runtime());
        let lines = &mut kept.lines;
        lines.retain(|line| !line.is_over(now));
        let leads_to = |line: &Line| line.runtime == runtime && line.leads_to(url);
        let last = |is: &dyn Fn(&Line) -> bool| lines.iter().rposition(|line| leads_to(line) && is(line));
        let place = last(&Line::is_ready).or_else(|| last(&|_| true))?;
        let line = lines.get_mut(place)?;
        let Sender::Shared(sender) = &line.sender else { return Some(lines.remove(place)) };
        let sender = Sender::Shared(sender.clone());
        let since = std::mem::replace(&mut line.since, now);
        Some(Line { url: url.clone(), sender, is_proxied: line.is_proxied, since, runtime })
    }

    /// Drops what was given back and did not become free in an instant, so that nobody waits for one after the other.
    fn drop_busy(&self) {
        let (now, runtime) = (Instant::now(), runtime());
        let is_busy = |line: &Line| !line.is_ready() && now.saturating_duration_since(line.since) >= AT_ONCE;
        self.kept().lines.retain(|line| line.runtime != runtime || !is_busy(line));
    }

    fn keep(self: &Arc<Self>, mut line: Line) {
        line.since = Instant::now();
        let mut kept = self.kept();
        kept.lines.push(line);
        // It ends with its runtime, where that is not the only one.
        if kept.sweeper.as_ref().is_none_or(JoinHandle::is_finished) {
            kept.sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))));
        }
    }

    async fn connect(self: &Arc<Self>, url: &Uri) -> Result<Line, SendError> {
        let stream = self.connector.connect(url).await.map_err(SendError::Connect)?;
        let connected = stream.connected();
        let line = |sender| Line {
            url: url.clone(),
            sender,
            is_proxied: connected.is_proxied(),
            since: Instant::now(),
            runtime: runtime(),
        };
        let stream = TokioIo::new(stream);
        if !connected.is_negotiated_h2() {
            let (mut sender, connection) = http1::handshake(stream).await?;
            let driver = tokio::spawn(connection);
            return match sender.ready().await {
                Ok(()) => Ok(line(Sender::One(Own { sender, driver: driver.abort_handle() }))),
                // The sender knows only that it is closed; who drives the connection knows why.
                Err(closed) => Err(driver.await.ok().and_then(Result::err).unwrap_or(closed).into()),
            };
        }
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_ANSWER)
            .handshake(stream)
            .await?;
        tokio::spawn(connection);
        sender.ready().await?;
        // Somebody may have been faster; one connection is enough for all.
        if let Some(line) = self.take(url).filter(|line| matches!(line.sender, Sender::Shared(_))) {
            return Ok(line);
        }
        self.keep(line(Sender::Shared(sender.clone())));
        Ok(line(Sender::Shared(sender)))
    }
}

impl Line {
    fn leads_to(&self, url: &Uri) -> bool {
        self.url.scheme() == url.scheme() && self.url.authority() == url.authority()
    }

    fn is_over(&self, now: Instant) -> bool {
        let is_closed = match &self.sender {
            Sender::One(own) => own.sender.is_closed(),
            Sender::Shared(sender) => sender.is_closed(),
        };
        is_closed || now.saturating_duration_since(self.since) >= IDLE
    }

    fn is_ready(&self) -> bool {
        match &self.sender {
            Sender::One(own) => own.sender.is_ready(),
            Sender::Shared(sender) => sender.is_ready(),
        }
    }

    async fn ready(&mut self) -> Result<(), hyper::Error> {
        match &mut self.sender {
            Sender::One(own) => own.sender.ready().await,
            Sender::Shared(sender) => sender.ready().await,
        }
    }

    async fn send(&mut self, request: Request<Pieces>) -> Result<Response<Incoming>, TrySendError<Request<Pieces>>> {
        match &mut self.sender {
            Sender::One(own) => own.sender.try_send_request(request).await,
            Sender::Shared(sender) => sender.try_send_request(request).await,
        }
    }
}

fn runtime() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

/// Lets the runtime look at its sockets, and then the tasks run that have learnt something from it.
async fn look_at_sockets() {
    yield_now().await;
    yield_now().await;
}

async fn sweep(pool: Weak<Shared>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(pool) = pool.upgrade() else { return };
        let (mut kept, now) = (pool.kept(), Instant::now());
        kept.lines.retain(|line| !line.is_over(now));
        if kept.lines.is_empty() {
            kept.sweeper = None;
            return;
        }
    }
}
