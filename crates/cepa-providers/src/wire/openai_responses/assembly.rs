//! One reply as it comes together: whole or in events, the same rules.

use std::collections::HashSet;

use cepa_core::{Args, ChatEvent, ChatResponse, Error, ErrorKind, EventSink, Origin, RawJson, ToolCall};

use super::{
    item::{Call, Item, Kind, Said},
    layout::TextKind,
    reply::{self, Ending, Received},
};
use crate::wire::ids::ReplyIds;

/// More items than any reply has.
const MAX_ITEMS: usize = 4096;
/// Parts one message from the next.
const GAP: &str = "\n\n";

/// The reply so far.
#[derive(Debug)]
pub(super) struct Assembly {
    origin: Origin,
    ids: ReplyIds,
    items: Vec<Growing>,
    calls: usize,
    text: String,
}

/// An item that may still grow.
#[derive(Debug)]
struct Growing {
    id: Option<String>,
    /// The place that the provider gave it.
    index: Option<u64>,
    item: Item,
    is_done: bool,
    /// Where in the reply's calls it is, and its id, once somebody was told of it.
    told: Option<(usize, String)>,
    is_ready: bool,
    /// The bytes that part its text from the text before it.
    gap: usize,
    /// The parts of the reasoning so far, in their order.
    sections: Vec<(&'static str, u64)>,
}

/// Which item an event is about, and which part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) id: Option<String>,
    pub(super) index: Option<u64>,
    pub(super) part: Option<u64>,
}

impl Assembly {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, ids: ReplyIds::new(), items: Vec::new(), calls: 0, text: String::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the items of a whole reply; those that were streamed are completed, by their id or else by their place.
    pub(super) fn output(&mut self, items: Vec<RawJson>, sink: &EventSink) -> Result<(), Error> {
        let streamed = self.items.len();
        let mut taken = HashSet::new();
        for (place, raw) in items.into_iter().enumerate() {
            let Some((id, item)) = Item::read(raw) else { continue };
            let kind = item.kind();
            let mut known = self.items.iter().take(streamed).enumerate().filter(|(at, _)| !taken.contains(at));
            let of_id = known.clone().find(|(_, known)| id.is_some() && known.id == id);
            let at_place = || known.find(|(at, known)| *at == place && known.item.kind() == kind);
            let place = match of_id.or_else(at_place) {
                Some((at, _)) => at,
                None if place >= streamed => self.begin(&About { id, ..About::default() }, empty(kind), sink)?,
                None => continue,
            };
            taken.insert(place);
            self.complete(place, item, sink);
        }
        Ok(())
    }

    /// An item begins.
    pub(super) fn added(&mut self, about: About, raw: RawJson, sink: &EventSink) -> Result<(), Error> {
        if let Some((id, item)) = Item::read(raw) {
            let about = About { id: about.id.or(id), ..about };
            // Its text comes in events of its own.
            let item = match item {
                Item::Message { extra, .. } => Item::Message { parts: Vec::new(), extra },
                Item::Reasoning { .. } => empty(Kind::Reasoning),
                Item::Call(call) => Item::Call(Call { args: String::new(), ..call }),
                Item::Opaque(raw) => Item::Opaque(raw),
            };
            self.begin(&about, item, sink)?;
        }
        Ok(())
    }

    /// An item is complete.
    pub(super) fn done(&mut self, about: About, raw: RawJson, sink: &EventSink) -> Result<(), Error> {
        let Some((id, item)) = Item::read(raw) else { return Ok(()) };
        let about = About { id: about.id.or(id), ..about };
        let place = match self.find(&about, item.kind()) {
            Some(place) => place,
            None if self.is_over(&about) => return Ok(()),
            None => self.begin(&about, empty(item.kind()), sink)?,
        };
        self.complete(place, item, sink);
        Ok(())
    }

