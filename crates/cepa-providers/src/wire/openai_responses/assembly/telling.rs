//! What of a reply's items is told while they grow, each of it once.

use cepa_core::{ChatEvent, Error, EventSink, ToolCall};

use super::{
    super::{
        item::{Item, Said, Wanting, wanting},
        layout::TextKind,
        reply::GAP,
    },
    Assembly, Growing,
};
use crate::wire::index::Index;

impl Assembly {
    /// Lets a part of a message grow by what is chosen for it.
    pub(super) fn grow<'a>(
        &mut self,
        place: usize,
        part: Option<&Index>,
        kind: TextKind,
        sink: &EventSink,
        choose: impl FnOnce(&mut Said) -> &'a str,
    ) -> Result<(), Error> {
        let Some(Growing { item: Item::Message { parts, .. }, length, .. }) = self.items.get_mut(place) else {
            return Ok(());
        };
        let known = parts.len();
        let at = said_in(parts, part, kind).unwrap_or_else(|| {
            parts.push(Said { index: part.cloned(), kind, ..Said::default() });
            known
        });
        let more = parts.len() - known;
        let Some(part) = parts.get_mut(at) else { return Ok(()) };
        // Only what changed is counted: a reply may have many parts.
        *length -= part.text.len();
        let delta = choose(part);
        part.text.push_str(delta);
        *length += part.text.len();
        self.take(more)?;
        self.tell_text(place, delta, sink);
        Ok(())
    }

    /// Tells new text of an item.
    pub(super) fn tell_text(&mut self, place: usize, delta: &str, sink: &EventSink) {
        if delta.is_empty() {
            return;
        }
        let is_first = self.items.get(place).is_some_and(|known| known.length == delta.len());
        let gap = if is_first && !self.text.is_empty() { GAP } else { "" };
        let told = format!("{gap}{delta}");
        self.text.push_str(&told);
        sink.emit(ChatEvent::Text(told));
    }

    pub(super) fn add_arguments(&mut self, place: usize, delta: &str, sink: &EventSink) {
        if delta.is_empty() {
            return;
        }
        self.tell(place, sink);
        if let Some(Growing { item: Item::Call(call), told: Some((index, _)), .. }) = self.items.get_mut(place) {
            call.args.push_str(delta);
            sink.emit(ChatEvent::CallArguments { index: *index, delta: delta.to_owned() });
        }
    }

    /// Takes the whole arguments; those that were streamed are their beginning, or count no more.
    pub(super) fn settle_arguments(&mut self, place: usize, whole: &str, sink: &EventSink) {
        let Some(Growing { item: Item::Call(call), is_ready, .. }) = self.items.get_mut(place) else { return };
        match wanting(whole, &call.args) {
            Wanting::Rest("") | Wanting::Nothing => {}
            Wanting::Rest(_) | Wanting::All if *is_ready => {
                self.is_call_void = true;
                whole.clone_into(&mut call.args);
            }
            Wanting::Rest(rest) => self.add_arguments(place, rest, sink),
            // What is told when the call is ready counts.
            Wanting::All => whole.clone_into(&mut call.args),
        }
    }

    /// Tells that a call began, once.
    pub(super) fn tell(&mut self, place: usize, sink: &EventSink) {
        if let Some(Growing { item: Item::Call(call), told: told @ None, .. }) = self.items.get_mut(place) {
            let (index, id) = (self.calls, self.ids.settle(call.call_id.as_deref()));
            self.calls += 1;
            sink.emit(ChatEvent::CallBegun { index, id: id.clone(), name: call.name.clone() });
            *told = Some((index, id));
        }
    }

    /// Tells that a call is complete, once.
    pub(super) fn ready(&mut self, place: usize, sink: &EventSink) {
        if let Some(Growing { item: Item::Call(call), told: Some((index, id)), is_ready: is_ready @ false, .. }) =
            self.items.get_mut(place)
        {
            *is_ready = true;
            let call = ToolCall::new(id.clone(), call.name.clone(), call.decoded());
            sink.emit(ChatEvent::CallReady { index: *index, call });
        }
    }
}

/// The part of a message that text belongs to.
fn said_in(parts: &[Said], index: Option<&Index>, kind: TextKind) -> Option<usize> {
    match index {
        Some(_) => parts.iter().rposition(|part| part.index.as_ref() == index && part.kind == kind),
        None => parts.iter().rposition(|part| part.kind == kind),
    }
}
