//! Decisions: which pauses they are about, whether they may be taken, and how the turn goes on.

use std::sync::Arc;

use cepa_core::{Args, Error, ErrorKind};

use crate::{
    agent::Core,
    conversation::Conversation,
    hold::Hold,
    host::schema_hash,
    options::{ChangedTools, Decisions, TurnOptions, TurnStart},
    pause::{Decision, Pause, PauseState, expired, no_such_pause},
    result::{TurnError, TurnResult},
    store::{CallChange, CallKey, CallRow, CallState},
};

/// Decides about pauses of a conversation, and drives the turn on.
pub(crate) async fn decide_and_go_on(
    conversation: &Conversation,
    key: &str,
    decisions: Decisions,
    options: TurnOptions,
) -> Result<TurnResult, TurnError> {
    let core = &conversation.agent.core;
    let actor = options.actor.clone().unwrap_or_else(|| "caller".to_owned());
    // All of them are looked at before the first is taken.
    let mut checked: Vec<(Pause, Decision)> = Vec::new();
    for (pause, decision) in by_pause(core, key, decisions).await? {
        let decision = check(core, &pause, decision, options.changed_tools)?;
        if checked.iter().any(|(other, earlier)| other.id == pause.id && *earlier != decision) {
            let text = format!("two decisions about the pause {}: give one", pause.id);
            return Err(Error::new(ErrorKind::InvalidInput, text).into());
        }
        checked.push((pause, decision));
    }
    // Decisions are taken before the conversation is held: whoever drives it meanwhile takes them up.
    let mut turn: Option<(bool, String)> = None;
    for (pause, decision) in checked {
        // A settled pause of an earlier turn may be among them: it is the one that waits that goes on.
        let waits = pause.state == PauseState::Pending;
        core.store.decide(&pause.id, decision, &actor, core.now_ms()).await?;
        if turn.as_ref().is_none_or(|(waited, _)| waits || !waited) {
            turn = Some((waits, pause.turn));
        }
    }
    let Some((_, turn)) = turn else { return Err(nothing_waits().into()) };
    let held = Hold::enter(&conversation.agent, key, &options.cancel).await.map_err(stands)?;
    conversation.drive(held, TurnStart::Resume { turn }, options).await
}

/// The error of who decided and could not go on: the decision is not lost.
fn stands(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Busy => {
            let text = format!(
                "the decision is stored, and whoever works on the conversation takes it up: {}",
                error.message()
            );
            let busy = Error::new(ErrorKind::Busy, text);
            match error.retry_after() {
                Some(wait) => busy.with_retry_after(wait),
                None => busy,
            }
        }
        _ => error,
    }
}

/// As [`decide_and_go_on`] for turns without a conversation.
pub(crate) async fn ephemeral(
    conversation: &Conversation,
    decisions: Decisions,
    options: TurnOptions,
) -> Result<TurnResult, TurnError> {
    let turn = match &decisions {
        // Turns of others wait in the same store: a blanket decision reaches those that this handle began.
        Decisions::All(_) => conversation.pending().await?.pop().map(|pause| pause.turn),
        Decisions::Each(each) => match each.first() {
            Some((id, _)) => conversation.agent.core.store.pause(id).await?.map(|pause| pause.turn),
            None => None,
        },
    };
    let Some(turn) = turn else { return Err(nothing_waits().into()) };
    decide_and_go_on(conversation, &turn, decisions, options).await
}

fn nothing_waits() -> Error {
    Error::new(ErrorKind::NotPaused, "nothing waits for a decision here")
}

/// The pauses that the decisions are about: a blanket decision is about all that wait now, and were shown.
async fn by_pause(core: &Core, key: &str, decisions: Decisions) -> Result<Vec<(Pause, Decision)>, Error> {
    match decisions {
        Decisions::All(decision) => {
            let mut pending = core.store.pending(Some(key)).await?;
            let Some(first) = pending.first().cloned() else { return Err(nothing_waits()) };
            let now = core.now_ms();
            pending.retain(|pause| !pause.is_expired(now));
            if pending.is_empty() {
                return Err(expired(&first));
            }
            Ok(pending.into_iter().map(|pause| (pause, decision.clone())).collect())
        }
        Decisions::Each(each) => {
            let mut decisions = Vec::new();
            for (id, decision) in each {
                let pause = core.store.pause(&id).await?.filter(|pause| pause.conversation == key);
                decisions.push((pause.ok_or_else(|| no_such_pause(&id))?, decision));
            }
            Ok(decisions)
        }
    }
}