    /// A part of a message begins.
    pub(super) fn part(&mut self, about: &About, kind: TextKind, sink: &EventSink) -> Result<(), Error> {
        let place = self.find_or_begin(about, Kind::Message, sink)?;
        if let Some(Growing { item: Item::Message { parts, .. }, .. }) =
            place.and_then(|place| self.items.get_mut(place))
            && (about.part.is_none() || !parts.iter().any(|part| part.index == about.part))
        {
            parts.push(Said { index: about.part, kind, ..Said::default() });
        }
        Ok(())
    }

    /// Some text of a message.
    pub(super) fn say(&mut self, about: &About, kind: TextKind, delta: &str, sink: &EventSink) -> Result<(), Error> {
        if let Some(place) = self.find_or_begin(about, Kind::Message, sink)? {
            self.grow(place, about.part, kind, delta, sink);
        }
        Ok(())
    }

    /// The whole text of a part of a message: what was not streamed of it is made up for.
    pub(super) fn said(&mut self, about: &About, kind: TextKind, text: &str, sink: &EventSink) -> Result<(), Error> {
        let Some(place) = self.find(about, Kind::Message) else {
            return self.say(about, kind, text, sink);
        };
        let Some(Growing { item: Item::Message { parts, .. }, .. }) = self.items.get(place) else { return Ok(()) };
        let known = said_in(parts, about.part, kind).and_then(|at| parts.get(at)).map_or("", |part| &part.text);
        if let Some(rest) = text.strip_prefix(known).filter(|rest| !rest.is_empty()).map(str::to_owned) {
            self.grow(place, about.part, kind, &rest, sink);
        }
        Ok(())
    }

    /// Some reasoning; `section` is what the numbers of its parts count.
    pub(super) fn think(
        &mut self,
        about: &About,
        section: &'static str,
        delta: &str,
        sink: &EventSink,
    ) -> Result<(), Error> {
        let place = self.find_or_begin(about, Kind::Reasoning, sink)?;
        let Some(Growing { item: Item::Reasoning { text, .. }, sections, .. }) =
            place.and_then(|place| self.items.get_mut(place)).filter(|_| !delta.is_empty())
        else {
            return Ok(());
        };
        let last = sections.last().copied();
        let section = (section, about.part.or(last.map(|(_, number)| number)).unwrap_or_default());
        let delta = if last.is_some_and(|last| last != section) { format!("{GAP}{delta}") } else { delta.to_owned() };
        if last != Some(section) {
            sections.push(section);
        }
        text.push_str(&delta);
        sink.emit(ChatEvent::Reasoning(delta));
        Ok(())
    }

    /// A whole part of the reasoning: it counts only where it was not streamed.
    pub(super) fn thought(
        &mut self,
        about: &About,
        section: &'static str,
        text: &str,
        sink: &EventSink,
    ) -> Result<(), Error> {
        let known = self.find(about, Kind::Reasoning).and_then(|place| self.items.get(place));
        let is_streamed = known.is_some_and(|known| {
            known
                .sections
                .iter()
                .any(|(kind, number)| *kind == section && about.part.is_none_or(|part| part == *number))
        });
        if is_streamed { Ok(()) } else { self.think(about, section, text, sink) }
    }

    /// Some of a call's arguments.
    pub(super) fn arguments(&mut self, about: &About, delta: &str, sink: &EventSink) {
        let Some(place) = self.find(about, Kind::Call) else {
            tracing::debug!("arguments of a call that did not begin are left out");
            return;
        };
        self.add_arguments(place, delta, sink);
    }

    /// The whole arguments of a call.
    pub(super) fn arguments_done(&mut self, about: &About, name: Option<String>, args: &str, sink: &EventSink) {
        let Some(place) = self.find(about, Kind::Call) else { return };
        self.settle_arguments(place, args, sink);
        if let Some(Growing { item: Item::Call(call), .. }) = self.items.get_mut(place)
            && call.name.is_empty()
        {
            call.name = name.unwrap_or_default();
        }
    }

