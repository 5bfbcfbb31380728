//! The fold of a streamed reply: <https://platform.openai.com/docs/api-reference/responses-streaming>.
//!
//! The `type` in the data decides what an event is; the name in its `event:` line only where there is none. Numbers and ids
//! may be missing, `done` events too; events that are not known are passed over. `response.completed` and its kin are the
//! end.

use std::borrow::Cow;

use cepa_core::{ChatEvent, ChatResponse, Error, ErrorKind, EventSink, Origin};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    assembly::{About, Assembly},
    decode::{self, Whole},
    item,
    layout::TextKind,
    reply::Ending,
};
use crate::{
    sse::LentEvent,
    wire::{Accumulator, failed, index::Index, pick, surrogates},
};

/// A reply larger than this is given up: no model writes as much, and memory is finite.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// A reply that is being streamed.
#[derive(Debug)]
pub struct Fold {
    origin: Origin,
    assembly: Assembly,
    ending: Option<Ending>,
    size: usize,
}

/// The members of all events; which of them matter depends on the type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    output_index: Option<&'a RawValue>,
    #[serde(borrow)]
    content_index: Option<&'a RawValue>,
    #[serde(borrow)]
    summary_index: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl<'a> Event<'a> {
    /// The item, and the part of it that this number counts.
    fn about(&self, part: Option<&RawValue>) -> About<'a> {
        About {
            id: self.item_id.and_then(pick::lent_text).filter(|id| !id.is_empty()),
            index: self.output_index.map(Index::of),
            part: part.map(Index::of),
        }
    }
}

impl Fold {
    pub(super) fn new(origin: Origin) -> Self {
        Self { assembly: Assembly::new(origin.clone()), origin, ending: None, size: 0 }
    }

    fn take(&mut self, kind: &str, event: &Event<'_>, data: &str, sink: &EventSink) -> Result<(), Error> {
        let content = || event.about(event.content_index);
        let summary = || event.about(event.summary_index);
        let delta = || event.delta.and_then(pick::lent_text).unwrap_or_default();
        let text = || event.text.and_then(pick::lent_text).unwrap_or_default();
        let assembly = &mut self.assembly;
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                let Some(item) = event.item else { return Ok(()) };
                match kind {
                    "response.output_item.added" => assembly.added(content(), item, sink),
                    _ => assembly.done(content(), item, sink),
                }
            }
            "response.content_part.added" => match part_kind(event.part) {
                Some(kind) => assembly.part(&content(), kind, sink),
                None => Ok(()),
            },
            "response.output_text.delta" => assembly.say(&content(), TextKind::OutputText, &delta(), sink),
            "response.output_text.done" => assembly.said(&content(), TextKind::OutputText, &text(), sink),
            "response.refusal.delta" => assembly.say(&content(), TextKind::Refusal, &delta(), sink),
            "response.refusal.done" => {
                let text = event.refusal.and_then(pick::lent_text).unwrap_or_default();
                assembly.said(&content(), TextKind::Refusal, &text, sink)
            }
            "response.reasoning_summary_text.delta" => assembly.think(&summary(), "summary", &delta(), sink),
            "response.reasoning_summary_text.done" => assembly.thought(&summary(), "summary", &text(), sink),
            "response.reasoning_text.delta" => assembly.think(&content(), "content", &delta(), sink),
            "response.reasoning_text.done" => assembly.thought(&content(), "content", &text(), sink),
            "response.function_call_arguments.delta" => {
                let delta = event.delta.map(|raw| item::arguments(raw.get())).unwrap_or_default();
                assembly.arguments(&content(), &delta, sink);
                Ok(())
            }
            "response.function_call_arguments.done" => {
                let args = event.arguments.map(|raw| item::arguments(raw.get())).unwrap_or_default();
                assembly.arguments_done(&content(), event.name.and_then(pick::text), &args, sink);
                Ok(())
            }
            "response.completed" | "response.incomplete" | "response.done" => self.completed(kind, event, sink),
            "response.failed" | "response.cancelled" => Err(self.failed(kind, event)),
            "error" => Err(failed::reported(&self.origin, data)),
            _ => Ok(()),
        }
    }

    fn completed(&mut self, kind: &str, event: &Event<'_>, sink: &EventSink) -> Result<(), Error> {
        let mut ending = Ending::default();
        if let Some(whole) = event.response.and_then(|raw| Whole::read(raw.get())) {
            if let Some(failure) = self.failure(&whole) {
                return Err(failure);
            }
            // Some servers leave the list empty, as everything was told before.
            if let Some(output) = whole.output {
                self.assembly.output(output.get(), sink)?;
            }
            ending = whole.ending;
        }
        if kind == "response.incomplete" {
            ending.status = Some("incomplete".to_owned());
        }
        if let Some(usage) = ending.usage {
            sink.emit(ChatEvent::Usage(usage));
        }
        self.ending = Some(ending);
        Ok(())
    }

    /// The error that the whole of a response reports. What it holds of the reply stays with the error, without being told: a
    /// request of which nothing was heard may be sent again.
    fn failure(&mut self, whole: &Whole<'_>) -> Option<Error> {
        let failure = whole.failure(&self.origin)?;
        if let Some(output) = whole.output
            && let Err(error) = self.assembly.output(output.get(), &EventSink::none())
        {
            tracing::debug!(%error, "what a failed response holds is left out");
        }
        Some(failure)
    }

    fn failed(&mut self, kind: &str, event: &Event<'_>) -> Error {
        let whole = event.response.and_then(|raw| Whole::read(raw.get()));
        whole.and_then(|whole| self.failure(&whole)).unwrap_or_else(|| {
            let provider = &self.origin.provider;
            let message = format!("{provider} ended the reply before it was complete ({kind}), without an explanation");
            Error::new(ErrorKind::Server, message)
        })
    }

    fn with_text(&self, error: Error) -> Error {
        let error = error.with_provider(self.origin.provider.clone());
        let text = self.assembly.text();
        if text.is_empty() { error } else { error.with_partial_text(text) }
    }
}

