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
}

/// One block.
pub(super) enum Piece<'a> {
    Text { text: Cow<'a, str>, citations: Option<&'a RawJson> },
    Call { index: usize, extra: &'a Extra },
    Opaque(&'a Opaque),
}

static NOTHING: Extra = Extra::new();

impl<'a> Reply<'a> {
    /// The blocks.
    pub(super) fn pieces(&self) -> Vec<Piece<'a>> {
        match self.slots {
            Some(slots) => self.in_order(slots).unwrap_or_else(|| self.out_of_order(slots)),
            None => self.rebuilt(),
        }
    }

    /// The blocks as JSON; empty if nothing can be sent of them.
    pub(super) fn write(&self, mut pieces: Vec<Piece<'_>>) -> Result<Bytes, Error> {
        // "The final block in an assistant message cannot be `thinking`".
        while matches!(pieces.last(), Some(Piece::Opaque(block)) if block.is_thinking()) {
            pieces.pop();
        }
        let empty = RawJson::empty_object();
        let mut blocks = Blocks::default();
        for piece in &pieces {
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
        let is_plain = |part: &Part| matches!(part, Part::Text(_) | Part::Reasoning(_));
        matches!(&self.message.content, Some(Content::Parts(parts)) if !parts.iter().all(is_plain))
    }
}

/// A part in the assistant's words. Replies hold no media on this wire: another provider's are named in their place.
fn said(part: &Part) -> Option<Cow<'_, str>> {
    match part {
        Part::Text(text) => Some(text.into()),
        Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::Other(_) => Some(media::left_out(part).into()),
        Part::Reasoning(_) => None,
    }
}

/// Leaves out what has lost its other half: the API refuses a result of a server tool whose call it was not sent, and takes a
/// call without a result only while it may go on working on it. `open` are the calls sent before that wait for their results.
pub(super) fn settle(pieces: &mut Vec<Piece<'_>>, open: &mut HashSet<String>, may_wait: impl Fn(&str) -> bool) {
    let mut asked = Vec::new();
    pieces.retain(|piece| match piece {
        Piece::Opaque(block) => match (block.asks(), block.answers()) {
            (Some(id), _) => {
                asked.push(id.to_owned());
                open.insert(id.to_owned())
            }
            (None, Some(id)) => open.remove(id),
            (None, None) => true,
        },
        Piece::Text { .. } | Piece::Call { .. } => true,
    });
    let lost: HashSet<String> = asked.into_iter().filter(|id| open.contains(id) && !may_wait(id)).collect();
    pieces.retain(|piece| match piece {
        Piece::Opaque(block) => block.asks().is_none_or(|id| !lost.contains(id)),
        Piece::Text { .. } | Piece::Call { .. } => true,
    });
    open.retain(|id| !lost.contains(id));
}
