//! A response: its head, and a body that is read whole or piece by piece, never without a bound.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use cepa_core::Error;
use http::{HeaderMap, Response, StatusCode, header};
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{Deadline, explain, pool::Lease};
use crate::{
    classify::{Failure, classify},
    secret::ApiKey,
};

/// What is read of an error body: no provider says more, and a broken server may say anything.
const ERROR_BYTES: usize = 256 * 1024;
const ERROR_WAIT: Duration = Duration::from_secs(5);

/// How long the end of a stream is waited for after its last event, to keep the connection: longer than the 40 ms for
/// which a kernel may delay an acknowledgement, shorter than making a new connection takes.
const END_WAIT: Duration = Duration::from_millis(50);

/// The bounds of one response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) start: Instant,
    /// From the start of the request to the end of a collected body.
    pub(super) total: Duration,
    pub(super) idle: Duration,
    pub(super) deadline: Option<Deadline>,
    pub(super) bytes: usize,
}

/// A response whose body has not been read. Dropping it ends the connection, or its part of one.
pub struct HttpResponse {
    host: Arc<str>,
    status: StatusCode,
    headers: HeaderMap,
    body: State,
    /// The connection, while it is this response's alone.
    lease: Option<Lease>,
    limits: Limits,
    cancel: CancellationToken,
}

enum State {
    Open(Incoming),
    Ended,
    Failed(Error),
}

