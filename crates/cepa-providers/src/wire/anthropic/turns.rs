//! A history as the turns that the API takes: user first, then in turn, results right behind their calls.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use bytes::Bytes;
use cepa_core::{
    AssistantMessage, ChatRequest, Content, Entry, Error, FinishReason, History, Message, Origin, Part, SystemMessage,
    ToolMessage, WireKey,
};

use super::{
    AnthropicMessages,
    assistant::{self, Reply},
    block::{self, Block, Blocks, Results},
    layout, media,
};
use crate::wire::{
    closed::{self, Written},
    ids::{IdRule, WireIds},
    names::wire_name,
    texts::Texts,
    words::{BLANK, GO_ON, START, without_words},
};

const PAUSED: FinishReason = FinishReason::PauseTurn;

/// A conversation on this wire.
pub(super) struct Conversation {
    /// The texts of the top-level `system`.
    pub(super) system: Vec<Arc<str>>,
    /// The messages, with commas between them.
    pub(super) messages: Vec<Bytes>,
    /// Where in them the blocks of the last two user turns end, in order.
    pub(super) user_turns: Vec<usize>,
    /// Whether a reply with calls was begun without thinking of this model and waits for results to be sent back: then the
    /// API does not take a request with a thinking budget.
    pub(super) begun_without_thinking: bool,
}

/// The conversation of a request, from its history after [`cepa_core::pairing::heal`].
pub(super) fn of(dialect: &AnthropicMessages, request: &ChatRequest, history: &History) -> Result<Conversation, Error> {
    let mut parts = closed::Parts::of(history, &dialect.key);
    let mut build = Build {
        origin: &dialect.origin,
        key: &dialect.key,
        written: Written::default(),
        entries: parts.entries().collect(),
        read: 0,
        state: parts.state().cloned().unwrap_or_default(),
        continue_pause: request.options.continue_pause,
    };
    parts.write(&mut build)?;
    build.end()?;
    let Build { state, written, .. } = build;
    let mut system: Vec<Arc<str>> = request.system_prompt.iter().map(|prompt| (**prompt).into()).collect();
    system.extend(state.system.all().into_iter().cloned());
    system.retain(|text| !text.trim().is_empty());
    let begun_without_thinking =
        state.turn.is_some_and(|turn| turn.has_results) && state.begun_with_thinking == Some(false);
    let user_turns = state.user_turns.into_iter().flatten().collect();
    Ok(Conversation { system, messages: parts.finish(written), user_turns, begun_without_thinking })
}

struct Build<'a> {
    origin: &'a Origin,
    key: &'a WireKey,
    written: Written<'a>,
    /// The entries of which nothing is known, and how many of them are read.
    entries: Vec<&'a Arc<Entry>>,
    read: usize,
    state: State,
    /// Whether the model is asked to go on with the last message.
    continue_pause: bool,
}

/// Where the blocks to come are written.
#[derive(Clone)]
struct State {
    ids: WireIds,
    /// The texts that stood before the first turn.
    system: Texts,
    /// The turn that is not closed yet.
    turn: Option<Turn>,
    /// It is a paused reply: what the assistant says next belongs to it.
    paused: bool,
    /// Calls of server tools that were sent and whose results were not.
    server_calls: HashSet<String>,
    /// A reply with server tools goes on: what is sent of it hangs on what comes.
    goes_on: bool,
    /// Whether the first reply to what the user said last began with thinking that goes back.
    begun_with_thinking: Option<bool>,
    /// Where the blocks of the last two user turns end.
    user_turns: [Option<usize>; 2],
    /// How many bytes were closed.
    closed: usize,
}

impl Default for State {
    fn default() -> Self {
        Self {
            ids: WireIds::new(IdRule::WORD),
            system: Texts::default(),
            turn: None,
            paused: false,
            server_calls: HashSet::new(),
            goes_on: false,
            begun_with_thinking: None,
            user_turns: [None; 2],
            closed: 0,
        }
    }
}

/// One message of the API.
#[derive(Clone, Copy)]
struct Turn {
    is_user: bool,
    has_results: bool,
}