    /// The response.
    ///
    /// # Errors
    /// If the provider says that it could not finish the reply.
    pub(super) fn finish(mut self, ending: Ending, sink: &EventSink) -> Result<ChatResponse, Error> {
        for place in 0..self.items.len() {
            self.tell(place, sink);
            self.ready(place, sink);
        }
        let received = self.items.into_iter().map(|known| Received {
            id: known.id,
            gap: known.gap,
            call_id: known.told.map(|(_, id)| id).unwrap_or_default(),
            item: known.item,
        });
        reply::response(received.collect(), ending, &self.origin)
    }

    /// The item that an event is about: by its id, else by its place, else the last of its kind that is not complete.
    fn find(&self, about: &About, kind: Kind) -> Option<usize> {
        let fits = |known: &Growing| known.item.kind() == kind && !known.is_done;
        let of = |same: &dyn Fn(&Growing) -> bool| self.items.iter().rposition(|known| fits(known) && same(known));
        let of_id = || of(&|known| about.id.is_some() && known.id == about.id);
        let of_index = || of(&|known| about.index.is_some() && known.index == about.index);
        of_id().or_else(of_index).or_else(|| if self.is_over(about) { None } else { of(&|_| true) })
    }

    /// Whether an event is about an item that is complete: it comes too late.
    fn is_over(&self, about: &About) -> bool {
        about.id.is_some() && self.items.iter().any(|known| known.is_done && known.id == about.id)
    }

    /// The item that an event is about; one that was not announced begins now.
    fn find_or_begin(&mut self, about: &About, kind: Kind, sink: &EventSink) -> Result<Option<usize>, Error> {
        match self.find(about, kind) {
            Some(place) => Ok(Some(place)),
            None if self.is_over(about) => Ok(None),
            None => self.begin(about, empty(kind), sink).map(Some),
        }
    }

    fn begin(&mut self, about: &About, item: Item, sink: &EventSink) -> Result<usize, Error> {
        if self.items.len() >= MAX_ITEMS {
            return Err(Error::new(ErrorKind::Decode, format!("the reply holds more than {MAX_ITEMS} items")));
        }
        let place = self.items.len();
        let is_named = matches!(&item, Item::Call(call) if !call.name.is_empty());
        self.items.push(Growing {
            id: about.id.clone(),
            index: about.index,
            item,
            is_done: false,
            told: None,
            is_ready: false,
            gap: 0,
            sections: Vec::new(),
        });
        if is_named {
            self.tell(place, sink);
        }
        Ok(place)
    }

    /// Takes the whole of an item in place of what was streamed of it, and makes up for what was not.
    fn complete(&mut self, place: usize, whole: Item, sink: &EventSink) {
        let Some(known) = self.items.get_mut(place).filter(|known| !known.is_done) else { return };
        match (&mut known.item, whole) {
            (Item::Message { parts, extra }, Item::Message { parts: whole, extra: newer }) => {
                *extra = newer;
                let streamed: String = parts.iter().map(|part| part.text.as_str()).collect();
                let all: String = whole.iter().map(|part| part.text.as_str()).collect();
                // What was shown already is what was said.
                if let Some(rest) = all.strip_prefix(streamed.as_str()).map(str::to_owned) {
                    *parts = whole;
                    self.tell_text(place, &rest, sink);
                }
            }
            (Item::Call(call), Item::Call(whole)) => {
                call.extra = whole.extra;
                if call.name.is_empty() {
                    call.name = whole.name;
                }
                call.call_id = call.call_id.take().or(whole.call_id);
                self.tell(place, sink);
                self.settle_arguments(place, &whole.args, sink);
                self.ready(place, sink);
            }
            (Item::Reasoning { raw, text }, Item::Reasoning { raw: whole, text: thoughts }) => {
                *raw = whole;
                if let Some(rest) = thoughts.strip_prefix(text.as_str()).filter(|rest| !rest.is_empty()) {
                    sink.emit(ChatEvent::Reasoning(rest.to_owned()));
                    *text = thoughts;
                }
            }
            (item, whole) => *item = whole,
        }
        if let Some(known) = self.items.get_mut(place) {
            known.is_done = true;
        }
    }

