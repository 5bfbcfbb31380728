//! What holds after every step, whatever it was. Each finding begins with the lines of the contract that it breaks.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    calls, histories, pauses,
    program::Setup,
    rows::{Rows, Turn, parts},
    scene::Scene,
};

/// What was there after the step before.
#[derive(Default)]
pub(crate) struct Seen {
    rows: Rows,
    /// The turns that there ever were.
    turns: BTreeSet<String>,
}

/// A finding, unless it holds.
pub(crate) fn ensure(holds: bool, found: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(found()) }
}

pub(crate) fn all(scene: &Scene, rows: &Rows, seen: &mut Seen, setup: &Setup) -> Result<(), String> {
    let facts = scene.facts();
    if let Some(wrong) = facts.wrong.first() {
        return Err(wrong.clone());
    }
    seen.turns.extend(rows.turns.iter().map(|turn| turn.id.clone()));
    for key in facts.keys() {
        let (turn, _, _) = parts(key).ok_or_else(|| format!("D3: {key} is not of turn, batch and place"))?;
        ensure(turn.starts_with('t'), || format!("D3: {key} is not of a turn"))?;
    }
    grown(&seen.rows, rows)?;
    pauses::grown(&seen.rows, rows)?;
    pauses::audited(rows)?;
    one_at_a_time(rows)?;
    for turn in &rows.turns {
        calls::of_turn(rows, turn, &facts, setup)?;
    }
    let changed = seen.rows.messages != rows.messages;
    for conversation in &rows.conversations {
        histories::of(rows, conversation, &facts, changed)?;
    }
    drop(facts);
    seen.rows = rows.clone();
    Ok(())
}

/// Rows are only added to, and what is final stays.
fn grown(before: &Rows, after: &Rows) -> Result<(), String> {
    for old in &before.conversations {
        let Some(new) = after.conversations.iter().find(|new| new.key == old.key) else {
            let ephemeral = before.turn(&old.id).is_some_and(|turn| turn.ephemeral);
            ensure(ephemeral || old.head == 0, || format!("M1: the conversation {} is gone", old.id))?;
            continue;
        };
        ensure(new.epoch >= old.epoch && new.token >= old.token, || format!("M1, L15: {old:?} became {new:?}"))?;
        if new.epoch == old.epoch {
            let (old, new) = (before.messages_of(old.key), after.messages_of(old.key));
            ensure(new.starts_with(&old), || format!("M1: stored rows were changed: {old:?}\n{new:?}"))?;
        }
    }
    for old in &before.turns {
        let epoch = |rows: &Rows| rows.conversations.iter().find(|c| c.key == old.conversation).map(|c| c.epoch);
        match after.turn(&old.id) {
            Some(new) => {
                ensure(new.input == old.input, || format!("D1: the input of {} changed", old.id))?;
                ensure(old.is_live() || new == old, || format!("D2: {old:?} was over and became {new:?}"))?;
                calls_grown(before, after, old, new)?;
            }
            None => ensure(old.ephemeral || epoch(before) != epoch(after), || format!("D1: {old:?} is gone"))?,
        }
    }
    Ok(())
}

fn calls_grown(before: &Rows, after: &Rows, old: &Turn, new: &Turn) -> Result<(), String> {
    let now: BTreeMap<_, _> = after.calls_of(new).into_iter().map(|call| ((call.batch, call.idx), call)).collect();
    for call in before.calls_of(old) {
        let found = now.get(&(call.batch, call.idx)).ok_or_else(|| format!("D1: {call:?} is gone"))?;
        let same = (&call.call_id, &call.tool, &call.args, &call.verdict)
            == (&found.call_id, &found.tool, &found.args, &found.verdict);
        ensure(same && found.attempt >= call.attempt, || format!("D1: {call:?} became {found:?}"))?;
        let is_final = call.state == "finished" && call.failure.as_deref() != Some("environment");
        ensure(!is_final || call == *found, || format!("L3, D2: the result of {call:?} became {found:?}"))?;
    }
    Ok(())
}

/// L15: no two turns of a conversation are under way.
fn one_at_a_time(rows: &Rows) -> Result<(), String> {
    for conversation in &rows.conversations {
        let mine = |turn: &&Turn| turn.conversation == conversation.key && turn.is_live();
        let live: Vec<_> = rows.turns.iter().filter(mine).collect();
        ensure(live.len() < 2, || format!("L15: two turns of {} are live: {live:?}", conversation.id))?;
    }
    for turn in rows.turns.iter().filter(|turn| turn.ephemeral) {
        ensure(turn.is_live(), || format!("L12: an ephemeral turn is over and still there: {turn:?}"))?;
        let messages = rows.messages_of(turn.conversation);
        ensure(messages.is_empty(), || format!("L12: an ephemeral turn has stored messages: {messages:?}"))?;
    }
    Ok(())
}

/// What holds once no turn is live any more.
pub(crate) fn over(rows: &Rows) -> Result<(), String> {
    if let Some(call) = rows.calls.iter().find(|call| call.state != "finished") {
        return Err(format!("L3: the turn is over and this call has no end: {call:?}"));
    }
    if let Some(pause) = rows.pauses.iter().find(|pause| pause.state == "pending") {
        return Err(format!("H9: nothing waits any more and this pause does: {pause:?}"));
    }
    histories::valid_unhealed(rows)
}
