//! A reply from its bytes: a body whole, or server-sent events in any pieces; events and at the end a response out.

use cepa_core::{AssistantMessage, ChatEvent, ChatResponse, Error, ErrorKind, EventSink};

use super::{
    Accumulator, Dialect,
    caps::{self, Caps, Counter},
    failed::reported_beside,
};
use crate::sse::{LentEvent, SseDecoder};

/// Decodes the body of a streamed reply, however the network cuts it.
///
/// ```
/// use cepa_core::{ChatEvent, EventSink, Origin};
/// use cepa_providers::wire::{openai_chat::{OpenAiChat, Quirks}, reply::ReplyDecoder};
///
/// let dialect = OpenAiChat::new(Origin { provider: "openai".into(), model: "m".into() }, Quirks::default());
/// let mut reply = ReplyDecoder::new(&dialect, EventSink::new(|event| println!("{event:?}")));
/// reply.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hel")?;
/// reply.push(b"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")?;
/// assert!(reply.is_done());
/// assert_eq!(reply.finish()?.message.content.map(|c| c.text().into_owned()).as_deref(), Some("Hello"));
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ReplyDecoder<A> {
    sse: SseDecoder,
    reading: Reading<A>,
    /// The bytes so far.
    bytes: usize,
}

/// What was read so far.
#[derive(Debug)]
struct Reading<A> {
    fold: A,
    sink: EventSink,
    caps: Caps,
    counter: Counter,
    /// An event was seen.
    has_begun: bool,
    /// Something of the reply stood behind the word for its end, which so means nothing here.
    went_on: bool,
    /// What follows is not read.
    is_over: bool,
}

impl<A: Accumulator> ReplyDecoder<A> {
    /// At the start of a body; events go to the sink as they become known.
    pub fn new<D: Dialect<Accumulator = A>>(dialect: &D, sink: EventSink) -> Self {
        let caps = Caps::default();
        let counter = Counter::new(caps);
        Self {
            sse: SseDecoder::new().with_max_event_bytes(caps.event_bytes),
            reading: Reading {
                fold: dialect.accumulator(),
                sink: counter.before(sink),
                caps,
                counter,
                has_begun: false,
                went_on: false,
                is_over: false,
            },
            bytes: 0,
        }
    }

    /// Sets other bounds, before the first piece.
    pub fn with_caps(mut self, caps: Caps) -> Self {
        self.sse = self.sse.with_max_event_bytes(caps.event_bytes);
        self.reading.counter.set(caps);
        self.reading.caps = caps;
        self
    }

    /// Takes the next piece of the body.
    ///
    /// # Errors
    /// What the stream reports or cannot be read, with the text so far. The decoder is of no use afterwards.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let within = self.reading.caps.reply_bytes.saturating_sub(self.bytes).min(chunk.len());
        self.bytes = self.bytes.saturating_add(chunk.len());
        let (mut taken, left) = chunk.split_at_checked(within).unwrap_or((chunk, &[]));
        // What follows the end of a reply is nobody's: in another cut it would not have been read.
        while !self.is_done() {
            let fault = match self.sse.next_event(&mut taken) {
                Ok(Some(event)) => match self.reading.take(event) {
                    Ok(()) => continue,
                    Err(error) => return Err(self.ended_by(error)),
                },
                Ok(None) if left.is_empty() => return Ok(()),
                Ok(None) => self.reading.caps.reply_too_large(),
                Err(error) => error,
            };
            let is_whole = self.is_whole();
            self.reading.unreadable(fault, is_whole).map_err(|error| self.ended_by(error))?;
        }
        Ok(())
    }

    /// Whether the end of the reply was seen, so that nothing more need be read.
    pub fn is_done(&self) -> bool {
        self.reading.is_done()
    }

    /// Whether an event was seen.
    pub(crate) fn has_begun(&self) -> bool {
        self.reading.has_begun
    }

    /// Whether the reply is complete, though figures about it may still follow. A word for the end alone does not say so: there
    /// are servers that put one into each chunk, or into the first; so something must have come, and nothing behind it.
    pub fn is_whole(&self) -> bool {
        self.reading.is_whole()
    }

    /// The text so far.
    pub fn partial_text(&self) -> &str {
        self.reading.fold.partial_text()
    }

    /// The response, at the end of the body.
    ///
    /// # Errors
    /// `truncated` if the body ended before the reply did, or the error that stands in it beside its events, even if all of a
    /// reply came (decision 010); with the text so far.
    pub fn finish(mut self) -> Result<ChatResponse, Error> {
        if !self.is_done()
            && let Some(event) = self.sse.finish()
        {
            self.reading.take(event.lend()).map_err(|error| self.ended_by(error))?;
        }
        let Reading { fold, sink, caps, counter, .. } = self.reading;
        if let Some(error) = reported_beside(fold.origin(), &self.sse.beside()) {
            return Err(keep_text(error, fold.partial_text()));
        }
        let text = fold.partial_text().to_owned();
        let checked =
            |response: ChatResponse| counter.check().and_then(|()| caps.check(&response.message)).map(|()| response);
        fold.finish(&sink).and_then(checked).map_err(|error| keep_text(error, &text))
    }

    /// What ended this reply, with the text so far: the error that the provider wrote beside its events before the
    /// connection broke or an event could not be read, else this one.
    pub fn ended_by(&self, error: Error) -> Error {
        use ErrorKind::{Decode, Network, Timeout, Truncated};
        let fold = &self.reading.fold;
        let told = match error.kind() {
            Decode | Network | Timeout | Truncated => reported_beside(fold.origin(), &self.sse.beside()),
            _ => None,
        };
        keep_text(told.unwrap_or(error), fold.partial_text())
    }
}

