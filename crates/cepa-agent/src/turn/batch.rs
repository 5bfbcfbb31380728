//! The open batch of a turn: its calls with their rows and pauses.

use std::{sync::Arc, time::Duration};

use cepa_core::{Args, Content, Entry, Message, RawJson, ToolCall, ToolFlags, ToolMessage, ToolStatus};
use serde_json::{Map, Value};

use super::{Ruling, RulingOutcome, Siblings, Todo, json};
use crate::{
    ids,
    pause::{Pause, PauseKind, PauseState},
    result::Record,
    store::{CallChange, CallKey, CallResult, CallRow, CallState, Commit, SharedEntry, VerdictKind},
    texts::{Texts, fill},
};

/// The calls of one reply.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) index: u32,
    /// The calls as the model made them, until their verdicts are known.
    pub(super) undecided: Vec<ToolCall>,
    pub(super) calls: Vec<Call>,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) row: CallRow,
    pub(super) flags: ToolFlags,
    /// The latest pause, in any state.
    pub(super) pause: Option<Pause>,
    /// The arguments that a person put in place of the model's.
    pub(super) edited: Option<RawJson>,
    pub(super) took: Duration,
}

/// A call that is to run now.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCall {
    /// Its place in the batch.
    pub key: CallKey,
    /// The call, with the arguments that run.
    pub call: ToolCall,
    /// What the loop knows of the tool.
    pub flags: ToolFlags,
    /// How often its body will have been entered, this time included.
    pub attempt: u32,
    /// The hash of the tool's schema when the verdict was made.
    pub schema_hash: Arc<str>,
}

impl PlannedCall {
    /// Whether the call behind it may run at the same time.
    fn may_run_beside(&self, next: &CallRow, flags: &ToolFlags) -> bool {
        let together = |flags: &ToolFlags| flags.read_only || flags.concurrent;
        together(&self.flags) && together(flags) && next.idx == self.key.idx + 1
    }
}

impl Call {
    fn is_pending(&self) -> bool {
        self.pause.as_ref().is_some_and(|pause| pause.state == PauseState::Pending)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.row.state == CallState::Finished && !self.is_pending()
    }

    /// Whether its body may be entered: nobody has to be asked, or whoever was asked let it run.
    fn is_runnable(&self) -> bool {
        let let_run = |pause: &Pause| matches!(pause.state, PauseState::Approved | PauseState::Edited);
        self.row.state == CallState::Planned && self.pause.as_ref().is_none_or(let_run)
    }

    fn run_args(&self) -> Args {
        self.row.executed_args.clone().map_or_else(|| self.row.args.clone(), Args::Object)
    }

    pub(super) fn finish(&mut self, result: CallResult, at: i64, commit: &mut Commit) {
        let key = CallKey { batch: self.row.batch, idx: self.row.idx };
        self.row.state = CallState::Finished;
        self.row.result = Some(result.clone());
        self.row.finished = Some(at);
        commit.calls.push(CallChange::Finished { key, result, at });
    }

    /// Lets the call run with these arguments.
    pub(super) fn run_with(&mut self, args: RawJson) {
        self.row.state = CallState::Planned;
        self.row.executed_args = Some(args).filter(|args| args.as_str() != self.row.args.as_str());
    }

    /// Ends the call with a text in place of a result.
    pub(super) fn finish_with(&mut self, status: ToolStatus, text: &str, at: i64, commit: &mut Commit) {
        self.finish(text_result(status, text), at, commit);
    }

    /// Makes the call wait for a person.
    pub(super) fn wait(&mut self, kind: PauseKind, reason: Option<String>, at: At<'_>, commit: &mut Commit) {
        let key = CallKey { batch: self.row.batch, idx: self.row.idx };
        let round = self.pause.as_ref().map_or(0, |pause| round_of(pause) + 1);
        let args = match self.run_args() {
            Args::Object(raw) => raw,
            Args::Invalid { .. } => RawJson::empty_object(),
        };
        let pause = Pause {
            id: ids::pause_id(at.turn, key, round),
            kind,
            conversation: at.conversation.to_owned(),
            turn: at.turn.to_owned(),
            key,
            call_id: self.row.call_id.as_ref().into(),
            tool: self.row.tool.as_ref().into(),
            args_hash: ids::hash(args.as_str()),
            args,
            schema_hash: self.row.schema_hash.as_ref().into(),
            reason,
            created: at.at,
            expires: at.expires,
            state: PauseState::Pending,
            decision: None,
            actor: None,
            decided: None,
        };
        self.pause = Some(pause.clone());
        commit.pauses.push(pause);
    }

