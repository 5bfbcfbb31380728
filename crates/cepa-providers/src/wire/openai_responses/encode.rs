//! A request's body: the history item by item, then everything else.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use bytes::Bytes;
use cepa_core::{
    AssistantMessage, ChatRequest, Content, Entry, Error, ErrorKind, History, Message, Role, ToolMessage, WireKey,
    pairing,
};

use super::{
    FORMAT, Responses,
    items::{self, Items},
    layout, options,
    own::{self, Form},
};
use crate::wire::{
    ids::WireIds,
    json::{self, Pieces},
    openai_chat::messages::system_text,
    words::START,
};

/// The body in pieces.
///
/// # Errors
/// As [`Dialect::encode`](crate::wire::Dialect::encode).
pub(super) fn encode(dialect: &Responses, request: &ChatRequest) -> Result<Vec<Bytes>, Error> {
    let extra = &request.options.extra;
    let history = pairing::heal(&request.messages);
    let is_system = |entry: &&Arc<Entry>| entry.message.role() == Role::System;
    let leading = history.iter().take_while(is_system).count();
    let mut pieces = Pieces::new();
    pieces.tail().extend_from_slice(b"{\"model\":");
    match extra.get("model") {
        Some(model) => json::write(pieces.tail(), model)?,
        None => json::write(pieces.tail(), &*dialect.origin.model)?,
    }
    let contents = history.iter().take(leading).filter_map(|entry| entry.message.content());
    let instructions = match extra.get("instructions") {
        Some(instructions) => Some(instructions.clone()),
        None => instructions(request.system_prompt.as_deref(), contents)?.map(serde_json::Value::String),
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
            Writer::new(dialect, request, &mut pieces).history(&history, leading)?;
            pieces.tail().push(b']');
        }
    }
    options::write(dialect, request, &mut pieces)?;
    pieces.tail().push(b'}');
    Ok(pieces.finish())
}

fn instructions<'a>(
    prompt: Option<&'a str>,
    contents: impl Iterator<Item = &'a Content>,
) -> Result<Option<String>, Error> {
    let mut texts: Vec<Cow<'_, str>> = prompt.map(Cow::Borrowed).into_iter().collect();
    for content in contents {
        texts.push(system_text(content)?);
    }
    texts.retain(|text| !text.trim().is_empty());
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}

/// The list of items as it grows.
struct Writer<'a, 'p> {
    dialect: &'a Responses,
    pieces: &'p mut Pieces,
    /// For whom encoded messages are kept.
    key: WireKey,
    ids: WireIds<'a>,
    /// The ids of items that were sent: `Duplicate item found with id rs_…`
    /// (<https://github.com/vercel/ai/issues/7883>).
    sent: HashSet<String>,
    form: Form,
    is_empty: bool,
}

impl<'a, 'p> Writer<'a, 'p> {
    fn new(dialect: &'a Responses, request: &ChatRequest, pieces: &'p mut Pieces) -> Self {
        let Responses { origin, quirks } = dialect;
        let form = match request.options.extra.get("store") {
            Some(serde_json::Value::Bool(true)) => Form::Stored,
            Some(_) | None => Form::Whole,
        };
        let key = WireKey::new(format!("{FORMAT}\n{}\n{}\n{quirks:?}\n{form:?}", origin.provider, origin.model));
        let ids = WireIds::new(quirks.call_ids);
        Self { dialect, pieces, key, ids, sent: HashSet::new(), form, is_empty: true }
    }

    fn history(&mut self, history: &'a History, leading: usize) -> Result<(), Error> {
        for (place, entry) in history.iter().enumerate().skip(leading) {
            self.entry(entry).map_err(|error| {
                let message = format!("message {place} of the conversation: {}", error.message());
                error.with_message(message)
            })?;
        }
        match (self.is_empty, history.len() > leading) {
            (false, _) => Ok(()),
            // Somebody spoke, but said nothing that could be sent.
            (true, true) => self.add(items::user(&START.into())?),
            (true, false) => Err(Error::new(ErrorKind::InvalidInput, "there is no message to send: add one")),
        }
    }

    fn entry(&mut self, entry: &'a Entry) -> Result<(), Error> {
        match &entry.message {
            Message::System(message) => self.kept(entry, || items::system(&system_text(&message.content)?)),
            Message::User(message) => self.kept(entry, || items::user(&message.content)),
            Message::Assistant(message) => self.assistant(entry, message),
            Message::Tool(message) => {
                // After healing each result answers a call.
                let Some(id) = self.ids.result() else { return Ok(()) };
                self.result(entry, message, id)
            }
        }
    }

    fn assistant(&mut self, entry: &'a Entry, message: &'a AssistantMessage) -> Result<(), Error> {
        let origin = &self.dialect.origin;
        let ids = self.ids.calls(&message.tool_calls);
        let item_ids = layout::item_ids(message, origin);
        let mut seen = HashSet::new();
        let form =
            if item_ids.iter().all(|id| !self.sent.contains(id) && seen.insert(id)) { self.form } else { Form::Bare };
        let write = || own::items(message, origin, &ids, form);
        // A message whose ids depend on the messages before it is not the same in every request.
        let is_the_same = form != Form::Bare && ids.iter().all(|id| matches!(id, Cow::Borrowed(_)));
        self.sent.extend(item_ids);
        if is_the_same { self.kept(entry, write) } else { self.add(write()?) }
    }

    fn result(&mut self, entry: &Entry, message: &ToolMessage, id: Cow<'a, str>) -> Result<(), Error> {
        let write = || items::result(message, &id);
        if matches!(id, Cow::Borrowed(_)) { self.kept(entry, write) } else { self.add(write()?) }
    }

    /// Adds the items of a message that are the same in every request of this dialect, or those made for an earlier one.
    fn kept(&mut self, entry: &Entry, write: impl FnOnce() -> Result<Items, Error>) -> Result<(), Error> {
        let bytes = match entry.encoded.get(&self.key) {
            Some(bytes) => bytes,
            None => {
                let bytes = write()?.into_bytes();
                entry.encoded.set(&self.key, bytes.clone());
                bytes
            }
        };
        self.share(bytes);
        Ok(())
    }

    fn add(&mut self, items: Items) -> Result<(), Error> {
        self.share(items.into_bytes());
        Ok(())
    }

    fn share(&mut self, items: Bytes) {
        if items.is_empty() {
            return;
        }
        if !std::mem::take(&mut self.is_empty) {
            self.pieces.tail().push(b',');
        }
        self.pieces.share(items);
    }
}
