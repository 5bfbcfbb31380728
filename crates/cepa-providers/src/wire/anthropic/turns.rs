//! A history as the turns that the API takes: user first, then in turn, results right behind their calls.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use bytes::Bytes;
use cepa_core::{
    AssistantMessage, ChatRequest, Content, Entry, Error, FinishReason, History, Message, Origin, Part, SystemMessage,
    ToolMessage, UserMessage, WireKey,
};

use super::{
    AnthropicMessages,
    assistant::{self, Reply},
    block::{self, Block, Blocks, Results},
    layout, media,
};
use crate::wire::{
    ids::{IdRule, WireIds},
    names::wire_name,
    words::{BLANK, GO_ON, START, without_words},
};

const PAUSED: FinishReason = FinishReason::PauseTurn;

/// A conversation on this wire.
pub(super) struct Conversation<'a> {
    /// The texts of the top-level `system`.
    pub(super) system: Vec<String>,
    pub(super) turns: Vec<Turn<'a>>,
    /// Whether a reply with calls was begun without thinking of this model and waits for results to be sent back: then the
    /// API does not take a request with a thinking budget.
    pub(super) begun_without_thinking: bool,
}

/// One message of the API.
pub(super) struct Turn<'a> {
    /// The assistant message that it begins with; none if it is the user's.
    begun_by: Option<&'a AssistantMessage>,
    /// Its blocks, each piece one or several with commas between.
    pub(super) blocks: Vec<Bytes>,
    has_results: bool,
}

impl Turn<'_> {
    pub(super) fn is_user(&self) -> bool {
        self.begun_by.is_none()
    }
}

/// The conversation of a request, from its history after [`cepa_core::pairing::heal`].
pub(super) fn of<'a>(
    dialect: &'a AnthropicMessages,
    request: &ChatRequest,
    history: &'a History,
) -> Result<Conversation<'a>, Error> {
    let entries: Vec<&Arc<Entry>> = history.iter().collect();
    let mut build = Build {
        origin: &dialect.origin,
        key: &dialect.key,
        ids: WireIds::new(IdRule::WORD),
        system: Vec::new(),
        turns: Vec::new(),
        paused: false,
        server_calls: HashSet::new(),
        continue_pause: request.options.continue_pause,
    };
    if let Some(prompt) = &request.system_prompt {
        build.top_level(prompt.to_string());
    }
    for (at, entry) in entries.iter().enumerate() {
        match &entry.message {
            Message::System(message) => build.system(entry, message)?,
            Message::User(message) => build.user(entry, message)?,
            Message::Assistant(message) => {
                let rest = entries.get(at + 1..).unwrap_or_default();
                build.assistant(entry, message, rest)?;
            }
            Message::Tool(message) => build.result(entry, message)?,
        }
    }
    build.end()
}

