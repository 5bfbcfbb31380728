//! A request's body: the history item by item, then everything else.

use std::{borrow::Cow, sync::Arc};

use bytes::{Buf, Bytes};
use cepa_core::{AssistantMessage, ChatRequest, Entry, Error, ErrorKind, Message, ToolMessage, WireKey, pairing};

use super::{
    Responses,
    items::{self, Items},
    layout, options,
    own::{self, Form},
};
use crate::wire::{
    closed::{self, Parts, Written},
    hash,
    ids::WireIds,
    json::{self, Pieces},
    openai_chat::messages::system_text,
    seen::Seen,
    texts::Texts,
    words::START,
};

/// The body in pieces.
///
/// # Errors
/// As [`Dialect::encode`](crate::wire::Dialect::encode).
pub(super) fn encode(dialect: &Responses, request: &ChatRequest) -> Result<Vec<Bytes>, Error> {
    let extra = &request.options.extra;
    let [whole, stored] = &dialect.keys;
    let (form, key) = match extra.get("store") {
        Some(serde_json::Value::Bool(true)) => (Form::Stored, stored),
        Some(_) | None => (Form::Whole, whole),
    };
    let history = pairing::heal(&request.messages);
    let parts = Parts::of(&history, key);
    let writer = Writer::new(dialect, key, form, parts.state());
    let mut systems = writer.systems.clone();
    parts.entries().try_for_each(|entry| systems.take(&entry.message).map(drop))?;
    let mut pieces = Pieces::new();
    pieces.tail().extend_from_slice(b"{\"model\":");
    match extra.get("model") {
        Some(model) => json::write(pieces.tail(), model)?,
        None => json::write(pieces.tail(), &*dialect.origin.model)?,
    }
    let instructions = match extra.get("instructions") {
        Some(instructions) => Some(instructions.clone()),
        None => systems.instructions(request.system_prompt.as_deref()).map(serde_json::Value::String),
    };
    if let Some(instructions) = instructions {
        pieces.tail().extend_from_slice(b",\"instructions\":");
        json::write(pieces.tail(), &instructions)?;
    }
    pieces.tail().extend_from_slice(b",\"input\":");
    match extra.get("input") {
        Some(input) => json::write(pieces.tail(), input)?,
        None => {
            pieces.tail().push(b'[');
            input(writer, parts, &mut pieces)?;
            pieces.tail().push(b']');
        }
    }
    options::write(dialect, request, &mut pieces)?;
    pieces.tail().push(b'}');
    Ok(pieces.finish())
}

fn input<'a>(mut writer: Writer<'a>, mut parts: Parts<'a, State>, body: &mut Pieces) -> Result<(), Error> {
    parts.write(&mut writer)?;
    let is_over = writer.systems.is_over;
    let mut pieces = parts.finish(writer.written);
    match pieces.first_mut() {
        // Each item begins with a comma; before the first there is none.
        Some(first) => first.advance(1),
        // Somebody spoke, but said nothing that could be sent.
        None if is_over => body.share(items::user(&START.into())?.into_bytes()),
        None => return Err(Error::new(ErrorKind::InvalidInput, "there is no message to send: add one")),
    }
    body.share_all(&pieces);
    Ok(())
}

/// The items as they are written one after another.
struct Writer<'a> {
    dialect: &'a Responses,
    written: Written<'a>,
    /// For whom encoded messages are kept.
    key: &'a WireKey,
    form: Form,
    ids: WireIds,
    sent: Seen,
    systems: Systems,
}

/// Where the items to come are written.
#[derive(Clone)]
struct State {
    ids: WireIds,
    /// The hashes of the ids of items that were sent: `Duplicate item found with id rs_…`
    /// (<https://github.com/vercel/ai/issues/7883>).
    sent: Seen,
    systems: Systems,
}

/// The texts of the system messages at the beginning.
#[derive(Clone, Default)]
struct Systems {
    leading: Texts,
    /// Whether somebody else spoke.
    is_over: bool,
}

