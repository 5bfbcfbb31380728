//! The steps of a scenario, one after another or at the same time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cepa_agent::{
    Agent, AgentEvent, Decision, Decisions, PausedState, TurnError, TurnOptions, TurnResult, TurnStatus, load_whole,
};
use cepa_core::{BoxFuture, CancellationToken, Entry, Error, ErrorKind, Message};
use serde::Serialize;
use tempfile::TempDir;

use super::{
    agents::{self, Agents},
    input::{Input, Step, When},
    record::{Event, Record},
    source::Source,
};
use crate::{line::Fail, line::SmallError, neutral};

/// What came of a step.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum StepOutcome {
    Completed { status: &'static str, text: Option<String>, finish: &'static str, records: usize },
    Paused { status: &'static str, pending: Vec<String>, records: usize },
    Status { status: &'static str },
    Error { error: SmallError },
    Parallel { parallel: Vec<StepOutcome> },
}

impl StepOutcome {
    const OK: Self = Self::Status { status: "ok" };

    fn error(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Cancelled => Self::Status { status: "cancelled" },
            _ => Self::Error { error: error.into() },
        }
    }
}

/// Everything that the steps work on.
pub(crate) struct Stage {
    pub(crate) input: Input,
    pub(crate) source: Source,
    pub(crate) record: Arc<Record>,
    pub(crate) folder: TempDir,
    agents: Mutex<Option<Arc<Agents>>>,
    removed: Mutex<Vec<String>>,
}

impl Stage {
    pub(crate) fn new(input: Input, source: Source, record: Arc<Record>, folder: TempDir) -> Self {
        Self { input, source, record, folder, agents: Mutex::default(), removed: Mutex::default() }
    }

