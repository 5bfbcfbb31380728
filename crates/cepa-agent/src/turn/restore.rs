//! A turn from what it left behind.

use std::sync::Arc;

use cepa_core::{Args, AssistantMessage, Entry, Error, ErrorKind, History, Message, RawJson, ToolFlags};

use super::{
    Delta, Did, Phase, Turn, TurnData,
    batch::{Batch, Call, round_of},
};
use crate::{
    ids,
    pause::{Decision, Pause, PauseState},
    store::{CallState, StoredTurn},
    texts::Texts,
};

/// A turn that was read back, with what happened to it after its last commit.
#[derive(Debug)]
pub struct Restored {
    /// The turn as of its last commit.
    pub turn: Turn,
    /// A reply that joined the conversation before the turn could note it: to be taken first.
    pub missed: Option<Did>,
    /// Decisions that were made since: to be taken next.
    pub decided: Vec<Pause>,
}

impl Turn {
    /// Reads a turn back. `messages` are the messages of its conversation (those of other turns are ignored); `flags`
    /// tells what the loop knows of a tool.
    ///
    /// # Errors
    /// `corrupt` if the rows do not fit together.
    pub fn restore(
        stored: StoredTurn,
        messages: &History,
        flags: impl Fn(&str) -> ToolFlags,
        texts: Arc<Texts>,
    ) -> Result<Restored, Error> {
        let StoredTurn { row, calls, pauses } = stored;
        let corrupt = |what: String| Error::new(ErrorKind::Corrupt, format!("turn {}: {what}", row.id));
        let read_error = |error: serde_json::Error| corrupt(error.to_string());
        let data: TurnData = row.data.read().map_err(read_error)?;
        let input: Vec<Message> = row.input.read().map_err(read_error)?;
        let carried: Option<Vec<Message>> =
            row.carried.as_ref().map(|raw| raw.read()).transpose().map_err(read_error)?;
        let transcript: History = carried.unwrap_or_default().into_iter().collect();
        let conversation = (row.conversation != row.id).then(|| row.conversation.clone());

        let mut turn = Self::new(row.id.clone(), conversation, row.ephemeral, input, data, row.created, texts);
        turn.transcript = transcript;
        let replies = turn.own_replies(messages);
        turn.reply = replies.iter().rev().find(|(n, _)| *n < turn.data.replies).map(|(_, reply)| (*reply).clone());

        let open = turn.data.open_batch.then(|| turn.data.batches.saturating_sub(1));
        let mut batches: Vec<Batch> = Vec::new();
        for call in calls {
            let batch = call.batch;
            let mut asked: Vec<&Pause> = pauses.iter().filter(|pause| pause.key == call.key()).collect();
            asked.sort_by_key(|pause| round_of(pause));
            let edited = asked.iter().rev().find_map(|pause| edit_of(pause));
            let pause = asked.last().map(|pause| (*pause).clone());
            let took = call.started.zip(call.finished).map_or(0, |(from, to)| to.saturating_sub(from).unsigned_abs());
            let flags = flags(&call.tool);
            let call = Call { row: call, flags, pause, edited, took: std::time::Duration::from_millis(took) };
            match batches.last_mut().filter(|last| last.index == batch) {
                Some(last) => last.calls.push(call),
                None => batches.push(Batch { index: batch, undecided: Vec::new(), calls: vec![call] }),
            }
        }
        for closed in batches.iter().filter(|batch| Some(batch.index) != open) {
            turn.records.extend(closed.records());
        }
        let mut decided = Vec::new();
        turn.phase = if !row.state.is_live() {
            turn.direct = batches.last().filter(|_| turn.reply.is_none()).and_then(Batch::direct);
            if let Some(last) = batches.last().filter(|last| last.index + 1 == turn.data.batches) {
                turn.direct = last.direct().filter(|_| turn.reply.as_ref().is_some_and(|r| !r.tool_calls.is_empty()));
            }
            Phase::Done(row.state)
        } else if let Some(index) = open {
            let mut batch = match batches.pop() {
                Some(batch) if batch.index == index => batch,
                _ => {
                    // The reply was noted, its verdicts were not: none of its calls has started.
                    let reply = turn.reply.clone().ok_or_else(|| corrupt("its last reply is missing".to_owned()))?;
                    Batch::undecided(index, reply.tool_calls)
                }
            };
            decided = take_back_decisions(&mut batch);
            Phase::Batch(batch)
        } else if turn.data.replies == 0 {
            Phase::Call(Delta { entries: Self::input_entries(&row.id, &turn.input, row.created), stored: false })
        } else if turn.data.continue_pause {
            Phase::Call(Delta::nothing())
        } else {
            let last = batches.last().ok_or_else(|| corrupt("its last batch is missing".to_owned()))?;
            let entries = last.messages(&row.id, &turn.texts, row.updated);
            let stored = entries.last().is_some_and(|last| messages.has_lately(last));
            Phase::Call(Delta { entries, stored })
        };
        let missed = turn.missed_reply(&replies);
        Ok(Restored { turn, missed, decided })
    }