struct Build<'a> {
    origin: &'a Origin,
    key: &'a WireKey,
    ids: WireIds<'a>,
    system: Vec<String>,
    turns: Vec<Turn<'a>>,
    /// The last turn is a paused reply: what the assistant says next belongs to it.
    paused: bool,
    /// Calls of server tools that were sent and whose results were not.
    server_calls: HashSet<String>,
    /// Whether the model is asked to go on with the last message.
    continue_pause: bool,
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
                "Anthropic takes only text in system messages: put the medium into a user message",
            ));
        }
        let text = message.content.text();
        if self.turns.is_empty() {
            self.top_level(text.into_owned());
        } else if !text.trim().is_empty() {
            let marked = || block::bytes(&Block::text(format!("<system>{text}</system>")));
            let bytes = self.made_once(entry, marked)?;
            self.say(bytes);
        }
        Ok(())
    }

    fn user(&mut self, entry: &Entry, message: &UserMessage) -> Result<(), Error> {
        let bytes = self.made_once(entry, || user_blocks(&message.content))?;
        self.say(bytes);
        Ok(())
    }

    fn assistant(&mut self, entry: &Entry, message: &'a AssistantMessage, rest: &[&Arc<Entry>]) -> Result<(), Error> {
        if self.last_is_assistant() && !self.paused {
            self.say(block::bytes(&Block::text(GO_ON))?);
        }
        if self.turns.is_empty() {
            self.say(block::bytes(&Block::text(START))?);
        }
        let ids = self.ids.calls(&message.tool_calls);
        let own_ids = ids.iter().all(|id| matches!(id, Cow::Borrowed(_)));
        let calls: Vec<_> =
            ids.into_iter().zip(&message.tool_calls).map(|(id, call)| (id, wire_name(&call.name))).collect();
        let order = || layout::kept(message, self.origin);
        let bytes = if layout::has_server_tools(message, self.origin) {
            let slots = order();
            let reply = Reply { message, slots: slots.as_deref(), calls: &calls };
            let mut pieces = reply.pieces();
            let going_on = layout::reply_goes_on(rest);
            let is_open = match calls.is_empty() {
                true => rest.is_empty() && (self.continue_pause || message.finish_reason == Some(PAUSED)),
                false => going_on.len() == rest.len(),
            };
            let later = layout::answered(going_on, self.origin);
            assistant::settle(&mut pieces, &mut self.server_calls, |id| is_open || later.contains(id));
            reply.write(pieces)?
        } else {
            let encode = || {
                let slots = order();
                let reply = Reply { message, slots: slots.as_deref(), calls: &calls };
                reply.write(reply.pieces())
            };
            if own_ids { self.made_once(entry, encode)? } else { encode()? }
        };
        if bytes.is_empty() {
            return Ok(());
        }
        // Only with its server tools' blocks is there something to go on with.
        self.paused = message.finish_reason == Some(PAUSED) && layout::is_kept(message, self.origin);
        match self.turns.last_mut() {
            Some(turn) if turn.begun_by.is_some() => turn.blocks.push(bytes),
            _ => self.turns.push(Turn { begun_by: Some(message), blocks: vec![bytes], has_results: false }),
        }
        Ok(())
    }

    fn result(&mut self, entry: &Entry, message: &ToolMessage) -> Result<(), Error> {
        // After healing each result has its call.
        let Some(id) = self.ids.result() else { return Ok(()) };
        let encode = || result_block(&id, message);
        let bytes = if matches!(id, Cow::Borrowed(_)) { self.made_once(entry, encode)? } else { encode()? };
        self.say(bytes);
        if let Some(turn) = self.turns.last_mut() {
            turn.has_results = true;
        }
        Ok(())
    }

    fn end(mut self) -> Result<Conversation<'a>, Error> {
        if self.turns.is_empty() {
            self.say(block::bytes(&Block::text(START))?);
        } else if self.last_is_assistant() && !self.continue_pause && !self.paused {
            self.say(block::bytes(&Block::text(GO_ON))?);
        }
        let begun_without_thinking = self.turns.last().is_some_and(|last| last.has_results) && {
            let opener = self.turns.iter().rposition(|turn| turn.is_user() && !turn.has_results);
            let first = self.turns.get(opener.map_or(0, |opener| opener + 1)).and_then(|turn| turn.begun_by);
            first.is_some_and(|reply| !layout::begins_with_thinking(reply, self.origin))
        };
        Ok(Conversation { system: self.system, turns: self.turns, begun_without_thinking })
    }

    fn last_is_assistant(&self) -> bool {
        self.turns.last().is_some_and(|turn| !turn.is_user())
    }

    /// Adds blocks to the user's turn.
    fn say(&mut self, bytes: Bytes) {
        self.paused = false;
        match self.turns.last_mut() {
            Some(turn) if turn.is_user() => turn.blocks.push(bytes),
            _ => self.turns.push(Turn { begun_by: None, blocks: vec![bytes], has_results: false }),
        }
    }

    /// The bytes that this wire made of a message before, else those that it makes now.
    fn made_once(&self, entry: &Entry, make: impl FnOnce() -> Result<Bytes, Error>) -> Result<Bytes, Error> {
        if let Some(bytes) = entry.encoded.get(self.key) {
            return Ok(bytes);
        }
        let bytes = make()?;
        entry.encoded.set(self.key, bytes.clone());
        Ok(bytes)
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
