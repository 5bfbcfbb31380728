//! A turn beside a small store, driven by hand in tests: every commit is folded into rows, by the rules of all stores.

use std::{collections::BTreeSet, sync::Arc};

use cepa_core::{
    Args, AssistantMessage, Content, Entry, FinishReason, History, Message, RawJson, ToolCall, ToolFailure, ToolFlags,
    ToolStatus, Usage,
};

use super::{
    CancelReason, Did, Illegal, PartialReply, Ruling, RulingOutcome, Todo, Turn, TurnData, TurnSettings,
    batch::text_result,
};
use crate::{
    pause::{self, Decision, Pause, PauseState, Settled},
    result::Record,
    rules::{self, Closing},
    store::{CallKey, CallResult, Commit, StoredTurn, TurnState, carried_json},
    texts::Texts,
};

/// The turn's id in all tests.
pub(super) const ID: &str = "t1";

/// A turn and what it left behind.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) turn: Turn,
    pub(super) stored: StoredTurn,
    pub(super) conversation: History,
    pub(super) model_calls: u32,
    /// Pauses that were decided in the store, of which the turn was not told.
    untold: BTreeSet<String>,
    /// Milliseconds; each event takes one.
    pub(super) clock: i64,
}

/// What the loop knows of a tool, by its name.
pub(super) fn flags(name: &str) -> ToolFlags {
    ToolFlags {
        sensitive: name == "pay",
        read_only: name == "read",
        idempotent: name == "put",
        return_direct: name == "answer",
        ..ToolFlags::default()
    }
}

