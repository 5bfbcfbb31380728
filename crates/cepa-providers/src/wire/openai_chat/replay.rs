//! What a provider put beside its words and wants back: kept apart, sent to its maker only.

use cepa_core::{Error, Extra, Origin, RawJson, Replay};
use serde_json::{Map, Value};

use super::FORMAT;
use crate::wire::json::Object;

/// Members of an assistant message that go back with it: Gemini's signatures
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>) and OpenRouter's reasoning blocks
/// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>).
const EXTRA_CONTENT: &str = "extra_content";
const REASONING_DETAILS: &str = "reasoning_details";

/// Whether a call's member goes back with the call.
pub(super) fn is_call_member(name: &str) -> bool {
    name == EXTRA_CONTENT
}

/// Writes the members that this very provider and model made.
pub(super) fn write(origin: &Origin, blocks: &[Replay], object: &mut Object<'_>) -> Result<(), Error> {
    let own = |block: &&Replay| {
        block.format == FORMAT && *block.provider == *origin.provider && *block.model == *origin.model
    };
    for block in blocks.iter().filter(own) {
        // A store that was edited may hold anything here; what is no object of ours is not sent.
        let Ok(members) = block.data.read::<Extra>() else { continue };
        for (name, value) in members.iter().filter(|(name, _)| [EXTRA_CONTENT, REASONING_DETAILS].contains(&&***name)) {
            object.foreign(name, value.as_str())?;
        }
    }
    Ok(())
}

/// The members of one reply that go back with it.
#[derive(Debug, Default)]
pub(super) struct Kept {
    extra_content: Option<RawJson>,
    reasoning_details: Vec<Map<String, Value>>,
}

impl Kept {
    pub(super) fn extra_content(&mut self, value: RawJson) {
        self.extra_content = Some(value);
    }

    /// Takes the blocks of one delta: a block that continues the one before it (same place, same type) grows it.
    pub(super) fn reasoning_details(&mut self, blocks: Vec<Map<String, Value>>) {
        for block in blocks {
            match self.reasoning_details.last_mut() {
                Some(last) if continues(last, &block) => grow(last, block),
                _ => self.reasoning_details.push(block),
            }
        }
    }

    pub(super) fn finish(self, origin: &Origin) -> Vec<Replay> {
        let mut members = Extra::new();
        if let Some(value) = self.extra_content {
            members.insert(EXTRA_CONTENT.to_owned(), value);
        }
        if !self.reasoning_details.is_empty()
            && let Ok(value) = RawJson::of(&self.reasoning_details)
        {
            members.insert(REASONING_DETAILS.to_owned(), value);
        }
        if members.is_empty() {
            return Vec::new();
        }
        let block = |data| Replay {
            format: FORMAT.to_owned(),
            provider: origin.provider.to_string(),
            model: origin.model.to_string(),
            data,
        };
        RawJson::of(&members).map(block).into_iter().collect()
    }
}

/// Pieces of one block have the same type and index; a block with a signature or an id is complete when the next begins.
fn continues(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |name: &str| last.get(name) == next.get(name);
    let is_other = |name: &str| matches!((last.get(name), next.get(name)), (Some(a), Some(b)) if a != b && !a.is_null() && !b.is_null());
    last.get("index").is_some() && same("index") && same("type") && !is_other("id")
}

/// Texts grow, anything else is replaced by what is newer.
fn grow(last: &mut Map<String, Value>, next: Map<String, Value>) {
    for (name, value) in next {
        match (last.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if ["text", "summary", "data"].contains(&&*name) => {
                text.push_str(&more);
            }
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}
