//! A history as the turns that the API takes: user first, then in turn, results right behind their calls.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use cepa_core::{
    AssistantMessage, ChatRequest, Content, Entry, Error, FinishReason, Message, Origin, Part, SystemMessage,
    ToolMessage, ToolStatus, UserMessage, WireKey, pairing,
};

use super::{
    AnthropicMessages,
    assistant::Reply,
    block::{self, Block, Blocks, Results},
    layout, media,
};
use crate::wire::{
    ids::{IdRule, WireIds},
    names::wire_name,
};

/// Stands before a history that begins with the assistant.
const START: &str = "(start of the conversation)";
/// Stands for a user message in which there is nothing.
const BLANK: &str = "(empty message)";
/// Stands behind an assistant message that nobody answered.
const GO_ON: &str = "Continue.";
/// Stands for the text of a failure that said nothing.
const FAILED: &str = "The call failed and gave no reason.";
/// Stands before the media of a failure: the API takes only text in results that are marked as errors.
const FAILED_WITH: &str = "The call failed. It returned:";

/// A conversation on this wire.
pub(super) struct Conversation {
    /// The texts of the top-level `system`.
    pub(super) system: Vec<String>,
    pub(super) turns: Vec<Turn>,
    /// Whether a reply with calls was begun without thinking of this model and waits for results to be sent back: then the
    /// API does not take a request with a thinking budget.
    pub(super) begun_without_thinking: bool,
}

/// One message of the API.
pub(super) struct Turn {
    pub(super) user: bool,
    /// Its blocks, each piece one or several with commas between.
    pub(super) blocks: Vec<Bytes>,
    has_results: bool,
    /// Whether its author is this model and thought first.
    thought_first: bool,
}

/// The conversation of a request.
pub(super) fn of(dialect: &AnthropicMessages, request: &ChatRequest) -> Result<Conversation, Error> {
    let history = pairing::heal(&request.messages);
    let entries: Vec<&Arc<Entry>> = history.iter().collect();
    let mut build = Build {
        origin: &dialect.origin,
        key: &dialect.key,
        ids: WireIds::new(IdRule::WORD),
        system: Vec::new(),
        turns: Vec::new(),
        paused: false,
    };
    if let Some(prompt) = &request.system_prompt {
        build.top_level(prompt.to_string());
    }
    for (at, entry) in entries.iter().enumerate() {
        match &entry.message {
            Message::System(message) => build.system(entry, message)?,
            Message::User(message) => build.user(entry, message)?,
            Message::Assistant(message) => {
                let follower = match entries.get(at + 1).map(|next| &next.message) {
                    Some(Message::Assistant(_)) => Follower::Assistant,
                    None if request.options.continue_pause => Follower::Continuation,
                    None => Follower::Nothing,
                    Some(Message::System(_) | Message::User(_) | Message::Tool(_)) => Follower::Other,
                };
                build.assistant(entry, message, follower)?;
            }
            Message::Tool(message) => build.result(entry, message)?,
        }
    }
    build.end(request.options.continue_pause)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Follower {
    Assistant,
    /// The model is asked to go on with this very message.
    Continuation,
    Nothing,
    Other,
}

struct Build<'a> {
    origin: &'a Origin,
    key: &'a WireKey,
    ids: WireIds<'a>,
    system: Vec<String>,
    turns: Vec<Turn>,
    /// The last turn is a paused reply: what the assistant says next belongs to it.
    paused: bool,
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

    fn assistant(&mut self, entry: &Entry, message: &'a AssistantMessage, follower: Follower) -> Result<(), Error> {
        let kept = layout::is_kept(message, self.origin);
        // Only with its server tools' blocks is there something to go on with.
        let paused = message.finish_reason == Some(FinishReason::PauseTurn) && kept;
        let continued = match follower {
            Follower::Assistant | Follower::Nothing => paused,
            Follower::Continuation => true,
            Follower::Other => false,
        };
        if self.last_is_assistant() && !self.paused {
            self.say(block::bytes(&Block::text(GO_ON))?);
        }
        let ids = self.ids.calls(&message.tool_calls);
        let usual = ids.iter().all(|id| matches!(id, Cow::Borrowed(_)));
        let calls: Vec<_> =
            ids.into_iter().zip(&message.tool_calls).map(|(id, call)| (id, wire_name(&call.name))).collect();
        let encode = || {
            let slots = layout::kept(message, self.origin);
            Reply { message, slots: slots.as_deref(), calls: &calls, continued }.encode()
        };
        let same_everywhere = usual && !continued && !paused;
        let bytes = if same_everywhere { self.made_once(entry, encode)? } else { encode()? };
        if bytes.is_empty() {
            return Ok(());
        }
        if self.turns.is_empty() {
            self.say(block::bytes(&Block::text(START))?);
        }
        self.paused = paused;
        match self.turns.last_mut() {
            Some(turn) if !turn.user => turn.blocks.push(bytes),
            _ => {
                let thought_first = kept && layout::begins_with_thinking(message, self.origin);
                self.turns.push(Turn { user: false, blocks: vec![bytes], has_results: false, thought_first });
            }
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

    fn end(mut self, continue_pause: bool) -> Result<Conversation, Error> {
        if self.turns.is_empty() {
            self.say(block::bytes(&Block::text(START))?);
        } else if self.last_is_assistant() && !continue_pause && !self.paused {
            self.say(block::bytes(&Block::text(GO_ON))?);
        }
        let begun_without_thinking = self.turns.last().is_some_and(|last| last.has_results) && {
            let opener = self.turns.iter().rposition(|turn| turn.user && !turn.has_results);
            let first = self.turns.get(opener.map_or(0, |opener| opener + 1));
            first.is_some_and(|reply| !reply.thought_first)
        };
        Ok(Conversation { system: self.system, turns: self.turns, begun_without_thinking })
    }

    fn last_is_assistant(&self) -> bool {
        self.turns.last().is_some_and(|turn| !turn.user)
    }

    /// Adds blocks to the user's turn.
    fn say(&mut self, bytes: Bytes) {
        self.paused = false;
        match self.turns.last_mut() {
            Some(turn) if turn.user => turn.blocks.push(bytes),
            _ => {
                self.turns.push(Turn { user: true, blocks: vec![bytes], has_results: false, thought_first: false });
            }
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
    let failed = message.status != ToolStatus::Ok;
    let mut content = match &message.content {
        Content::Text(text) => Results::Text(text.into()),
        Content::Parts(parts) => match <&[Part; 1]>::try_from(parts.as_slice()) {
            Ok([Part::Text(text)]) => Results::Text(text.into()),
            _ => Results::Blocks(media::result_blocks(parts)),
        },
    };
    let mut is_error = failed;
    match &mut content {
        // "content cannot be empty if `is_error` is true"
        content if failed && content.is_empty() => *content = Results::Text(FAILED.into()),
        Results::Blocks(blocks) if failed && blocks.iter().any(|block| !matches!(block, Block::Text { .. })) => {
            is_error = false;
            blocks.insert(0, Block::text(FAILED_WITH));
        }
        Results::Blocks(_) | Results::Text(_) => {}
    }
    block::bytes(&Block::ToolResult { tool_use_id: id, content, is_error })
}
