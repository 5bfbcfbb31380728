//! The steps of a turn: one function per event.

use std::sync::Arc;

use cepa_core::{Args, AssistantMessage, Content, Entry, FinishReason, Message, ToolFailure, ToolStatus, Usage};

use super::{
    CancelReason, Delta, Did, Illegal, OnExhausted, PartialReply, Phase, Ruling, Turn,
    batch::{At, Batch, Call, rejected, shared},
};
use crate::{
    ids,
    pause::{Decision, Pause, PauseKind, PauseState},
    store::{CallChange, CallKey, CallResult, CallState, Commit, TurnChange, TurnState},
};

pub(super) fn step(turn: &mut Turn, what: Did) -> Result<Commit, Illegal> {
    let before = turn.state();
    let commit = take(turn, what)?;
    // The turn's row follows each change of its state, also where only calls were written.
    if commit.turn.is_none() && turn.state() != before { Ok(with_turn(turn, commit)) } else { Ok(commit) }
}

fn take(turn: &mut Turn, what: Did) -> Result<Commit, Illegal> {
    match what {
        Did::Replied { reply, usage, finish, at } => replied(turn, reply, usage, finish, at),
        Did::Failed { at } => failed(turn, at),
        Did::Verdicts { rulings, at } => verdicts(turn, rulings, at),
        Did::Started { idx, at } => started(turn, idx, at),
        Did::Finished { idx, result, took_ms, at } => finished(turn, idx, result, took_ms, at),
        Did::Lost { idx, repeatable, at } => lost(turn, idx, repeatable, at),
        Did::Decided { pause, at } => decided(turn, pause, at),
        Did::Cancelled { why, partial, at } => cancelled(turn, why, partial, at),
        Did::Now { at } => now(turn, at),
    }
}

fn commit_at(at: i64) -> Commit {
    Commit { at, ..Commit::default() }
}

/// Puts the turn's own change into a commit.
fn with_turn(turn: &Turn, mut commit: Commit) -> Commit {
    commit.turn = Some(TurnChange {
        state: turn.state(),
        data: turn.data.clone().into(),
        carried: turn.carries.then(|| turn.transcript.clone()),
    });
    commit
}

fn replied(
    turn: &mut Turn,
    mut reply: AssistantMessage,
    usage: Option<Usage>,
    finish: FinishReason,
    at: i64,
) -> Result<Commit, Illegal> {
    let Phase::Call(delta) = &turn.phase else {
        return Err(Illegal("a reply came, but no model call was due"));
    };
    reply.finish_reason = reply.finish_reason.or(Some(finish));
    if turn.carries {
        turn.transcript.extend(delta.entries.iter().cloned());
        let id = ids::reply_id(&turn.id, turn.data.replies);
        turn.transcript.push(Entry::with_id(id, at, Message::Assistant(reply.clone())));
    }
    turn.data.replies += 1;
    turn.data.continue_pause = false;
    if let Some(usage) = usage {
        turn.data.usage += usage;
    }
    let calls = reply.tool_calls.clone();
    turn.reply = Some(reply);

    let mut commit = commit_at(at);
    let exhausted = turn.data.batches >= turn.data.settings.max_batches;
    if finish == FinishReason::PauseTurn && calls.is_empty() {
        if exhausted {
            turn.phase = Phase::Done(TurnState::Exhausted);
        } else {
            turn.data.batches += 1;
            turn.data.continue_pause = true;
            if let Some(content) = turn.reply.as_ref().and_then(|reply| reply.content.as_ref()) {
                turn.data.paused_text.push_str(&content.text());
            }
            turn.phase = Phase::Call(Delta::nothing());
        }
        return Ok(with_turn(turn, commit));
    }
    if calls.is_empty() {
        turn.phase = Phase::Done(TurnState::Completed);
        return Ok(with_turn(turn, commit));
    }
    turn.data.paused_text.clear();
    let mut batch = Batch::undecided(turn.data.batches, calls);
    if exhausted {
        batch.refuse_all(ToolStatus::Cancelled, &turn.texts.limit.clone(), at, &mut commit);
        let results = close(turn, &batch, at);
        if turn.data.settings.on_exhausted == OnExhausted::Finish && !turn.data.finishing {
            turn.data.finishing = true;
            turn.data.batches += 1;
            answer(turn, results, &mut commit);
        } else {
            end_with_results(turn, results, TurnState::Exhausted, &mut commit);
        }
        return Ok(with_turn(turn, commit));
    }
    turn.data.batches += 1;
    let cut = match finish {
        // What ended in a way that nobody knows may be incomplete too.
        FinishReason::Length
        | FinishReason::ContentFilter
        | FinishReason::Refusal
        | FinishReason::Cancelled
        | FinishReason::Other => true,
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::PauseTurn => false,
    };
    if cut {
        batch.refuse_all(ToolStatus::Cancelled, &turn.texts.cut_reply.clone(), at, &mut commit);
        let results = close(turn, &batch, at);
        answer(turn, results, &mut commit);
    } else {
        turn.data.open_batch = true;
        turn.phase = Phase::Batch(batch);
    }
    Ok(with_turn(turn, commit))
}

