//! The loop: asks the turn what to do, does it through a host, and commits before it acts. There is no other loop.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use cepa_core::{CancellationToken, ChatResponse, Error, ErrorKind, ToolCall};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::{
    body::Entering,
    event::AgentEvent,
    store::{CallResult, Commit},
    turn::{CancelReason, Did, ModelCall, PartialReply, PlannedCall, Ruling, Todo, Turn},
};

/// How long a tool, a gate, or a filter around the model, that was told to stop may take to come to an end by itself.
const STOP_GRACE: Duration = Duration::from_millis(250);

/// What the loop needs from outside.
pub(crate) trait Host: Sync {
    /// Calls the model through the chat filters.
    fn call_model(&self, turn: &Turn, call: ModelCall) -> impl Future<Output = Result<ChatResponse, Error>> + Send;
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
        values: Map<String, Value>,
        entering: mpsc::UnboundedSender<Entering>,
    ) -> Pin<Box<dyn Future<Output = ToolRun> + Send + '_>>;
    /// Writes a step down.
    fn commit(&self, turn: &Turn, commit: Commit) -> impl Future<Output = Result<(), Error>> + Send;
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;
    /// Tells the listeners.
    fn tell(&self, event: AgentEvent);
}

/// How a call went.
#[derive(Debug)]
pub(crate) struct ToolRun {
    pub(crate) result: CallResult,
    pub(crate) took: Duration,
}

/// Drives a turn until it is over or waits for a person.
///
/// # Errors
/// What the model or the store failed with. The turn is then over (the model), or as it was at its last commit.
pub(crate) async fn drive<H: Host>(turn: &mut Turn, host: &H, cancel: &CancellationToken) -> Result<(), Error> {
    while advance(turn, host, cancel).await? == Next::Step {}
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
pub(crate) async fn advance<H: Host>(turn: &mut Turn, host: &H, cancel: &CancellationToken) -> Result<Next, Error> {
    // Also where it has just begun to wait: what was cancelled does not depend on how politely a sibling ended.
    if cancel.is_cancelled() && turn.state().is_live() {
        give_up(turn, host).await?;
        return Ok(Next::Stop);
    }
    match turn.todo() {
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
            let settled = turn.records().len();
            step(turn, host, Did::Verdicts { rulings, at: host.now_ms() }).await?;
            tell_settled(turn, host, settled);
        }
        Todo::Run(calls) => run_group(turn, host, first_group(calls), cancel).await?,
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
    replied: Result<ChatResponse, Error>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    match replied {
        Ok(response) => {
            let (usage, finish, at) = (response.usage, response.finish_reason, host.now_ms());
            step(turn, host, Did::Replied { reply: response.message, usage, finish, at }).await?;
            for call in turn.reply().map(|reply| reply.tool_calls.clone()).unwrap_or_default() {
                host.tell(AgentEvent::ToolCallReady { id: call.id, name: call.name, args: call.args });
            }
            host.tell(AgentEvent::Usage(turn.data().usage));
            Ok(())
        }
        // The loop sees the token and gives up.
        Err(error) if error.kind() == ErrorKind::Cancelled && cancel.is_cancelled() => Ok(()),
        Err(error) => {
            // The model's error is what the caller must see, also if the store fails now.
            if let Err(store) = step(turn, host, Did::Failed { at: host.now_ms() }).await {
                tracing::warn!(error = %store, "the end of a failed turn could not be stored");
            }
            Err(error)
        }
    }
}

/// Tells of the calls that were settled by their verdict.
fn tell_settled<H: Host>(turn: &Turn, host: &H, before: usize) {
    for record in turn.records().into_iter().skip(before) {
        host.tell(AgentEvent::ToolFinished {
            id: record.id,
            name: record.name,
            status: record.outcome,
            content: record.result,
        });
    }
}

/// The first call, and its neighbours if they may run together with it.
fn first_group(calls: Vec<PlannedCall>) -> Vec<PlannedCall> {
    let together = |call: &PlannedCall| call.flags.read_only || call.flags.concurrent;
    let mut group: Vec<PlannedCall> = Vec::new();
    for call in calls {
        let neighbour =
            group.last().is_none_or(|last| together(last) && together(&call) && call.key.idx == last.key.idx + 1);
        if !neighbour {
            break;
        }
        group.push(call);
    }
    group
}

type Running<'a> = Vec<(PlannedCall, Pin<Box<dyn Future<Output = ToolRun> + Send + 'a>>)>;

/// Runs calls side by side. Each is written down before its body is entered and as soon as it ends.
async fn run_group<H: Host>(
    turn: &mut Turn,
    host: &H,
    calls: Vec<PlannedCall>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let (sender, mut entering) = mpsc::unbounded_channel();
    // All of them see what was written before the first.
    let values = calls.first().map(|call| turn.values_at(call.key.idx)).unwrap_or_default();
    let mut running: Running<'_> = Vec::with_capacity(calls.len());
    for call in calls {
        let run = host.run_tool(turn, call.clone(), values.clone(), sender.clone());
        running.push((call, run));
    }
    let stopping = async {
        cancel.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    let mut stopping = std::pin::pin!(stopping);
    while !running.is_empty() {
        tokio::select! {
            biased;
            Some((idx, answer)) = entering.recv() => {
                // A tool that only reads may be entered again whatever happened: nothing is to be remembered.
                let reads = running.iter().any(|(call, _)| call.key.idx == idx && call.flags.read_only);
                let noted = if reads { Ok(()) } else { step(turn, host, Did::Started { idx, at: host.now_ms() }).await };
                let failed = noted.clone().err();
                // The call may be gone by now; then nobody waits for the answer.
                drop(answer.send(noted));
                if let Some(error) = failed {
                    return Err(error);
                }
                tell_started(host, &running, idx);
            }
            (call, run) = first_done(&mut running) => {
                let ToolRun { result, took } = run;
                let content = result.content.read::<cepa_core::Content>().map(|c| c.text().into_owned());
                let told = AgentEvent::ToolFinished {
                    id: call.call.id,
                    name: call.call.name,
                    status: result.status,
                    content: content.unwrap_or_default(),
                };
                let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                step(turn, host, Did::Finished { idx: call.key.idx, result, took_ms, at: host.now_ms() }).await?;
                host.tell(told);
            }
            // One grace for all of them, however many end meanwhile.
            () = &mut stopping => break,
        }
    }
    Ok(())
}

fn tell_started<H: Host>(host: &H, running: &Running<'_>, idx: u32) {
    if let Some((call, _)) = running.iter().find(|(call, _)| call.key.idx == idx) {
        host.tell(AgentEvent::ToolStarted { id: call.call.id.clone(), name: call.call.name.clone() });
    }
}

/// The first of the calls that ends.
async fn first_done(running: &mut Running<'_>) -> (PlannedCall, ToolRun) {
    let (at, run) = poll_fn(|context| {
        for (at, (_, run)) in running.iter_mut().enumerate() {
            if let Poll::Ready(run) = run.as_mut().poll(context) {
                return Poll::Ready((at, run));
            }
        }
        Poll::Pending
    })
    .await;
    let (call, _) = running.remove(at);
    (call, run)
}
