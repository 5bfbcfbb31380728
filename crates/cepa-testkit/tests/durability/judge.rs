//! What must be true whatever happened, once all turns are over. Each complaint begins with the contract's name.

use std::collections::{HashMap, HashSet};

use cepa_agent::ids;
use cepa_core::{ChatRequest, History, Message, Origin, Role, pairing};
use cepa_providers::wire::{Dialect, anthropic::AnthropicMessages, openai_chat::OpenAiChat};
use cepa_testkit::validate;

use super::{
    left::{CallLeft, Left, TurnLeft},
    program::{Called, Manner, Program, Round},
    task::Said,
};

/// A decision that lets a call run.
const LET_RUN: [&str; 2] = ["approved", "edited"];

/// Everything that is wrong with what was left, given what children said.
pub(crate) fn judge(program: Program, left: &Left, said: &[Said]) -> Vec<String> {
    let mut wrong = left.wrong.clone();
    for history in left.conversations.values() {
        conversation(history, &mut wrong);
    }
    for turn in &left.turns {
        whole_turn(program, left, turn, &mut wrong);
    }
    for call in &left.calls {
        ran_as_it_may(call, &mut wrong);
        answered_by_what_ran(left, call, &mut wrong);
    }
    bodies_belong_to_calls(left, &mut wrong);
    for said in said {
        still_true(left, said, &mut wrong);
    }
    wrong
}

/// M1, M6, D4: valid, nothing doubled, each turn in one piece, and both main wires can send it.
fn conversation(history: &History, wrong: &mut Vec<String>) {
    if let Err(problem) = pairing::validate(history) {
        wrong.push(format!("D4: the history is not valid: {problem:?}\n{history:?}"));
    }
    let mut order: Vec<&str> = history.iter().filter_map(|entry| ids::turn_of(entry.id.as_deref()?)).collect();
    order.dedup();
    let distinct: HashSet<&&str> = order.iter().collect();
    if distinct.len() != order.len() {
        wrong.push(format!("M1: messages of several turns are interleaved: {order:?}"));
    }
    if history.is_empty() {
        return;
    }
    let mut messages = history.clone();
    if messages.last().is_some_and(|last| last.message.role() == Role::Assistant) {
        messages.push(Message::user("go on"));
    }
    let request = ChatRequest::new(messages);
    let origin = || Origin { provider: "p".into(), model: "m".into() };
    let openai = body(&OpenAiChat::new(origin(), Default::default()), &request);
    let anthropic = body(&AnthropicMessages::new(origin()), &request);
    for (wire, violations) in [
        ("Chat Completions", validate::openai_chat::validate(&openai)),
        ("Anthropic", validate::anthropic::validate(&anthropic)),
    ] {
        if !violations.is_empty() {
            wrong.push(format!("D4: {wire} refuses the history: {}", validate::list(&violations)));
        }
    }
}

fn body(wire: &impl Dialect, request: &ChatRequest) -> serde_json::Value {
    serde_json::from_slice(&wire.encode(request).unwrap().concat()).unwrap()
}