    /// Closes a pause without a decision.
    pub(super) fn close_pause(&mut self, state: PauseState, commit: &mut Commit) {
        if let Some(pause) = self.pause.as_mut().filter(|pause| pause.state == PauseState::Pending) {
            pause.state = state;
            commit.closed_pauses.push((pause.id.clone(), state));
        }
    }
}

/// The circumstances of a new pause.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) turn: &'a str,
    pub(super) conversation: &'a str,
    pub(super) expires: Option<i64>,
    pub(super) at: i64,
}

/// Which of a call's pauses it is, from 0.
pub(super) fn round_of(pause: &Pause) -> u32 {
    let first = ids::pause_id(&pause.turn, pause.key, 0);
    let round = pause.id.strip_prefix(&first).and_then(|rest| rest.strip_prefix('.'));
    round.and_then(|round| round.parse().ok()).unwrap_or(0)
}

pub(super) fn text_result(status: ToolStatus, text: &str) -> CallResult {
    CallResult { status, content: json(text), full: None, writes: None, failure: None }
}

impl Batch {
    pub(super) fn undecided(index: u32, calls: Vec<ToolCall>) -> Self {
        Self { index, undecided: calls, calls: Vec::new() }
    }

    /// Gives each call its verdict; what cannot or must not run is settled at once.
    pub(super) fn decide(&mut self, rulings: Vec<Ruling>, at: At<'_>, texts: &Texts, commit: &mut Commit) {
        let calls = std::mem::take(&mut self.undecided);
        for (idx, (call, ruling)) in (0..).zip(calls.into_iter().zip(rulings)) {
            let Ruling { outcome, flags, prepared, schema_hash } = ruling;
            let (verdict, reason) = match &outcome {
                RulingOutcome::Proceed => (VerdictKind::Proceed, None),
                RulingOutcome::Pause { reason } => (VerdictKind::Pause, reason.clone()),
                RulingOutcome::Reject { reason } => (VerdictKind::Reject, reason.clone()),
                RulingOutcome::Reply { content } => (VerdictKind::Reply, Some(content.clone())),
                RulingOutcome::Refuse { text } => (VerdictKind::Refuse, Some(text.clone())),
            };
            let row = CallRow {
                batch: self.index,
                idx,
                call_id: call.id.into(),
                tool: call.name.into(),
                schema_hash,
                // Kept only where it differs: most calls run as the model wrote them.
                executed_args: prepared.filter(|prepared| prepared.as_str() != call.args.as_str()),
                args: call.args,
                verdict,
                reason: reason.clone(),
                state: CallState::Planned,
                attempt: 0,
                result: None,
                started: None,
                finished: None,
            };
            let mut call = Call { row, flags, pause: None, edited: None, took: Duration::ZERO };
            commit.calls.push(CallChange::Planned(call.row.clone()));
            match outcome {
                RulingOutcome::Proceed => {}
                RulingOutcome::Pause { reason } => call.wait(PauseKind::Approval, reason, at, commit),
                RulingOutcome::Reject { reason } => {
                    call.finish_with(ToolStatus::Rejected, &rejected(texts, reason.as_deref()), at.at, commit);
                }
                RulingOutcome::Reply { content } => call.finish_with(ToolStatus::Ok, &content, at.at, commit),
                RulingOutcome::Refuse { text } => call.finish_with(ToolStatus::Error, &text, at.at, commit),
            }
            self.calls.push(call);
        }
    }

