//! A model behind HTTP: any dialect, its request sent, its reply decoded, with retries before the first event (W5).

mod bare;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use bare::Bare;
use bytes::Bytes;
use cepa_core::{BoxFuture, ChatEvent, ChatModel, ChatRequest, ChatResponse, Error, ErrorKind, EventSink, Origin};
use http::{HeaderMap, header::CONTENT_TYPE};
use tokio::time::{Instant, timeout_at};

use crate::{
    classify::{request_id, wait},
    http::{Deadline, HttpClient, HttpRequest, HttpResponse, Prepared},
    limit::Limiter,
    retry::{Failed, RetryPolicy, retry},
    secret::{self, ApiKey},
    wire::{
        Delivery, Dialect,
        caps::Caps,
        failed,
        names::ToolNames,
        reply::{ReplyDecoder, tell_whole, whole},
    },
};

/// How long a stream whose reply is complete is read on for figures about it.
const AFTER_REPLY: Duration = Duration::from_secs(1);

/// Where and how a [`Client`] sends.
#[derive(Clone)]
pub struct Target {
    /// The provider's catalog entry and the model.
    pub origin: Origin,
    /// The whole address of the endpoint.
    pub url: String,
    /// Headers of every request, the key's among them.
    pub headers: HeaderMap,
    /// The key, so that it can be taken out of error messages.
    pub key: Option<ApiKey>,
    /// Connections and time limits.
    pub http: HttpClient,
    /// How often a request is tried.
    pub retry: RetryPolicy,
}

impl fmt::Debug for Target {
    /// Without the values of headers and the address's query, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("origin", &self.origin)
            .field("url", &self.url.split('?').next().unwrap_or_default())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("http", &self.http)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// A model of one provider. Cloning it shares everything.
#[derive(Debug)]
pub struct Client<D> {
    inside: Arc<Inside<D>>,
    limiter: Option<Limiter>,
    caps: Caps,
}

#[derive(Debug)]
struct Inside<D> {
    dialect: D,
    target: Target,
    /// The requests for a reply in one piece, and as a stream.
    whole: Result<Prepared, Error>,
    streamed: Result<Prepared, Error>,
}

/// What a call waits for no longer than.
#[derive(Clone, Copy)]
struct Until {
    /// A place in the limiter.
    place: Option<Instant>,
    /// The reply.
    end: Option<Deadline>,
}

impl<D> Clone for Client<D> {
    fn clone(&self) -> Self {
        Self { inside: Arc::clone(&self.inside), limiter: self.limiter.clone(), caps: self.caps }
    }
}

impl<D: Dialect> Client<D> {
    /// A client that speaks this dialect with that endpoint.
    pub fn new(dialect: D, target: Target) -> Self {
        let prepare = |delivery| {
            let mut post = HttpRequest::post(&dialect.address(&target.url, delivery), Vec::new())?;
            post.headers_mut().extend(target.headers.clone());
            Ok(target.http.prepare(post))
        };
        let (whole, streamed) = (prepare(Delivery::Whole), prepare(Delivery::Streamed));
        Self { inside: Arc::new(Inside { dialect, target, whole, streamed }), limiter: None, caps: Caps::default() }
    }

    /// Shares a limit with other clients; `None` for none.
    ///
    /// # Errors
    /// `invalid_config` if the limiter would let nothing through.
    pub fn with_limiter(mut self, limiter: Option<Limiter>) -> Result<Self, Error> {
        if let Some(limiter) = &limiter {
            limiter.check()?;
        }
        self.limiter = limiter;
        Ok(self)
    }

    /// Sets how much of a reply is taken.
    pub fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// The dialect.
    pub fn dialect(&self) -> &D {
        &self.inside.dialect
    }

    /// Where and how it sends.
    pub fn target(&self) -> &Target {
        &self.inside.target
    }

    async fn call(&self, request: ChatRequest) -> Result<ChatResponse, Error> {
        let names = ToolNames::of(&request.tools)?;
        let body = self.inside.dialect.encode(&request)?;
        let sink = names.restoring(request.events.clone());
        let end = self.inside.target.http.deadline();
        let mut policy = self.inside.target.retry.clone();
        if let Some(end) = end {
            // No try is begun that could not be answered.
            policy.deadline = policy.deadline.min(end.total);
        }
        // Waiting for a place counts like waiting for an answer.
        let until = Until { place: Instant::now().checked_add(policy.deadline), end };
        let response =
            retry(&policy, request.context.cancel(), |_| self.limited(&request, until, body.clone(), sink.clone()));
        let response = response.await;
        let mut response = response.map_err(|error| secret::without(self.inside.target.key.as_ref(), error))?;
        names.restore(&mut response.message);
        response.offered = request.tools;
        response.context = request.context;
        Ok(response)
    }

    /// One try, in its turn.
    async fn limited(
        &self,
        request: &ChatRequest,
        until: Until,
        body: Vec<Bytes>,
        sink: EventSink,
    ) -> Result<ChatResponse, Failed> {
        let Some(limiter) = &self.limiter else { return self.attempt(request, until, body, sink).await };
        let _permit = limiter.place(request.context.cancel(), until.place).await?;
        let result = self.attempt(request, until, body, sink).await;
        if let Err(Failed::Unseen(error) | Failed::Delivered(error)) = &result
            && error.kind() == ErrorKind::RateLimit
            && let Some(wait) = error.retry_after()
        {
            limiter.hold(wait);
        }
        result
    }

