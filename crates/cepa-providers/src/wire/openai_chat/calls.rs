//! The calls of one reply, put together from pieces.
//!
//! By the specification each piece has an `index`, and the first piece of a call its id and name. Servers leave out the
//! index, give every call the index 0, skip numbers, repeat the name or the id in each piece, send whole calls without ids,
//! or say a whole call again behind its pieces; what can only have one meaning is read so.

use std::{borrow::Cow, cell::Cell};

use cepa_core::{Args, ChatEvent, Error, ErrorKind, EventSink, Extra, ToolCall};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{
    shape::{CallPart, FunctionPart, MAX_CALLS},
    tolerant::Word,
};
use crate::wire::{
    ids::ReplyIds,
    pick,
    surrogates::{self, Pieces},
};

/// How often arguments that look whole may turn out not to be. Each look costs their length, so that a server that wants
/// it could keep us looking.
const MAX_DOUBTS: u32 = 64;

/// The calls so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<OpenCall>,
    ids: ReplyIds,
    /// Counts the chunks that hold some: the entries of one list of pieces are different calls.
    chunk: u64,
}

#[derive(Debug, Default)]
struct OpenCall {
    /// The index that its pieces carry, as it is written.
    index: Option<String>,
    /// The id that the provider gave it.
    given_id: Option<String>,
    /// Its id, once somebody was told.
    id: Option<String>,
    name: String,
    args: String,
    /// The halves of characters between the pieces of its arguments.
    halves: Pieces,
    extra: Extra,
    last_chunk: u64,
    /// How often its arguments looked whole and were not.
    doubts: Cell<u32>,
}

/// One piece in a form that can be asked.
struct Piece<'a> {
    index: Option<&'a str>,
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    args: Option<PieceArgs<'a>>,
    extra_content: Option<&'a RawValue>,
}

enum PieceArgs<'a> {
    /// Text that continues what came before, and how it was written.
    More(String, &'a str),
    /// All of it: an object (or what should be one).
    Whole(String),
}

impl<'a> Piece<'a> {
    fn new(index: Option<&'a str>, part: CallPart<'a>) -> Self {
        let FunctionPart { name, arguments } = part.function.unwrap_or_default();
        Self { index, id: part.id.0, name: name.0, args: arguments.map(read_args), extra_content: part.extra_content }
    }

    fn args(&self) -> &str {
        match &self.args {
            Some(PieceArgs::More(text, _) | PieceArgs::Whole(text)) => text,
            None => "",
        }
    }

    fn is_empty(&self) -> bool {
        self.id.is_none() && self.name.is_none() && self.args().is_empty() && self.extra_content.is_none()
    }
}