    /// Plans and ends every call that has no verdict yet: none of them runs.
    pub(super) fn refuse_all(&mut self, status: ToolStatus, text: &str, at: i64, commit: &mut Commit) {
        for (idx, call) in (0..).zip(std::mem::take(&mut self.undecided)) {
            let row = CallRow {
                batch: self.index,
                idx,
                call_id: call.id.into(),
                tool: call.name.into(),
                schema_hash: "".into(),
                executed_args: None,
                args: call.args,
                verdict: VerdictKind::Refuse,
                reason: Some(text.to_owned()),
                state: CallState::Planned,
                attempt: 0,
                result: None,
                started: None,
                finished: None,
            };
            commit.calls.push(CallChange::Planned(row.clone()));
            let mut call = Call { row, flags: ToolFlags::default(), pause: None, edited: None, took: Duration::ZERO };
            call.finish_with(status, text, at, commit);
            self.calls.push(call);
        }
    }

    pub(super) fn call_mut(&mut self, idx: u32) -> Option<&mut Call> {
        self.calls.get_mut(usize::try_from(idx).ok()?)
    }

    pub(super) fn started(&self) -> Vec<(u32, ToolFlags)> {
        let started = self.calls.iter().filter(|call| call.row.state == CallState::Started);
        started.map(|call| (call.row.idx, call.flags.clone())).collect()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.undecided.is_empty() && self.calls.iter().all(Call::is_settled)
    }

    pub(super) fn has_pending(&self) -> bool {
        self.calls.iter().any(Call::is_pending)
    }

    pub(super) fn settled(&self) -> usize {
        self.calls.iter().filter(|call| call.row.state == CallState::Finished).count()
    }

    /// What is to be done. Of the calls that are to run so many groups of neighbours that may run together.
    pub(super) fn todo(&self, siblings: Siblings, groups: usize) -> Todo {
        if !self.undecided.is_empty() {
            return Todo::Decide(self.undecided.clone());
        }
        if self.waits(siblings) {
            let pending = self.calls.iter().filter(|call| call.is_pending());
            return Todo::Wait(pending.filter_map(|call| call.pause.clone()).collect());
        }
        let (mut calls, mut begun): (Vec<PlannedCall>, usize) = (Vec::new(), 0);
        for call in self.calls.iter().filter(|call| call.is_runnable()) {
            begun += usize::from(calls.last().is_none_or(|last| !last.may_run_beside(&call.row, &call.flags)));
            if begun > groups {
                break;
            }
            calls.push(Self::planned(call));
        }
        Todo::Run(calls)
    }

    /// Whether nothing can be done before a person has decided.
    pub(super) fn waits(&self, siblings: Siblings) -> bool {
        let goes_on = |call: &Call| call.is_runnable() || call.row.state == CallState::Started;
        let pending = self.calls.iter().any(Call::is_pending);
        pending && (self.holds(siblings) || !self.calls.iter().any(goes_on))
    }

    /// Whether a call that waits holds all others.
    fn holds(&self, siblings: Siblings) -> bool {
        // A call that environment or crash made wait joined a batch that was already running: its siblings go on.
        let asked = |call: &Call| call.pause.as_ref().is_some_and(|pause| pause.kind == PauseKind::Approval);
        siblings == Siblings::Hold && self.calls.iter().any(|call| call.is_pending() && asked(call))
    }

    /// Whether the body of a call may be entered, for the first time or again.
    pub(super) fn may_enter(&self, idx: u32, siblings: Siblings) -> bool {
        let runs = |call: &Call| call.is_runnable() && !self.holds(siblings) || call.row.state == CallState::Started;
        self.calls.iter().any(|call| call.row.idx == idx && runs(call))
    }

    fn planned(call: &Call) -> PlannedCall {
        PlannedCall {
            key: CallKey { batch: call.row.batch, idx: call.row.idx },
            call: ToolCall::new(&*call.row.call_id, &*call.row.tool, call.run_args()),
            flags: call.flags.clone(),
            attempt: call.row.attempt + 1,
            schema_hash: call.row.schema_hash.clone(),
        }
    }

