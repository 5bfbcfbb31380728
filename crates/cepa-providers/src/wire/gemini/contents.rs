//! A history as the contents that the API takes: user first, then in turn, responses right behind their calls.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use bytes::Bytes;
use cepa_core::{
    AssistantMessage, ChatRequest, Content, Entry, Error, History, Message, Part, SystemMessage, ToolMessage,
};

use super::{
    GenerateContent, layout, media, names,
    part::{self, NOTHING, Parts},
    reply::Reply,
    response,
};
use crate::wire::{
    closed::{self, Written},
    ids::{IdRule, WireIds},
    texts::Texts,
    words::{BLANK, GO_ON, START},
};

/// There is no setting for it.
const ONE_AT_A_TIME: &str = "Call at most one function in each reply.";

/// A conversation on this wire.
pub(super) struct Conversation {
    /// The texts of `systemInstruction`.
    pub(super) system: Vec<Arc<str>>,
    /// The contents, with commas between them.
    pub(super) contents: Vec<Bytes>,
}

/// The conversation of a request, from its history after [`cepa_core::pairing::heal`].
pub(super) fn of(dialect: &GenerateContent, request: &ChatRequest, history: &History) -> Result<Conversation, Error> {
    let mut parts = closed::Parts::of(history, &dialect.key);
    let mut build = Build::new(dialect, parts.state());
    parts.write(&mut build)?;
    build.end()?;
    let one_at_a_time = request.options.parallel_tool_calls == Some(false) && !request.tools.is_empty();
    let mut system: Vec<Arc<str>> = request.system_prompt.iter().map(|prompt| (**prompt).into()).collect();
    system.extend(build.state.system.all().into_iter().cloned());
    system.extend(one_at_a_time.then(|| ONE_AT_A_TIME.into()));
    system.retain(|text| !text.trim().is_empty());
    Ok(Conversation { system, contents: parts.finish(build.written) })
}

struct Build<'a> {
    dialect: &'a GenerateContent,
    written: Written<'a>,
    state: State,
}

/// Where the parts to come are written.
#[derive(Clone)]
struct State {
    ids: WireIds,
    /// The last calls that wait for their results: the name, and whether the id is ours and not sent.
    open: VecDeque<(Box<str>, bool)>,
    /// The texts that stood before the first turn.
    system: Texts,
    /// Whether the turn that is not closed yet is the user's; `None` before the first.
    is_user: Option<bool>,
    /// Media of the last batch's results, for behind them.
    lifted: Vec<Bytes>,
}

impl<'a> closed::Writer<'a> for Build<'a> {
    type State = State;

    fn entry(&mut self, _place: usize, entry: &'a Arc<Entry>) -> Result<(), Error> {
        if !matches!(entry.message, Message::Tool(_)) {
            self.end_batch();
        }
        match &entry.message {
            Message::System(message) => self.system(entry, message),
            Message::User(message) => self.say(entry, || user_parts(&message.content)),
            Message::Assistant(message) => self.assistant(entry, message),
            Message::Tool(message) => self.result(entry, message),
        }
    }

    fn state(&mut self) -> Option<State> {
        Some(State { ids: self.state.ids.settle(), ..self.state.clone() })
    }

    fn written(&mut self) -> &mut Written<'a> {
        &mut self.written
    }
}

impl<'a> Build<'a> {
    fn new(dialect: &'a GenerateContent, state: Option<&State>) -> Self {
        let state = state.cloned().unwrap_or_else(|| State {
            ids: WireIds::new(IdRule::VISIBLE),
            open: VecDeque::new(),
            system: Texts::default(),
            is_user: None,
            lifted: Vec::new(),
        });
        Self { dialect, written: Written::default(), state }
    }

    /// Leading system messages go to the top-level field. A later one keeps its place in the user's turn, marked: moved to
    /// the top it would change the beginning of all that was cached, and say at the start what holds from here on.
    fn system(&mut self, entry: &'a Entry, message: &SystemMessage) -> Result<(), Error> {
        if let Content::Parts(parts) = &message.content
            && parts.iter().any(|part| matches!(part, Part::Image(_) | Part::Audio(_) | Part::Document(_)))
        {
            return Err(media::refused(
                "Gemini takes only text in system messages: put the medium into a user message",
            ));
        }
        let text = message.content.text();
        if self.state.is_user.is_none() {
            self.state.system.push(&*text);
        } else if !text.trim().is_empty() {
            self.say(entry, || part::text(&format!("<system>{text}</system>")))?;
        }
        Ok(())
    }

