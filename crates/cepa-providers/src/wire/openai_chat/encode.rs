//! A request's body: the history message by message, then everything else.

use std::{borrow::Cow, sync::Arc};

use bytes::{Buf, Bytes};
use cepa_core::{ChatRequest, Content, Entry, Error, ErrorKind, Message, Role, ToolMessage, pairing};

use super::{
    AfterTools, OpenAiChat, Roles, SystemPlace,
    messages::{self, Attached},
    options,
};
use crate::wire::{
    closed::{self, Parts, Written},
    ids::WireIds,
    json::{self, Pieces},
    texts::Texts,
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
            pieces.tail().push(b'[');
            messages(dialect, request, &mut pieces)?;
            pieces.tail().push(b']');
        }
    }
    options::write(dialect, request, &mut pieces)?;
    pieces.tail().push(b'}');
    Ok(pieces.finish())
}

fn messages(dialect: &OpenAiChat, request: &ChatRequest, body: &mut Pieces) -> Result<(), Error> {
    let history = pairing::heal(&request.messages);
    let mut parts = Parts::of(&history, &dialect.key);
    let mut writer = Writer::new(dialect, parts.state());
    let mut systems = writer.place.clone();
    parts.entries().try_for_each(|entry| systems.take(dialect, &entry.message).map(drop))?;
    let prompt = request.system_prompt.as_deref().into_iter();
    let texts =
        prompt.chain(systems.leading.all().into_iter().map(|text| &**text)).filter(|text| !text.trim().is_empty());
    let leading = texts.collect::<Vec<_>>().join("\n\n");
    parts.write(&mut writer)?;
    writer.write_attached()?;
    let mut pieces = parts.finish(writer.written);
    if !leading.is_empty() {
        messages::system(body.tail(), &leading)?;
    } else if let Some(first) = pieces.first_mut() {
        // Each message begins with a comma; before the first there is none.
        first.advance(1);
    } else {
        return Err(Error::new(ErrorKind::InvalidInput, "there is no message to send: add one"));
    }
    body.share_all(&pieces);
    Ok(())
}

/// A short message of ours.
enum Between {
    NoReply,
    User(&'static str),
}

/// The messages as they are written one after another, but for the system messages that go to the front.
struct Writer<'a> {
    dialect: &'a OpenAiChat,
    written: Written<'a>,
    ids: WireIds,
    /// Which system messages go to the front.
    place: Systems,
    /// Who of user, assistant and tools spoke last on the wire.
    spoke: Option<Role>,
    /// The media of the results behind the last calls.
    attached: Vec<Attached<'a>>,
}

/// Where the messages to come are written.
#[derive(Clone)]
struct State {
    ids: WireIds,
    place: Systems,
    spoke: Option<Role>,
}

/// The texts of the system messages that go to the front: those at the beginning, or all.
#[derive(Clone, Default)]
struct Systems {
    leading: Texts,
    /// Whether somebody else spoke.
    is_over: bool,
}

impl Systems {
    /// Whether a message goes to the front.
    fn take(&mut self, dialect: &OpenAiChat, message: &Message) -> Result<bool, Error> {
        let Message::System(system) = message else {
            self.is_over = true;
            return Ok(false);
        };
        if self.is_over && dialect.quirks.system == SystemPlace::Anywhere {
            return Ok(false);
        }
        self.leading.push(&*messages::system_text(&system.content)?);
        Ok(true)
    }
}

impl<'a> closed::Writer<'a> for Writer<'a> {
    type State = State;

    fn entry(&mut self, place: usize, entry: &'a Arc<Entry>) -> Result<(), Error> {
        if self.place.take(self.dialect, &entry.message)? {
            return Ok(());
        }
        self.message(entry).map_err(|error| {
            let message = format!("message {place} of the conversation: {}", error.message());
            error.with_message(message)
        })
    }

    fn state(&mut self) -> Option<State> {
        self.attached.is_empty().then(|| State { ids: self.ids.settle(), place: self.place.clone(), spoke: self.spoke })
    }

    fn written(&mut self) -> &mut Written<'a> {
        &mut self.written
    }
}

impl<'a> Writer<'a> {
    fn new(dialect: &'a OpenAiChat, state: Option<&State>) -> Self {
        let State { ids, place, spoke } = state.cloned().unwrap_or_else(|| State {
            ids: WireIds::new(dialect.quirks.call_ids),
            place: Systems::default(),
            spoke: None,
        });
        Self { dialect, written: Written::default(), ids, place, spoke, attached: Vec::new() }
    }

    fn message(&mut self, entry: &'a Entry) -> Result<(), Error> {
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
                let Some(id) = self.ids.result(&message.tool_call_id) else { return Ok(()) };
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
    fn kept(&mut self, entry: &'a Entry, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<(), Error> {
        self.begin(entry.message.role())?;
        self.written.keep(entry, &self.dialect.key, b"", write).map(drop)
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
        let tail = self.written.tail();
        tail.push(b',');
        tail
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