fn read_args(raw: &RawValue) -> PieceArgs<'_> {
    let json = raw.get();
    if json.starts_with('"') {
        // It is a text, so it can be read once its half characters are mended.
        return PieceArgs::More(surrogates::read(json).unwrap_or_default(), json);
    }
    PieceArgs::Whole(json.to_owned())
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the list of one whole reply: each entry is a call.
    pub(super) fn whole(&mut self, parts: Vec<Option<CallPart<'_>>>, sink: &EventSink) -> Result<(), Error> {
        for part in parts.into_iter().flatten() {
            let piece = Piece::new(None, part);
            if !piece.is_empty() {
                let place = self.begin(&piece, sink)?;
                self.add(place, piece, sink);
            }
        }
        Ok(())
    }

    /// Takes the list of one chunk.
    pub(super) fn pieces(&mut self, parts: Vec<Option<CallPart<'_>>>, sink: &EventSink) -> Result<(), Error> {
        self.chunk += 1;
        for part in parts.into_iter().flatten() {
            let index = part.index.map(RawValue::get);
            self.piece(Piece::new(index, part), sink)?;
        }
        Ok(())
    }

    /// Takes a piece of the one call that the older form knows.
    pub(super) fn function_call(&mut self, function: FunctionPart<'_>, sink: &EventSink) -> Result<(), Error> {
        self.chunk += 1;
        let part = CallPart { index: None, id: Word(None), function: Some(function), extra_content: None };
        self.piece(Piece::new(Some("function_call"), part), sink)
    }

    fn piece(&mut self, mut piece: Piece<'_>, sink: &EventSink) -> Result<(), Error> {
        if let Some(place) = self.said_again(&piece) {
            piece.args = None;
            self.add(place, piece, sink);
            return Ok(());
        }
        let place = match self.find(&piece) {
            Some(place) => place,
            None if piece.is_empty() => return Ok(()),
            None => self.begin(&piece, sink)?,
        };
        self.add(place, piece, sink);
        Ok(())
    }

    /// The call that a piece says once more from end to end, as a summary behind its pieces
    /// (<https://github.com/BerriAI/litellm/issues/20480>, <https://github.com/open-webui/open-webui/pull/22235>). One id per
    /// call: what comes under the same id with the same arguments is not a second call, with a name or without.
    fn said_again(&self, piece: &Piece<'_>) -> Option<usize> {
        let id = piece.id.as_deref()?;
        let place = self.open.iter().rposition(|call| call.given_id.as_deref() == Some(id))?;
        let call = self.open.get(place)?;
        let (is_same_place, has_place) =
            (call.index.as_deref() == piece.index, call.index.is_some() && piece.index.is_some());
        // The entries of one list are different calls where no index says otherwise.
        let may_be = if has_place { is_same_place } else { call.last_chunk != self.chunk };
        let is_named = piece.name.as_ref().is_none_or(|name| *name == call.name);
        (may_be && is_named && call.is_said_by(piece.args())).then_some(place)
    }

    /// The call that a piece continues; `None` if it begins one.
    fn find(&self, piece: &Piece<'_>) -> Option<usize> {
        let last = self.open.len().checked_sub(1);
        let of_id = |id: &str| self.open.iter().rposition(|call| call.given_id.as_deref() == Some(id));
        if let Some(index) = piece.index {
            let Some(place) = self.open.iter().rposition(|call| call.index.as_deref() == Some(index)) else {
                return match (&piece.id, &piece.name) {
                    (Some(id), None) => of_id(id),
                    // Arguments alone under a number that was never opened go to the call at hand.
                    (None, None) => last,
                    (_, Some(_)) => None,
                };
            };
            let call = self.open.get(place)?;
            return match (&piece.id, &call.given_id) {
                // One id per call: under the same number, another id is another call.
                (Some(id), Some(held)) if id != held => self
                    .open
                    .iter()
                    .rposition(|call| call.index.as_deref() == Some(index) && call.given_id.as_deref() == Some(id)),
                _ if call.is_followed_by(piece) => None,
                _ => Some(place),
            };
        }
        let place = match (&piece.id, &piece.name) {
            (Some(id), _) => of_id(id)?,
            (None, None) => return last,
            (None, Some(name)) => last.filter(|place| self.open.get(*place).is_some_and(|call| call.name == *name))?,
        };
        let call = self.open.get(place)?;
        let is_new = piece.name.is_some() && (call.last_chunk == self.chunk || call.is_followed_by(piece));
        (!is_new).then_some(place)
    }

    fn begin(&mut self, piece: &Piece<'_>, sink: &EventSink) -> Result<usize, Error> {
        if self.open.len() >= MAX_CALLS {
            return Err(Error::new(ErrorKind::Decode, format!("the reply holds more than {MAX_CALLS} tool calls")));
        }
        let place = self.open.len();
        if let Some(before) = place.checked_sub(1) {
            self.tell(before, sink);
        }
        self.open.push(OpenCall { index: piece.index.map(str::to_owned), ..OpenCall::default() });
        Ok(place)
    }

    fn add(&mut self, place: usize, piece: Piece<'_>, sink: &EventSink) {
        let Some(call) = self.open.get_mut(place) else { return };
        call.last_chunk = self.chunk;
        if call.given_id.is_none() {
            call.given_id = piece.id.map(Cow::into_owned);
        }
        if let Some(name) = piece.name
            // Names come whole and may be repeated; the few servers that cut them do so before the arguments
            // (<https://github.com/continuedev/continue/pull/5849> has both). A piece that is a whole other name cannot be
            // told from one that goes on: it is joined, and makes a name that no tool has.
            && (call.name.is_empty() || (call.args.is_empty() && call.name != name))
        {
            call.name.push_str(&name);
        }
        if let Some(value) = piece.extra_content.and_then(pick::keep) {
            call.extra.insert("extra_content".to_owned(), value);
        }
        let delta = match piece.args {
            None => return,
            Some(PieceArgs::More(text, written)) => {
                let is_cut = call.halves.is_waiting() || surrogates::ends_in_half(written);
                if is_cut { call.halves.piece(written) } else { text }
            }
            Some(PieceArgs::Whole(text)) => {
                call.args.clear();
                text
            }
        };
        if delta.is_empty() {
            return;
        }
        if !sink.is_wanted() && call.args.is_empty() {
            call.args = delta;
            self.tell(place, sink);
            return;
        }
        call.args.push_str(&delta);
        self.tell(place, sink);
        sink.emit(ChatEvent::CallArguments { index: place, delta });
    }

    /// Tells that a call began, once.
    fn tell(&mut self, place: usize, sink: &EventSink) {
        if let Some(call) = self.open.get_mut(place)
            && call.id.is_none()
        {
            let id = self.ids.settle(call.given_id.as_deref());
            if sink.is_wanted() {
                sink.emit(ChatEvent::CallBegun { index: place, id: id.clone(), name: call.name.clone() });
            }
            call.id = Some(id);
        }
    }

    /// Whether each call's arguments are an object that was written to its end.
    pub(super) fn are_whole(&self) -> bool {
        self.open.iter().all(|call| call.args.contains('{') && !Args::decode(&call.args).is_invalid())
    }

    /// The calls at the end of the reply. Only now are their arguments known to be complete.
    pub(super) fn finish(mut self, sink: &EventSink) -> Vec<ToolCall> {
        for place in 0..self.open.len() {
            self.tell(place, sink);
        }
        let calls = self.open.into_iter().enumerate().map(|(index, mut call)| {
            let rest = call.halves.rest();
            if !rest.is_empty() {
                call.args.push_str(&rest);
                sink.emit(ChatEvent::CallArguments { index, delta: rest });
            }
            let args = Args::decode(&call.args);
            let call = ToolCall { id: call.id.unwrap_or_default(), name: call.name, args, extra: call.extra };
            if sink.is_wanted() {
                sink.emit(ChatEvent::CallReady { index, call: call.clone() });
            }
            call
        });
        calls.collect()
    }
}