/// Takes over what a settled batch leaves: records and writes. Returns its results as messages.
fn close(turn: &mut Turn, batch: &Batch, at: i64) -> Vec<Arc<Entry>> {
    turn.records.extend(batch.records());
    batch.fold_writes(&mut turn.data.values, None);
    turn.data.cut |= batch.calls.iter().any(|call| call.row.result.as_ref().is_some_and(|r| r.full.is_some()));
    turn.data.open_batch = false;
    batch.messages(&turn.id, &turn.texts, at)
}

/// Gives results to the model. They are facts: they join the conversation with the step that made them.
fn answer(turn: &mut Turn, results: Vec<Arc<Entry>>, commit: &mut Commit) {
    let stored = !turn.carries;
    if stored {
        commit.messages.extend(shared(&results));
    }
    turn.phase = Phase::Call(Delta { entries: results, stored });
}

/// Ends the turn with results that no model call will follow: they join the conversation here.
fn end_with_results(turn: &mut Turn, results: Vec<Arc<Entry>>, state: TurnState, commit: &mut Commit) {
    if turn.carries {
        turn.transcript.extend(results);
    } else {
        commit.messages.extend(shared(&results));
    }
    turn.phase = Phase::Done(state);
}

fn failed(turn: &mut Turn, at: i64) -> Result<Commit, Illegal> {
    let mut commit = commit_at(at);
    match &turn.phase {
        Phase::Done(_) => return Err(Illegal("it is over")),
        Phase::Batch(_) => return Err(Illegal("a model call failed, but none was due")),
        Phase::Call(delta) => {
            // Results are facts and stay; the message that opened the turn leaves with it, so that it can be tried again.
            let facts = if turn.data.replies == 0 { Vec::new() } else { delta.entries.clone() };
            end_with_results(turn, facts, TurnState::Failed, &mut commit);
        }
    }
    Ok(with_turn(turn, commit))
}

fn verdicts(turn: &mut Turn, rulings: Vec<Ruling>, at: i64) -> Result<Commit, Illegal> {
    let expires = turn.data.settings.expires_ms.map(|ms| at.saturating_add(ms));
    let Turn { id, conversation, texts, phase, .. } = turn;
    let Phase::Batch(batch) = phase else {
        return Err(Illegal("verdicts came, but no batch is open"));
    };
    if batch.undecided.is_empty() || batch.undecided.len() != rulings.len() {
        return Err(Illegal("each call of a batch gets one verdict, once"));
    }
    let mut commit = commit_at(at);
    let conversation = conversation.as_ref().unwrap_or(id);
    batch.decide(rulings, At { turn: id, conversation, expires, at }, texts, &mut commit);
    Ok(settle(turn, at, commit))
}

/// Closes the open batch if all its calls are settled.
fn settle(turn: &mut Turn, at: i64, mut commit: Commit) -> Commit {
    let Phase::Batch(batch) = &turn.phase else { return commit };
    if !batch.is_settled() {
        // The turn's row changes only when its state does: a pause begins or ends with this step.
        let state_changed = !commit.pauses.is_empty() || !commit.closed_pauses.is_empty();
        return if state_changed { with_turn(turn, commit) } else { commit };
    }
    let Phase::Batch(batch) = std::mem::replace(&mut turn.phase, Phase::Call(Delta::nothing())) else {
        return commit;
    };
    let results = close(turn, &batch, at);
    match batch.direct() {
        Some(text) => {
            turn.direct = Some(text);
            end_with_results(turn, results, TurnState::Completed, &mut commit);
        }
        None => answer(turn, results, &mut commit),
    }
    with_turn(turn, commit)
}

fn call_of(turn: &mut Turn, idx: u32) -> Result<&mut Call, Illegal> {
    call_in(&mut turn.phase, idx)
}

fn call_in(phase: &mut Phase, idx: u32) -> Result<&mut Call, Illegal> {
    match phase {
        Phase::Batch(batch) => batch.call_mut(idx).ok_or(Illegal("there is no such call in the batch")),
        Phase::Call(_) | Phase::Done(_) => Err(Illegal("no batch is open")),
    }
}

