//! A request's body: the history message by message, then everything else.

use std::borrow::Cow;

use bytes::Bytes;
use cepa_core::{ChatRequest, Content, Entry, Error, ErrorKind, History, Message, Role, ToolMessage, pairing};

use super::{
    AfterTools, OpenAiChat, Roles, SystemPlace,
    messages::{self, Attached},
    options,
};
use crate::wire::{
    ids::WireIds,
    json,
    json::Pieces,
    words::{GO_ON, START},
};

/// The body in pieces.
///
/// # Errors
/// As [`Dialect::encode`](crate::wire::Dialect::encode).
pub(super) fn encode(dialect: &OpenAiChat, request: &ChatRequest) -> Result<Vec<Bytes>, Error> {
    let extra = &request.options.extra;
    let mut pieces = Pieces::new();
    pieces.tail().extend_from_slice(b"{\"model\":");
    match extra.get("model") {
        Some(model) => json::write(pieces.tail(), model)?,
        None => json::write(pieces.tail(), &*dialect.origin.model)?,
    }
    pieces.tail().extend_from_slice(b",\"messages\":");
    match extra.get("messages") {
        Some(messages) => json::write(pieces.tail(), messages)?,
        None => {
            let history = pairing::heal(&request.messages);
            pieces.tail().push(b'[');
            Writer::new(dialect, &mut pieces).history(request.system_prompt.as_deref(), &history)?;
            pieces.tail().push(b']');
        }
    }
    options::write(dialect, request, &mut pieces)?;
    pieces.tail().push(b'}');
    Ok(pieces.finish())
}

/// A short message of ours.
enum Between {
    NoReply,
    User(&'static str),
}

/// The array of messages as it grows.
struct Writer<'a, 'p> {
    dialect: &'a OpenAiChat,
    pieces: &'p mut Pieces,
    ids: WireIds<'a>,
    /// Who spoke last on the wire.
    last: Option<Role>,
    /// Who of user, assistant and tools did.
    spoke: Option<Role>,
    /// The media of the results behind the last calls.
    attached: Vec<Attached<'a>>,
}

impl<'a, 'p> Writer<'a, 'p> {
    fn new(dialect: &'a OpenAiChat, pieces: &'p mut Pieces) -> Self {
        Self {
            dialect,
            pieces,
            ids: WireIds::new(dialect.quirks.call_ids),
            last: None,
            spoke: None,
            attached: Vec::new(),
        }
    }

