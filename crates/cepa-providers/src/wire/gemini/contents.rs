//! A history as the contents that the API takes: user first, then in turn, responses right behind their calls.

use std::{borrow::Cow, collections::VecDeque};

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
    ids::{IdRule, WireIds},
    words::{BLANK, GO_ON, START},
};

/// There is no setting for it.
const ONE_AT_A_TIME: &str = "Call at most one function in each reply.";

/// A conversation on this wire.
pub(super) struct Conversation {
    /// The texts of `systemInstruction`.
    pub(super) system: Vec<String>,
    pub(super) turns: Vec<Turn>,
}

/// One content.
pub(super) struct Turn {
    pub(super) is_user: bool,
    /// Its parts, each piece one or several with commas between.
    pub(super) parts: Vec<Bytes>,
}

/// The conversation of a request, from its history after [`cepa_core::pairing::heal`].
pub(super) fn of(dialect: &GenerateContent, request: &ChatRequest, history: &History) -> Result<Conversation, Error> {
    let mut build = Build {
        dialect,
        ids: WireIds::new(IdRule::VISIBLE),
        open: VecDeque::new(),
        system: Vec::new(),
        turns: Vec::new(),
        lifted: Vec::new(),
    };
    if let Some(prompt) = &request.system_prompt {
        build.top_level(prompt.to_string());
    }
    for entry in history.iter() {
        if !matches!(entry.message, Message::Tool(_)) {
            build.end_batch();
        }
        match &entry.message {
            Message::System(message) => build.system(entry, message)?,
            Message::User(message) => {
                let bytes = build.made_once(entry, || user_parts(&message.content))?;
                build.say(bytes);
            }
            Message::Assistant(message) => build.assistant(entry, message)?,
            Message::Tool(message) => build.result(entry, message)?,
        }
    }
    if request.options.parallel_tool_calls == Some(false) && !request.tools.is_empty() {
        build.top_level(ONE_AT_A_TIME.to_owned());
    }
    build.end()
}

struct Build<'a> {
    dialect: &'a GenerateContent,
    ids: WireIds<'a>,
    /// The last calls that wait for their results: the name, and whether the id is ours and not sent.
    open: VecDeque<(&'a str, bool)>,
    system: Vec<String>,
    turns: Vec<Turn>,
    /// Media of the last batch's results, for behind them.
    lifted: Vec<Bytes>,
}

impl<'a> Build<'a> {
    fn top_level(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.system.push(text);
        }
    }

    /// Leading system messages go to the top-level field. A later one keeps its place in the user's turn, marked: moved to
    /// the top it would change the beginning of all that was cached, and say at the start what holds from here on.
    fn system(&mut self, entry: &Entry, message: &SystemMessage) -> Result<(), Error> {
        if let Content::Parts(parts) = &message.content
            && parts.iter().any(|part| matches!(part, Part::Image(_) | Part::Audio(_) | Part::Document(_)))
        {
            return Err(media::refused(
                "Gemini takes only text in system messages: put the medium into a user message",
            ));
        }
        let text = message.content.text();
        if self.turns.is_empty() {
            self.top_level(text.into_owned());
        } else if !text.trim().is_empty() {
            let bytes = self.made_once(entry, || part::text(&format!("<system>{text}</system>")))?;
            self.say(bytes);
        }
        Ok(())
    }

    fn assistant(&mut self, entry: &Entry, message: &'a AssistantMessage) -> Result<(), Error> {
        let slots = layout::kept(message, &self.dialect.origin);
        let ids = self.ids.calls(&message.tool_calls);
        let own_ids = ids.iter().all(|id| matches!(id, Cow::Borrowed(_)));
        let made = |slot: &layout::Slot| match slot {
            layout::Slot::Call { made, .. } => Some(*made),
            layout::Slot::Text { .. } | layout::Slot::Media { .. } | layout::Slot::Opaque(_) => None,
        };
        let mut made: Vec<bool> = slots.iter().flatten().filter_map(made).collect();
        if made.len() != ids.len() {
            made = vec![false; ids.len()];
        }
        self.open = message.tool_calls.iter().map(|call| call.name.as_str()).zip(made).collect();
        let calls: Vec<_> =
            ids.into_iter().zip(&message.tool_calls).map(|(id, call)| (id, names::sent(&call.name))).collect();
        let generation = self.dialect.generation;
        let encode = || Reply { message, slots: slots.as_deref(), calls: &calls, generation }.write();
        let bytes = if own_ids { self.made_once(entry, encode)? } else { encode()? };
        if bytes.is_empty() {
            return Ok(());
        }
        match self.turns.last() {
            None => self.say(part::text(START)?),
            Some(turn) if !turn.is_user => self.say(part::text(GO_ON)?),
            Some(_) => {}
        }
        self.turns.push(Turn { is_user: false, parts: vec![bytes] });
        Ok(())
    }

    fn result(&mut self, entry: &Entry, message: &'a ToolMessage) -> Result<(), Error> {
        // After healing each result has its call.
        let Some(id) = self.ids.result() else { return Ok(()) };
        let (called, made) = self.open.pop_front().unwrap_or((&message.name, false));
        let name = names::sent(called);
        let generation = self.dialect.generation;
        let encode = || response::write((!made).then_some(&*id), &name, message, generation);
        // What depends on the call is not kept beside the result.
        let own = matches!(id, Cow::Borrowed(_)) && !made && called == message.name;
        let bytes = if own { self.made_once(entry, encode)? } else { encode()? };
        self.say(bytes);
        let media = response::lifted(&name, message, generation)?;
        if !media.is_empty() {
            self.lifted.push(media);
        }
        Ok(())
    }

    /// Media behind all responses of a batch: "the number of function response parts is equal to the number of function call
    /// parts" is counted first.
    fn end_batch(&mut self) {
        for media in std::mem::take(&mut self.lifted) {
            self.say(media);
        }
    }

    fn end(mut self) -> Result<Conversation, Error> {
        self.end_batch();
        match self.turns.last() {
            None => self.say(part::text(START)?),
            Some(turn) if !turn.is_user => self.say(part::text(GO_ON)?),
            Some(_) => {}
        }
        Ok(Conversation { system: self.system, turns: self.turns })
    }

    /// Adds parts to the user's turn.
    fn say(&mut self, bytes: Bytes) {
        match self.turns.last_mut() {
            Some(turn) if turn.is_user => turn.parts.push(bytes),
            _ => self.turns.push(Turn { is_user: true, parts: vec![bytes] }),
        }
    }

    /// The bytes that this wire made of a message before, else those that it makes now.
    fn made_once(&self, entry: &Entry, make: impl FnOnce() -> Result<Bytes, Error>) -> Result<Bytes, Error> {
        let key = &self.dialect.key;
        if let Some(bytes) = entry.encoded.get(key) {
            return Ok(bytes);
        }
        let bytes = make()?;
        entry.encoded.set(key, bytes.clone());
        Ok(bytes)
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