    /// The turn's replies that the conversation has, by number.
    fn own_replies<'a>(&'a self, messages: &'a History) -> Vec<(u32, AssistantMessage)> {
        // A caller may have put replies of his own into the input.
        let own = self.transcript.messages().skip(self.input.len());
        let of_transcript = own.filter_map(|message| match message {
            Message::Assistant(reply) => Some(reply.clone()),
            Message::System(_) | Message::User(_) | Message::Tool(_) => None,
        });
        if self.carries {
            return (0..).zip(of_transcript).collect();
        }
        let prefix = ids::reply_id(&self.id, 0);
        let prefix = prefix.trim_end_matches('0');
        let own = |entry: &Arc<Entry>| {
            let number = entry.id.as_deref()?.strip_prefix(prefix)?;
            // A reply that was made again has its round behind a dot; the last one counts.
            let number = number.split('.').next()?.parse().ok()?;
            match &entry.message {
                Message::Assistant(reply) => Some((number, reply.clone())),
                Message::System(_) | Message::User(_) | Message::Tool(_) => None,
            }
        };
        messages.iter().filter_map(own).collect()
    }

    fn missed_reply(&self, replies: &[(u32, AssistantMessage)]) -> Option<Did> {
        if self.carries || !matches!(self.phase, Phase::Call(_)) {
            return None;
        }
        let (_, reply) = replies.iter().rev().find(|(n, _)| *n == self.data.replies)?;
        Some(Did::Replied {
            usage: reply.usage,
            finish: cepa_core::ChatResponse::new(reply.clone()).finish_reason,
            reply: reply.clone(),
            at: self.created,
        })
    }
}

/// The arguments that a person put in place of those shown.
fn edit_of(pause: &Pause) -> Option<RawJson> {
    let Some(Decision::Edit { args }) = &pause.decision else { return None };
    match Args::decode(args) {
        Args::Object(args) => Some(args),
        Args::Invalid { .. } => None,
    }
}

/// Decisions that the turn has not seen are put back to pending and handed out, to be taken like fresh ones. So are
/// pauses that the store found to be too old: the turn closes them when it is told the time.
fn take_back_decisions(batch: &mut Batch) -> Vec<Pause> {
    let mut decided = Vec::new();
    for call in &mut batch.calls {
        let waits = matches!(call.row.state, CallState::Planned | CallState::Unknown)
            || call.row.state == CallState::Finished && call.waits_for_repair();
        let unseen = |pause: &Pause| pause.decision.is_some() || pause.state == PauseState::Expired;
        let Some(pause) = call.pause.as_mut().filter(|pause| waits && unseen(pause)) else { continue };
        if pause.decision.is_some() {
            decided.push(pause.clone());
        }
        pause.state = PauseState::Pending;
        (pause.decision, pause.actor, pause.decided) = (None, None, None);
    }
    decided
}

impl Call {
    /// Whether its result is a failure that a person was asked to repair, and the answer was not taken yet.
    fn waits_for_repair(&self) -> bool {
        let asked_after_result = self.pause.as_ref().is_some_and(|pause| {
            pause.kind == crate::pause::PauseKind::Environment
                && self.row.finished.is_some_and(|at| at <= pause.created)
        });
        asked_after_result
            && self
                .row
                .result
                .as_ref()
                .is_some_and(|result| result.failure.as_deref() == Some(cepa_core::ToolFailure::Environment.as_str()))
    }
}
