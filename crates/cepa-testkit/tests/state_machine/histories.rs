//! What holds of the messages of a conversation: they are what was said and what came of the calls, once and in order.

use std::{collections::BTreeSet, sync::Arc};

use cepa_core::{Entry, FinishReason, History, Message, ToolMessage, pairing};

use crate::{
    facts::Facts,
    invariants::ensure,
    judges,
    rows::{Call, Conversation, Rows, Stored, Turn},
};

pub(crate) fn of(rows: &Rows, conversation: &Conversation, facts: &Facts, changed: bool) -> Result<(), String> {
    let stored = rows.messages_of(conversation.key);
    let seqs: Vec<i64> = stored.iter().map(|message| message.seq).collect();
    let expected: Vec<i64> = (1..=conversation.head).collect();
    ensure(seqs == expected, || {
        format!("M1: {} has the places {seqs:?}, its head is {}", conversation.id, conversation.head)
    })?;
    let ids: BTreeSet<&str> = stored.iter().map(|message| message.id.as_str()).collect();
    ensure(ids.len() == stored.len(), || format!("M1: a message is there twice: {stored:?}"))?;

    let mut groups: Vec<(&Turn, Vec<&Stored>)> = Vec::new();
    for message in stored {
        let turn = message.turn.as_deref().and_then(|turn| rows.turn(turn));
        let turn = turn.ok_or_else(|| format!("D1: {message:?} is of no turn"))?;
        match groups.last_mut().filter(|(last, _)| last.key == turn.key) {
            Some((_, messages)) => messages.push(message),
            None => groups.push((turn, vec![message])),
        }
    }
    let keys: Vec<i64> = groups.iter().map(|(turn, _)| turn.key).collect();
    ensure(keys.is_sorted_by(|a, b| a < b), || format!("L15: turns are interleaved or out of order: {keys:?}"))?;
    let mut marks = BTreeSet::new();
    for (turn, messages) in &groups {
        of_turn(rows, turn, messages, facts, &mut marks).map_err(|why| format!("{why}\n{messages:#?}"))?;
    }
    if !changed {
        return Ok(());
    }
    let history = history(rows, conversation);
    let healed = pairing::heal(&history);
    judges::paired(&healed).map_err(|why| format!("M6: {why}"))?;
    ensure(pairing::heal(&healed) == healed, || "M6: healing twice is not healing once".to_owned())?;
    judges::taken(&history).map_err(|why| format!("goal 1, W3: {why}"))
}

pub(crate) fn history(rows: &Rows, conversation: &Conversation) -> History {
    let entry = |stored: &&Stored| Arc::new(Entry::with_id(stored.id.as_str(), 0, message(stored)));
    rows.messages_of(conversation.key).iter().map(entry).collect()
}

fn message(stored: &Stored) -> Message {
    serde_json::from_str(&stored.body).unwrap()
}

/// L3, L11: without live turns every history is valid as it is.
pub(crate) fn valid_unhealed(rows: &Rows) -> Result<(), String> {
    for conversation in &rows.conversations {
        let history = history(rows, conversation);
        judges::paired(&history)
            .map_err(|why| format!("L3, L11: {} is not paired: {why}\n{history:#?}", conversation.id))?;
    }
    Ok(())
}