    /// Folds what the calls before `until` wrote (all calls if `None`), in call order.
    pub(super) fn fold_writes(&self, values: &mut Arc<Map<String, Value>>, until: Option<u32>) {
        let wrote = |call: &Call| call.row.result.as_ref().is_some_and(|result| result.writes.is_some());
        if !self.calls.iter().any(wrote) {
            return;
        }
        let mut context = cepa_core::ToolContext::from_values(std::mem::take(values));
        let before = self.calls.iter().filter(|call| until.is_none_or(|until| call.row.idx < until));
        for writes in before.filter_map(|call| call.row.result.as_ref()?.writes.as_ref()) {
            context.apply(writes.read().unwrap_or_default());
        }
        *values = context.shared_values();
    }

    /// The results as messages, in call order.
    pub(super) fn messages(&self, turn: &str, texts: &Texts, at: i64) -> Vec<Arc<Entry>> {
        self.calls.iter().map(|call| result_entry(call, turn, texts, at)).collect()
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.calls.iter().filter(|call| call.row.state == CallState::Finished).filter_map(record).collect()
    }

    /// The joined results, if all tools of the batch ran and say that their result is the answer.
    pub(super) fn direct(&self) -> Option<String> {
        let direct = |call: &Call| {
            let result = call.row.result.as_ref()?;
            (call.flags.return_direct && result.status == ToolStatus::Ok)
                .then(|| content_of(result).text().into_owned())
        };
        let texts: Option<Vec<String>> = self.calls.iter().map(direct).collect();
        texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("\n"))
    }
}

/// What the model is told of a call that somebody refused.
pub(crate) fn rejected(texts: &Texts, reason: Option<&str>) -> String {
    match reason.filter(|reason| !reason.trim().is_empty()) {
        Some(reason) => fill(&texts.rejected_because, &[("reason", reason)]),
        None => texts.rejected.clone(),
    }
}

fn content_of(result: &CallResult) -> Content {
    // A text without anything escaped, as most are, is read as it stands.
    let text = result.content.as_str();
    let plain = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|text| !text.contains('\\'));
    match plain {
        Some(plain) => Content::Text(plain.to_owned()),
        None => result.content.read().unwrap_or_else(|_| Content::Text(text.to_owned())),
    }
}

fn result_entry(call: &Call, turn: &str, texts: &Texts, at: i64) -> Arc<Entry> {
    let row = &call.row;
    let fallback = || text_result(ToolStatus::Unknown, &texts.unknown);
    let result = row.result.clone().unwrap_or_else(fallback);
    let edited = call.edited.as_ref().filter(|_| result.status == ToolStatus::Ok || result.status == ToolStatus::Error);
    let mut content = content_of(&result);
    if let Some(args) = edited {
        content = with_note(content, &fill(&texts.edited, &[("args", args.as_str())]));
    }
    let message = ToolMessage {
        tool_call_id: row.call_id.as_ref().into(),
        name: row.tool.as_ref().into(),
        content,
        status: result.status,
        writes: result.writes,
        executed_args: edited.cloned(),
        extra: cepa_core::Extra::new(),
    };
    let key = CallKey { batch: row.batch, idx: row.idx };
    Arc::new(Entry::with_id(ids::result_id(turn, key), row.finished.unwrap_or(at), Message::Tool(message)))
}

fn with_note(content: Content, note: &str) -> Content {
    match content {
        Content::Text(text) => Content::Text(format!("{note}{text}")),
        Content::Parts(mut parts) => {
            parts.insert(0, cepa_core::Part::Text(note.to_owned()));
            Content::Parts(parts)
        }
    }
}

pub(super) fn record(call: &Call) -> Option<Record> {
    let result = call.row.result.as_ref()?;
    Some(Record {
        id: call.row.call_id.as_ref().into(),
        name: call.row.tool.as_ref().into(),
        args: call.row.args.clone(),
        outcome: result.status,
        result: content_of(result).text().into_owned(),
        duration: call.took,
    })
}

pub(super) fn shared(entries: &[Arc<Entry>]) -> impl Iterator<Item = SharedEntry> + '_ {
    entries.iter().cloned().map(SharedEntry)
}