impl Systems {
    /// Whether a message belongs to the instructions.
    fn take(&mut self, message: &Message) -> Result<bool, Error> {
        match message {
            Message::System(system) if !self.is_over => {
                self.leading.push(&*system_text(&system.content)?);
                Ok(true)
            }
            _ => {
                self.is_over = true;
                Ok(false)
            }
        }
    }

    fn instructions(&self, prompt: Option<&str>) -> Option<String> {
        let texts = prompt.into_iter().chain(self.leading.all().into_iter().map(|text| &**text));
        let texts: Vec<&str> = texts.filter(|text| !text.trim().is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

impl<'a> closed::Writer<'a> for Writer<'a> {
    type State = State;

    fn entry(&mut self, place: usize, entry: &'a Arc<Entry>) -> Result<(), Error> {
        if self.systems.take(&entry.message)? {
            return Ok(());
        }
        self.message(entry).map_err(|error| {
            let message = format!("message {place} of the conversation: {}", error.message());
            error.with_message(message)
        })
    }

    fn state(&mut self) -> Option<State> {
        Some(State { ids: self.ids.settle(), sent: self.sent.settle(), systems: self.systems.clone() })
    }

    fn written(&mut self) -> &mut Written<'a> {
        &mut self.written
    }
}

impl<'a> Writer<'a> {
    fn new(dialect: &'a Responses, key: &'a WireKey, form: Form, state: Option<&State>) -> Self {
        let State { ids, sent, systems } = state.cloned().unwrap_or_else(|| State {
            ids: WireIds::new(dialect.quirks.call_ids),
            sent: Seen::default(),
            systems: Systems::default(),
        });
        Self { dialect, written: Written::default(), key, form, ids, sent, systems }
    }

    fn message(&mut self, entry: &'a Entry) -> Result<(), Error> {
        match &entry.message {
            Message::System(message) => self.kept(entry, || items::system(&system_text(&message.content)?)),
            Message::User(message) => self.kept(entry, || items::user(&message.content)),
            Message::Assistant(message) => self.assistant(entry, message),
            Message::Tool(message) => {
                // After healing each result answers a call.
                let Some(id) = self.ids.result(&message.tool_call_id) else { return Ok(()) };
                self.result(entry, message, id)
            }
        }
    }

    fn assistant(&mut self, entry: &'a Entry, message: &'a AssistantMessage) -> Result<(), Error> {
        let origin = &self.dialect.origin;
        let ids = self.ids.calls(&message.tool_calls);
        let mut is_new = true;
        for id in layout::item_ids(message, origin) {
            is_new &= self.sent.insert(hash::stable(&id, 0));
        }
        let form = if is_new { self.form } else { Form::Bare };
        let write = || own::items(message, origin, &ids, form);
        // A message whose ids depend on the messages before it is not the same in every request.
        let is_the_same = is_new && ids.iter().all(|id| matches!(id, Cow::Borrowed(_)));
        if is_the_same { self.kept(entry, write) } else { self.add(write()?) }
    }

    fn result(&mut self, entry: &'a Entry, message: &ToolMessage, id: Cow<'a, str>) -> Result<(), Error> {
        let write = || items::result(message, &id);
        if matches!(id, Cow::Borrowed(_)) { self.kept(entry, write) } else { self.add(write()?) }
    }

    /// Adds the items of a message that are the same in every request of this dialect, or those made for an earlier one.
    fn kept(&mut self, entry: &'a Entry, write: impl FnOnce() -> Result<Items, Error>) -> Result<(), Error> {
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(&write()?.into_bytes());
            Ok(())
        };
        self.written.keep(entry, self.key, b",", write).map(drop)
    }

    fn add(&mut self, items: Items) -> Result<(), Error> {
        let items = items.into_bytes();
        if !items.is_empty() {
            self.written.tail().push(b',');
            self.written.share(items);
        }
        Ok(())
    }
}