    fn history(&mut self, system_prompt: Option<&str>, history: &'a History) -> Result<(), Error> {
        let is_system = |entry: &&std::sync::Arc<Entry>| entry.message.role() == Role::System;
        let leading = history.iter().take_while(is_system).count();
        let merged = match self.dialect.quirks.system {
            SystemPlace::Anywhere => leading,
            SystemPlace::Single => history.len(),
        };
        let texts = history.iter().take(merged).filter(is_system).filter_map(|entry| entry.message.content());
        self.leading_system(system_prompt, texts)?;
        for (place, entry) in history.iter().enumerate() {
            if place < merged && is_system(&entry) {
                continue;
            }
            self.entry(entry).map_err(|error| {
                let message = format!("message {place} of the conversation: {}", error.message());
                error.with_message(message)
            })?;
        }
        self.write_attached()?;
        match self.last {
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::InvalidInput, "there is no message to send: add one")),
        }
    }

    fn leading_system(
        &mut self,
        prompt: Option<&str>,
        contents: impl Iterator<Item = &'a Content>,
    ) -> Result<(), Error> {
        let mut texts: Vec<Cow<'_, str>> = prompt.map(Cow::Borrowed).into_iter().collect();
        for content in contents {
            texts.push(messages::system_text(content)?);
        }
        texts.retain(|text| !text.trim().is_empty());
        if texts.is_empty() {
            return Ok(());
        }
        let text = texts.join("\n\n");
        messages::system(self.begin(Role::System)?, &text)
    }

    fn entry(&mut self, entry: &'a Entry) -> Result<(), Error> {
        if entry.message.role() != Role::Tool {
            self.write_attached()?;
        }
        match &entry.message {
            Message::System(message) => {
                let text = messages::system_text(&message.content)?;
                if text.trim().is_empty() {
                    return Ok(());
                }
                self.kept(entry, |out| messages::system(out, &text))
            }
            Message::User(message) => self.kept(entry, |out| messages::user(out, message)),
            Message::Assistant(message) => {
                let dialect = self.dialect;
                let ids = self.ids.calls(&message.tool_calls);
                let write = |out: &mut Vec<u8>| messages::assistant(dialect, out, message, &ids);
                // A message whose ids depend on the messages before it is not the same in every request.
                if ids.iter().all(|id| matches!(id, Cow::Borrowed(_))) {
                    self.kept(entry, write)
                } else {
                    write(self.begin(Role::Assistant)?)
                }
            }
            Message::Tool(message) => {
                // After healing each result answers a call.
                let Some(id) = self.ids.result() else { return Ok(()) };
                self.result(entry, message, id)
            }
        }
    }

    fn result(&mut self, entry: &'a Entry, message: &'a ToolMessage, id: Cow<'a, str>) -> Result<(), Error> {
        if matches!((&id, &message.content), (Cow::Borrowed(_), Content::Text(_))) {
            return self.kept(entry, |out| messages::tool(out, message, &id).map(drop));
        }
        let parts = messages::tool(self.begin(Role::Tool)?, message, &id)?;
        if !parts.is_empty() {
            self.attached.push(Attached { id, tool: &message.name, parts });
        }
        Ok(())
    }

    /// Writes a message that is the same in every request of this dialect, or takes what was written for an earlier one.
    fn kept(&mut self, entry: &Entry, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<(), Error> {
        let key = &self.dialect.key;
        let bytes = match entry.encoded.get(key) {
            Some(bytes) => bytes,
            None => {
                let mut out = Vec::new();
                write(&mut out)?;
                let bytes = Bytes::from(out);
                entry.encoded.set(key, bytes.clone());
                bytes
            }
        };
        self.begin(entry.message.role())?;
        self.pieces.share(bytes);
        Ok(())
    }

    fn write_attached(&mut self) -> Result<(), Error> {
        if self.attached.is_empty() {
            return Ok(());
        }
        let attached = std::mem::take(&mut self.attached);
        messages::attachments(self.begin(Role::User)?, &attached)
    }

    /// Where the next message goes.
    fn begin(&mut self, role: Role) -> Result<&mut Vec<u8>, Error> {
        match self.missing_before(role) {
            Some(Between::NoReply) => messages::no_reply(self.next(Role::Assistant))?,
            Some(Between::User(text)) => messages::user_text(self.next(Role::User), text)?,
            None => {}
        }
        Ok(self.next(role))
    }

    fn next(&mut self, role: Role) -> &mut Vec<u8> {
        if role != Role::System {
            self.spoke = Some(role);
        }
        if self.last.replace(role).is_some() {
            self.pieces.tail().push(b',');
        }
        self.pieces.tail()
    }

    /// What has to be said before somebody speaks, so that the server takes the order.
    fn missing_before(&self, role: Role) -> Option<Between> {
        let quirks = &self.dialect.quirks;
        let in_turn = quirks.roles == Roles::InTurn;
        match (self.spoke, role) {
            (Some(Role::Tool), Role::System | Role::User) if in_turn || quirks.after_tools == AfterTools::Assistant => {
                Some(Between::NoReply)
            }
            (Some(Role::User), Role::User) if in_turn => Some(Between::NoReply),
            (Some(Role::Assistant), Role::Assistant) if in_turn => Some(Between::User(GO_ON)),
            (None, Role::Assistant) if in_turn => Some(Between::User(START)),
            (_, Role::System | Role::User | Role::Assistant | Role::Tool) => None,
        }
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
