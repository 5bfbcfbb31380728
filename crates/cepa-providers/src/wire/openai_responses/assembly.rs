//! One reply as it comes together: whole or in events, the same rules.
//!
//! A reply is told up to four times: in pieces, by part, by item, and whole in the last event. Where these contradict each
//! other, the later of them wins, and where it is missing, the one before it counts. What was heard and is not what was said in
//! the end is void: the reply is told anew behind a [`ChatEvent::Reset`].

mod telling;

use std::{borrow::Cow, collections::HashSet};

use cepa_core::{ChatEvent, ChatResponse, Content, Error, EventSink, Origin, RawJson};
use serde_json::value::RawValue;

use super::{
    item::{Call, Item, Kind, Said, Sort, Wanting, wanting},
    layout::TextKind,
    reply::{self, Ending, GAP, Received},
};
use crate::wire::{caps::check_items, ids::ReplyIds, index::Index, pick, reply::tell_whole};

/// The reply so far.
#[derive(Debug)]
pub(super) struct Assembly {
    origin: Origin,
    ids: ReplyIds,
    items: Vec<Growing>,
    /// How many items, and parts of them, were taken.
    taken: usize,
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
    index: Option<Index>,
    item: Item,
    /// The bytes of its text, if it is a message.
    length: usize,
    is_done: bool,
    /// Where in the reply's calls it is, and its id, once somebody was told of it.
    told: Option<(usize, String)>,
    is_ready: bool,
    /// The parts of the reasoning so far, in their order.
    sections: Vec<(&'static str, Index)>,
}

/// Which item an event is about, and which part of it.
#[derive(Debug, Default)]
pub(super) struct About<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) index: Option<Index>,
    pub(super) part: Option<Index>,
}

impl Assembly {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            ids: ReplyIds::new(),
            items: Vec::new(),
            taken: 0,
            calls: 0,
            text: String::new(),
            is_call_void: false,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the items of a whole reply. A list that holds items of a kind holds all of that kind, and each as it is: what
    /// was streamed is completed by it or left out.
    pub(super) fn output(&mut self, items: &str, sink: &EventSink) -> Result<(), Error> {
        let streamed = self.items.len();
        // Where in the list each item is.
        let mut listed: Vec<Option<usize>> = vec![None; streamed];
        let mut kinds = HashSet::new();
        let mut places = 0..;
        pick::each(items, |raw| {
            let at = places.next().unwrap_or_default();
            // A message without its text did not come whole.
            let Some((id, item)) = Item::read(raw)?.filter(|(_, item)| !item.is_silent()) else { return Ok(()) };
            kinds.insert(item.sort());
            let place = match self.streamed_as(&listed, id.as_deref(), at, &item) {
                Some(place) => place,
                None => {
                    listed.push(None);
                    self.begin(&About { id: id.map(Cow::Owned), ..About::default() }, empty(item.kind()), sink)?
                }
            };
            if let Some(place) = listed.get_mut(place) {
                *place = Some(at);
            }
            self.complete(place, item, sink)
        })?;
        if streamed > 0 {
            self.arrange(&listed, &kinds);
        }
        Ok(())
    }

