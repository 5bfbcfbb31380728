//! The inside of the turn onion: begins a turn or reads one back, drives it, and says what came of it.

use std::{
    future::pending,
    sync::{Arc, PoisonError},
    time::Duration,
};

use cepa_core::{CancellationToken, Entry, Error, ErrorKind, History, Message, ToolContext, ToolFlags};

use crate::{
    agent::{Agent, Core, busy},
    conversation::Conversation,
    driver::drive,
    host::{KernelHost, Pausing},
    ids,
    journal::Journal,
    memory::load_whole,
    options::{ChangedTools, Decisions, TurnOptions, TurnRequest, TurnStart},
    pause::PauseState,
    paused::PausedState,
    result::{TurnError, TurnResult, TurnStatus},
    resume,
    store::{Lease, StoredTurn},
    turn::{CancelReason, Did, Restored, Turn, TurnData},
};

/// One turn, inside all turn filters. The conversation is held by whoever sent it.
pub(crate) async fn turn(core: Arc<Core>, request: TurnRequest) -> Result<TurnResult, TurnError> {
    let TurnRequest { start, conversation, mut options } = request;
    let begun = options.begun.take();
    let mut context = options.context.clone().with_cancel(options.cancel.clone());
    context = context.with_conversation(conversation.as_deref().unwrap_or_default());
    match start {
        TurnStart::Message(input) => {
            let (at, begun) = match begun {
                Some(turn) => (None, *turn),
                None => {
                    let at = core.now_ms();
                    (Some(at), new_turn(&core, input, conversation, &options, at))
                }
            };
            begin(&core, begun, at, &options, context).await
        }
        TurnStart::Resume { turn } => go_on(&core, &turn, &options, context).await,
    }
}

/// A turn that begins now.
pub(crate) fn new_turn(
    core: &Core,
    input: Vec<Message>,
    conversation: Option<String>,
    options: &TurnOptions,
    at: i64,
) -> Turn {
    let conversation_id = conversation.as_deref().unwrap_or_default();
    let values = options.context.clone().with_conversation(conversation_id).shared_values();
    let data = TurnData { settings: options.over(&core.settings).into(), values, ..TurnData::default() };
    let carries = !core.has_memory || conversation.is_none();
    Turn::new(ids::new_id("t"), conversation, carries, input, data, at, core.texts.clone())
}

/// Drives a new turn; `at` is when it began, unless that is written already.
async fn begin(
    core: &Arc<Core>,
    mut turn: Turn,
    at: Option<i64>,
    options: &TurnOptions,
    context: ToolContext,
) -> Result<TurnResult, TurnError> {
    let journal = if turn.carries() {
        Journal::held(core.keeper.clone())
    } else {
        let token = token_of(core, turn.conversation().unwrap_or_default(), options).await?;
        if let Some(at) = at {
            core.store.begin(turn.row(at), token).await?;
        }
        Journal::written(core.keeper.clone(), token, options.released.clone())
    };
    drive_to_result(core, &mut turn, journal, options, context).await
}

/// The token under which a turn writes: that of whoever holds the conversation, else it is taken now.
async fn token_of(core: &Core, conversation: &str, options: &TurnOptions) -> Result<u64, Error> {
    match options.token {
        Some(token) => Ok(token),
        None => Ok(core.keeper.lease(conversation).await?.token),
    }
}

async fn go_on(
    core: &Arc<Core>,
    id: &str,
    options: &TurnOptions,
    context: ToolContext,
) -> Result<TurnResult, TurnError> {
    let Some(stored) = core.store.turn(id).await? else {
        return Err(Error::new(ErrorKind::NotPaused, format!("there is no turn {id}")).into());
    };
    let over = !stored.row.state.is_live();
    let key = stored.row.conversation.clone();
    let Restored { mut turn, missed, decided } = restore(core, stored).await?;
    if over {
        return result(core, &turn, context).await;
    }
    let token = token_of(core, &key, options).await?;
    let journal = Journal::written(core.keeper.clone(), token, options.released.clone());
    if let Some(missed) = missed {
        journal_step(&mut turn, &journal, missed).await?;
    }
    for pause in decided {
        journal_step(&mut turn, &journal, Did::Decided { pause, at: core.now_ms() }).await?;
    }
    for (idx, flags) in turn.started_calls() {
        let repeatable = flags.idempotent || flags.read_only;
        journal_step(&mut turn, &journal, Did::Lost { idx, repeatable, at: core.now_ms() }).await?;
    }
    journal_step(&mut turn, &journal, Did::Now { at: core.now_ms() }).await?;
    drive_to_result(core, &mut turn, journal, options, context).await
}

async fn journal_step(turn: &mut Turn, journal: &Journal, what: Did) -> Result<(), Error> {
    let commit = turn.did(what)?;
    journal.commit(turn, commit).await
}

