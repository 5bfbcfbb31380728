//! Takes the steps of a program: two agents with a handle each on one file, their clock, their model and their people.

use std::{collections::BTreeMap, path::Path, pin::pin, time::Duration};

use cepa_agent::{
    Agent, AgentEvent, Conversation, Decision, Decisions, OnExhausted, Siblings, TurnError, TurnOptions, TurnResult,
    WhilePaused, Window, Windowed,
};
use cepa_core::{CancellationToken, Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::{
    child, deeds,
    facts::{Fact, Facts},
    invariants::{self, Seen},
    model::Model,
    pauses,
    program::*,
    rows::{self, Pause, Rows},
    scene::Scene,
    store::Hand,
    tools,
};

/// How long the caller of a turn waits before he gives it up.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long an agent holds a conversation.
const LEASE: Duration = Duration::from_secs(30);

/// One process.
pub(crate) struct Process {
    pub(crate) agent: Agent,
    pub(crate) hand: Hand,
}

impl Process {
    pub(crate) fn start(who: Who, setup: &Setup, scene: &Scene) -> Self {
        let hand = Hand::open(who, scene);
        let told = scene.clone();
        let builder = Agent::builder(Model::new(who, scene))
            .tools(tools::tools(who, scene))
            .siblings(if setup.run_others { Siblings::RunOthers } else { Siblings::Hold })
            .while_paused(match setup.while_paused {
                Waiting::Cancel => WhilePaused::Cancel,
                Waiting::Queue => WhilePaused::Queue,
                Waiting::Refuse => WhilePaused::Refuse,
            })
            .max_batches(setup.max_batches.into())
            .on_exhausted(if setup.finishes { OnExhausted::Finish } else { OnExhausted::Stop })
            .max_result_chars(tools::MAX_CHARS)
            .lease(LEASE)
            .clock(scene.clock())
            .on_pause(move |pauses| told_of(&told, pauses))
            .pausing(setup.pausing);
        let builder = match setup.window {
            Some(most) => builder.memory(Windowed::new(hand.clone(), Window::messages(most.into()).unwrap())),
            None => builder.memory(hand.clone()),
        };
        let builder = match setup.expires {
            Some(seconds) => builder.pauses_expire_after(Duration::from_secs(seconds.into())),
            None => builder,
        };
        Self { agent: builder.build().unwrap(), hand }
    }
}

/// H1: what people are told of is in the store.
fn told_of(scene: &Scene, pauses: &[cepa_agent::Pause]) {
    let rows = Rows::read(scene.path());
    for pause in pauses {
        let stored = rows.pauses.iter().find(|stored| stored.id == pause.id);
        if stored.is_none_or(|stored| stored.args != pause.args.as_str() || stored.kind != pause.kind.as_str()) {
            scene.facts().add(Fact::Wrong(format!("H1: {} was told of and is not stored so: {stored:?}", pause.id)));
        }
    }
}

/// What came of something that somebody did.
#[derive(Debug)]
pub(crate) enum Outcome {
    Turn(Result<TurnResult, TurnError>),
    Recovered(Result<Option<TurnResult>, TurnError>),
    Swept(Result<Vec<Result<TurnResult, TurnError>>, Error>),
    Reset(Result<(), Error>),
    /// There was nothing to do it to.
    Idle,
    /// Its future was dropped, or its process died.
    Gone,
}

/// A decision that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The pauses that it is about; of a blanket decision those that waited.
    pub(crate) pauses: Vec<String>,
    pub(crate) decision: Decision,
    pub(crate) blanket: bool,
}

/// What else happened that explains an error.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    WriteFailed,
    /// The conversation was cleared meanwhile.
    Reset,
}

impl Beside {
    fn of(other: &Op) -> Self {
        if matches!(other, Op::Reset(_)) { Self::Reset } else { Self::Nothing }
    }
}

/// What somebody is about to do, with everything chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Deed {
    Chat(Talk, How, String),
    Decide(Talk, Asked),
    Recover(Talk),
    Sweep,
    Reset(Talk),
    Nothing,
}

pub(crate) struct World {
    pub(crate) scene: Scene,
    pub(crate) setup: Setup,
    processes: [Option<Process>; 2],
    seen: Seen,
    /// The decisions that were asked for, by pause.
    decided: BTreeMap<String, Decision>,
}

fn id_of(talk: Talk) -> Option<&'static str> {
    match talk {
        Talk::C => Some("c"),
        Talk::D => Some("d"),
        Talk::Nowhere => None,
    }
}

pub(crate) fn conversation(agent: &Agent, talk: Talk) -> Conversation {
    agent.conversation(id_of(talk).unwrap_or_default())
}