    /// Which of the items that were streamed, and are in the list nowhere yet, is this one of the list.
    fn streamed_as(&self, listed: &[Option<usize>], id: Option<&str>, at: usize, item: &Item) -> Option<usize> {
        let left = || {
            let left = self.items.iter().zip(listed).enumerate().filter(|(_, (_, listed))| listed.is_none());
            left.map(|(place, (known, _))| (place, known)).filter(|(_, known)| known.item.may_be(item))
        };
        let of_id = || left().find(|(_, known)| id.is_some() && known.id.as_deref() == id);
        let of_call = || left().find(|(_, known)| item.call_id().is_some() && known.item.call_id() == item.call_id());
        let at_place = || left().find(|(place, known)| *place == at && known.item.is_of_sort(item));
        let of_sort = || left().find(|(_, known)| known.item.is_of_sort(item));
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
    pub(super) fn added(&mut self, about: About<'_>, raw: &RawValue, sink: &EventSink) -> Result<(), Error> {
        if let Some((id, item)) = Item::read(raw)? {
            let about = About { id: about.id.or(id.map(Cow::Owned)), ..about };
            // Its text comes in events of its own.
            let item = match item {
                Item::Message { extra, .. } => Item::Message { parts: Vec::new(), extra },
                Item::Reasoning { .. } => empty(Kind::Reasoning),
                Item::Call(call) => Item::Call(Call { args: String::new(), is_complete: false, ..call }),
                Item::Opaque(raw, kind) => Item::Opaque(raw, kind),
            };
            self.begin(&about, item, sink)?;
        }
        Ok(())
    }

    /// An item is complete.
    pub(super) fn done(&mut self, about: About<'_>, raw: &RawValue, sink: &EventSink) -> Result<(), Error> {
        let Some((id, item)) = Item::read(raw)? else { return Ok(()) };
        let about = About { id: about.id.or(id.map(Cow::Owned)), ..about };
        let may_be = |place: &usize| self.items.get(*place).is_some_and(|known| known.item.may_be(&item));
        let place = match self.find(&about, item.kind()).filter(may_be) {
            Some(place) => place,
            None if self.is_over(&about, item.kind()) || self.is_repeated(&about, &item) => return Ok(()),
            None => self.begin(&about, empty(item.kind()), sink)?,
        };
        self.complete(place, item, sink)
    }

    /// A part of a message begins.
    pub(super) fn part(&mut self, about: &About<'_>, kind: TextKind, sink: &EventSink) -> Result<(), Error> {
        let place = self.find_or_begin(about, Kind::Message, sink)?;
        if let Some(Growing { item: Item::Message { parts, .. }, .. }) =
            place.and_then(|place| self.items.get_mut(place))
            && (about.part.is_none() || !parts.iter().any(|part| part.index == about.part))
        {
            parts.push(Said { index: about.part.clone(), kind, ..Said::default() });
            return self.take(1);
        }
        Ok(())
    }

    /// Some text of a message.
    pub(super) fn say(
        &mut self,
        about: &About<'_>,
        kind: TextKind,
        delta: &str,
        sink: &EventSink,
    ) -> Result<(), Error> {
        if let Some(place) = self.find_or_begin(about, Kind::Message, sink)? {
            self.grow(place, about.part.as_ref(), kind, sink, |part| if part.is_whole { "" } else { delta })?;
        }
        Ok(())
    }

    /// The whole text of a part of a message: what was not streamed of it is made up for.
    pub(super) fn said(
        &mut self,
        about: &About<'_>,
        kind: TextKind,
        text: &str,
        sink: &EventSink,
    ) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(place) = self.find_or_begin(about, Kind::Message, sink)? {
            self.grow(place, about.part.as_ref(), kind, sink, |part| {
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
            })?;
        }
        Ok(())
    }

    /// Some reasoning; `section` is what the numbers of its parts count.
    pub(super) fn think(
        &mut self,
        about: &About<'_>,
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
        let last = sections.last();
        let number = about.part.as_ref().or(last.map(|(_, number)| number)).cloned().unwrap_or(Index::Number(0));
        let section = (section, number);
        let is_new = last != Some(&section);
        let delta = if is_new && last.is_some() { format!("{GAP}{delta}") } else { delta.to_owned() };
        text.push_str(&delta);
        sink.emit(ChatEvent::Reasoning(delta));
        if is_new {
            sections.push(section);
            return self.take(1);
        }
        Ok(())
    }

    /// A whole part of the reasoning: it counts only where it was not streamed.
    pub(super) fn thought(
        &mut self,
        about: &About<'_>,
        section: &'static str,
        text: &str,
        sink: &EventSink,
    ) -> Result<(), Error> {
        let known = self.find(about, Kind::Reasoning).and_then(|place| self.items.get(place));
        let is_streamed = known.is_some_and(|known| {
            known
                .sections
                .iter()
                .any(|(kind, number)| *kind == section && about.part.as_ref().is_none_or(|part| part == number))
        });
        if is_streamed { Ok(()) } else { self.think(about, section, text, sink) }
    }