pub(crate) async fn restore(core: &Core, stored: StoredTurn) -> Result<Restored, Error> {
    let messages =
        if stored.row.ephemeral { History::new() } else { load_whole(&*core.store, &stored.row.conversation).await?.1 };
    let flags = |name: &str| core.kernel.find_tool(name).map_or_else(ToolFlags::default, |tool| tool.flags().clone());
    let (again, conversation) = (stored.clone(), stored.row.conversation.clone());
    let restored = Turn::restore(stored, &messages, flags, core.texts.clone())?;
    let turn = &restored.turn;
    if turn.carries() || turn.data().replies == 0 || turn.reply().is_some() {
        return Ok(restored);
    }
    // A window has left the turn behind; what it said is read from the rows themselves.
    let rows = core.store.page(&conversation, 0, usize::MAX).await?;
    let mut messages = History::new();
    messages.extend(rows);
    Turn::restore(again, &messages, flags, core.texts.clone())
}

/// Marks a turn whose future was dropped, so that the next touch gives it up instead of driving it on.
pub(crate) struct DropMark<'a> {
    core: &'a Core,
    turn: String,
    done: bool,
}

impl<'a> DropMark<'a> {
    pub(crate) fn new(core: &'a Core, turn: &str) -> Self {
        Self { core, turn: turn.to_owned(), done: false }
    }

    /// The future was not dropped.
    pub(crate) fn done(mut self) {
        self.done = true;
    }
}

impl Drop for DropMark<'_> {
    fn drop(&mut self) {
        if !self.done {
            let mut dropped = self.core.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            dropped.insert(std::mem::take(&mut self.turn));
        }
    }
}

pub(crate) fn was_dropped(core: &Core, turn: &str) -> bool {
    core.dropped.lock().unwrap_or_else(PoisonError::into_inner).remove(turn)
}

/// Whether a turn is over, or gone.
pub(crate) async fn is_over(core: &Core, turn: &str) -> Result<bool, Error> {
    Ok(core.store.turn(turn).await?.is_none_or(|stored| !stored.row.state.is_live()))
}

async fn drive_to_result(
    core: &Arc<Core>,
    turn: &mut Turn,
    journal: Journal,
    options: &TurnOptions,
    context: ToolContext,
) -> Result<TurnResult, TurnError> {
    let mut host = KernelHost::new(core.kernel.clone(), core.texts.clone(), journal);
    host.gate.clone_from(&core.gate);
    host.allow.clone_from(&core.allow);
    host.core = Some(core.clone());
    host.options = options.chat.clone();
    host.stream = options.stream;
    // A batch that is open before the drive was decided on by whoever drove before, with the tools of then.
    host.may_have_changed = turn.data().open_batch && options.changed_tools == ChangedTools::Refuse;
    host.listeners = core.listeners.clone();
    host.listeners.extend(&options.listeners);
    // What runs in the turn is also stopped when its time is up.
    let stop = options.cancel.child_token();
    host.context = context.clone().with_cancel(stop.clone());
    if turn.data().settings.pausing {
        host.context = host.context.with_extension(Pausing);
    }
    // Whoever drives it now has not given it up.
    was_dropped(core, turn.id());
    // A turn that is not written leaves nothing that could be driven.
    let mut mark = DropMark { core, turn: turn.id().to_owned(), done: host.journal.token().is_none() };
    let driven = drive_leased(core, turn, &host, &stop).await;
    mark.done = true;
    match driven {
        Ok(()) => {
            let result = result(core, turn, context).await?;
            if result.is_paused() && !result.pending.is_empty() && host.has_new_pauses() {
                core.tell_paused(&result.pending);
            }
            Ok(result)
        }
        Err(error) => Err(TurnError {
            error,
            records: turn.records(),
            usage: turn.data().usage,
            context: context.with_values(turn.values_at(u32::MAX)),
        }),
    }
}

/// Drives the turn and keeps its conversation leased meanwhile. A lease that is lost ends the drive; time that is up
/// cancels it.
async fn drive_leased(core: &Core, turn: &mut Turn, host: &KernelHost, stop: &CancellationToken) -> Result<(), Error> {
    let leased = turn.conversation().filter(|_| !turn.carries()).map(str::to_owned).zip(host.journal.token());
    let deadline = turn.data().settings.deadline_ms.map(Duration::from_millis);
    let keep = async {
        let Some((conversation, token)) = leased else { return pending().await };
        loop {
            tokio::time::sleep(core.lease / 3).await;
            match host.journal.renew(&conversation, token).await {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    let text = format!("another process has taken over the conversation: {}", error.message());
                    return busy(text);
                }
                // A store that cannot be written now may be by the next time; commits say so themselves.
                Ok(()) | Err(_) => {}
            }
        }
    };
    let late = async {
        if let Some(deadline) = deadline {
            tokio::time::sleep(deadline).await;
            host.time_is_up();
            stop.cancel();
        }
        // The drive sees the token, and ends by itself.
        pending::<Error>().await
    };
    tokio::select! {
        driven = drive(turn, host, stop) => driven,
        lost = keep => Err(lost),
        never = late => Err(never),
    }
}

