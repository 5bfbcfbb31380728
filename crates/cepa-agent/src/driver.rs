//! The loop: asks the turn what to do, does it through a host, and commits before it acts. There is no other loop.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cepa_core::{CancellationToken, ChatResponse, Error, ErrorKind, ToolCall};
use serde_json::{Map, Value};

use crate::{
    entrance::{Asked, Entrance, Writer},
    event::AgentEvent,
    memory::Version,
    store::{CallResult, Commit, SharedEntry},
    turn::{CancelReason, Did, ModelCall, PartialReply, PlannedCall, Ruling, Todo, Turn},
};

/// How long a tool, a gate, or a filter around the model, that was told to stop may take to come to an end by itself.
const STOP_GRACE: Duration = Duration::from_millis(250);

/// What the loop needs from outside.
pub(crate) trait Host: Sync {
    /// Calls the model through the chat filters.
    fn call_model(&self, turn: &Turn, call: ModelCall) -> impl Future<Output = Result<Replied, Error>> + Send;
    /// The reply that is being written.
    fn partial_reply(&self) -> Option<PartialReply>;
    /// What happened to the turn that it has not noted: it becomes as it is stored, and what is missing is returned.
    fn read_back(&self, turn: &mut Turn) -> impl Future<Output = Result<Vec<Did>, Error>> + Send;
    /// Why the turn was cancelled, once it is.
    fn cancel_reason(&self) -> CancelReason;
    /// Whether the model call is writing what the model said: then it must not be dropped.
    fn is_storing(&self) -> bool;
    /// Decides on the calls of a batch, once each.
    fn decide(&self, turn: &Turn, calls: Vec<ToolCall>) -> impl Future<Output = Vec<Ruling>> + Send;
    /// Runs one call through the tool filters; `values` is what it sees.
    fn run_tool(
        &self,
        turn: &Turn,
        call: PlannedCall,
        values: Arc<Map<String, Value>>,
        entrance: Entrance,
    ) -> Pin<Box<dyn Future<Output = ToolRun> + Send + '_>>;
    /// Writes a step down.
    fn commit(&self, turn: &Turn, commit: Commit) -> impl Future<Output = Result<(), Error>> + Send;
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;
    /// Whether anybody listens.
    fn has_listeners(&self) -> bool;
    /// Tells the listeners.
    fn tell(&self, event: AgentEvent);
}

/// What a model call brought.
#[derive(Debug)]
pub(crate) struct Replied {
    pub(crate) response: ChatResponse,
    /// What is to join the conversation together with the turn's own note of the reply.
    pub(crate) unstored: Option<Unstored>,
}

/// Messages that join the conversation at a version.
#[derive(Debug)]
pub(crate) struct Unstored {
    pub(crate) expected: Version,
    pub(crate) messages: Vec<SharedEntry>,
}

/// How a call went.
#[derive(Debug)]
pub(crate) struct ToolRun {
    pub(crate) result: CallResult,
    pub(crate) took: Duration,
}

/// Steps that the next one follows at once: they are written together with it, in one transaction. Nothing that has to
/// wait, for a person, a filter or a body, waits before they are.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    commit: Commit,
    /// What is told once they are written.
    events: Vec<AgentEvent>,
}

impl Unwritten {
    fn add<H: Host>(&mut self, host: &H, commit: Commit, events: impl Iterator<Item = AgentEvent>) {
        self.commit.then(commit);
        if host.has_listeners() {
            self.events.extend(events);
        }
    }

    async fn write<H: Host>(&mut self, turn: &Turn, host: &H) -> Result<(), Error> {
        let commit = std::mem::take(&mut self.commit);
        if !commit.is_empty() {
            host.commit(turn, commit).await?;
        }
        self.events.drain(..).for_each(|event| host.tell(event));
        Ok(())
    }
}

/// Drives a turn until it is over or waits for a person.
///
/// # Errors
/// What the model or the store failed with. The turn is then over (the model), or as it was at its last commit.
pub(crate) async fn drive<H: Host>(turn: &mut Turn, host: &H, cancel: &CancellationToken) -> Result<(), Error> {
    let mut unwritten = Unwritten::default();
    while advance(turn, host, &mut unwritten, cancel).await? == Next::Step {}
    Ok(())
}

/// Whether a turn can go on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There is something to do.
    Step,
    /// It is over, or waits for a person.
    Stop,
}

