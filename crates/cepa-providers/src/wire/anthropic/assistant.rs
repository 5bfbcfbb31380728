//! An assistant message as blocks: in the order that its author wrote where that is known and allowed, else text, then calls.

use std::{borrow::Cow, collections::HashSet};

use bytes::Bytes;
use cepa_core::{Args, AssistantMessage, Content, Error, Extra, Part, RawJson};

use super::{
    block::{Block, Blocks},
    layout::{Opaque, Slot},
    media,
};

/// Which blocks a reply has on the wire.
pub(super) struct Reply<'a> {
    pub(super) message: &'a AssistantMessage,
    /// The order of its blocks, if this model wrote it.
    pub(super) slots: Option<&'a [Slot]>,
    /// The ids and the names of its calls on the wire.
    pub(super) calls: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// Whether the next thing the model sees is its own continuation.
    pub(super) continued: bool,
}

enum Piece<'a> {
    Text { text: Cow<'a, str>, citations: Option<&'a RawJson> },
    Call { index: usize, extra: &'a Extra },
    Opaque(&'a Opaque),
}

static NOTHING: Extra = Extra::new();

impl<'a> Reply<'a> {
    /// The blocks; empty if nothing can be sent of it.
    pub(super) fn encode(&self) -> Result<Bytes, Error> {
        let mut pieces = match self.slots {
            Some(slots) => self.in_order(slots).unwrap_or_else(|| self.out_of_order(slots)),
            None => self.rebuilt(),
        };
        if self.message.tool_calls.is_empty() && !self.continued {
            remove_unanswered(&mut pieces);
        }
        // "The final block in an assistant message cannot be `thinking`".
        while matches!(pieces.last(), Some(Piece::Opaque(block)) if block.is_thinking()) {
            pieces.pop();
        }
        self.write(&pieces)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> Result<Bytes, Error> {
        let empty = RawJson::empty_object();
        let mut blocks = Blocks::default();
        for piece in pieces {
            match piece {
                Piece::Text { text, citations } => {
                    blocks.push(&Block::Text { text: Cow::Borrowed(text), citations: *citations })?;
                }
                Piece::Opaque(block) => blocks.push_raw(&block.raw),
                Piece::Call { index, extra } => {
                    let (Some(call), Some((id, name))) = (self.message.tool_calls.get(*index), self.calls.get(*index))
                    else {
                        continue;
                    };
                    // What is no object was never run; the API takes only objects.
                    let input = match &call.args {
                        Args::Object(raw) if raw.is_object() => raw,
                        Args::Object(_) | Args::Invalid { .. } => &empty,
                    };
                    blocks.push(&Block::ToolUse { id, name, input, extra })?;
                }
            }
        }
        Ok(blocks.into_bytes())
    }

    /// As its author wrote it; `None` if the message no longer has the text or the calls of that order.
    fn in_order(&self, slots: &'a [Slot]) -> Option<Vec<Piece<'a>>> {
        let whole = self.message.content.as_ref().map(Content::text).unwrap_or_default();
        let (mut at, mut calls) = (0, 0);
        let mut pieces = Vec::new();
        for slot in slots {
            match slot {
                Slot::Text { length, citations } => {
                    let end = at + length;
                    let text = match &whole {
                        Cow::Borrowed(whole) => Cow::Borrowed(whole.get(at..end)?),
                        Cow::Owned(whole) => Cow::Owned(whole.get(at..end)?.to_owned()),
                    };
                    at = end;
                    if !text.trim().is_empty() {
                        pieces.push(Piece::Text { text, citations: citations.as_ref() });
                    }
                }
                Slot::Call { index, extra } => {
                    if *index != calls {
                        return None;
                    }
                    calls += 1;
                    pieces.push(Piece::Call { index: *index, extra });
                }
                Slot::Opaque(block) => pieces.push(Piece::Opaque(block)),
            }
        }
        (at == whole.len() && calls == self.message.tool_calls.len() && !self.has_media()).then_some(pieces)
    }

    /// What goes back as it came, in its order; then what the message says now.
    fn out_of_order(&self, slots: &'a [Slot]) -> Vec<Piece<'a>> {
        let opaque = slots.iter().filter_map(|slot| match slot {
            Slot::Opaque(block) => Some(Piece::Opaque(block)),
            Slot::Text { .. } | Slot::Call { .. } => None,
        });
        opaque.chain(self.rebuilt()).collect()
    }

    fn rebuilt(&self) -> Vec<Piece<'a>> {
        let texts: Vec<Cow<'a, str>> = match &self.message.content {
            None => Vec::new(),
            Some(Content::Text(text)) => vec![text.into()],
            Some(Content::Parts(parts)) => parts.iter().filter_map(said).collect(),
        };
        let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
        let calls = 0..self.message.tool_calls.len();
        texts
            .map(|text| Piece::Text { text, citations: None })
            .chain(calls.map(|index| Piece::Call { index, extra: &NOTHING }))
            .collect()
    }

    fn has_media(&self) -> bool {
        let is_media = |part: &Part| matches!(part, Part::Image(_) | Part::Audio(_) | Part::Document(_));
        matches!(&self.message.content, Some(Content::Parts(parts)) if parts.iter().any(is_media))
    }
}

/// A part in the assistant's words. Replies hold no media on this wire: another provider's are named in their place.
fn said(part: &Part) -> Option<Cow<'_, str>> {
    match part {
        Part::Text(text) => Some(text.into()),
        Part::Image(_) | Part::Audio(_) | Part::Document(_) => Some(format!("[{}]", media::describe(part)).into()),
        Part::Reasoning(_) | Part::Other(_) => None,
    }
}

/// Takes out calls of server tools without a result: the API takes them only while it goes on working on them.
fn remove_unanswered(pieces: &mut Vec<Piece<'_>>) {
    let opaque = |piece: &Piece<'_>| match piece {
        Piece::Opaque(block) => block.answers().map(str::to_owned),
        Piece::Text { .. } | Piece::Call { .. } => None,
    };
    let answered: HashSet<String> = pieces.iter().filter_map(opaque).collect();
    pieces.retain(|piece| match piece {
        Piece::Opaque(block) => block.asks().is_none_or(|id| answered.contains(id)),
        Piece::Text { .. } | Piece::Call { .. } => true,
    });
}