impl<A: Accumulator> Reading<A> {
    fn is_done(&self) -> bool {
        self.is_over || self.fold.is_done()
    }

    fn is_whole(&self) -> bool {
        self.is_done() || (self.fold.is_whole() && !self.went_on && self.counter.told() > 0)
    }

    fn take(&mut self, event: LentEvent<'_>) -> Result<(), Error> {
        self.has_begun = true;
        let skipped = event.data.len() - caps::begin(event.data.as_bytes()).len();
        let data = event.data.get(skipped..).unwrap_or_default();
        let (was_whole, was_ended, told) = (self.is_whole(), self.fold.is_whole(), self.counter.told());
        let within = self.caps.check_depth(data.as_bytes());
        let taken = within.and_then(|()| self.fold.event(LentEvent { data, ..event }, &self.sink));
        self.went_on |= was_ended && self.counter.told() > told;
        // The bound that was passed says more than what came of it.
        self.counter.check()?;
        taken.or_else(|error| self.unreadable(error, was_whole))
    }

    /// What cannot be read takes nothing away from a reply that was whole before.
    fn unreadable(&mut self, error: Error, was_whole: bool) -> Result<(), Error> {
        self.is_over = was_whole && error.kind() == ErrorKind::Decode;
        if self.is_over { Ok(()) } else { Err(error) }
    }
}

/// The response in a body that was not streamed.
///
/// # Errors
/// As [`Dialect::decode`], and `decode` if the reply passes its bounds.
pub fn whole(dialect: &impl Dialect, caps: Caps, body: &[u8]) -> Result<ChatResponse, Error> {
    let body = caps::begin(body);
    caps.check_depth(body)?;
    let response = dialect.decode(body)?;
    caps.check(&response.message)?;
    Ok(response)
}

/// Tells a reply that is there at once.
pub(crate) fn tell_whole(message: &AssistantMessage, sink: &EventSink) {
    if !sink.is_wanted() {
        return;
    }
    if let Some(content) = &message.content {
        let (reasoning, text) = (content.reasoning(), content.text());
        if !reasoning.is_empty() {
            sink.emit(ChatEvent::Reasoning(reasoning));
        }
        if !text.is_empty() {
            sink.emit(ChatEvent::Text(text.into_owned()));
        }
    }
    for (index, call) in message.tool_calls.iter().enumerate() {
        sink.emit(ChatEvent::CallBegun { index, id: call.id.clone(), name: call.name.clone() });
        sink.emit(ChatEvent::CallArguments { index, delta: call.args.as_str().to_owned() });
        sink.emit(ChatEvent::CallReady { index, call: call.clone() });
    }
    if let Some(usage) = message.usage {
        sink.emit(ChatEvent::Usage(usage));
    }
}

fn keep_text(error: Error, text: &str) -> Error {
    if text.is_empty() || error.partial_text().is_some() { error } else { error.with_partial_text(text) }
}