    fn assistant(&mut self, entry: &'a Entry, message: &'a AssistantMessage) -> Result<(), Error> {
        let slots = layout::kept(message, &self.dialect.origin);
        let ids = self.state.ids.calls(&message.tool_calls);
        let own_ids = ids.iter().all(|id| matches!(id, Cow::Borrowed(_)));
        let made = |slot: &layout::Slot| match slot {
            layout::Slot::Call { made, .. } => Some(*made),
            layout::Slot::Text { .. } | layout::Slot::Media { .. } | layout::Slot::Opaque(_) => None,
        };
        let mut made: Vec<bool> = slots.iter().flatten().filter_map(made).collect();
        if made.len() != ids.len() {
            made = vec![false; ids.len()];
        }
        self.state.open = message.tool_calls.iter().map(|call| call.name.as_str().into()).zip(made).collect();
        let calls: Vec<_> =
            ids.into_iter().zip(&message.tool_calls).map(|(id, call)| (id, names::sent(&call.name))).collect();
        let generation = self.dialect.generation;
        let encode = || Reply { message, slots: slots.as_deref(), calls: &calls, generation }.write();
        let mut lead = Vec::new();
        let before = match self.state.is_user {
            None => Some(START),
            Some(false) => Some(GO_ON),
            Some(true) => None,
        };
        if let Some(text) = before {
            lead.extend_from_slice(begin(self.state.is_user, true));
            lead.extend_from_slice(&part::text(text)?);
        }
        lead.extend_from_slice(begin(Some(true), false));
        if self.add(entry, &lead, own_ids, encode)? {
            self.state.is_user = Some(false);
        }
        Ok(())
    }

    fn result(&mut self, entry: &'a Entry, message: &'a ToolMessage) -> Result<(), Error> {
        // After healing each result has its call.
        let Some(id) = self.state.ids.result(&message.tool_call_id) else { return Ok(()) };
        let (called, made) = self.state.open.pop_front().unwrap_or((message.name.as_str().into(), false));
        let name = names::sent(&called);
        let generation = self.dialect.generation;
        let encode = || response::write((!made).then_some(&*id), &name, message, generation);
        // What depends on the call is not kept beside the result.
        let own = matches!(id, Cow::Borrowed(_)) && !made && *called == *message.name;
        self.add(entry, begin(self.state.is_user, true), own, encode)?;
        self.state.is_user = Some(true);
        let media = response::lifted(&name, message, generation)?;
        if !media.is_empty() {
            self.state.lifted.push(media);
        }
        Ok(())
    }

    /// Media behind all responses of a batch: "the number of function response parts is equal to the number of function call
    /// parts" is counted first.
    fn end_batch(&mut self) {
        for media in std::mem::take(&mut self.state.lifted) {
            self.say_here(media);
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        self.end_batch();
        match self.state.is_user {
            None => self.say_here(part::text(START)?),
            Some(false) => self.say_here(part::text(GO_ON)?),
            Some(true) => {}
        }
        self.written.tail().extend_from_slice(b"]}");
        Ok(())
    }

    /// Adds the parts of a message to the user's turn.
    fn say(&mut self, entry: &'a Entry, make: impl FnOnce() -> Result<Bytes, Error>) -> Result<(), Error> {
        self.add(entry, begin(self.state.is_user, true), true, make)?;
        self.state.is_user = Some(true);
        Ok(())
    }

    /// Adds parts that belong to this place to the user's turn.
    fn say_here(&mut self, parts: Bytes) {
        self.written.tail().extend_from_slice(begin(self.state.is_user, true));
        self.written.share(parts);
        self.state.is_user = Some(true);
    }

    /// Adds the parts of a message behind `lead`, if there are any. `own`: they are the same in every request of this dialect.
    fn add(
        &mut self,
        entry: &'a Entry,
        lead: &[u8],
        own: bool,
        make: impl FnOnce() -> Result<Bytes, Error>,
    ) -> Result<bool, Error> {
        if own {
            let write = |out: &mut Vec<u8>| {
                out.extend_from_slice(&make()?);
                Ok(())
            };
            return self.written.keep(entry, &self.dialect.key, lead, write);
        }
        let parts = make()?;
        if !parts.is_empty() {
            self.written.tail().extend_from_slice(lead);
            self.written.share(parts.clone());
        }
        Ok(!parts.is_empty())
    }
}

/// What stands before parts of the user or the model where the turn that is not closed yet is this one.
fn begin(open: Option<bool>, is_user: bool) -> &'static [u8] {
    match (open, is_user) {
        (Some(true), true) => b",",
        (None, true) => br#"{"role":"user","parts":["#,
        (Some(false), true) => br#"]},{"role":"user","parts":["#,
        (_, false) => br#"]},{"role":"model","parts":["#,
    }
}

fn user_parts(content: &Content) -> Result<Bytes, Error> {
    let mut out = Parts::default();
    match content {
        Content::Text(text) if text.trim().is_empty() => {}
        Content::Text(text) => out.text(text, &NOTHING)?,
        Content::Parts(parts) => {
            for part in parts {
                match (part, media::of(part)?) {
                    (Part::Text(text), _) if text.trim().is_empty() => {}
                    (Part::Text(text), _) => out.text(text, &NOTHING)?,
                    (_, Some(media)) => out.media(&media, &NOTHING)?,
                    (_, None) => {}
                }
            }
        }
    }
    if out.is_empty() { part::text(BLANK) } else { Ok(out.into_bytes()) }
}