impl World {
    pub(crate) fn new(setup: Setup, path: &Path) -> Self {
        let scene = Scene::new(path, Facts::default(), 0, false);
        let processes = [Who::A, Who::B].map(|who| Some(Process::start(who, &setup, &scene)));
        Self { scene, setup, processes, seen: Seen::default(), decided: BTreeMap::new() }
    }

    fn process(&self, who: Who) -> &Process {
        let [a, b] = &self.processes;
        match who {
            Who::A => a.as_ref(),
            Who::B => b.as_ref(),
        }
        .unwrap()
    }

    fn restart(&mut self, who: Who) {
        let slot = match who {
            Who::A => &mut self.processes[0],
            Who::B => &mut self.processes[1],
        };
        drop(slot.take());
        *slot = Some(Process::start(who, &self.setup, &self.scene));
    }

    /// Takes a step and looks at what it left.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<(), String> {
        let before = Rows::read(self.scene.path());
        match step {
            Step::Jump(seconds) => self.scene.jump(*seconds),
            Step::Restart(who) => self.restart(*who),
            Step::Do(who, op, ending) => self.single(*who, op, *ending, &before).await?,
            Step::Both(a_op, b_op) => {
                let (first, second) = (self.deed(a_op, &before), self.deed(b_op, &before));
                let a = self.go(Who::A, a_op, first.clone(), Some(Ending::Runs), None);
                let b = self.go(Who::B, b_op, second.clone(), Some(Ending::Runs), None);
                let (a, b) = tokio::join!(a, b);
                self.settle().await;
                deeds::both([&first, &second], [&a, &b])?;
                self.accept(&first, &a, Beside::of(b_op))?;
                self.accept(&second, &b, Beside::of(a_op))?;
            }
            Step::Asleep(a, write, b) => self.asleep(a, *write, b, &before).await?,
        }
        self.check(step).await
    }

    async fn single(&mut self, who: Who, op: &Op, ending: Ending, before: &Rows) -> Result<(), String> {
        let deed = self.deed(op, before);
        let outcome = if self.setup.processes && matches!(ending, Ending::Dies(..)) {
            let [a, b] = &mut self.processes;
            let slot = if who == Who::A { a } else { b };
            drop(slot.take());
            child::run(&self.scene, &self.setup, who, &deed, op.replies(), ending);
            Outcome::Gone
        } else {
            self.go(who, op, deed.clone(), Some(ending), None).await
        };
        if matches!(ending, Ending::Dies(..)) {
            self.restart(who);
        }
        self.settle().await;
        let now = self.scene.now();
        deeds::single(before, &Rows::read(self.scene.path()), now, &deed, &outcome, ending, &self.setup)?;
        let failed = matches!(ending, Ending::WriteFails(_));
        self.accept(&deed, &outcome, if failed { Beside::WriteFailed } else { Beside::Nothing })
    }

    async fn asleep(&mut self, a: &Op, write: u8, b: &Op, before: &Rows) -> Result<(), String> {
        let (first, second) = (self.deed(a, before), self.deed(b, before));
        let outcomes = {
            let mut going = pin!(self.go(Who::A, a, first.clone(), None, Some(write)));
            let done = tokio::select! {
                biased;
                outcome = &mut going => Some(outcome),
                () = self.scene.sprung(Who::A) => None,
            };
            match done {
                Some(outcome) => (outcome, None),
                None => {
                    let fallen_asleep = Rows::read(self.scene.path());
                    self.scene.jump(60);
                    let other = self.go(Who::B, b, second.clone(), Some(Ending::Runs), None).await;
                    self.process(Who::B).hand.settled().await;
                    let between = Rows::read(self.scene.path());
                    self.scene.wake(Who::A);
                    (going.await, Some((other, [fallen_asleep, between])))
                }
            }
        };
        self.settle().await;
        let (outcome, other) = outcomes;
        self.accept(&first, &outcome, Beside::of(b))?;
        if let Some((other, between)) = other {
            self.accept(&second, &other, Beside::of(a))?;
            let [fallen_asleep, between] = &between;
            let after = Rows::read(self.scene.path());
            deeds::fenced([before, fallen_asleep, between, &after], &first)?;
        }
        Ok(())
    }

    /// Does something, and comes back when it is over, given up, or cut short.
    async fn go(&self, who: Who, op: &Op, deed: Deed, ending: Option<Ending>, asleep: Option<u8>) -> Outcome {
        let cancel = self.scene.set(who, op.replies(), ending, asleep);
        let agent = self.process(who).agent.clone();
        let done = perform(agent, deed, cancel.clone());
        let outcome = tokio::select! {
            biased;
            outcome = patiently(done, cancel) => outcome,
            () = self.scene.sprung(who), if asleep.is_none() => Outcome::Gone,
        };
        self.scene.disarm(who);
        outcome
    }

    async fn settle(&self) {
        for process in self.processes.iter().flatten() {
            process.hand.settled().await;
        }
    }

    /// Chooses what a step leaves open.
    fn deed(&mut self, op: &Op, rows: &Rows) -> Deed {
        match op {
            Op::Chat(talk, how, _) => Deed::Chat(*talk, *how, format!("message {}", self.scene.facts().number())),
            Op::Recover(talk, _) => Deed::Recover(*talk),
            Op::Sweep(_) => Deed::Sweep,
            Op::Reset(talk) => Deed::Reset(*talk),
            Op::Decide(talk, pick, what, _) => self.decision(*talk, *pick, *what, rows),
        }
    }

    fn decision(&mut self, talk: Talk, pick: Pick, what: What, rows: &Rows) -> Deed {
        let here = |pause: &&Pause| rows::is_in(rows, pause, id_of(talk));
        let waits = |pause: &&Pause| pause.state == "pending";
        let choose = |from: Vec<&Pause>, n: u8| {
            let n = usize::from(n).checked_rem(from.len())?;
            from.get(n).map(|pause| pause.id.clone())
        };
        let pauses = rows.pauses.iter();
        let picked = match pick {
            Pick::Waiting(n) => choose(pauses.filter(here).filter(waits).collect(), n),
            Pick::Old(n) => choose(pauses.filter(here).filter(|pause| !waits(pause)).collect(), n),
            Pick::Foreign(n) => choose(pauses.filter(|pause| !here(pause)).collect(), n),
            Pick::MadeUp => Some("t000000000000000000.0.0".to_owned()),
            Pick::All => None,
        };
        if picked.is_none() && pick != Pick::All {
            return Deed::Nothing;
        }
        let before = picked.as_ref().and_then(|id| self.decided.get(id)).cloned();
        let decision = match what {
            What::Approve => Decision::Approve,
            What::Edit(n) => Decision::Edit { args: format!(r#"{{"n": {n}}}"#) },
            What::EditWrong => Decision::Edit { args: r#"{"n":"wrong"}"#.to_owned() },
            What::Reject => Decision::Reject { reason: None },
            What::RejectWhy => Decision::Reject { reason: Some("not now".to_owned()) },
            What::Answer => Decision::Reply { content: format!("an answer {}", self.scene.facts().number()) },
            What::Same => before.unwrap_or(Decision::Approve),
        };
        let pauses: Vec<String> = match &picked {
            Some(id) => vec![id.clone()],
            None => rows.pauses.iter().filter(here).filter(waits).map(|pause| pause.id.clone()).collect(),
        };
        for pause in &pauses {
            self.decided.entry(pause.clone()).or_insert_with(|| decision.clone());
        }
        Deed::Decide(talk, Asked { pauses, decision, blanket: picked.is_none() })
    }

    /// Only errors that belong to what was done.
    fn accept(&self, deed: &Deed, outcome: &Outcome, beside: Beside) -> Result<(), String> {
        let errors: Vec<&Error> = match outcome {
            Outcome::Turn(Err(error)) | Outcome::Recovered(Err(error)) => vec![&error.error],
            Outcome::Swept(Err(error)) | Outcome::Reset(Err(error)) => vec![error],
            Outcome::Swept(Ok(all)) => all.iter().filter_map(|one| one.as_ref().err()).map(|one| &one.error).collect(),
            Outcome::Turn(Ok(_))
            | Outcome::Recovered(Ok(_))
            | Outcome::Reset(Ok(()))
            | Outcome::Idle
            | Outcome::Gone => Vec::new(),
        };
        for error in errors {
            let kind = error.kind();
            let fits = match kind {
                ErrorKind::Server | ErrorKind::Busy => true,
                ErrorKind::Store => beside == Beside::WriteFailed,
                ErrorKind::Cancelled => matches!(deed, Deed::Chat(..) | Deed::Decide(..)),
                ErrorKind::NotPaused | ErrorKind::AlreadyDecided | ErrorKind::Expired | ErrorKind::InvalidInput => {
                    matches!(deed, Deed::Decide(..))
                }
                // The turn whose pause was decided has failed, or its conversation was cleared.
                ErrorKind::Conflict => beside == Beside::Reset || matches!(deed, Deed::Decide(..)),
                _ => false,
            };
            if !fits {
                return Err(format!("D5: this does not end in {error:?}: {deed:?}"));
            }
        }
        Ok(())
    }

    async fn check(&mut self, step: &Step) -> Result<(), String> {
        let rows = Rows::read(self.scene.path());
        invariants::all(&self.scene, &rows, &mut self.seen, &self.setup)?;
        self.scene.set(Who::A, &[], None, None);
        let now = self.scene.now();
        let agent = &self.process(Who::A).agent;
        for talk in [Talk::C, Talk::D, Talk::Nowhere] {
            let shown = match talk {
                Talk::C | Talk::D => conversation(agent, talk).pending().await,
                Talk::Nowhere => waiting_nowhere(agent, now).await,
            };
            let shown = shown.map_err(|error| format!("H1: pending(): {error}"))?;
            let shown: Vec<&str> = shown.iter().map(|pause| pause.id.as_str()).collect();
            pauses::pending(&rows, now, id_of(talk), &shown).map_err(|why| format!("{why} (after {step:?})"))?;
        }
        Ok(())
    }

    /// What must be possible after any program: time goes by, everything is recovered and decided, and nothing is open.
    pub(crate) async fn end(&mut self) -> Result<(), String> {
        self.scene.jump(24 * 3600);
        self.restart(Who::A);
        self.restart(Who::B);
        // A pause may follow a pause: each round runs a batch that was planned, and the model only says a word.
        for _ in 0..12 {
            let rows = Rows::read(self.scene.path());
            if !rows.turns.iter().any(|turn| turn.is_live()) {
                break;
            }
            self.step(&Step::Do(Who::A, Op::Sweep(list(&[])), Ending::Runs)).await?;
            for talk in [Talk::C, Talk::D, Talk::Nowhere] {
                let decide = Op::Decide(talk, Pick::All, What::Reject, list(&[]));
                self.step(&Step::Do(Who::A, decide, Ending::Runs)).await?;
            }
        }
        let rows = Rows::read(self.scene.path());
        match rows.turns.iter().find(|turn| turn.is_live()) {
            Some(turn) => {
                Err(format!("D2, D3: a turn is never over: {turn:?}\n{:?}\n{:?}", rows.calls_of(turn), rows.pauses))
            }
            None => invariants::over(&rows),
        }
    }
}

/// The turn of a pause, by its id.
fn turn_of(pause: &str) -> &str {
    pause.split('.').next().unwrap_or_default()
}

/// What waits in turns without a conversation, whoever began them.
async fn waiting_nowhere(agent: &Agent, now: i64) -> Result<Vec<cepa_agent::Pause>, Error> {
    let mut pending = agent.store().pending(None).await?;
    pending.retain(|pause| pause.conversation == pause.turn && !pause.is_expired(now));
    Ok(pending)
}

/// What the handles of all those turns would do when they are reset.
async fn forget_nowhere(agent: &Agent) -> Result<(), Error> {
    for pause in waiting_nowhere(agent, i64::MIN).await? {
        agent.store().forget(&pause.turn).await?;
    }
    Ok(())
}

/// Whoever waits too long cancels.
pub(crate) async fn patiently(done: impl Future<Output = Outcome>, cancel: CancellationToken) -> Outcome {
    let mut done = pin!(done);
    tokio::select! {
        biased;
        outcome = &mut done => outcome,
        () = tokio::time::sleep(PATIENCE) => {
            cancel.cancel();
            // What has no token to be cancelled by is dropped in the end.
            tokio::time::timeout(PATIENCE, done).await.unwrap_or(Outcome::Gone)
        }
    }
}

pub(crate) async fn perform(agent: Agent, deed: Deed, cancel: CancellationToken) -> Outcome {
    let options = TurnOptions::new().cancel(cancel.clone());
    match deed {
        Deed::Chat(talk, How::Whole, text) => Outcome::Turn(conversation(&agent, talk).chat_with(text, options).await),
        Deed::Chat(talk, How::Streamed, text) => {
            let mut stream = conversation(&agent, talk).chat_stream_with(text, options);
            loop {
                match stream.next().await {
                    Some(Ok(AgentEvent::Done(result))) => return Outcome::Turn(Ok(*result)),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Outcome::Turn(Err(error)),
                    None => return Outcome::Gone,
                }
            }
        }
        Deed::Decide(talk, Asked { pauses, decision, blanket }) => {
            let decisions = match (pauses.first(), pauses.last()) {
                (Some(one), _) if !blanket => Decisions::one(one, decision),
                // A handle's blanket decision reaches the turns that it began; here many handles share what waits, so
                // the calls of one turn are named.
                (_, Some(last)) if talk == Talk::Nowhere => {
                    let of_turn = |pause: &&String| turn_of(pause) == turn_of(last);
                    Decisions::Each(pauses.iter().filter(of_turn).map(|id| (id.clone(), decision.clone())).collect())
                }
                _ => Decisions::All(decision),
            };
            Outcome::Turn(conversation(&agent, talk).resume_with_options(decisions, options).await)
        }
        Deed::Recover(talk) => Outcome::Recovered(conversation(&agent, talk).recover().await),
        Deed::Sweep => Outcome::Swept(agent.recover().await),
        Deed::Reset(Talk::Nowhere) => Outcome::Reset(forget_nowhere(&agent).await),
        Deed::Reset(talk) => Outcome::Reset(conversation(&agent, talk).reset().await),
        Deed::Nothing => Outcome::Idle,
    }
}
