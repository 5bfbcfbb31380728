//! Other models that answer when the first one cannot.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use cepa_core::{
    BoxFuture, Chat, ChatEvent, ChatModel, ChatRequest, ChatResponse, Error, ErrorKind, EventSink, Filter, Next,
    Origin, SharedModel,
};

use super::{Place, has_place};
use crate::memory_filter::MEMORY_ORDER;

/// The place of [`Fallback`] unless it is given another: inside the memory filter, which so reads and stores once, whoever
/// answers; and further inside than what counts or limits the whole call.
pub const FALLBACK_ORDER: i32 = MEMORY_ORDER + 900;

type When = dyn Fn(&Error) -> bool + Send + Sync;
type Prepare = dyn Fn(&Origin, ChatRequest) -> ChatRequest + Send + Sync;

/// Calls other models, one after another, when the inside fails in a way that another provider may not: it is overloaded,
/// out of reach or too slow, its rate or quota is spent, the key is refused, its stream broke.
///
/// What is wrong with the request itself, and cancelling, ends the call as before; [`Fallback::when`] decides otherwise.
/// A model makes its own tries first. If some of a reply was streamed already, a [`ChatEvent::Reset`] voids it before the
/// next model is called. The reply's `origin` says who wrote it; the whole conversation is encoded for the one that is
/// called, and what only its author may see again is left out for others.
///
/// What is further inside runs again for each model. When all have failed, the first one's error is the result, with what
/// the others said.
///
/// ```
/// use cepa_agent::{Agent, filters::Fallback};
/// # fn assemble(first: impl cepa_core::ChatModel, second: impl cepa_core::ChatModel, local: impl cepa_core::ChatModel) {
/// let agent = Agent::builder(first).chat_filter(Fallback::to(second).then(local)).build();
/// # }
/// ```
#[derive(Clone)]
pub struct Fallback {
    place: Place,
    models: Vec<SharedModel>,
    when: Arc<When>,
    prepare: Arc<Prepare>,
}

has_place!(Fallback);

impl Fallback {
    /// This model answers when the inside cannot.
    pub fn to(model: impl ChatModel) -> Self {
        Self {
            place: Place { order: FALLBACK_ORDER, ..Place::named("fallback") },
            models: vec![SharedModel::new(model)],
            when: Arc::new(may_be_better_elsewhere),
            prepare: Arc::new(|_, request| request),
        }
    }

    /// And when that one cannot either, this one.
    pub fn then(mut self, model: impl ChatModel) -> Self {
        self.models.push(SharedModel::new(model));
        self
    }

    /// Decides after which errors the next model is called, in place of the common rule. (Not after a cancellation.)
    pub fn when(mut self, calls_next: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        self.when = Arc::new(calls_next);
        self
    }

    /// Rewrites the request for each of the other models: options that only the first one knows (`extra`, `thinking`) are
    /// else sent to all.
    pub fn preparing(mut self, prepare: impl Fn(&Origin, ChatRequest) -> ChatRequest + Send + Sync + 'static) -> Self {
        self.prepare = Arc::new(prepare);
        self
    }

    fn calls_next(&self, error: &Error, request: &ChatRequest) -> bool {
        error.kind() != ErrorKind::Cancelled && !request.context.cancel().is_cancelled() && (self.when)(error)
    }

    async fn answer(&self, request: ChatRequest, next: Next<Chat>) -> Result<ChatResponse, Error> {
        let stream = Stream::before(&request.events);
        let first = match next.clone().run(ChatRequest { events: stream.sink(), ..request.clone() }).await {
            Err(error) if self.calls_next(&error, &request) => error,
            done => return done,
        };
        let mut others: Vec<(&Origin, Error)> = Vec::new();
        for model in &self.models {
            let origin = model.origin();
            tell(others.last().map_or(&first, |(_, error)| error), origin);
            stream.void();
            let (events, model) = (stream.sink(), Some(model.clone()));
            let again = (self.prepare)(origin, ChatRequest { events, model, ..request.clone() });
            let error = match next.clone().run(again).await {
                Ok(mut response) => {
                    response.message.origin.get_or_insert_with(|| origin.clone());
                    return Ok(response);
                }
                Err(error) => error,
            };
            let goes_on = self.calls_next(&error, &request);
            others.push((origin, error));
            if !goes_on {
                break;
            }
        }
        Err(all_failed(first, &others))
    }
}

fn tell(failed: &Error, next: &Origin) {
    tracing::warn!(
        kind = failed.kind().as_str(),
        status = failed.status(),
        failed = failed.provider(),
        provider = &*next.provider,
        model = &*next.model,
        "another model is called"
    );
}

/// A provider's trouble, not the request's.
fn may_be_better_elsewhere(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::RateLimit
        | ErrorKind::Quota
        | ErrorKind::Overloaded
        | ErrorKind::Server
        | ErrorKind::Auth
        | ErrorKind::Network
        | ErrorKind::Timeout
        | ErrorKind::Truncated => true,
        ErrorKind::Provider => error.is_retryable(),
        _ => false,
    }
}

/// The first error, with what the others said. A cancellation is one, whatever came before.
fn all_failed(first: Error, others: &[(&Origin, Error)]) -> Error {
    if let Some((_, cancelled)) = others.last().filter(|(_, error)| error.kind() == ErrorKind::Cancelled) {
        return cancelled.clone();
    }
    let mut message = first.message().to_owned();
    for (origin, error) in others {
        message.push_str(&format!(
            "; then {}/{} failed: {}: {}",
            origin.provider,
            origin.model,
            error.kind(),
            error.message()
        ));
    }
    let text = others.iter().rev().find_map(|(_, error)| error.partial_text());
    let error = first.with_message(message);
    match text {
        // What came last is what a listener still has.
        Some(text) => error.with_partial_text(text),
        None => error,
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<&Origin> = self.models.iter().map(SharedModel::origin).collect();
        f.debug_struct("Fallback").field("place", &self.place).field("models", &models).finish_non_exhaustive()
    }
}

impl Filter<Chat> for Fallback {
    fn around(&self, request: ChatRequest, next: Next<Chat>) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(self.answer(request, next))
    }
}

/// The caller's sink, and whether anything of the reply at hand has reached it.
struct Stream {
    outer: EventSink,
    delivered: Arc<AtomicBool>,
}

impl Stream {
    fn before(outer: &EventSink) -> Self {
        Self { outer: outer.clone(), delivered: Arc::default() }
    }

    /// A sink for one model.
    fn sink(&self) -> EventSink {
        if !self.outer.is_wanted() {
            return EventSink::none();
        }
        let (outer, delivered) = (self.outer.clone(), Arc::clone(&self.delivered));
        EventSink::new(move |event| {
            // Usage needs no reset: later values replace earlier ones.
            match event {
                ChatEvent::Usage(_) => {}
                ChatEvent::Reset => delivered.store(false, Ordering::Relaxed),
                _ => delivered.store(true, Ordering::Relaxed),
            }
            outer.emit(event);
        })
    }

    /// Tells that what was delivered is void, if anything was.
    fn void(&self) {
        if self.delivered.swap(false, Ordering::Relaxed) {
            self.outer.emit(ChatEvent::Reset);
        }
    }
}