/// Does the one thing that is due.
pub(crate) async fn advance<H: Host>(
    turn: &mut Turn,
    host: &H,
    unwritten: &mut Unwritten,
    cancel: &CancellationToken,
) -> Result<Next, Error> {
    // Also where it has just begun to wait: what was cancelled does not depend on how politely a sibling ended.
    if cancel.is_cancelled() && turn.state().is_live() {
        unwritten.write(turn, host).await?;
        give_up(turn, host).await?;
        return Ok(Next::Stop);
    }
    let todo = turn.todo_now();
    if !matches!(todo, Todo::Run(_)) {
        unwritten.write(turn, host).await?;
    }
    match todo {
        Todo::CallModel(call) => {
            let replied = tokio::select! {
                biased;
                replied = host.call_model(turn, call) => replied,
                () = stopped(host, cancel) => return Ok(Next::Step),
            };
            take_reply(turn, host, replied, cancel).await?;
        }
        Todo::Decide(calls) => {
            let rulings = tokio::select! {
                biased;
                rulings = host.decide(turn, calls) => rulings,
                () = stopped(host, cancel) => return Ok(Next::Step),
            };
            let settled = turn.settled();
            let commit = turn.did(Did::Verdicts { rulings, at: host.now_ms() })?;
            let written_later = commit.pauses.is_empty() && turn.is_in_batch();
            let events = if host.has_listeners() { settled_since(turn, settled) } else { Vec::new() };
            unwritten.add(host, commit, events.into_iter());
            if !written_later {
                unwritten.write(turn, host).await?;
            }
        }
        Todo::Run(calls) => run_group(turn, host, calls, unwritten, cancel).await?,
        Todo::Wait(pauses) => {
            host.tell(AgentEvent::Paused(pauses));
            return Ok(Next::Stop);
        }
        Todo::Done(_) => return Ok(Next::Stop),
    }
    Ok(Next::Step)
}

/// Comes back when what was cancelled has had its time to end by itself, and is not in the middle of a write.
async fn stopped<H: Host>(host: &H, cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
    while host.is_storing() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn step<H: Host>(turn: &mut Turn, host: &H, what: Did) -> Result<(), Error> {
    let commit = turn.did(what)?;
    host.commit(turn, commit).await
}

/// Ends a turn that is cancelled. What was stored and not noted comes first: a reply whose call was given up while
/// filters outside the memory still worked on it, a decision that a person made meanwhile.
async fn give_up<H: Host>(turn: &mut Turn, host: &H) -> Result<(), Error> {
    const ATTEMPTS: u8 = 4;
    for attempt in 1.. {
        for what in host.read_back(turn).await? {
            step(turn, host, what).await?;
        }
        if !turn.state().is_live() {
            return Ok(());
        }
        let before = turn.clone();
        let (partial, at) = (host.partial_reply(), host.now_ms());
        match step(turn, host, Did::Cancelled { why: host.cancel_reason(), partial, at }).await {
            // Somebody decided about one of its calls: the decision stands, and is read back.
            Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => *turn = before,
            Err(error) => {
                // What was not written did not happen.
                *turn = before;
                return Err(error);
            }
            Ok(()) => return Ok(()),
        }
    }
    Ok(())
}

async fn take_reply<H: Host>(
    turn: &mut Turn,
    host: &H,
    replied: Result<Replied, Error>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    match replied {
        Ok(Replied { response, unstored }) => {
            let (usage, finish, at) = (response.usage, response.finish_reason, host.now_ms());
            let mut commit = turn.did(Did::Replied { reply: response.message, usage, finish, at })?;
            let joins = unstored.is_some();
            if let Some(Unstored { expected, mut messages }) = unstored {
                // Before the results of a reply whose calls cannot run.
                messages.append(&mut commit.messages);
                commit.messages = messages;
                commit.expected = Some(expected);
            }
            if let Err(error) = host.commit(turn, commit).await {
                if joins {
                    not_joined(turn, host).await;
                }
                return Err(error);
            }
            if host.has_listeners() {
                for call in turn.reply().map(|reply| reply.tool_calls.clone()).unwrap_or_default() {
                    host.tell(AgentEvent::ToolCallReady { id: call.id, name: call.name, args: call.args });
                }
                host.tell(AgentEvent::Usage(turn.data().usage));
            }
            Ok(())
        }
        // The loop sees the token and gives up.
        Err(error) if error.kind() == ErrorKind::Cancelled && cancel.is_cancelled() => Ok(()),
        Err(error) => {
            // The model's error is what the caller must see, also if the store fails now.
            failed(turn, host).await;
            Err(error)
        }
    }
}

async fn failed<H: Host>(turn: &mut Turn, host: &H) {
    if let Err(store) = step(turn, host, Did::Failed { at: host.now_ms() }).await {
        tracing::warn!(error = %store, "the end of a failed turn could not be stored");
    }
}

/// What the model said could not join the conversation: for the turn it is as if the model had failed.
async fn not_joined<H: Host>(turn: &mut Turn, host: &H) {
    match host.read_back(turn).await {
        Ok(missed) if missed.is_empty() && turn.state().is_live() => failed(turn, host).await,
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "a turn that could not be written could not be read back"),
    }
}

/// The calls that were settled by their verdict.
fn settled_since(turn: &Turn, before: usize) -> Vec<AgentEvent> {
    let told = |record: crate::result::Record| AgentEvent::ToolFinished {
        id: record.id,
        name: record.name,
        status: record.outcome,
        content: record.result,
    };
    turn.records().into_iter().skip(before).map(told).collect()
}