    /// Some of a call's arguments.
    pub(super) fn arguments(&mut self, about: &About<'_>, delta: &str, sink: &EventSink) {
        let Some(place) = self.find(about, Kind::Call) else {
            tracing::debug!("arguments of a call that did not begin are left out");
            return;
        };
        if !matches!(self.items.get(place), Some(Growing { item: Item::Call(Call { is_whole: true, .. }), .. })) {
            self.add_arguments(place, delta, sink);
        }
    }

    /// The whole arguments of a call.
    pub(super) fn arguments_done(&mut self, about: &About<'_>, name: Option<String>, args: &str, sink: &EventSink) {
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
    fn find(&self, about: &About<'_>, kind: Kind) -> Option<usize> {
        let fits = |known: &Growing| known.item.kind() == kind && !known.is_done;
        let of = |same: &dyn Fn(&Growing) -> bool| self.items.iter().rposition(|known| fits(known) && same(known));
        let of_id = || of(&|known| about.id.is_some() && known.id.as_deref() == about.id.as_deref());
        let of_index = || of(&|known| about.index.is_some() && known.index == about.index);
        let elsewhere = |known: &Growing| known.index.is_some() && about.index.is_some();
        let of_kind = || if self.is_over(about, kind) { None } else { of(&|known| !elsewhere(known)) };
        of_id().or_else(of_index).or_else(of_kind)
    }

    /// Whether an event is about an item that is complete: it comes too late. A place alone tells only where there is no id,
    /// as there are servers that count nothing.
    fn is_over(&self, about: &About<'_>, kind: Kind) -> bool {
        self.items.iter().filter(|known| known.is_done).any(|known| match (&about.id, &known.id) {
            (Some(id), Some(known)) => **id == **known,
            _ => about.index.is_some() && about.index == known.index && known.item.kind() == kind,
        })
    }

    /// Whether an item came whole before, only with another id or without any.
    fn is_repeated(&self, about: &About<'_>, item: &Item) -> bool {
        self.items.iter().any(|known| known.is_done && known.index == about.index && known.item.says_the_same(item))
    }

    /// The item that an event is about; one that was not announced begins now.
    fn find_or_begin(&mut self, about: &About<'_>, kind: Kind, sink: &EventSink) -> Result<Option<usize>, Error> {
        match self.find(about, kind) {
            Some(place) => Ok(Some(place)),
            None if self.is_over(about, kind) => Ok(None),
            None => self.begin(about, empty(kind), sink).map(Some),
        }
    }

    fn begin(&mut self, about: &About<'_>, item: Item, sink: &EventSink) -> Result<usize, Error> {
        self.take(1)?;
        let place = self.items.len();
        let is_named = matches!(&item, Item::Call(call) if !call.name.is_empty());
        self.items.push(Growing {
            id: about.id.as_deref().map(str::to_owned),
            index: about.index.clone(),
            item,
            length: 0,
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

    /// Counts what is held of the reply.
    ///
    /// # Errors
    /// `decode` if that is more than any reply has.
    fn take(&mut self, more: usize) -> Result<(), Error> {
        self.taken = self.taken.saturating_add(more);
        check_items(self.taken, "items and parts of items")
    }

    /// Takes the whole of an item in place of what was streamed of it, and tells what was not.
    fn complete(&mut self, place: usize, whole: Item, sink: &EventSink) -> Result<(), Error> {
        self.take(whole.size())?;
        let Some(known) = self.items.get_mut(place) else { return Ok(()) };
        known.is_done = true;
        match (&mut known.item, whole) {
            (Item::Message { parts, extra }, Item::Message { parts: whole, extra: newer }) => {
                *extra = newer;
                let text = |parts: &[Said]| parts.iter().map(|part| part.text.as_str()).collect::<String>();
                let all = text(&whole);
                let before = text(parts);
                if !matches!(wanting(&all, &before), Wanting::Nothing) {
                    known.length = all.len();
                }
                match wanting(&all, &before) {
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
        Ok(())
    }
}

fn empty(kind: Kind) -> Item {
    match kind {
        Kind::Message => Item::Message { parts: Vec::new(), extra: cepa_core::Extra::new() },
        Kind::Call => Item::Call(Call::default()),
        Kind::Reasoning => Item::Reasoning { raw: None, text: String::new() },
        Kind::Opaque => Item::Opaque(RawJson::empty_object(), String::new()),
    }
}