/// D3, D4, M2, M3: a turn's messages are all there, once, in order, and what its program says.
fn whole_turn(program: Program, left: &Left, turn: &TurnLeft, wrong: &mut Vec<String>) {
    let id = &turn.id;
    let messages = left.messages(turn);
    let mut complain = |what: String| wrong.push(format!("{what} (turn {id}, {}, {:?})", turn.state, turn.input));
    let goes = turn.input.starts_with("go");
    match turn.state.as_str() {
        "completed" | "cancelled" => {}
        "failed" if goes && matches!(program, Program::NoReply | Program::NoAnswer) => {}
        _ => return complain("D2: the turn was not brought to its end".to_owned()),
    }
    let mut expected: Vec<(String, Option<&str>)> = Vec::new();
    let mut batch = 0;
    let replies = messages.iter().filter(|(_, message)| message.role() == Role::Assistant).count();
    if turn.replies != replies {
        complain(format!("M2: the turn had {} replies, {replies} are stored", turn.replies));
    }
    let calls = |batch: u32| left.calls.iter().filter(move |call| call.turn == *id && call.batch == batch);
    for round in 0..replies {
        if round == 0 {
            expected.push((format!("{id}/u0"), None));
        }
        expected.push((format!("{id}/a{round}"), None));
        let (Round::Calls(made) | Round::Cut(made)) = round_of(program, goes, round) else { continue };
        let rows: Vec<&str> = calls(batch).map(|call| call.tool.as_str()).collect();
        let tools: Vec<&str> = made.iter().map(|called| called.tool).collect();
        if rows != tools {
            complain(format!("D4: the calls of batch {batch} are {tools:?}, the rows are {rows:?}"));
        }
        for (idx, Called { tool, .. }) in made.into_iter().enumerate() {
            expected.push((format!("{id}/t{batch}.{idx}"), Some(tool)));
        }
        batch += 1;
    }
    let found: Vec<(String, Option<&str>)> = messages
        .iter()
        .map(|(id, message)| match message {
            Message::Tool(result) => (id.clone(), Some(result.name.as_str())),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => (id.clone(), None),
        })
        .collect();
    if found != expected {
        complain(format!("D4: a message is lost or doubled: there are {found:?}, there should be {expected:?}"));
    }
    let all = (0..).find(|round| matches!(round_of(program, goes, *round), Round::Answer | Round::Failure));
    let (last, direct) = (all.unwrap_or_default(), messages.last().is_some_and(|(_, last)| last.role() == Role::Tool));
    match (turn.state.as_str(), round_of(program, goes, last)) {
        ("completed", Round::Answer) if replies == last + 1 => {}
        ("completed", Round::Answer) if program == Program::ReturnDirect && replies == last && direct => {}
        ("completed", _) => complain(format!("D4: the turn completed with {replies} replies")),
        // M3: what opened a turn without a reply leaves with it; results stay.
        ("failed", Round::Failure) if replies == last => {}
        ("failed", _) => complain(format!("M3: the turn failed with {replies} replies stored")),
        _ => {}
    }
}

fn round_of(program: Program, goes: bool, round: usize) -> Round {
    if goes { program.round(round) } else { Round::Answer }
}

/// D1, D2, H3: how often a body may have been entered, and how often it must have been.
fn ran_as_it_may(call: &CallLeft, wrong: &mut Vec<String>) {
    let Some(manner) = call.manner() else { return };
    let mut complain = |what: &str| wrong.push(format!("{what}: {call:?}"));
    let times = call.ran.len();
    let again = call.paused("unknown", &LET_RUN) + call.paused("environment", &LET_RUN);
    if !matches!(manner, Manner::Idempotent | Manner::ReadOnly) && times > 1 + again {
        complain("D2: a call that must not run twice ran without being asked for again");
    }
    if manner != Manner::ReadOnly && call.attempt < times {
        complain("D1: a body was entered before that was written down");
    }
    if call.verdict == "refuse" && times > 0 {
        complain("L17: a refused call ran");
    }
    let approval = ["rejected", "replied", "expired", "cancelled"];
    if call.paused("approval", &approval) > 0 && times > 0 {
        complain("H3: a call ran that nobody allowed");
    }
    if manner == Manner::OnceSensitive && times > 0 && call.paused("approval", &LET_RUN) == 0 {
        complain("L6: a sensitive call ran unasked");
    }
    if call.ran.iter().any(|ran| ran.args != call.args) {
        complain("H2: a call ran with other arguments than were decided on");
    }
    let replied = call.pauses.iter().any(|(_, state)| state == "replied");
    let settled = match call.status.as_deref() {
        Some("ok") => replied || call.ran.last().is_some_and(|ran| ran.ended),
        // It may have run or not: that is what the word says.
        Some("unknown") => call.attempt > 0,
        Some("rejected") => times == 0 && call.paused("approval", &["rejected"]) == 1,
        Some("cancelled") => times == 0,
        Some("error") => call.tool == "mount" && call.ran.last().is_some_and(|ran| ran.ended),
        _ => false,
    };
    if !settled || call.state != "finished" {
        complain("D2: a call's status is not what happened to it");
    }
    if manner == Manner::Idempotent && call.status.as_deref() == Some("unknown") {
        complain("D2: a call that may run again was given up");
    }
}

