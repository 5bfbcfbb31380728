//! The fold of a streamed reply: each event is a whole answer with what is new. There is no last event; a reply is complete
//! when the provider has said why it ended, and then the stream ends.

use cepa_core::{ChatResponse, Error, EventSink, Origin};

use super::{assembly::Assembly, decode};
use crate::{
    sse::LentEvent,
    wire::{Accumulator, failed},
};

/// Folds the chunks of one streamed reply.
#[derive(Debug)]
pub struct Fold {
    origin: Origin,
    assembly: Assembly,
    /// Gateways that speak several wires end every stream with the words of OpenAI's.
    done: bool,
}

impl Fold {
    pub(super) fn new(origin: Origin) -> Self {
        Self { assembly: Assembly::new(origin.clone()), origin, done: false }
    }
}

impl Accumulator for Fold {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn event(&mut self, event: LentEvent<'_>, sink: &EventSink) -> Result<(), Error> {
        let data = event.data.trim();
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
        self.assembly.grows(data.len())?;
        decode::take(&mut self.assembly, &self.origin, data, sink)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.assembly.is_whole()
    }

    fn partial_text(&self) -> &str {
        self.assembly.text()
    }

    fn finish(self, _sink: &EventSink) -> Result<ChatResponse, Error> {
        if self.assembly.is_whole() {
            return self.assembly.finish();
        }
        Err(failed::truncated(&self.origin, "finishReason"))
    }
}