    async fn attempt(
        &self,
        request: &ChatRequest,
        until: Until,
        body: Vec<Bytes>,
        sink: EventSink,
    ) -> Result<ChatResponse, Failed> {
        let target = &self.inside.target;
        let post = if sink.is_wanted() { &self.inside.streamed } else { &self.inside.whole };
        let post = post.as_ref().map_err(Clone::clone)?;
        let mut response = target.http.send_until(post, body, request.context.cancel(), until.end).await?;
        if !response.is_success() {
            return Err(response.into_error(&target.origin.provider, target.key.as_ref()).await.into());
        }
        if matches!(response.status(), 204 | 205) {
            return Err(failed::no_content(&target.origin, response.status()).into());
        }
        let is_stream = is_stream(response.headers(), sink.is_wanted());
        let headers = response.take_headers();
        let delivered = Arc::new(AtomicBool::new(false));
        let sink = marking(sink, Arc::clone(&delivered));
        let result =
            if is_stream { self.read_stream(response, sink).await } else { self.read_whole(response, &sink).await };
        result.map_err(|mut error| {
            // An error behind a 200 names its request, and its wait, as one with a status does.
            if error.request_id().is_none()
                && let Some(id) = request_id(&headers)
            {
                error = error.with_request_id(id);
            }
            if error.retry_after().is_none()
                && is_refusal(error.kind())
                && let Some(asked) = wait(&headers, SystemTime::now())
            {
                error = error.with_retry_after(asked);
            }
            if delivered.load(Ordering::Relaxed) { Failed::Delivered(error) } else { Failed::Unseen(error) }
        })
    }

    async fn read_whole(&self, response: HttpResponse, sink: &EventSink) -> Result<ChatResponse, Error> {
        self.whole(&response.collect().await?, sink)
    }

    /// The reply in a body.
    fn whole(&self, body: &[u8], sink: &EventSink) -> Result<ChatResponse, Error> {
        if bare::begins(body) == Some(b'<') {
            return Err(failed::page(&self.inside.target.origin, &String::from_utf8_lossy(body)));
        }
        let response = whole(&self.inside.dialect, self.caps, body)?;
        // A server that does not stream although it was asked to: who listens hears the reply at once.
        tell_whole(&response.message, sink);
        Ok(response)
    }

    async fn read_stream(&self, mut response: HttpResponse, sink: EventSink) -> Result<ChatResponse, Error> {
        let mut reply = ReplyDecoder::new(&self.inside.dialect, sink.clone()).with_caps(self.caps);
        let mut bare = Bare::default();
        let mut give_up = None;
        while !reply.is_done() {
            let chunk = if reply.is_whole() {
                // The reply is there. Whatever happens to the connection now takes nothing away.
                let give_up = *give_up.get_or_insert_with(|| Instant::now() + AFTER_REPLY);
                match timeout_at(give_up, response.next_chunk()).await {
                    Ok(Ok(chunk)) => chunk,
                    Ok(Err(_)) | Err(_) => None,
                }
            } else {
                match response.next_chunk().await {
                    Ok(chunk) => chunk,
                    // After a cancel nothing more is delivered.
                    Err(error) if error.kind() == ErrorKind::Cancelled => return Err(reply.ended_by(error)),
                    Err(error) => return self.bare(bare, &sink, || Err(reply.ended_by(error))),
                }
            };
            match chunk {
                Some(chunk) => {
                    bare.push(&chunk);
                    reply.push(&chunk)?;
                    if reply.has_begun() {
                        bare = Bare::Stream;
                    }
                }
                None => return self.bare(bare, &sink, || reply.finish()),
            }
        }
        let result = reply.finish();
        response.finish().await;
        result
    }

    /// What a body means that was taken for a stream and held no event: a reply or an error as it would have come unasked. Where
    /// it is neither, what the stream makes of it.
    fn bare(
        &self,
        bare: Bare,
        sink: &EventSink,
        streamed: impl FnOnce() -> Result<ChatResponse, Error>,
    ) -> Result<ChatResponse, Error> {
        let Bare::Body(body) = bare else { return streamed() };
        let unreadable = match self.whole(&body, sink) {
            Err(error) if error.kind() == ErrorKind::Decode => error,
            result => return result,
        };
        match streamed() {
            // Nothing was cut off: the next try would meet the same.
            Err(error) if error.kind() == ErrorKind::Truncated && !bare::is_cut(&body) => Err(unreadable),
            result => result,
        }
    }
}

impl<D: Dialect> ChatModel for Client<D> {
    fn origin(&self) -> &Origin {
        &self.inside.target.origin
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(async move {
            let provider = &self.inside.target.origin.provider;
            self.call(request).await.map_err(|error| match error.provider() {
                Some(_) => error,
                None => error.with_provider(provider.clone()),
            })
        })
    }
}

/// Whether a body is a stream of events: its type tells, and where that says nothing, what was asked for.
fn is_stream(headers: &HeaderMap, wanted: bool) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind).trim();
    let is = |name: &str| kind.eq_ignore_ascii_case(name);
    is("text/event-stream") || (wanted && !is("application/json") && !is("text/html"))
}

/// Whether a provider has refused, so that its headers may say for how long.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::RateLimit | ErrorKind::Quota | ErrorKind::Overloaded | ErrorKind::Server)
}

/// A sink before this one that remembers whether anything was delivered. Usage does not count: later values replace earlier
/// ones, so it may come again.
fn marking(inner: EventSink, delivered: Arc<AtomicBool>) -> EventSink {
    if !inner.is_wanted() {
        return inner;
    }
    EventSink::new(move |event| {
        if !matches!(event, ChatEvent::Usage(_)) {
            delivered.store(true, Ordering::Relaxed);
        }
        inner.emit(event);
    })
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