    /// The agents, built if they are not there.
    pub(crate) fn agents(&self) -> Result<Result<Arc<Agents>, Error>, Fail> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agents) = &*agents {
            return Ok(Ok(agents.clone()));
        }
        let removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let model = self.source.model()?;
        match agents::build(&self.input, &removed, &model, self.folder.path(), &self.record)? {
            Ok(built) => Ok(Ok(agents.insert(Arc::new(built)).clone())),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Drops the agents and the store; the next step builds them anew.
    fn drop_agents(&self) {
        drop(self.agents.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Does a step.
    pub(crate) fn step(self: Arc<Self>, step: Step) -> BoxFuture<'static, Result<StepOutcome, Fail>> {
        Box::pin(async move {
            let agents = match self.agents()? {
                Ok(agents) => agents,
                Err(error) => return Ok(StepOutcome::error(&error)),
            };
            let agent = match &step.agent {
                Some(name) => agents.by_name.get(name).ok_or_else(|| format!("there is no agent `{name}`"))?.clone(),
                None => agents.by_name.values().next().ok_or_else(|| "there is no agent".to_owned())?.clone(),
            };
            match step.op.as_str() {
                "chat" => Ok(self.chat(agent, &step).await),
                "chat_stream" => Ok(self.chat_stream(agent, &step).await),
                "resume" => self.resume(agent, &step).await,
                "restart" => {
                    drop((agents, agent));
                    self.drop_agents();
                    Ok(StepOutcome::OK)
                }
                "remove_tool" => {
                    let name = step.name.clone().ok_or_else(|| "no name of a tool".to_owned())?;
                    self.removed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                    drop((agents, agent));
                    self.rebuild()?;
                    Ok(StepOutcome::OK)
                }
                "reset" => Ok(match agent.own_conversation().reset().await {
                    Ok(()) => StepOutcome::OK,
                    Err(error) => StepOutcome::error(&error),
                }),
                "wait_ms" => {
                    tokio::time::sleep(Duration::from_millis(step.ms.unwrap_or_default())).await;
                    Ok(StepOutcome::OK)
                }
                "store_add" => add(&agents, &agent, &step.msgs).await,
                "parallel" => self.parallel(step.of).await,
                op => Err(Fail::Crash(format!("the step `{op}` is not known"))),
            }
        })
    }

    /// Builds the agents again on the store that is open, without the tools that were removed.
    fn rebuild(&self) -> Result<(), Fail> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(old) = agents.take() else { return Ok(()) };
        let removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let store = old.store.clone();
        let built = agents::build_on(&self.input, &removed, &self.source.model()?, store, &self.record)?;
        *agents = Some(Arc::new(built?));
        Ok(())
    }

    async fn parallel(self: Arc<Self>, steps: Vec<Step>) -> Result<StepOutcome, Fail> {
        let tasks: Vec<_> = steps.into_iter().map(|step| tokio::spawn(self.clone().step(step))).collect();
        let mut parallel = Vec::new();
        for task in tasks {
            parallel.push(task.await.map_err(|error| format!("panicked: {error}"))??);
        }
        Ok(StepOutcome::Parallel { parallel })
    }

    /// A turn that is not streamed.
    async fn chat(&self, agent: Agent, step: &Step) -> StepOutcome {
        let cancel = CancellationToken::new();
        let mut options = TurnOptions::new().cancel(cancel.clone());
        if step.cancel_when.as_ref().is_some_and(|when| when.text_delta.is_some()) {
            let cancel = cancel.clone();
            options = options.on_event(move |event| {
                if matches!(event, AgentEvent::Text(_)) {
                    cancel.cancel();
                }
            });
        }
        let _alarm = self.alarm(step, &cancel);
        let text = step.text.as_deref().unwrap_or_default();
        self.outcome(agent.own_conversation().chat_with(text, options).await)
    }

    /// A turn as a stream, whose events are noted.
    async fn chat_stream(&self, agent: Agent, step: &Step) -> StepOutcome {
        let cancel = CancellationToken::new();
        let _alarm = self.alarm(step, &cancel);
        let text = step.text.as_deref().unwrap_or_default();
        let options = TurnOptions::new().cancel(cancel.clone());
        let mut stream = agent.own_conversation().chat_stream_with(text, options);
        let mut deltas = 0;
        let at = |when: &Option<When>, deltas: usize| {
            when.as_ref().and_then(|when| when.text_delta).is_some_and(|nth| deltas == nth)
        };
        while let Some(event) = stream.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => return self.outcome(Err(error)),
            };
            self.record.notes().events.extend(Event::of(&event));
            match event {
                AgentEvent::Done(result) => return self.outcome(Ok(*result)),
                AgentEvent::Text(_) => {
                    deltas += 1;
                    if at(&step.cancel_when, deltas) {
                        cancel.cancel();
                    }
                    if at(&step.drop_when, deltas) {
                        self.record.notes().dropped = Some(Instant::now());
                        drop(stream);
                        return StepOutcome::Status { status: "dropped" };
                    }
                }
                _ => {}
            }
        }
        StepOutcome::error(&Error::new(ErrorKind::Provider, "the stream ended without a result"))
    }

    /// Cancels at the moment that the step names, unless the turn is over before.
    fn alarm(&self, step: &Step, cancel: &CancellationToken) -> Alarm {
        let wait = |ms: Option<u64>| Duration::from_millis(ms.unwrap_or_default());
        let moment: Option<(BoxFuture<'static, ()>, Duration)> = match (&step.cancel_when, step.cancel_after_ms) {
            (Some(When { tool_started: Some(name), wait_ms, .. }), _) => {
                Some((Box::pin(self.record.when_started(name.clone())), wait(*wait_ms)))
            }
            (Some(When { bytes_sent: Some(reply), wait_ms, .. }), _) => {
                self.source.when_sent(*reply).map(|sent| (sent, wait(*wait_ms)))
            }
            (_, Some(ms)) => Some((Box::pin(std::future::ready(())), wait(Some(ms)))),
            _ => None,
        };
        let cancel = cancel.clone();
        Alarm(moment.map(|(moment, wait)| {
            tokio::spawn(async move {
                moment.await;
                tokio::time::sleep(wait).await;
                cancel.cancel();
            })
        }))
    }

    async fn resume(&self, agent: Agent, step: &Step) -> Result<StepOutcome, Fail> {
        let decision = match step.decision.as_deref() {
            Some("approved") => Decision::Approve,
            Some("rejected") => Decision::Reject { reason: step.reason.clone() },
            other => return Err(Fail::Crash(format!("the decision {other:?} is not known"))),
        };
        let decisions = match self.decisions(&agent, step, decision).await {
            Ok(decisions) => decisions,
            Err(error) => return Ok(StepOutcome::error(&error)),
        };
        if let Some(state) = &step.with_state {
            let state: PausedState = match state.read() {
                Ok(state) => state,
                Err(error) => {
                    let error = Error::new(ErrorKind::InvalidInput, format!("this is no paused state: {error}"));
                    return Ok(StepOutcome::error(&error));
                }
            };
            return Ok(self.outcome(agent.resume_with(state, decisions, TurnOptions::new()).await));
        }
        Ok(self.outcome(agent.own_conversation().resume(decisions).await))
    }

    /// One decision for all that waits, or one for each of certain pauses.
    async fn decisions(&self, agent: &Agent, step: &Step, decision: Decision) -> Result<Decisions, Error> {
        if step.edits.is_none() && step.pauses.is_none() {
            return Ok(Decisions::All(decision));
        }
        let waiting: Vec<(String, String)> = match &step.pauses {
            Some(calls) => {
                let ids = self.record.notes().pause_ids.clone();
                calls
                    .iter()
                    .map(|call| (call.clone(), ids.get(call).cloned().unwrap_or_else(|| call.clone())))
                    .collect()
            }
            None => {
                let pending = agent.own_conversation().pending().await?;
                pending.into_iter().map(|pause| (pause.call_id, pause.id)).collect()
            }
        };
        let mut each = Vec::new();
        for (call, pause) in waiting {
            let edit = step.edits.as_ref().and_then(|edits| edits.get(&call));
            let decision = match edit {
                Some(args) => Decision::edit(args.as_str())?,
                None => decision.clone(),
            };
            each.push((pause, decision));
        }
        Ok(Decisions::Each(each))
    }

    fn outcome(&self, result: Result<TurnResult, TurnError>) -> StepOutcome {
        let result = match result {
            Ok(result) => result,
            Err(error) => return StepOutcome::error(&error.error),
        };
        let records = result.records.len();
        match result.status {
            TurnStatus::Completed => StepOutcome::Completed {
                status: "completed",
                text: Some(result.text),
                finish: result.finish_reason.map_or("unknown", neutral::finish),
                records,
            },
            TurnStatus::Paused => {
                self.record.waiting(&result.pending);
                let pending = result.pending.into_iter().map(|pause| pause.call_id).collect();
                StepOutcome::Paused { status: "paused", pending, records }
            }
            TurnStatus::Cancelled => StepOutcome::Status { status: "cancelled" },
            TurnStatus::Exhausted => StepOutcome::Status { status: "exhausted" },
        }
    }

    /// What the store holds of the conversation.
    pub(crate) async fn history(&self) -> Result<Vec<neutral::Neutral>, Fail> {
        let Ok(agents) = self.agents()? else { return Ok(Vec::new()) };
        let (Some(store), Some(agent)) = (&agents.store, agents.by_name.values().next()) else { return Ok(Vec::new()) };
        let conversation = agent.own_conversation();
        let Some(id) = conversation.id() else { return Ok(Vec::new()) };
        let (_, history) = load_whole(&**store, id).await?;
        Ok(history.messages().map(neutral::stored).collect())
    }
}

/// A task that ends with its turn.
struct Alarm(Option<tokio::task::JoinHandle<()>>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Appends to the conversation in the store, behind the agent's back.
async fn add(agents: &Agents, agent: &Agent, messages: &[Message]) -> Result<StepOutcome, Fail> {
    let conversation = agent.own_conversation();
    let (Some(store), Some(id)) = (&agents.store, conversation.id()) else {
        return Err(Fail::Crash("there is no store to add to".to_owned()));
    };
    let entries = messages.iter().cloned().map(|message| Arc::new(Entry::new(message))).collect();
    let added = match load_whole(&**store, id).await {
        Ok((version, _)) => store.append(id, version, entries).await,
        Err(error) => Err(error),
    };
    Ok(match added {
        Ok(_) => StepOutcome::OK,
        Err(error) => StepOutcome::error(&error),
    })
}