/// What came of a turn, for its caller.
async fn result(core: &Core, turn: &Turn, context: ToolContext) -> Result<TurnResult, TurnError> {
    let values = turn.values_at(u32::MAX);
    let Some(status) = turn.status() else {
        let error = Error::new(ErrorKind::Conflict, format!("turn {} has failed before", turn.id()));
        let context = context.with_values(values);
        return Err(TurnError { error, records: turn.records(), usage: turn.data().usage, context });
    };
    let stored = match status {
        TurnStatus::Paused => core.store.turn(turn.id()).await?,
        TurnStatus::Completed | TurnStatus::Cancelled | TurnStatus::Exhausted => None,
    };
    let waits = |pause: &crate::pause::Pause| pause.state == PauseState::Pending;
    Ok(TurnResult {
        status,
        cancelled: turn.data().cancelled,
        turn: turn.id().to_owned(),
        conversation: turn.conversation().map(str::to_owned),
        text: if status == TurnStatus::Completed { turn.text() } else { String::new() },
        message: turn.reply().cloned(),
        finish_reason: turn.reply().and_then(|reply| reply.finish_reason),
        records: turn.records(),
        usage: turn.data().usage,
        context: context.with_values(values),
        pending: stored.iter().flat_map(|stored| &stored.pauses).filter(|pause| waits(pause)).cloned().collect(),
        state: stored.map(PausedState::new),
    })
}

/// Gives up a stored turn: its open calls are answered, and it is over.
pub(crate) async fn cancel_stored(core: &Core, id: &str, token: u64, by_caller: bool) -> Result<(), Error> {
    const ATTEMPTS: u8 = 4;
    for _ in 1..ATTEMPTS {
        match try_cancel(core, id, token, by_caller).await {
            // Somebody decided one of its pauses meanwhile: the decision stands, and is read back.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            done => return done,
        }
    }
    try_cancel(core, id, token, by_caller).await
}

async fn try_cancel(core: &Core, id: &str, token: u64, by_caller: bool) -> Result<(), Error> {
    let Some(stored) = core.store.turn(id).await?.filter(|stored| stored.row.state.is_live()) else { return Ok(()) };
    let Restored { mut turn, missed, decided } = restore(core, stored).await?;
    let journal = Journal::written(core.keeper.clone(), token, None);
    for what in missed.into_iter().chain(decided.into_iter().map(|pause| Did::Decided { pause, at: core.now_ms() })) {
        journal_step(&mut turn, &journal, what).await?;
    }
    if turn.state().is_live() {
        let why = if by_caller { CancelReason::Caller } else { CancelReason::Superseded };
        journal_step(&mut turn, &journal, Did::Cancelled { why, partial: None, at: core.now_ms() }).await?;
    }
    Ok(())
}

/// Takes in a paused turn that a caller kept as plain data, unless the store knows it.
pub(crate) async fn adopt(core: &Arc<Core>, state: PausedState) -> Result<Adopted, Error> {
    let stored = state.into_turn()?;
    let known = core.store.turn(&stored.row.id).await?;
    let adopted = Adopted { turn: stored.row.id.clone(), conversation: stored.row.conversation.clone() };
    if known.is_none() {
        if !stored.row.ephemeral {
            holds_what_it_said(core, &stored).await?;
        }
        let Lease { token, .. } = core.keeper.lease(&stored.row.conversation).await?;
        let at = core.now_ms();
        let StoredTurn { row, calls, pauses } = stored;
        // In one step: a turn that is there without its calls would be driven from its beginning.
        let commit = crate::store::Commit {
            begins: Some(row),
            calls: resume::changes_of(calls, at),
            pauses,
            at,
            ..crate::store::Commit::default()
        };
        core.store.commit(&adopted.turn, token, commit).await?;
        core.store.release(&adopted.conversation, token).await?;
    }
    Ok(adopted)
}

/// Whether the conversation of a turn is here with what the turn has said in it: without that the model would be called
/// with results of calls that nobody made.
async fn holds_what_it_said(core: &Core, stored: &StoredTurn) -> Result<(), Error> {
    let turn = &stored.row.id;
    let (_, history) = load_whole(&*core.store, &stored.row.conversation).await?;
    let own = |entry: &Arc<Entry>| {
        let by_turn = entry.id.as_deref().and_then(ids::turn_of) == Some(&**turn);
        by_turn && matches!(entry.message, Message::Assistant(_))
    };
    if history.iter().rev().any(own) {
        return Ok(());
    }
    let text = format!(
        "the conversation `{}` of this paused turn is not in this store, or was cleared: decide where it began",
        stored.row.conversation
    );
    Err(Error::new(ErrorKind::InvalidInput, text))
}

/// A paused turn that came from outside.
pub(crate) struct Adopted {
    turn: String,
    conversation: String,
}

impl Adopted {
    pub(crate) async fn resume_in(
        self,
        agent: &Agent,
        decisions: Decisions,
        options: TurnOptions,
    ) -> Result<TurnResult, TurnError> {
        let id = Some(self.conversation.clone()).filter(|id| *id != self.turn);
        let conversation = Conversation::new(agent, id);
        let decisions = resume::of_turn(&agent.core, &self.turn, decisions).await?;
        resume::decide_and_go_on(&conversation, &self.conversation, decisions, options).await
    }
}