impl fmt::Debug for HttpResponse {
    /// Without the values of headers, in which a server may have written anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("host", &self.host)
            .field("status", &self.status)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl HttpResponse {
    pub(super) fn new(
        host: Arc<str>,
        response: Response<Incoming>,
        mut lease: Option<Lease>,
        limits: Limits,
        cancel: CancellationToken,
    ) -> Result<Self, Error> {
        let (head, body) = response.into_parts();
        if body.is_end_stream() {
            give_back(&mut lease);
        }
        let encoding =
            head.headers.get(header::CONTENT_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let body = match encoding {
            Some(encoding) if !encoding.eq_ignore_ascii_case("identity") && !encoding.is_empty() => {
                if head.status.is_success() {
                    return Err(explain::encoded(&host, &encoding));
                }
                // The status of a failure says enough.
                State::Ended
            }
            _ => State::Open(body),
        };
        Ok(Self { host, status: head.status, headers: head.headers, body, lease, limits, cancel })
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Whether the status says that all went well (2xx).
    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Takes the headers out, for what comes after the body.
    pub(crate) fn take_headers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.headers)
    }

    /// The next piece of the body; `None` at its clean end.
    ///
    /// # Errors
    /// `timeout` if no piece comes within the idle timeout, or the total timeout is over, `cancelled`, `network` if the connection breaks: before the
    /// end that the server announced, an end is not clean. After an error the same error comes again.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let body = match &mut self.body {
            State::Open(body) => body,
            State::Ended => return Ok(None),
            State::Failed(error) => return Err(error.clone()),
        };
        // The token also wins over pieces that are there: after a cancel nothing more is delivered.
        if self.cancel.is_cancelled() {
            return Err(self.fail(explain::cancelled(&self.host)));
        }
        let (limit, is_last) = Deadline::within(self.limits.deadline, self.limits.idle);
        // So does the deadline: what comes one by one is always there in time.
        if let Some(total) = is_last.filter(|_| limit.is_zero()) {
            return Err(self.fail(explain::endless(&self.host, total)));
        }
        let piece = timeout(limit, data(body));
        let problem = match self.cancel.run_until_cancelled(piece).await {
            Some(Ok(Some(Ok(data)))) => {
                if body.is_end_stream() {
                    self.end();
                }
                return Ok(Some(data));
            }
            Some(Ok(None)) => {
                self.end();
                return Ok(None);
            }
            Some(Ok(Some(Err(error)))) => explain::body_broke(&self.host, error),
            Some(Err(_)) if let Some(total) = is_last => explain::endless(&self.host, total),
            Some(Err(_)) => explain::silent(&self.host, self.limits.idle),
            None => explain::cancelled(&self.host),
        };
        Err(self.fail(problem))
    }

    /// All of the body was read.
    fn end(&mut self) {
        self.body = State::Ended;
        give_back(&mut self.lease);
    }

    /// Closes the body at once and remembers why.
    fn fail(&mut self, error: Error) -> Error {
        self.body = State::Failed(error.clone());
        error
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`HttpResponse::next_chunk`], and `timeout` past the response timeout, `decode` past the largest size.
    pub async fn collect(mut self) -> Result<Bytes, Error> {
        let announced = match &self.body {
            State::Open(body) => body.size_hint().lower(),
            State::Ended | State::Failed(_) => 0,
        };
        let most = self.limits.bytes;
        if usize::try_from(announced).map_or(true, |bytes| bytes > most) {
            return Err(explain::too_large(&self.host, most));
        }
        let left = self.limits.total.saturating_sub(self.limits.start.elapsed());
        match timeout(left, self.gather(most)).await {
            Ok(Ok(Some(body))) => Ok(body),
            Ok(Ok(None)) => Err(explain::too_large(&self.host, most)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(explain::no_answer(&self.host, self.limits.total)),
        }
    }

    /// The body of a failure as text: as much as came, whatever it is, and quickly. It never fails, because the status
    /// is worth more than the text.
    pub async fn error_text(mut self) -> String {
        self.read_error().await.0
    }

    /// The body of a failure, and whether that was all of it.
    async fn read_error(&mut self) -> (String, bool) {
        let mut text = BytesMut::new();
        // What was read before the time was over is kept.
        let _ = timeout(ERROR_WAIT, async {
            while text.len() < ERROR_BYTES {
                match self.next_chunk().await {
                    Ok(Some(data)) => text.extend_from_slice(&data),
                    Ok(None) | Err(_) => break,
                }
            }
        })
        .await;
        let is_all = text.len() < ERROR_BYTES && matches!(self.body, State::Ended);
        text.truncate(ERROR_BYTES);
        (String::from_utf8_lossy(&text).into_owned(), is_all)
    }

    /// The error that a response with an error status means (W4), with what its body says.
    pub async fn into_error(mut self, provider: &str, key: Option<&ApiKey>) -> Error {
        let (mut body, is_all) = self.read_error().await;
        if self.cancel.is_cancelled() {
            return explain::cancelled(&self.host);
        }
        if let Some(key) = key.filter(|_| !is_all) {
            // Half of it may be the last that came.
            body = key.redact_cut(&body);
        }
        classify(&Failure {
            provider,
            status: Some(self.status()),
            headers: &self.headers,
            body: &body,
            now: SystemTime::now(),
            key,
        })
    }

    /// Ends a stream whose last event was seen. The rest, usually an empty last chunk, is awaited for an instant so that
    /// the connection can serve the next request.
    pub async fn finish(mut self) {
        let _ = timeout(END_WAIT, async { while let Ok(Some(_)) = self.next_chunk().await {} }).await;
    }

    /// Reads to the end; `None` if more than `most` bytes came.
    async fn gather(&mut self, most: usize) -> Result<Option<Bytes>, Error> {
        // A body in one piece, as most are, is not copied.
        let Some(first) = self.next_chunk().await? else { return Ok(Some(Bytes::new())) };
        let Some(second) = self.next_chunk().await? else { return Ok((first.len() <= most).then_some(first)) };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while all.len() <= most {
            match self.next_chunk().await? {
                Some(data) => all.extend_from_slice(&data),
                None => return Ok(Some(all.freeze())),
            }
        }
        Ok(None)
    }
}

fn give_back(lease: &mut Option<Lease>) {
    if let Some(lease) = lease.take() {
        lease.give_back();
    }
}

/// The next data of a body; trailers and empty pieces are skipped.
async fn data(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        let frame = match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await? {
            Ok(frame) => frame,
            Err(error) => return Some(Err(error)),
        };
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Some(Ok(data));
        }
    }
}