/// D2: a result that came from a body is that of a body which ended; the message says what the row says.
fn answered_by_what_ran(left: &Left, call: &CallLeft, wrong: &mut Vec<String>) {
    let Some(turn) = left.turns.iter().find(|turn| turn.id == call.turn) else { return };
    let messages = left.messages(turn);
    let ours = call.manner().is_some();
    let id = format!("{}/t{}.{}", call.turn, call.batch, call.idx);
    let message = messages.iter().find(|(found, _)| *found == id);
    let Some((_, Message::Tool(result))) = message else {
        wrong.push(format!("D4: a call has no answer: {call:?}"));
        return;
    };
    if Some(result.status.as_str()) != call.status.as_deref() || result.tool_call_id != call.call {
        wrong.push(format!("D2: the message of a call says something else than its row: {result:?} {call:?}"));
    }
    let text = result.content.text();
    if let Some((_, said)) = text.split_once(" ran as ").filter(|_| ours) {
        let from_a_run = call.ran.iter().any(|ran| {
            let said_so = format!("{} attempt {}", ran.key, ran.attempt);
            ran.ended && said.split('…').next().is_some_and(|said| said.split('\n').next() == Some(&said_so))
        });
        if !from_a_run {
            wrong.push(format!("D2: a result comes from no run that ended: {text} {call:?}"));
        }
    }
}

/// D1, D3: nothing ran that is no call, and all runs of one call have one key.
fn bodies_belong_to_calls(left: &Left, wrong: &mut Vec<String>) {
    let calls: HashSet<String> = left.calls.iter().map(CallLeft::key).collect();
    let mut keys: HashMap<(&str, &str), &str> = HashMap::new();
    for ran in &left.ran {
        if !calls.contains(&ran.key) {
            wrong.push(format!("D1: something ran that was never planned: {ran:?}"));
        }
        if *keys.entry((&ran.tool, &ran.args)).or_insert(&ran.key) != ran.key {
            wrong.push(format!("D3: one call ran under two keys: {ran:?}"));
        }
    }
}

/// D5, H4: what a child said before it died is so.
fn still_true(left: &Left, said: &Said, wrong: &mut Vec<String>) {
    let so = match said {
        Said::Ready | Said::Writes { .. } | Said::WriteFailed { .. } => true,
        Said::Finished { call, status } => left.calls.iter().any(|row| {
            // A failure that a person repaired is no longer the result.
            row.call == *call
                && (row.status.as_ref() == Some(status)
                    || row.paused("environment", &LET_RUN) > 0
                    || row.paused("environment", &["replied"]) > 0)
        }),
        Said::Decided { pause, state } => left.pauses.get(pause) == Some(state),
        Said::Done { input, turn, status, text, .. } => {
            left.turns.iter().find(|row| row.id == *turn).is_some_and(|row| done(left, row, input, status, text))
        }
        // Nothing is promised of a message that was refused but that it is not there; its row, if any, is judged above.
        Said::Failed { input: Some(input), kind, .. } if kind == "busy" => {
            !left.turns.iter().any(|turn| turn.input == *input)
        }
        Said::Failed { .. } => true,
    };
    if !so {
        wrong.push(format!("D5: what a child said is not so: {said:?}"));
    }
}

/// Whether a turn that a child was told of is what it was told, and its message is there once.
fn done(left: &Left, row: &TurnLeft, input: &Option<String>, status: &str, text: &str) -> bool {
    let messages = left.messages(row);
    let opened = messages.iter().filter(|(_, message)| message.role() == Role::User).count() == 1;
    // A turn that waited has gone on since.
    let waited = status == "paused";
    let answered = messages.last().is_some_and(|(_, last)| last.text() == text);
    opened && input.iter().all(|input| *input == row.input) && (waited || (row.state == status && answered))
}
