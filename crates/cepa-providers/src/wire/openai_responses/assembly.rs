//! One reply as it comes together: whole or in events, the same rules.
//!
//! A reply is told up to four times: in pieces, by part, by item, and whole in the last event. Where these contradict each
//! other, the later of them wins, and where it is missing, the one before it counts. What was heard and is not what was said in
//! the end is void: the reply is told anew behind a [`ChatEvent::Reset`].

use std::collections::HashSet;

use cepa_core::{ChatEvent, ChatResponse, Content, Error, ErrorKind, EventSink, Origin, RawJson, ToolCall};

use super::{
    item::{Call, Item, Kind, Said, Sort, Wanting, wanting},
    layout::TextKind,
    reply::{self, Ending, GAP, Received},
};
use crate::wire::{ids::ReplyIds, reply::tell_whole};

/// More items than any reply has.
const MAX_ITEMS: usize = 4096;

/// The reply so far.
#[derive(Debug)]
pub(super) struct Assembly {
    origin: Origin,
    ids: ReplyIds,
    items: Vec<Growing>,
    calls: usize,
    /// What was told of the text.
    text: String,
    /// A call that was told is another one now, or none.
    is_call_void: bool,
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
        Self { origin, ids: ReplyIds::new(), items: Vec::new(), calls: 0, text: String::new(), is_call_void: false }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the items of a whole reply. A list that holds items of a kind holds all of that kind, and each as it is: what
    /// was streamed is completed by it or left out.
    pub(super) fn output(&mut self, items: Vec<RawJson>, sink: &EventSink) -> Result<(), Error> {
        let streamed = self.items.len();
        // Where in the list each item is.
        let mut listed: Vec<Option<usize>> = vec![None; streamed];
        let mut kinds = HashSet::new();
        for (at, raw) in items.into_iter().enumerate() {
            // A message without its text did not come whole.
            let Some((id, item)) = Item::read(raw).filter(|(_, item)| !item.is_silent()) else { continue };
            kinds.insert(item.sort());
            let place = match self.streamed_as(&listed, id.as_deref(), at, &item) {
                Some(place) => place,
                None => {
                    listed.push(None);
                    self.begin(&About { id, ..About::default() }, empty(item.kind()), sink)?
                }
            };
            if let Some(place) = listed.get_mut(place) {
                *place = Some(at);
            }
            self.complete(place, item, sink);
        }
        if streamed > 0 {
            self.arrange(&listed, &kinds);
        }
        Ok(())
    }

    /// Which of the items that were streamed, and are in the list nowhere yet, is this one of the list.
    fn streamed_as(&self, listed: &[Option<usize>], id: Option<&str>, at: usize, item: &Item) -> Option<usize> {
        let sort = item.sort();
        let left = || {
            let left = self.items.iter().zip(listed).enumerate().filter(|(_, (_, listed))| listed.is_none());
            left.map(|(place, (known, _))| (place, known)).filter(|(_, known)| known.item.may_be(item))
        };
        let of_id = || left().find(|(_, known)| id.is_some() && known.id.as_deref() == id);
        let of_call = || left().find(|(_, known)| item.call_id().is_some() && known.item.call_id() == item.call_id());
        let at_place = || left().find(|(place, known)| *place == at && known.item.sort() == sort);
        let of_sort = || left().find(|(_, known)| known.item.sort() == sort);
        of_call().or_else(of_id).or_else(at_place).or_else(of_sort).map(|(place, _)| place)
    }

    /// Puts the items into the order of the list; one of a kind that it does not hold stays behind the one before it.
    fn arrange(&mut self, listed: &[Option<usize>], kinds: &HashSet<Sort>) {
        let mut before = None;
        let mut items = Vec::with_capacity(self.items.len());
        for (known, at) in std::mem::take(&mut self.items).into_iter().zip(listed) {
            if at.is_none() && kinds.contains(&known.item.sort()) {
                self.is_call_void |= known.told.is_some();
                continue;
            }
            before = at.or(before);
            items.push(((before, at.is_none()), known));
        }
        items.sort_by_key(|(place, _)| *place);
        self.items = items.into_iter().map(|(_, known)| known).collect();
    }

