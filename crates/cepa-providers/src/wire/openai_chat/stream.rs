//! The fold of a streamed reply.

use cepa_core::{ChatResponse, Error, ErrorKind, EventSink, Origin};
use serde_json::value::RawValue;

use super::{assembly::Assembly, decode, shape::Choice};
use crate::{
    sse::LentEvent,
    wire::{Accumulator, failed},
};

/// Folds the chunks of one streamed reply.
#[derive(Debug)]
pub struct Fold {
    origin: Origin,
    assembly: Assembly,
    /// The choice that is followed: the first that was seen.
    choice: Option<String>,
    done: bool,
}

impl Fold {
    pub(super) fn new(origin: Origin) -> Self {
        Self { assembly: Assembly::new(origin.clone()), origin, choice: None, done: false }
    }

    fn chunk(&mut self, data: &str, sink: &EventSink) -> Result<(), Error> {
        let mut mended = String::new();
        let chunk = decode::read(&self.origin, data, &mut mended)?;
        if chunk.is_error() {
            return Err(failed::reported(&self.origin, data));
        }
        if let Some(choices) = chunk.choices {
            choices.0.into_iter().try_for_each(|choice| self.choice(choice, data.len(), sink))?;
        }
        // The chunk with the usage has no choices as a rule, and any chunk may have it.
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.assembly.usage(usage, sink);
        }
        Ok(())
    }

    /// Takes what a chunk of this size says of one choice.
    fn choice(&mut self, choice: Choice<'_>, size: usize, sink: &EventSink) -> Result<(), Error> {
        let index = choice.index.map(RawValue::get).filter(|index| *index != "null").unwrap_or("0");
        if self.choice.get_or_insert_with(|| index.to_owned()) != index {
            return Ok(());
        }
        if let Some(error) = choice.error {
            return Err(failed::reported(&self.origin, &format!(r#"{{"error":{error}}}"#)));
        }
        match (choice.delta, choice.message) {
            (Some(delta), _) => self.assembly.delta(delta, size, sink)?,
            // A server that does not stream, behind one that says it does.
            (None, Some(message)) if self.assembly.is_blank() => self.assembly.message(*message, sink)?,
            (None, _) => {}
        }
        if let Some(reason) = choice.finish_reason.0 {
            self.assembly.ended(reason);
        }
        if let Some(usage) = choice.usage {
            self.assembly.usage(usage, sink);
        }
        Ok(())
    }
}

impl Accumulator for Fold {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn event(&mut self, event: LentEvent<'_>, sink: &EventSink) -> Result<(), Error> {
        let data = event.data.trim();
        // Keep-alives that were put into the data.
        if self.done || data.is_empty() || data.starts_with(':') {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if event.event == Some("error") {
            return Err(failed::reported(&self.origin, data));
        }
        self.chunk(data, sink)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.assembly.has_finish()
    }

    fn partial_text(&self) -> &str {
        self.assembly.text()
    }

    fn finish(self, sink: &EventSink) -> Result<ChatResponse, Error> {
        let provider = &self.origin.provider;
        let why = match (self.is_whole(), self.choice.is_some()) {
            (true, true) => return self.assembly.finish(sink),
            (true, false) => "holds no reply",
            (false, _) => "ended before the reply was complete",
        };
        let message = format!("the stream of {provider} {why}");
        Err(Error::new(ErrorKind::Truncated, message).with_provider(provider.clone()))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