impl<'a> closed::Writer<'a> for Build<'a> {
    type State = State;

    fn entry(&mut self, _place: usize, entry: &'a Arc<Entry>) -> Result<(), Error> {
        self.read += 1;
        if matches!(entry.message, Message::System(_) | Message::User(_)) {
            self.state.goes_on = false;
        }
        match &entry.message {
            Message::System(message) => self.system(entry, message),
            Message::User(message) => self.say(entry, true, || user_blocks(&message.content)),
            Message::Assistant(message) => self.assistant(entry, message),
            Message::Tool(message) => self.result(entry, message),
        }
    }

    fn state(&mut self) -> Option<State> {
        if self.state.goes_on {
            return None;
        }
        self.state.closed += self.written.size();
        Some(State { ids: self.state.ids.settle(), ..self.state.clone() })
    }

    fn written(&mut self) -> &mut Written<'a> {
        &mut self.written
    }
}

impl<'a> Build<'a> {
    /// Leading system messages go to the top-level field. A later one keeps its place in the user's turn, marked: moved to
    /// the top it would change the beginning of all that was cached, and say at the start what holds from here on.
    fn system(&mut self, entry: &'a Entry, message: &SystemMessage) -> Result<(), Error> {
        if let Content::Parts(parts) = &message.content
            && parts.iter().any(|part| matches!(part, Part::Image(_) | Part::Audio(_) | Part::Document(_)))
        {
            return Err(media::refused(
                "Anthropic takes only text in system messages: put the medium into a user message",
            ));
        }
        let text = message.content.text();
        if self.state.turn.is_none() {
            self.state.system.push(&*text);
        } else if !text.trim().is_empty() {
            self.say(entry, true, || block::bytes(&Block::text(format!("<system>{text}</system>"))))?;
        }
        Ok(())
    }

    fn assistant(&mut self, entry: &'a Entry, message: &'a AssistantMessage) -> Result<(), Error> {
        if self.last_is_assistant() && !self.state.paused {
            self.say_ours(GO_ON)?;
        }
        if self.state.turn.is_none() {
            self.say_ours(START)?;
        }
        let ids = self.state.ids.calls(&message.tool_calls);
        let own_ids = ids.iter().all(|id| matches!(id, Cow::Borrowed(_)));
        let calls: Vec<_> =
            ids.into_iter().zip(&message.tool_calls).map(|(id, call)| (id, wire_name(&call.name))).collect();
        let is_some = if layout::has_server_tools(message, self.origin) {
            self.state.goes_on = true;
            let slots = layout::kept(message, self.origin);
            let reply = Reply { message, slots: slots.as_deref(), calls: &calls };
            let mut pieces = reply.pieces();
            let rest = self.entries.get(self.read..).unwrap_or_default();
            let going_on = layout::reply_goes_on(rest);
            let is_open = match calls.is_empty() {
                true => rest.is_empty() && (self.continue_pause || message.finish_reason == Some(PAUSED)),
                false => going_on.len() == rest.len(),
            };
            let later = layout::answered(going_on, self.origin);
            assistant::settle(&mut pieces, &mut self.state.server_calls, |id| is_open || later.contains(id));
            self.add(entry, false, false, || reply.write(pieces))?
        } else {
            let origin = self.origin;
            let encode = || {
                let slots = layout::kept(message, origin);
                let reply = Reply { message, slots: slots.as_deref(), calls: &calls };
                reply.write(reply.pieces())
            };
            self.add(entry, false, own_ids, encode)?
        };
        if !is_some {
            return Ok(());
        }
        // Only with its server tools' blocks is there something to go on with.
        self.state.paused = message.finish_reason == Some(PAUSED) && layout::is_kept(message, self.origin);
        match self.state.turn {
            Some(turn) if !turn.is_user => {}
            before => {
                if before.is_some_and(|before| !before.has_results) {
                    self.state.begun_with_thinking = Some(layout::begins_with_thinking(message, self.origin));
                }
                self.state.turn = Some(Turn { is_user: false, has_results: false });
            }
        }
        Ok(())
    }