impl Accumulator for Fold {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn event(&mut self, event: LentEvent<'_>, sink: &EventSink) -> Result<(), Error> {
        let data = event.data.trim();
        if self.ending.is_some() || data.is_empty() || data.starts_with(':') || data == "[DONE]" {
            return Ok(());
        }
        self.size = self.size.saturating_add(data.len());
        if self.size > MAX_REPLY_BYTES {
            let message = format!("the reply is larger than {MAX_REPLY_BYTES} bytes: it is given up");
            return Err(self.with_text(Error::new(ErrorKind::Decode, message)));
        }
        let data = surrogates::whole(data);
        let members: Event<'_> = match serde_json::from_str(&data) {
            Ok(members) => members,
            // Some JSON that is no event.
            Err(_) if !data.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(&data).is_ok() => {
                return Ok(());
            }
            Err(error) => return Err(self.with_text(decode::unreadable(&self.origin, error, &data))),
        };
        let kind = members.kind.and_then(pick::lent_text).or(event.event.map(Cow::Borrowed));
        let kind = match kind.as_deref() {
            Some(kind) if kind != "message" => kind,
            _ if members.error.is_some_and(|error| error.get() != "null") => "error",
            _ => return Ok(()),
        };
        self.take(kind, &members, &data, sink).map_err(|error| self.with_text(error))
    }

    fn is_done(&self) -> bool {
        self.ending.is_some()
    }

    fn partial_text(&self) -> &str {
        self.assembly.text()
    }

    fn finish(self, sink: &EventSink) -> Result<ChatResponse, Error> {
        match self.ending {
            Some(ending) => self.assembly.finish(ending, sink),
            None => Err(self.with_text(failed::truncated(&self.origin, "response.completed"))),
        }
    }
}

fn part_kind(part: Option<&RawValue>) -> Option<TextKind> {
    let [kind] = pick::members(part?.get(), ["type"])?;
    match pick::text(kind?)?.as_str() {
        "output_text" | "text" => Some(TextKind::OutputText),
        "refusal" => Some(TextKind::Refusal),
        _ => None,
    }
}