/// The call whose body is or was entered.
fn entered(turn: &mut Turn, idx: u32) -> Result<&mut Call, Illegal> {
    let siblings = turn.data.settings.siblings;
    if matches!(&turn.phase, Phase::Batch(batch) if !batch.may_enter(idx, siblings)) {
        return Err(Illegal("the call is not to be run: it waits, or has ended"));
    }
    call_of(turn, idx)
}

fn started(turn: &mut Turn, idx: u32, at: i64) -> Result<Commit, Illegal> {
    let call = entered(turn, idx)?;
    call.row.state = CallState::Started;
    call.row.attempt += 1;
    call.row.started = Some(at);
    // An earlier failure that a person repaired is no longer its result.
    call.row.result = None;
    call.row.finished = None;
    let key = CallKey { batch: call.row.batch, idx };
    let change =
        CallChange::Started { key, attempt: call.row.attempt, executed_args: call.row.executed_args.clone(), at };
    Ok(Commit { calls: vec![change], ..commit_at(at) })
}

fn finished(turn: &mut Turn, idx: u32, result: CallResult, took_ms: u64, at: i64) -> Result<Commit, Illegal> {
    let pausing = turn.data.settings.pausing;
    let expires = turn.data.settings.expires_ms.map(|ms| at.saturating_add(ms));
    entered(turn, idx)?;
    let Turn { id, conversation, phase, .. } = turn;
    let conversation = conversation.as_ref().unwrap_or(id);
    let call = call_in(phase, idx)?;
    let mut commit = commit_at(at);
    let environment = result.failure.as_deref() == Some(ToolFailure::Environment.as_str());
    let why = if environment && pausing { result.content.read::<String>().ok() } else { None };
    call.took = std::time::Duration::from_millis(took_ms);
    call.finish(result, at, &mut commit);
    if environment && pausing {
        call.wait(PauseKind::Environment, why, At { turn: id, conversation, expires, at }, &mut commit);
    }
    Ok(settle(turn, at, commit))
}

fn lost(turn: &mut Turn, idx: u32, repeatable: bool, at: i64) -> Result<Commit, Illegal> {
    let pausing = turn.data.settings.pausing;
    let expires = turn.data.settings.expires_ms.map(|ms| at.saturating_add(ms));
    let (id, conversation) = (turn.id.clone(), turn.conversation.clone().unwrap_or_else(|| turn.id.clone()));
    let unknown = turn.texts.unknown.clone();
    let call = call_of(turn, idx)?;
    if call.row.state != CallState::Started {
        return Err(Illegal("only a call that started can be lost"));
    }
    let mut commit = commit_at(at);
    if repeatable {
        // Runs again under the same key; the next `started` says so.
        call.row.state = CallState::Planned;
        return Ok(commit);
    }
    let key = CallKey { batch: call.row.batch, idx };
    call.row.state = CallState::Unknown;
    commit.calls.push(CallChange::Unknown { key, at });
    if pausing {
        let at = At { turn: &id, conversation: &conversation, expires, at };
        call.wait(PauseKind::Unknown, Some(unknown), at, &mut commit);
    } else {
        call.finish_with(ToolStatus::Unknown, &unknown, at, &mut commit);
    }
    Ok(settle(turn, at, commit))
}

fn decided(turn: &mut Turn, pause: Pause, at: i64) -> Result<Commit, Illegal> {
    let texts = turn.texts.clone();
    let call = call_of(turn, pause.key.idx)?;
    let Some(mine) = call.pause.as_mut().filter(|mine| mine.id == pause.id && mine.state == PauseState::Pending) else {
        return Err(Illegal("this pause does not wait"));
    };
    let Some(decision) = pause.decision.clone().filter(|decision| decision.state() == pause.state) else {
        return Err(Illegal("the pause has no decision"));
    };
    let edited = match &decision {
        Decision::Edit { args } => match Args::decode(args) {
            Args::Object(args) => Some(args),
            Args::Invalid { .. } => return Err(Illegal("the edited arguments are not a JSON object")),
        },
        Decision::Approve | Decision::Reject { .. } | Decision::Reply { .. } => None,
    };
    // What was shown is what runs, whatever else the row says.
    let shown = mine.args.clone();
    let kind = mine.kind;
    *mine = pause;
    let mut commit = commit_at(at);
    match (kind, decision) {
        (_, Decision::Approve) => call.run_with(shown),
        (_, Decision::Edit { .. }) => {
            let args = edited.unwrap_or(shown);
            call.edited = Some(args.clone());
            call.run_with(args);
        }
        (_, Decision::Reply { content }) => call.finish_with(ToolStatus::Ok, &content, at, &mut commit),
        (PauseKind::Approval, Decision::Reject { reason }) => {
            call.finish_with(ToolStatus::Rejected, &rejected(&texts, reason.as_deref()), at, &mut commit);
        }
        (PauseKind::Unknown, Decision::Reject { .. }) => {
            call.finish_with(ToolStatus::Unknown, &texts.unknown, at, &mut commit);
        }
        // The failure is the result.
        (PauseKind::Environment, Decision::Reject { .. }) => {}
    }
    Ok(with_turn_if_settled(turn, at, commit))
}