/// The calls of a group that have not ended, by their place in it.
type Running<'a> = Vec<(usize, Pin<Box<dyn Future<Output = ToolRun> + Send + 'a>>)>;

/// Runs calls side by side. Each is written down before its body is entered and as soon as it ends.
async fn run_group<H: Host>(
    turn: &mut Turn,
    host: &H,
    calls: Vec<PlannedCall>,
    unwritten: &mut Unwritten,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let writer = Writer::new();
    // All of them see what was written before the first.
    let values = calls.first().map(|call| turn.values_at(call.key.idx)).unwrap_or_default();
    let mut running: Running<'_> = Vec::with_capacity(calls.len());
    for (place, call) in calls.iter().enumerate() {
        running.push((place, host.run_tool(turn, call.clone(), values.clone(), writer.entrance())));
    }
    let stopping = async {
        cancel.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    let mut stopping = pin!(stopping);
    while !running.is_empty() {
        let mut happened = poll_fn(|context| Poll::Ready(happened(&mut running, &writer, context))).await;
        if happened.is_pending() {
            // Somebody has to be waited for.
            unwritten.write(turn, host).await?;
            happened = tokio::select! {
                biased;
                happened = poll_fn(|context| self::happened(&mut running, &writer, context)) => Poll::Ready(happened),
                // One grace for all of them, however many end meanwhile.
                () = &mut stopping => break,
            };
        }
        let Poll::Ready((mut asked, done)) = happened else { continue };
        refuse_late(&writer, &mut asked, &calls, &running);
        let_in(turn, host, &calls, &writer, asked, unwritten).await?;
        for (place, ToolRun { result, took }) in done {
            let Some(call) = calls.get(place) else { continue };
            let told = host.has_listeners().then(|| finished(call, &result));
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let commit = turn.did(Did::Finished { idx: call.key.idx, result, took_ms, at: host.now_ms() })?;
            unwritten.add(host, commit, told.into_iter());
        }
    }
    // The next call is entered at once; everything else waits for what it is told.
    if !turn.is_in_batch() || turn.is_waiting() {
        unwritten.write(turn, host).await?;
    }
    Ok(())
}

fn finished(call: &PlannedCall, result: &CallResult) -> AgentEvent {
    let content = result.content.read::<cepa_core::Content>().map(|content| content.text().into_owned());
    AgentEvent::ToolFinished {
        id: call.call.id.clone(),
        name: call.call.name.clone(),
        status: result.status,
        content: content.unwrap_or_default(),
    }
}

/// A filter may have answered for its inside, which comes on by itself: too late to be entered.
fn refuse_late(writer: &Writer, asked: &mut Vec<Asked>, calls: &[PlannedCall], running: &Running<'_>) {
    let runs = |idx| running.iter().any(|(place, _)| calls.get(*place).is_some_and(|call| call.key.idx == idx));
    for late in asked.extract_if(.., |asked| !runs(asked.idx)) {
        writer.answer(late, Err(Error::new(ErrorKind::Cancelled, "the call is over")));
    }
}

/// Writes down that bodies are entered, and lets them in.
async fn let_in<H: Host>(
    turn: &mut Turn,
    host: &H,
    calls: &[PlannedCall],
    writer: &Writer,
    asked: Vec<Asked>,
    unwritten: &mut Unwritten,
) -> Result<(), Error> {
    if asked.is_empty() {
        return Ok(());
    }
    // A tool that only reads may be entered again whatever happened: no more than its plan is to be remembered.
    let reads = |asked: &Asked| calls.iter().any(|call| call.key.idx == asked.idx && call.flags.read_only);
    let written = async {
        for asked in asked.iter().filter(|asked| !reads(asked)) {
            let commit = turn.did(Did::Started { idx: asked.idx, at: host.now_ms() })?;
            unwritten.add(host, commit, std::iter::empty());
        }
        unwritten.write(turn, host).await
    };
    let written = written.await;
    for asked in &asked {
        writer.answer(*asked, written.clone());
    }
    written?;
    for asked in asked.iter().filter(|_| host.has_listeners()) {
        if let Some(call) = calls.iter().find(|call| call.key.idx == asked.idx) {
            host.tell(AgentEvent::ToolStarted { id: call.call.id.clone(), name: call.call.name.clone() });
        }
    }
    Ok(())
}

/// The bodies that ask to be entered, and the calls that have ended, by their place.
type Happened = (Vec<Asked>, Vec<(usize, ToolRun)>);

/// Lets every call work.
fn happened(running: &mut Running<'_>, writer: &Writer, context: &mut Context<'_>) -> Poll<Happened> {
    let mut done = Vec::new();
    let mut at = 0;
    while let Some((_, run)) = running.get_mut(at) {
        match run.as_mut().poll(context) {
            Poll::Ready(run) => done.push((running.remove(at).0, run)),
            Poll::Pending => at += 1,
        }
    }
    let asked = writer.asked(context);
    if asked.is_empty() && done.is_empty() { Poll::Pending } else { Poll::Ready((asked, done)) }
}
