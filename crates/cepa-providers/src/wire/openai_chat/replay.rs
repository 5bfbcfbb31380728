//! What a provider put beside its words and wants back: kept apart, sent to its maker only.

use cepa_core::{Error, Extra, Origin, RawJson, Replay};

use super::{
    FORMAT,
    tolerant::{elements, members},
};
use crate::wire::{json::Object, surrogates};

/// Members of an assistant message that go back with it: Gemini's signatures
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>) and OpenRouter's reasoning blocks
/// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>).
const EXTRA_CONTENT: &str = "extra_content";
const REASONING_DETAILS: &str = "reasoning_details";
/// A reasoning block with more members is none that we know, and kept as it is.
const MAX_MEMBERS: usize = 64;

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
    /// The reasoning blocks to which nothing is added any more, as they are written, with commas between them.
    done: String,
    /// The last one.
    open: Option<Block>,
}

impl Kept {
    pub(super) fn extra_content(&mut self, value: RawJson) {
        self.extra_content = Some(value);
    }

    /// Takes the blocks of one delta: a block that continues the one before it (same place, same type) grows it.
    pub(super) fn reasoning_details(&mut self, blocks: &str) -> Result<(), serde_json::Error> {
        elements(blocks, |json| {
            if json.starts_with('{') {
                self.block(json);
            }
            Ok(())
        })
    }

    fn block(&mut self, json: &str) {
        match (Block::read(json), &mut self.open) {
            (Some(block), Some(last)) if last.is_continued_by(&block) => last.grow(block),
            (Some(block), _) => {
                self.seal();
                self.open = Some(block);
            }
            (None, _) => {
                self.seal();
                self.push(json);
            }
        }
    }

    fn seal(&mut self) {
        if let Some(block) = self.open.take() {
            let json = block.write();
            self.push(&json);
        }
    }

    fn push(&mut self, json: &str) {
        if !self.done.is_empty() {
            self.done.push(',');
        }
        self.done.push_str(json);
    }

    pub(super) fn finish(mut self, origin: &Origin) -> Vec<Replay> {
        self.seal();
        if self.extra_content.is_none() && self.done.is_empty() {
            return Vec::new();
        }
        let mut json = Vec::new();
        let mut object = Object::start(&mut json);
        if let Some(value) = self.extra_content {
            object.raw(EXTRA_CONTENT, value.as_str());
        }
        if !self.done.is_empty() {
            let value = object.key(REASONING_DETAILS);
            value.reserve_exact(self.done.len() + 3);
            value.push(b'[');
            value.extend_from_slice(self.done.as_bytes());
            value.push(b']');
        }
        object.end();
        drop(self.done);
        let block = |data| Replay {
            format: FORMAT.to_owned(),
            provider: origin.provider.to_string(),
            model: origin.model.to_string(),
            data,
        };
        // Half a character may have found its other half in what was joined; what has none is mended here.
        let json = String::from_utf8(json).unwrap_or_default();
        RawJson::parse(&surrogates::whole(&json)).map(block).into_iter().collect()
    }
}

/// One block: its members, as they are written.
#[derive(Debug)]
struct Block(Vec<(String, String)>);

impl Block {
    /// `None` if it is none that we know.
    fn read(json: &str) -> Option<Self> {
        let mut block = Self(Vec::new());
        let mut count = 0;
        members(json, |name, value| {
            count += 1;
            if count <= MAX_MEMBERS {
                block.set(name, value);
            }
        })
        .ok()?;
        (count <= MAX_MEMBERS).then_some(block)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn set(&mut self, name: String, value: &str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((name, value.to_owned())),
        }
    }

    /// Pieces of one block have the same type and index; a block with a signature or an id is complete when the next begins.
    fn is_continued_by(&self, next: &Self) -> bool {
        let same = |name: &str| self.get(name) == next.get(name);
        let is_other = |name: &str| matches!((self.get(name), next.get(name)), (Some(a), Some(b)) if a != b && a != "null" && b != "null");
        self.get("index").is_some() && same("index") && same("type") && !is_other("id")
    }

    /// Texts grow, anything else is replaced by what is newer.
    fn grow(&mut self, next: Self) {
        for (name, value) in next.0.into_iter().filter(|(_, value)| value != "null") {
            let grows = ["text", "summary", "data"].contains(&&*name);
            match (self.0.iter_mut().find(|(known, _)| grows && *known == name), value.strip_prefix('"')) {
                (Some((_, text)), Some(more)) if text.starts_with('"') => {
                    text.pop();
                    text.push_str(more);
                }
                _ => self.set(name, &value),
            }
        }
    }

    fn write(self) -> String {
        let mut json = String::from("{");
        for (name, value) in self.0 {
            if json.len() > 1 {
                json.push(',');
            }
            // A text can always be written.
            json.push_str(&serde_json::to_string(&name).unwrap_or_default());
            json.push(':');
            json.push_str(&value);
        }
        json.push('}');
        json
    }
}