    /// An item begins.
    pub(super) fn added(&mut self, about: About, raw: RawJson, sink: &EventSink) -> Result<(), Error> {
        if let Some((id, item)) = Item::read(raw) {
            let about = About { id: about.id.or(id), ..about };
            // Its text comes in events of its own.
            let item = match item {
                Item::Message { extra, .. } => Item::Message { parts: Vec::new(), extra },
                Item::Reasoning { .. } => empty(Kind::Reasoning),
                Item::Call(call) => Item::Call(Call { args: String::new(), is_complete: false, ..call }),
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
        let may_be = |place: &usize| self.items.get(*place).is_some_and(|known| known.item.may_be(&item));
        let place = match self.find(&about, item.kind()).filter(may_be) {
            Some(place) => place,
            None if self.is_over(&about, item.kind()) || self.is_repeated(&about, &item) => return Ok(()),
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
            self.grow(place, about.part, kind, sink, |part| if part.is_whole { "" } else { delta });
        }
        Ok(())
    }

    /// The whole text of a part of a message: what was not streamed of it is made up for.
    pub(super) fn said(&mut self, about: &About, kind: TextKind, text: &str, sink: &EventSink) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(place) = self.find_or_begin(about, Kind::Message, sink)? {
            self.grow(place, about.part, kind, sink, |part| {
                if std::mem::replace(&mut part.is_whole, true) {
                    return "";
                }
                match wanting(text, &part.text) {
                    Wanting::Rest(rest) => rest,
                    Wanting::Nothing => "",
                    Wanting::All => {
                        text.clone_into(&mut part.text);
                        ""
                    }
                }
            });
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
        if !matches!(self.items.get(place), Some(Growing { item: Item::Call(Call { is_whole: true, .. }), .. })) {
            self.add_arguments(place, delta, sink);
        }
    }

    /// The whole arguments of a call.
    pub(super) fn arguments_done(&mut self, about: &About, name: Option<String>, args: &str, sink: &EventSink) {
        let Some(place) = self.find(about, Kind::Call) else { return };
        if let Some(Growing { item: Item::Call(call), .. }) = self.items.get_mut(place) {
            if std::mem::replace(&mut call.is_whole, !args.is_empty()) {
                return;
            }
            call.is_complete = true;
            if call.name.is_empty() {
                call.name = name.unwrap_or_default();
            }
        }
        self.settle_arguments(place, args, sink);
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
        let calls = self.items.iter().filter_map(|known| known.told.as_ref()).map(|(index, _)| *index);
        let are_calls_told = !self.is_call_void && calls.eq(0..self.calls);
        let received = self.items.into_iter().map(|known| Received {
            id: known.id,
            call_id: known.told.map(|(_, id)| id).unwrap_or_default(),
            item: known.item,
        });
        let response = reply::response(received.collect(), ending, &self.origin)?;
        let is_text_told = response.message.content.as_ref().map(Content::text).unwrap_or_default() == self.text;
        if !(is_text_told && are_calls_told) {
            sink.emit(ChatEvent::Reset);
            tell_whole(&response.message, sink);
        }
        Ok(response)
    }

    /// The item that an event is about: by its id, else by its place, else the last of its kind that is not complete.
    fn find(&self, about: &About, kind: Kind) -> Option<usize> {
        let fits = |known: &Growing| known.item.kind() == kind && !known.is_done;
        let of = |same: &dyn Fn(&Growing) -> bool| self.items.iter().rposition(|known| fits(known) && same(known));
        let of_id = || of(&|known| about.id.is_some() && known.id == about.id);
        let of_index = || of(&|known| about.index.is_some() && known.index == about.index);
        let elsewhere = |known: &Growing| known.index.is_some() && about.index.is_some();
        let of_kind = || if self.is_over(about, kind) { None } else { of(&|known| !elsewhere(known)) };
        of_id().or_else(of_index).or_else(of_kind)
    }

    /// Whether an event is about an item that is complete: it comes too late. A place alone tells only where there is no id,
    /// as there are servers that count nothing.
    fn is_over(&self, about: &About, kind: Kind) -> bool {
        self.items.iter().filter(|known| known.is_done).any(|known| match (&about.id, &known.id) {
            (Some(id), Some(known)) => id == known,
            _ => about.index.is_some() && about.index == known.index && known.item.kind() == kind,
        })
    }

    /// Whether an item came whole before, only with another id or without any.
    fn is_repeated(&self, about: &About, item: &Item) -> bool {
        self.items.iter().any(|known| known.is_done && known.index == about.index && known.item.says_the_same(item))
    }

    /// The item that an event is about; one that was not announced begins now.
    fn find_or_begin(&mut self, about: &About, kind: Kind, sink: &EventSink) -> Result<Option<usize>, Error> {
        match self.find(about, kind) {
            Some(place) => Ok(Some(place)),
            None if self.is_over(about, kind) => Ok(None),
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
            sections: Vec::new(),
        });
        if is_named {
            self.tell(place, sink);
        }
        Ok(place)
    }

    /// Takes the whole of an item in place of what was streamed of it, and tells what was not.
    fn complete(&mut self, place: usize, whole: Item, sink: &EventSink) {
        let Some(known) = self.items.get_mut(place) else { return };
        known.is_done = true;
        match (&mut known.item, whole) {
            (Item::Message { parts, extra }, Item::Message { parts: whole, extra: newer }) => {
                *extra = newer;
                let text = |parts: &[Said]| parts.iter().map(|part| part.text.as_str()).collect::<String>();
                let all = text(&whole);
                match wanting(&all, &text(parts)) {
                    Wanting::Rest(rest) => {
                        *parts = whole;
                        self.tell_text(place, rest, sink);
                    }
                    Wanting::All => *parts = whole,
                    // An item without its text did not come whole.
                    Wanting::Nothing => {
                        for (part, whole) in parts.iter_mut().zip(whole) {
                            part.annotations = whole.annotations;
                        }
                    }
                }
            }
            (Item::Call(call), Item::Call(whole)) => {
                call.extra = whole.extra;
                call.call_id = call.call_id.take().or(whole.call_id);
                self.is_call_void |= known.is_ready && call.is_complete != whole.is_complete;
                call.is_complete = whole.is_complete;
                if !whole.name.is_empty() {
                    self.is_call_void |= known.is_ready && call.name != whole.name;
                    call.name = whole.name;
                }
                self.tell(place, sink);
                self.settle_arguments(place, &whole.args, sink);
                self.ready(place, sink);
            }
            (Item::Reasoning { raw, text }, Item::Reasoning { raw: whole, text: thoughts }) => {
                *raw = whole;
                match wanting(&thoughts, text) {
                    Wanting::Rest("") | Wanting::Nothing => {}
                    Wanting::Rest(rest) => {
                        sink.emit(ChatEvent::Reasoning(rest.to_owned()));
                        *text = thoughts;
                    }
                    // Thoughts are to look at only: nothing is told anew for them.
                    Wanting::All => *text = thoughts,
                }
            }
            (item, whole) => *item = whole,
        }
    }

    /// Lets a part of a message grow by what is chosen for it.
    fn grow<'a>(
        &mut self,
        place: usize,
        part: Option<u64>,
        kind: TextKind,
        sink: &EventSink,
        choose: impl FnOnce(&mut Said) -> &'a str,
    ) {
        let Some(Growing { item: Item::Message { parts, .. }, .. }) = self.items.get_mut(place) else { return };
        let at = said_in(parts, part, kind).unwrap_or_else(|| {
            parts.push(Said { index: part, kind, ..Said::default() });
            parts.len() - 1
        });
        let Some(part) = parts.get_mut(at) else { return };
        let delta = choose(part);
        part.text.push_str(delta);
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
        let gap = if is_first && !self.text.is_empty() { GAP } else { "" };
        let told = format!("{gap}{delta}");
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
            let call = ToolCall::new(id.clone(), call.name.clone(), call.decoded());
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