/// A decision may change the turn's state even where nothing else is written.
fn with_turn_if_settled(turn: &mut Turn, at: i64, commit: Commit) -> Commit {
    let commit = settle(turn, at, commit);
    if commit.turn.is_some() { commit } else { with_turn(turn, commit) }
}

fn cancelled(turn: &mut Turn, why: CancelReason, partial: Option<PartialReply>, at: i64) -> Result<Commit, Illegal> {
    let mut commit = commit_at(at);
    let texts = turn.texts.clone();
    let not_run = match why {
        CancelReason::Caller | CancelReason::Superseded => &texts.cancelled,
        CancelReason::Deadline => &texts.deadline,
    };
    match std::mem::replace(&mut turn.phase, Phase::Done(TurnState::Cancelled)) {
        done @ Phase::Done(_) => {
            turn.phase = done;
            return Err(Illegal("it is over"));
        }
        Phase::Call(delta) => {
            let partial = partial.filter(|partial| !partial.text.trim().is_empty());
            let mut messages = if turn.data.replies == 0 && partial.is_none() { Vec::new() } else { delta.entries };
            if let Some(PartialReply { text, origin }) = partial {
                let reply = AssistantMessage {
                    content: Some(Content::Text(text)),
                    finish_reason: Some(FinishReason::Cancelled),
                    origin,
                    ..AssistantMessage::default()
                };
                turn.reply = Some(reply.clone());
                let id = ids::reply_id(&turn.id, turn.data.replies);
                messages.push(Arc::new(Entry::with_id(id, at, Message::Assistant(reply))));
            }
            end_with_results(turn, messages, TurnState::Cancelled, &mut commit);
        }
        Phase::Batch(mut batch) => {
            batch.refuse_all(ToolStatus::Cancelled, not_run, at, &mut commit);
            for call in batch.calls.iter_mut().filter(|call| !call.is_settled()) {
                let waits = call.pause.as_ref().is_some_and(|pause| pause.state == PauseState::Pending);
                call.close_pause(PauseState::Cancelled, &mut commit);
                match call.row.state {
                    // A failure that waited for repair is a result.
                    CallState::Finished => {}
                    CallState::Started | CallState::Unknown => {
                        call.finish_with(ToolStatus::Unknown, &texts.unknown, at, &mut commit);
                    }
                    // It ran before and was to run again: what is known of that first run stays.
                    CallState::Planned if call.row.result.is_some() => call.row.state = CallState::Finished,
                    CallState::Planned if call.row.attempt > 0 => {
                        call.finish_with(ToolStatus::Unknown, &texts.unknown, at, &mut commit);
                    }
                    CallState::Planned => {
                        let superseded = waits && why == CancelReason::Superseded;
                        let text = if superseded { &texts.superseded } else { not_run };
                        call.finish_with(ToolStatus::Cancelled, text, at, &mut commit);
                    }
                }
            }
            let results = close(turn, &batch, at);
            end_with_results(turn, results, TurnState::Cancelled, &mut commit);
        }
    }
    turn.data.cancelled = Some(why);
    Ok(with_turn(turn, commit))
}

fn now(turn: &mut Turn, at: i64) -> Result<Commit, Illegal> {
    let texts = turn.texts.clone();
    let mut commit = commit_at(at);
    let Phase::Batch(batch) = &mut turn.phase else { return Ok(commit) };
    for call in &mut batch.calls {
        // A store may have marked it before this turn looked.
        let late = call.pause.as_ref().is_some_and(|pause| pause.is_expired(at));
        if !late || call.is_settled() {
            continue;
        }
        call.close_pause(PauseState::Expired, &mut commit);
        match call.row.state {
            CallState::Finished => {}
            CallState::Planned | CallState::Started | CallState::Unknown => {
                let unknown = call.row.state == CallState::Unknown;
                let (status, text) =
                    if unknown { (ToolStatus::Unknown, &texts.unknown) } else { (ToolStatus::Expired, &texts.expired) };
                call.finish_with(status, text, at, &mut commit);
            }
        }
    }
    if commit.is_empty() { Ok(commit) } else { Ok(settle(turn, at, commit)) }
}