impl OpenCall {
    /// Whether a piece can only begin another call: this one's arguments are a whole object, and the piece has a name and
    /// begins an object. (A name is what tells it from a text that merely goes on behind an object; that stays one call
    /// with broken arguments.)
    fn is_followed_by(&self, piece: &Piece<'_>) -> bool {
        piece.name.is_some()
            && piece.args().trim_start().starts_with('{')
            && self.args.trim_start().starts_with('{')
            && self.args.trim_end().ends_with('}')
            && self.doubts.get() < MAX_DOUBTS
            && self.is_whole()
    }

    /// Whether this text is the call's arguments again, all of them: as they are, with other spaces, or encoded twice.
    fn is_said_by(&self, text: &str) -> bool {
        let (held, mut text) = (self.args.trim(), Cow::Borrowed(text.trim()));
        if text.starts_with('"')
            && let Ok(inner) = serde_json::from_str::<String>(&text)
        {
            text = inner.trim().to_owned().into();
        }
        // No more is looked at than a few times what came, so that a server cannot keep us looking.
        held.len() <= text.len().saturating_mul(4)
            && held.starts_with('{')
            && text.starts_with('{')
            && text.ends_with('}')
            && significant(held).eq(significant(&text))
            && serde_json::from_str::<IgnoredAny>(&text).is_ok()
    }

    fn is_whole(&self) -> bool {
        let whole = serde_json::from_str::<IgnoredAny>(&self.args).is_ok();
        if !whole {
            self.doubts.set(self.doubts.get().saturating_add(1));
        }
        whole
    }
}

/// What of a JSON text means something: all but the spaces between its parts.
fn significant(json: &str) -> impl Iterator<Item = u8> {
    let (mut in_text, mut is_escaped) = (false, false);
    json.bytes().filter(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ => {}
        }
        in_text || !byte.is_ascii_whitespace()
    })
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