/// Checks a decision against the tool as it is now, and brings edited arguments into the form that runs.
fn check(core: &Core, pause: &Pause, decision: Decision, changed: ChangedTools) -> Result<Decision, Error> {
    if pause.state != PauseState::Pending {
        // It is settled: the store compares.
        return Ok(normalised(core, pause, decision.clone()).unwrap_or(decision));
    }
    match decision {
        Decision::Reject { .. } | Decision::Reply { .. } => Ok(decision),
        Decision::Approve | Decision::Edit { .. } => {
            // What was shown is bound to the tool as it was.
            if let Some(change) = change_of(core, pause, changed) {
                return Err(Error::new(ErrorKind::InvalidTool, change));
            }
            normalised(core, pause, decision)
        }
    }
}

/// Why the tool of a pause cannot run, as a person is told: it differs from the one that was shown and that is not
/// accepted, or it is gone, and then there is nothing to accept. A tool that a filter adds is not known here.
fn change_of(core: &Core, pause: &Pause, changed: ChangedTools) -> Option<String> {
    let tool = &pause.tool;
    match core.kernel.find_tool(tool) {
        Some(known) if changed == ChangedTools::Accept || **schema_hash(known) == *pause.schema_hash => None,
        Some(_) => Some(format!(
            "the tool `{tool}` has changed since the call was shown: reject it, ask the model again, or accept changed \
             tools"
        )),
        None => Some(format!(
            "the tool `{tool}` is gone since the call was shown: decide in the program that has it, or reject or reply"
        )),
    }
}

fn normalised(core: &Core, pause: &Pause, decision: Decision) -> Result<Decision, Error> {
    let Decision::Edit { args } = &decision else { return Ok(decision) };
    let invalid = |why: String| {
        let text = format!("the new arguments of `{}` cannot run: {why}", pause.tool);
        Error::new(ErrorKind::InvalidInput, text)
    };
    let args = match Args::decode(args) {
        args @ Args::Object(_) => args,
        Args::Invalid { why, .. } => return Err(invalid(format!("they are {why}"))),
    };
    let Some(tool) = core.kernel.find_tool(&pause.tool) else { return Ok(decision) };
    let prepared = tool.prepare(&args).map_err(invalid)?;
    Ok(Decision::Edit { args: prepared.as_str().to_owned() })
}

/// A blanket decision as decisions about what waits in this turn.
pub(crate) async fn of_turn(core: &Arc<Core>, turn: &str, decisions: Decisions) -> Result<Decisions, Error> {
    let Decisions::All(decision) = decisions else { return Ok(decisions) };
    let stored = core.store.turn(turn).await?;
    let pauses = stored.into_iter().flat_map(|stored| stored.pauses);
    // A settled pause of a turn that is over answers with what came of it.
    let mut each: Vec<(Pause, Decision)> = pauses.map(|pause| (pause, decision.clone())).collect();
    if each.iter().any(|(pause, _)| pause.state == PauseState::Pending) {
        each.retain(|(pause, _)| pause.state == PauseState::Pending);
    }
    if each.is_empty() {
        return Err(nothing_waits());
    }
    Ok(Decisions::Each(each.into_iter().map(|(pause, decision)| (pause.id, decision)).collect()))
}

/// Whether a pause of a stored turn has expired: then the turn can go on.
pub(crate) async fn expire(core: &Core, turn: &str) -> Result<bool, Error> {
    let now = core.now_ms();
    let late = |pause: &Pause| pause.is_expired(now);
    let Some(stored) = core.store.turn(turn).await? else { return Ok(false) };
    Ok(stored.row.state.is_live() && stored.pauses.iter().any(late))
}

/// Rows as the changes that make them.
pub(crate) fn changes_of(rows: Vec<CallRow>, at: i64) -> Vec<CallChange> {
    let mut changes = Vec::new();
    for row in rows {
        let key = CallKey { batch: row.batch, idx: row.idx };
        let (state, started, attempt) = (row.state, row.started, row.attempt);
        let (executed_args, result, finished) = (row.executed_args.clone(), row.result.clone(), row.finished);
        let planned =
            CallRow { state: CallState::Planned, attempt: 0, result: None, started: None, finished: None, ..row };
        changes.push(CallChange::Planned(planned));
        if let Some(at) = started {
            changes.push(CallChange::Started { key, attempt, executed_args, at });
        }
        match (state, result) {
            (CallState::Unknown, _) => changes.push(CallChange::Unknown { key, at }),
            (CallState::Finished, Some(result)) => {
                changes.push(CallChange::Finished { key, result, at: finished.unwrap_or(at) });
            }
            (CallState::Planned | CallState::Started | CallState::Finished, _) => {}
        }
    }
    changes
}