/// The messages of one turn: its input, then each reply with the results of its calls.
fn of_turn(
    rows: &Rows,
    turn: &Turn,
    stored: &[&Stored],
    facts: &Facts,
    marks: &mut BTreeSet<u64>,
) -> Result<(), String> {
    let input: Vec<Message> = serde_json::from_str(&turn.input).unwrap();
    let mut messages = stored.iter().map(|stored| (stored.id.as_str(), message(stored))).peekable();
    for (n, expected) in input.iter().enumerate() {
        let id = format!("{}/u{n}", turn.id);
        let found = messages.next();
        ensure(found == Some((id.as_str(), expected.clone())), || format!("M2: the turn begins with {found:?}"))?;
    }
    let calls = rows.calls_of(turn);
    let (mut usage, mut replies, mut batch, mut last) = (0, 0, 0, 0);
    while let Some((id, message)) = messages.next() {
        ensure(id == format!("{}/a{replies}", turn.id), || format!("D3: {id} is reply {replies}"))?;
        let Message::Assistant(reply) = &message else { return Err(format!("M2: {message:?} where a reply is due")) };
        if reply.finish_reason == Some(FinishReason::Cancelled) {
            let text = message.text().into_owned();
            let began = facts.began.iter().any(|began| began.starts_with(&text)) || {
                facts.replies.values().any(|reply| reply.contains(&format!("\"{text}")))
            };
            ensure(began && !text.is_empty(), || format!("L11: nobody began to say {text:?}"))?;
            ensure(messages.peek().is_none() && turn.state == "cancelled", || "L11: it went on".to_owned())?;
            return usage_is(turn, usage, replies);
        }
        let mark = reply.usage.map(|usage| usage.input).unwrap_or_default();
        let said = facts.replies.get(&mark).ok_or_else(|| format!("M7: nobody said {message:?}"))?;
        let body = serde_json::to_string(&message).unwrap();
        ensure(*said == body, || format!("M7: {said} was said, {body} is stored"))?;
        ensure(marks.insert(mark) && mark > last, || format!("M1: reply {mark} stands twice, or too late"))?;
        (usage, replies, last) = (usage + mark, replies + 1, mark);
        if reply.tool_calls.is_empty() {
            // A reply that the provider paused counts as a batch.
            batch += i64::from(reply.finish_reason == Some(FinishReason::PauseTurn));
            continue;
        }
        if messages.peek().is_none() && turn.is_live() {
            return Ok(());
        }
        for (place, call) in (0..).zip(&reply.tool_calls) {
            let (id, message) = messages.next().ok_or_else(|| format!("L3: the result of {call:?} is missing"))?;
            ensure(id == format!("{}/t{batch}.{place}", turn.id), || format!("D3: {id} is result {batch}.{place}"))?;
            let Message::Tool(result) = message else { return Err(format!("L8: {message:?} where a result is due")) };
            let row = calls.iter().find(|row| (row.batch, row.idx) == (batch, place));
            let row = row.ok_or_else(|| format!("D1: {id} has no row"))?;
            ensure(row.call_id == call.id && row.args == call.args.as_str(), || {
                format!("D1: {row:?} is not {call:?}")
            })?;
            is_result_of(rows, row, &result)?;
        }
        batch += 1;
    }
    ensure(replies > 0, || "M3: an opening message without a reply".to_owned())?;
    if turn.is_live() { Ok(()) } else { usage_is(turn, usage, replies) }
}

fn usage_is(turn: &Turn, usage: u64, replies: u64) -> Result<(), String> {
    let data = turn.data();
    let at = |path: &str| data.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or_default();
    ensure((at("/usage/input"), at("/replies")) == (usage, replies), || {
        format!("L3: {replies} replies cost {usage}, the turn says {data}")
    })
}

/// M7, H2: the message says what the row says, and what a person changed.
fn is_result_of(rows: &Rows, row: &Call, message: &ToolMessage) -> Result<(), String> {
    let edits = rows.pauses_of(row).into_iter().rev().filter(|pause| pause.state == "edited");
    let edit = edits.filter_map(|pause| pause.decision.as_deref()).next().map(|decision| {
        let decision: serde_json::Value = serde_json::from_str(decision).unwrap();
        decision.get("args").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    });
    let edit = edit.filter(|_| matches!(row.status.as_deref(), Some("ok" | "error")));
    let text = row.text().unwrap_or_default();
    let text = match &edit {
        Some(args) => format!("(Run with changed arguments: {args})\n{text}"),
        None => text,
    };
    let found = (
        message.tool_call_id.as_str(),
        message.name.as_str(),
        Some(message.status.as_str()),
        message.content.text().into_owned(),
        message.executed_args.as_ref().map(|args| args.as_str().to_owned()),
    );
    let expected = (row.call_id.as_str(), row.tool.as_str(), row.status.as_deref(), text, edit);
    ensure(found == expected, || format!("M7, H2: {found:?} stands for {expected:?}"))
}