    fn result(&mut self, entry: &'a Entry, message: &ToolMessage) -> Result<(), Error> {
        // After healing each result has its call.
        let Some(id) = self.state.ids.result(&message.tool_call_id) else { return Ok(()) };
        self.say(entry, matches!(id, Cow::Borrowed(_)), || result_block(&id, message))?;
        if let Some(turn) = &mut self.state.turn {
            turn.has_results = true;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.state.turn.is_none() {
            self.say_ours(START)?;
        } else if self.last_is_assistant() && !self.continue_pause && !self.state.paused {
            self.say_ours(GO_ON)?;
        }
        self.written.tail().extend_from_slice(b"]}");
        Ok(())
    }

    fn last_is_assistant(&self) -> bool {
        self.state.turn.is_some_and(|turn| !turn.is_user)
    }

    /// Adds the blocks of a message to the user's turn.
    fn say(&mut self, entry: &'a Entry, own: bool, make: impl FnOnce() -> Result<Bytes, Error>) -> Result<(), Error> {
        self.add(entry, true, own, make)?;
        self.said();
        Ok(())
    }

    /// Adds a text of ours to the user's turn.
    fn say_ours(&mut self, text: &str) -> Result<(), Error> {
        let block = block::bytes(&Block::text(text))?;
        let tail = self.written.tail();
        tail.extend_from_slice(begin(self.state.turn, true));
        tail.extend_from_slice(&block);
        self.said();
        Ok(())
    }

    fn said(&mut self) {
        self.state.paused = false;
        let end = Some(self.state.closed + self.written.size());
        let [older, newer] = self.state.user_turns;
        if self.state.turn.is_some_and(|turn| turn.is_user) {
            self.state.user_turns = [older, end];
        } else {
            self.state.user_turns = [newer, end];
            self.state.turn = Some(Turn { is_user: true, has_results: false });
        }
    }

    /// Adds the blocks of a message, if there are any. `own`: they are the same in every request of this dialect.
    fn add(
        &mut self,
        entry: &'a Entry,
        is_user: bool,
        own: bool,
        make: impl FnOnce() -> Result<Bytes, Error>,
    ) -> Result<bool, Error> {
        let lead = begin(self.state.turn, is_user);
        if own {
            let write = |out: &mut Vec<u8>| {
                out.extend_from_slice(&make()?);
                Ok(())
            };
            return self.written.keep(entry, self.key, lead, write);
        }
        let blocks = make()?;
        if !blocks.is_empty() {
            self.written.tail().extend_from_slice(lead);
            self.written.share(blocks.clone());
        }
        Ok(!blocks.is_empty())
    }
}

/// What stands before blocks of the user or the assistant where the turn that is not closed yet is this one.
fn begin(open: Option<Turn>, is_user: bool) -> &'static [u8] {
    match (open.map(|turn| turn.is_user), is_user) {
        (Some(true), true) | (Some(false), false) => b",",
        (None, true) => br#"{"role":"user","content":["#,
        (None, false) => br#"{"role":"assistant","content":["#,
        (Some(false), true) => br#"]},{"role":"user","content":["#,
        (Some(true), false) => br#"]},{"role":"assistant","content":["#,
    }
}

fn user_blocks(content: &Content) -> Result<Bytes, Error> {
    let blocks = match content {
        Content::Text(text) if text.trim().is_empty() => Vec::new(),
        Content::Text(text) => vec![Block::text(text)],
        Content::Parts(parts) => media::user_blocks(parts)?,
    };
    if blocks.is_empty() {
        return block::bytes(&Block::text(BLANK));
    }
    let mut out = Blocks::default();
    blocks.iter().try_for_each(|block| out.push(block))?;
    Ok(out.into_bytes())
}

fn result_block(id: &str, message: &ToolMessage) -> Result<Bytes, Error> {
    let mut content = match &message.content {
        Content::Text(text) => Results::Text(text.into()),
        Content::Parts(parts) => match <&[Part; 1]>::try_from(parts.as_slice()) {
            Ok([Part::Text(text)]) => Results::Text(text.into()),
            _ => Results::Blocks(media::result_blocks(parts)),
        },
    };
    let mut is_error = false;
    if let Some(words) = without_words(message.status) {
        let is_text = |block: &Block<'_>| matches!(block, Block::Text { .. });
        match &mut content {
            // "content cannot be empty if `is_error` is true"
            content if content.is_empty() => (*content, is_error) = (Results::Text(words.into()), true),
            // "all content must be type `text` if `is_error` is true"
            Results::Blocks(blocks) if !blocks.iter().all(is_text) => blocks.insert(0, Block::text(words)),
            Results::Blocks(_) | Results::Text(_) => is_error = true,
        }
    }
    block::bytes(&Block::ToolResult { tool_use_id: id, content, is_error })
}