    fn grow(&mut self, place: usize, part: Option<u64>, kind: TextKind, delta: &str, sink: &EventSink) {
        let Some(Growing { item: Item::Message { parts, .. }, .. }) = self.items.get_mut(place) else { return };
        let at = said_in(parts, part, kind).unwrap_or_else(|| {
            parts.push(Said { index: part, kind, ..Said::default() });
            parts.len() - 1
        });
        if let Some(part) = parts.get_mut(at) {
            part.text.push_str(delta);
        }
        self.tell_text(place, delta, sink);
    }

    /// Tells new text of an item.
    fn tell_text(&mut self, place: usize, delta: &str, sink: &EventSink) {
        if delta.is_empty() {
            return;
        }
        let is_first = self.items.get(place).is_some_and(|known| match &known.item {
            Item::Message { parts, .. } => parts.iter().map(|part| part.text.len()).sum::<usize>() == delta.len(),
            Item::Call(_) | Item::Reasoning { .. } | Item::Opaque(_) => false,
        });
        let mut told = delta.to_owned();
        if is_first
            && !self.text.is_empty()
            && let Some(known) = self.items.get_mut(place)
        {
            known.gap = GAP.len();
            told.insert_str(0, GAP);
        }
        self.text.push_str(&told);
        sink.emit(ChatEvent::Text(told));
    }

    fn add_arguments(&mut self, place: usize, delta: &str, sink: &EventSink) {
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
    fn settle_arguments(&mut self, place: usize, whole: &str, sink: &EventSink) {
        let Some(Growing { item: Item::Call(call), .. }) = self.items.get_mut(place) else { return };
        match whole.strip_prefix(call.args.as_str()) {
            Some(rest) => self.add_arguments(place, rest, sink),
            None if whole.is_empty() => {}
            None => call.args = whole.to_owned(),
        }
    }

    /// Tells that a call began, once.
    fn tell(&mut self, place: usize, sink: &EventSink) {
        if let Some(Growing { item: Item::Call(call), told: told @ None, .. }) = self.items.get_mut(place) {
            let (index, id) = (self.calls, self.ids.settle(call.call_id.as_deref()));
            self.calls += 1;
            sink.emit(ChatEvent::CallBegun { index, id: id.clone(), name: call.name.clone() });
            *told = Some((index, id));
        }
    }

    /// Tells that a call is complete, once.
    fn ready(&mut self, place: usize, sink: &EventSink) {
        if let Some(Growing { item: Item::Call(call), told: Some((index, id)), is_ready: is_ready @ false, .. }) =
            self.items.get_mut(place)
        {
            *is_ready = true;
            let call = ToolCall::new(id.clone(), call.name.clone(), Args::decode(&call.args));
            sink.emit(ChatEvent::CallReady { index: *index, call });
        }
    }
}

/// The part of a message that text belongs to.
fn said_in(parts: &[Said], index: Option<u64>, kind: TextKind) -> Option<usize> {
    match index {
        Some(_) => parts.iter().rposition(|part| part.index == index && part.kind == kind),
        None => parts.iter().rposition(|part| part.kind == kind),
    }
}

fn empty(kind: Kind) -> Item {
    match kind {
        Kind::Message => Item::Message { parts: Vec::new(), extra: cepa_core::Extra::new() },
        Kind::Call => Item::Call(Call::default()),
        Kind::Reasoning => Item::Reasoning { raw: None, text: String::new() },
        Kind::Opaque => Item::Opaque(RawJson::empty_object()),
    }
}