pub(super) fn calls(names: &[&str]) -> Vec<ToolCall> {
    let call = |(n, name): (usize, &&str)| ToolCall::new(format!("c{n}"), *name, Args::decode(r#"{"n": 1}"#));
    names.iter().enumerate().map(call).collect()
}

/// A reply that calls these tools.
pub(super) fn calling(names: &[&str]) -> AssistantMessage {
    AssistantMessage { tool_calls: calls(names), ..AssistantMessage::default() }
}

pub(super) fn saying(text: &str) -> AssistantMessage {
    AssistantMessage { content: Some(Content::Text(text.to_owned())), ..AssistantMessage::default() }
}

pub(super) fn ok(text: &str) -> CallResult {
    text_result(ToolStatus::Ok, text)
}

pub(super) fn failure(class: ToolFailure, text: &str) -> CallResult {
    CallResult { failure: Some(class.as_str().to_owned()), ..text_result(ToolStatus::Error, text) }
}

pub(super) fn writing(text: &str, writes: &str) -> CallResult {
    CallResult { writes: RawJson::parse(writes).ok(), ..ok(text) }
}

pub(super) fn ruling(name: &str, outcome: RulingOutcome) -> Ruling {
    let prepared = RawJson::parse(r#"{"n": 1}"#).ok();
    Ruling { outcome, flags: flags(name), prepared, schema_hash: "schema".into() }
}

/// What the turn is to do next, in words that two turns can be compared by.
pub(super) fn todo_of(turn: &Turn) -> String {
    format!("{:?} values {:?}", turn.todo(), turn.values_at(u32::MAX))
}

impl Rig {
    pub(super) fn new(settings: TurnSettings) -> Self {
        Self::with(settings, false, vec![Message::user("hi")])
    }

    pub(super) fn with(settings: TurnSettings, carries: bool, input: Vec<Message>) -> Self {
        let data = TurnData { settings: settings.into(), ..TurnData::default() };
        let conversation = (!carries).then(|| "c".to_owned());
        let turn = Turn::new(ID.to_owned(), conversation, carries, input, data, 1000, Arc::new(Texts::default()));
        let stored = StoredTurn { row: turn.row(1000), calls: Vec::new(), pauses: Vec::new() };
        Self { turn, stored, conversation: History::new(), model_calls: 0, untold: BTreeSet::new(), clock: 1000 }
    }

    pub(super) fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    /// Takes an event and persists what it leaves; then a turn made of the rows must be due the same.
    pub(super) fn try_did(&mut self, what: Did) -> Result<Commit, Illegal> {
        let before = self.turn.clone();
        let told = if let Did::Decided { pause, .. } = &what { Some(pause.id.clone()) } else { None };
        let commit = self.turn.did(what)?;
        if self.was_overtaken(&commit) {
            self.turn = before;
            self.restart();
            return Err(Illegal("somebody decided meanwhile: the turn was read again"));
        }
        if let Some(id) = told {
            self.untold.remove(&id);
        }
        if !commit.is_empty() {
            self.persist(&commit);
            assert_eq!(self.stored.row.state, self.turn.state(), "the row has the turn's state");
        }
        // Whoever reads the rows also sees the decisions of which this turn was not told.
        if !commit.is_empty() && self.untold.is_empty() {
            assert_eq!(todo_of(&self.restored()), todo_of(&self.turn), "restored from {:#?}", self.stored);
        }
        Ok(commit)
    }

    pub(super) fn did(&mut self, what: Did) -> Commit {
        self.try_did(what).unwrap()
    }

    /// Whether a pause that the commit closes was decided in the store before.
    fn was_overtaken(&self, commit: &Commit) -> bool {
        let state = |id: &str| self.stored.pauses.iter().find(|pause| pause.id == id).map(|pause| pause.state);
        commit.closed_pauses.iter().any(|(id, _)| rules::close_pause(id, state(id)).is_err())
    }

    fn persist(&mut self, commit: &Commit) {
        for change in &commit.calls {
            let calls = &mut self.stored.calls;
            let at = calls.iter().position(|row| row.key() == change.key());
            let row = rules::change_call(at.map(|at| &calls[at]), change).unwrap();
            match at {
                Some(at) => calls[at] = row,
                None => calls.push(row),
            }
        }
        for new in &commit.pauses {
            let same = self.stored.pauses.iter().find(|pause| pause.id == new.id);
            assert!(rules::add_pause(same, new).unwrap(), "a pause is written once");
            self.stored.pauses.push(new.clone());
        }
        for (id, state) in &commit.closed_pauses {
            let pause = self.stored.pauses.iter_mut().find(|pause| pause.id == *id);
            if rules::close_pause(id, pause.as_ref().map(|pause| pause.state)).unwrap() == Closing::Now {
                pause.unwrap().state = *state;
            }
        }
        if let Some(change) = &commit.turn {
            self.stored.row.state = change.state;
            self.stored.row.data = change.data.json();
            self.stored.row.carried = change.carried.as_ref().map(carried_json).or(self.stored.row.carried.take());
        }
        self.stored.row.updated = commit.at;
        self.append(commit.messages.iter().map(|entry| &entry.0).cloned().collect());
    }

    /// What is there by id is left out, as in every store.
    fn append(&mut self, entries: Vec<Arc<Entry>>) {
        for entry in entries {
            if !self.conversation.iter().any(|there| there.id == entry.id) {
                self.conversation.push_shared(entry);
            }
        }
    }

    /// The turn as another process would find it.
    pub(super) fn restored(&self) -> Turn {
        let texts = Arc::new(Texts::default());
        let restored = Turn::restore(self.stored.clone(), &self.conversation, flags, texts).unwrap();
        let mut turn = restored.turn;
        if let Some(what) = restored.missed {
            turn.did(what).unwrap();
        }
        for pause in restored.decided {
            turn.did(Did::Decided { pause, at: self.clock }).unwrap();
        }
        // A body that was lost and may run again is that in memory only.
        let running = self.turn.started_calls();
        for lost in turn.started_calls().into_iter().filter(|lost| !running.contains(lost)) {
            turn.did(Did::Lost { idx: lost.0, repeatable: true, at: self.clock }).unwrap();
        }
        turn
    }

    /// Another process goes on with the turn, as the agent does: everything that happened meanwhile is taken and written.
    pub(super) fn restart(&mut self) {
        let texts = Arc::new(Texts::default());
        let restored = Turn::restore(self.stored.clone(), &self.conversation, flags, texts).unwrap();
        self.turn = restored.turn;
        self.untold = restored.decided.iter().map(|pause| pause.id.clone()).collect();
        if let Some(what) = restored.missed {
            self.did(what);
        }
        for pause in restored.decided {
            let at = self.tick();
            self.did(Did::Decided { pause, at });
        }
        for (idx, flags) in self.turn.started_calls() {
            let at = self.tick();
            self.did(Did::Lost { idx, repeatable: flags.idempotent || flags.read_only, at });
        }
    }

    /// The model replies; its reply and what it was asked join the conversation as the memory filter would have it.
    pub(super) fn reply(&mut self, reply: AssistantMessage, finish: FinishReason) -> Result<Commit, Illegal> {
        let at = self.tick();
        let message = AssistantMessage { finish_reason: Some(finish), ..reply };
        if let Todo::CallModel(call) = self.turn.todo() {
            self.model_calls += 1;
            if !self.turn.carries() {
                let mut new: Vec<Arc<Entry>> = call.messages.iter().cloned().collect();
                new.push(Arc::new(Entry::with_id(call.reply_id, at, Message::Assistant(message.clone()))));
                self.append(new);
            }
        }
        let usage = Some(Usage { input: 10, output: 1, ..Usage::default() });
        self.try_did(Did::Replied { reply: message, usage, finish, at })
    }

    pub(super) fn calls(&mut self, names: &[&str]) -> Commit {
        self.reply(calling(names), FinishReason::ToolCalls).unwrap()
    }

    pub(super) fn says(&mut self, text: &str) -> Commit {
        self.reply(saying(text), FinishReason::Stop).unwrap()
    }

    /// One verdict for each call that waits for one.
    pub(super) fn rule(&mut self, outcomes: &[RulingOutcome]) -> Commit {
        let Todo::Decide(calls) = self.turn.todo() else { panic!("nothing to decide: {:?}", self.turn.todo()) };
        assert_eq!(calls.len(), outcomes.len());
        let rulings = calls.iter().zip(outcomes).map(|(call, outcome)| ruling(&call.name, outcome.clone())).collect();
        let at = self.tick();
        self.did(Did::Verdicts { rulings, at })
    }

    pub(super) fn start(&mut self, idx: u32) -> Commit {
        let at = self.tick();
        self.did(Did::Started { idx, at })
    }

    pub(super) fn finish(&mut self, idx: u32, result: CallResult) -> Commit {
        let at = self.tick();
        self.did(Did::Finished { idx, result, took_ms: 1, at })
    }

    /// Runs everything that is due, each with its name as the result.
    pub(super) fn run(&mut self) {
        while let Todo::Run(due) = self.turn.todo() {
            assert!(!due.is_empty(), "something is due");
            for call in due {
                self.start(call.key.idx);
                self.finish(call.key.idx, ok(&call.call.name));
            }
        }
    }

    /// A whole batch of calls that all proceed.
    pub(super) fn round(&mut self, names: &[&str]) {
        self.calls(names);
        if matches!(self.turn.todo(), Todo::Decide(_)) {
            self.rule(&vec![RulingOutcome::Proceed; names.len()]);
            self.run();
        }
    }

    pub(super) fn pending(&self) -> Vec<String> {
        let waiting = self.stored.pauses.iter().filter(|pause| pause.state == PauseState::Pending);
        waiting.map(|pause| pause.id.clone()).collect()
    }

    /// Somebody decides in the store; the turn is not told yet.
    pub(super) fn decide_in_store(&mut self, id: &str, decision: Decision) -> Option<Pause> {
        let now = self.tick();
        let pause = self.stored.pauses.iter_mut().find(|pause| pause.id == id)?;
        match pause::settle(pause, &decision, now) {
            Ok(Settled::Now) => {
                pause.state = decision.state();
                pause.decision = Some(decision);
                pause.decided = Some(now);
                self.untold.insert(id.to_owned());
            }
            Ok(Settled::Before) => {}
            Ok(Settled::Expired(_)) => {
                pause.state = PauseState::Expired;
                return None;
            }
            Err(_) => return None,
        }
        Some(pause.clone())
    }

    pub(super) fn decide(&mut self, id: &str, decision: Decision) -> Commit {
        let pause = self.decide_in_store(id, decision).expect("it waits");
        let at = self.tick();
        self.did(Did::Decided { pause, at })
    }

    pub(super) fn cancel(&mut self, why: CancelReason, partial: Option<&str>) -> Commit {
        let at = self.tick();
        self.did(Did::Cancelled { why, partial: partial.map(text_only), at })
    }

    /// What would be kept of the conversation: of a turn that carries it itself, its transcript.
    pub(super) fn history(&self) -> History {
        if !self.turn.carries() {
            return self.conversation.clone();
        }
        let carried: Vec<Message> = self.stored.row.carried.as_ref().unwrap().read().unwrap();
        carried.into_iter().collect()
    }

    /// The conversation in short: role or tool result with its status and text.
    pub(super) fn story(&self) -> Vec<String> {
        let line = |message: &Message| match message {
            Message::Tool(result) => format!("{} {}: {}", result.tool_call_id, result.status, message.text()),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => {
                let calls: Vec<&str> = message.tool_calls().iter().map(|call| call.name.as_str()).collect();
                format!("{} {}{}", message.role(), message.text(), calls.join(","))
            }
        };
        self.history().messages().map(line).collect()
    }

    pub(super) fn due(&self) -> Vec<u32> {
        match self.turn.todo() {
            Todo::Run(calls) => calls.into_iter().map(|call| call.key.idx).collect(),
            other => panic!("nothing is to be run: {other:?}"),
        }
    }

    pub(super) fn waits(&self) -> Vec<CallKey> {
        match self.turn.todo() {
            Todo::Wait(pauses) => pauses.into_iter().map(|pause| pause.key).collect(),
            other => panic!("nothing waits: {other:?}"),
        }
    }

    pub(super) fn is_done(&self, state: TurnState) -> bool {
        matches!(self.turn.todo(), Todo::Done(done) if done == state)
    }

    pub(super) fn outcomes(&self) -> Vec<(String, ToolStatus)> {
        self.turn.records().into_iter().map(|Record { name, outcome, .. }| (name, outcome)).collect()
    }
}

/// A cut reply of nobody known.
pub(super) fn text_only(text: &str) -> PartialReply {
    PartialReply { text: text.to_owned(), origin: None }
}
