//! The turn by hand-fed events: budget, batches, crashes, endings.

use cepa_core::{AssistantMessage, FinishReason, Message, ToolFailure, ToolStatus, pairing};
use serde_json::json;

use super::{
    CancelReason, Did, OnExhausted, RulingOutcome, Siblings, Todo, TurnSettings,
    rig::{Rig, calling, failure, ok, saying, writing},
};
use crate::{
    pause::{Decision, PauseState},
    store::{CallChange, CallState, TurnState},
    texts::Texts,
};

const PROCEED: RulingOutcome = RulingOutcome::Proceed;
const PAUSE: RulingOutcome = RulingOutcome::Pause { reason: None };

fn settings() -> TurnSettings {
    TurnSettings { pausing: true, ..TurnSettings::default() }
}

fn run_others() -> TurnSettings {
    TurnSettings { siblings: Siblings::RunOthers, ..settings() }
}

#[test]
fn only_what_is_new_is_passed_on() {
    // L2: the user's message first, then each batch's results; no shadow of the conversation.
    let mut rig = Rig::new(settings());
    let asked = |rig: &Rig| match rig.turn.todo() {
        Todo::CallModel(call) => (call.messages.messages().map(Message::role).collect::<Vec<_>>(), call.opens),
        other => panic!("no model call is due: {other:?}"),
    };
    assert_eq!(asked(&rig), (vec![cepa_core::Role::User], true));
    rig.round(&["a", "b"]);
    assert_eq!(asked(&rig), (vec![cepa_core::Role::Tool, cepa_core::Role::Tool], false));
    rig.says("done");
    assert!(rig.is_done(TurnState::Completed));
    assert_eq!(rig.turn.text(), "done");
    assert_eq!(rig.turn.data().usage.input, 20);

    // Without memory the turn carries the transcript, and each call gets all of it.
    let mut rig = Rig::with(settings(), true, vec![Message::user("hi")]);
    rig.round(&["a"]);
    assert_eq!(asked(&rig).0.len(), 3);
}

#[test]
fn the_budget_is_batches() {
    // L4: exactly N batches run, with N+1 model calls; the last calls are answered, and no model call follows.
    for batches in 0..4 {
        let mut rig = Rig::new(TurnSettings { max_batches: batches, ..settings() });
        while !matches!(rig.turn.todo(), Todo::Done(_)) {
            rig.round(&["a", "b"]);
        }
        assert!(rig.is_done(TurnState::Exhausted));
        assert_eq!((rig.model_calls, rig.turn.records().len()), (batches + 1, 2 * batches as usize + 2));
        let last: Vec<String> = rig.story().into_iter().rev().take(2).collect();
        let limit = Texts::default().limit;
        assert_eq!(last, [format!("c1 cancelled: {limit}"), format!("c0 cancelled: {limit}")]);
        assert_eq!(pairing::validate(&rig.history()), Ok(()));
    }
}

#[test]
fn the_other_policy_adds_one_call_without_tools() {
    // L4: `finish`.
    let finish = TurnSettings { max_batches: 1, on_exhausted: OnExhausted::Finish, ..settings() };
    let mut rig = Rig::new(finish.clone());
    rig.round(&["a"]);
    rig.round(&["b"]);
    let Todo::CallModel(call) = rig.turn.todo() else { panic!("the model may answer") };
    assert!(call.without_tools);
    rig.says("as far as I came");
    assert!(rig.is_done(TurnState::Completed));
    assert_eq!(rig.model_calls, 3);

    // A model that calls all the same gets no further chance.
    let mut rig = Rig::new(finish);
    ["a", "b", "c"].iter().for_each(|name| rig.round(&[name]));
    assert!(rig.is_done(TurnState::Exhausted));
    assert_eq!(rig.outcomes().iter().filter(|(_, status)| *status == ToolStatus::Ok).count(), 1);
    assert_eq!(pairing::validate(&rig.history()), Ok(()));
}

#[test]
fn later_calls_see_what_earlier_ones_wrote() {
    // L8: writes are folded in call order, whatever the order of the ends; a null deletes.
    let mut rig = Rig::new(settings());
    rig.calls(&["read", "read", "a", "b"]);
    rig.rule(&[PROCEED, PROCEED, PROCEED, PROCEED]);
    rig.finish(1, writing("second", r#"{"x": 2, "y": 2}"#));
    rig.finish(0, writing("first", r#"{"x": 1}"#));
    let at = |idx, rig: &Rig| serde_json::Value::Object(rig.turn.values_at(idx).as_ref().clone());
    assert_eq!([at(0, &rig), at(1, &rig), at(2, &rig)], [json!({}), json!({"x": 1}), json!({"x": 2, "y": 2})]);
    rig.start(2);
    rig.finish(2, writing("third", r#"{"x": null, "conversation_id": "stolen"}"#));
    assert_eq!(at(3, &rig), json!({"y": 2}));
    rig.start(3);
    rig.finish(3, ok("fourth"));
    // The next batch, and a turn that goes on elsewhere, see them too.
    assert_eq!(at(0, &rig), json!({"y": 2}));
}

#[test]
fn three_ends_of_a_cancelled_call() {
    // L11: not started, stopped, unknown are told apart; the history is valid.
    let mut rig = Rig::new(run_others());
    rig.calls(&["a", "b", "c", "pay"]);
    rig.rule(&[PROCEED, PROCEED, PROCEED, PAUSE]);
    rig.start(0);
    rig.finish(0, super::batch::text_result(ToolStatus::Cancelled, "stopped half-way"));
    rig.start(1);
    let commit = rig.cancel(CancelReason::Caller, None);
    assert!(rig.is_done(TurnState::Cancelled));
    assert_eq!(commit.closed_pauses, [("t1.0.3".to_owned(), PauseState::Cancelled)]);
    let texts = Texts::default();
    let expected = [
        "c0 cancelled: stopped half-way".to_owned(),
        format!("c1 unknown: {}", texts.unknown),
        format!("c2 cancelled: {}", texts.cancelled),
        format!("c3 cancelled: {}", texts.cancelled),
    ];
    assert_eq!(rig.story()[2..], expected);
    assert_eq!(pairing::validate(&rig.history()), Ok(()));
}

#[test]
fn a_call_that_ran_before_is_never_said_not_to_have_run() {
    // L11: what a person let run again, and what was cancelled before it did.
    let mut rig = Rig::new(settings());
    rig.calls(&["a", "b"]);
    rig.rule(&[PROCEED, PROCEED]);
    rig.start(0);
    rig.finish(0, failure(ToolFailure::Environment, "disk full"));
    rig.start(1);
    let at = rig.tick();
    rig.did(Did::Lost { idx: 1, repeatable: false, at });
    rig.decide("t1.0.0", Decision::Approve);
    rig.decide("t1.0.1", Decision::Approve);
    assert_eq!(rig.due(), [0, 1]);
    rig.cancel(CancelReason::Caller, None);
    assert_eq!(
        rig.story()[2..],
        ["c0 error: disk full".to_owned(), format!("c1 unknown: {}", Texts::default().unknown)]
    );
}

#[test]
fn text_of_a_cancelled_reply_is_kept() {
    // L11: with text; without, the turn leaves no message.
    let mut rig = Rig::new(settings());
    rig.cancel(CancelReason::Caller, Some("It is"));
    assert_eq!(rig.story(), ["user hi", "assistant It is"]);
    let Some(Message::Assistant(reply)) = rig.history().last().map(|entry| entry.message.clone()) else { panic!() };
    assert_eq!(reply.finish_reason, Some(FinishReason::Cancelled));

    for partial in [None, Some(" ")] {
        let mut rig = Rig::new(settings());
        rig.cancel(CancelReason::Caller, partial);
        assert!(rig.history().is_empty());
    }
    // Results are facts and stay.
    let mut rig = Rig::new(settings());
    rig.round(&["a"]);
    rig.cancel(CancelReason::Caller, None);
    assert_eq!(rig.story(), ["user hi", "assistant a", "c0 ok: a"]);
}

#[test]
fn a_failed_model_call_leaves_only_facts() {
    // M3: the first call leaves nothing, a later one the results.
    let mut rig = Rig::new(settings());
    rig.did(Did::Failed { at: 2000 });
    assert!(rig.history().is_empty() && rig.is_done(TurnState::Failed));
    let mut rig = Rig::new(settings());
    rig.round(&["a"]);
    rig.did(Did::Failed { at: 2000 });
    assert_eq!(rig.story(), ["user hi", "assistant a", "c0 ok: a"]);
}

#[test]
fn direct_results_are_the_answer() {
    // L14: if all tools of the batch say so and returned.
    let mut rig = Rig::new(settings());
    rig.round(&["answer", "answer"]);
    assert!(rig.is_done(TurnState::Completed));
    assert_eq!((rig.turn.text().as_str(), rig.model_calls), ("answer\nanswer", 1));
    assert_eq!(rig.restored().text(), "answer\nanswer");
    assert_eq!(pairing::validate(&rig.history()), Ok(()));

    let mut rig = Rig::new(settings());
    rig.round(&["answer", "a"]);
    assert!(matches!(rig.turn.todo(), Todo::CallModel(_)), "one does not say so");

    let mut rig = Rig::new(settings());
    rig.calls(&["answer"]);
    rig.rule(&[PROCEED]);
    rig.finish(0, failure(ToolFailure::Semantic, "no such file"));
    assert!(matches!(rig.turn.todo(), Todo::CallModel(_)), "a failure is no answer");
}

#[test]
fn a_cut_reply_runs_none_of_its_calls() {
    // L17
    let cut = [FinishReason::Length, FinishReason::ContentFilter, FinishReason::Refusal];
    for finish in cut.into_iter().chain([FinishReason::Other, FinishReason::Cancelled]) {
        let mut rig = Rig::new(settings());
        rig.reply(calling(&["a", "pay"]), finish).unwrap();
        assert!(matches!(rig.turn.todo(), Todo::CallModel(_)), "nothing is asked or run");
        rig.says("shorter");
        let cut = Texts::default().cut_reply;
        assert_eq!(rig.story()[2..4], [format!("c0 cancelled: {cut}"), format!("c1 cancelled: {cut}")]);
    }
}

#[test]
fn a_paused_reply_is_continued() {
    // L19: without a user message, and it counts as a batch.
    let mut rig = Rig::new(TurnSettings { max_batches: 2, ..settings() });
    for text in ["one, ", "two, "] {
        rig.reply(saying(text), FinishReason::PauseTurn).unwrap();
        let Todo::CallModel(call) = rig.turn.todo() else { panic!("it goes on") };
        assert!(call.continue_pause && call.messages.is_empty());
    }
    rig.says("three");
    assert_eq!((rig.turn.text().as_str(), rig.is_done(TurnState::Completed)), ("one, two, three", true));

    let mut rig = Rig::new(TurnSettings { max_batches: 1, ..settings() });
    rig.reply(saying("one"), FinishReason::PauseTurn).unwrap();
    rig.reply(saying("two"), FinishReason::PauseTurn).unwrap();
    assert!(rig.is_done(TurnState::Exhausted));
}

#[test]
fn an_empty_reply_is_an_answer() {
    // L19
    let mut rig = Rig::new(settings());
    rig.reply(AssistantMessage::default(), FinishReason::Stop).unwrap();
    assert!(rig.is_done(TurnState::Completed));
    assert_eq!(rig.turn.text(), "");
}

#[test]
fn what_was_lost_is_run_again_only_if_it_may_be() {
    // D2: an idempotent tool under the same key; for any other the outcome is unknown, and a person is asked.
    let mut rig = Rig::new(settings());
    rig.calls(&["put", "pay"]);
    rig.rule(&[PROCEED, PROCEED]);
    rig.start(0);
    rig.start(1);
    let at = rig.tick();
    assert!(rig.did(Did::Lost { idx: 0, repeatable: true, at }).is_empty());
    rig.did(Did::Lost { idx: 1, repeatable: false, at });
    let Todo::Run(due) = rig.turn.todo() else { panic!("one may be run again") };
    assert_eq!((due.len(), due[0].key.idx, due[0].attempt), (1, 0, 2));
    assert_eq!(rig.stored.calls[1].state, CallState::Unknown);
    rig.start(0);
    rig.finish(0, ok("put"));
    // "Do not run it again": the model learns that nobody knows.
    rig.decide("t1.0.1", Decision::Reject { reason: None });
    rig.says("checked");
    assert_eq!(rig.story()[3], format!("c1 unknown: {}", Texts::default().unknown));
}

#[test]
fn names_derive_from_the_turn() {
    // D3: never from the provider's ids, which repeat here.
    let mut rig = Rig::new(settings());
    rig.round(&["a", "b"]);
    rig.round(&["a"]);
    rig.says("done");
    let ids: Vec<String> = rig.history().iter().map(|entry| entry.id.as_deref().unwrap().to_owned()).collect();
    assert_eq!(ids, ["t1/u0", "t1/a0", "t1/t0.0", "t1/t0.1", "t1/a1", "t1/t1.0", "t1/a2"]);
}

#[test]
fn only_entering_and_ending_are_written_of_a_running_call() {
    // D1: planned with its verdict, started before the body, finished as soon as it ends; each in a commit of its own.
    let mut rig = Rig::new(settings());
    rig.calls(&["a", "read"]);
    rig.rule(&[PROCEED, PROCEED]);
    let started = rig.start(0);
    assert!(matches!(started.calls.as_slice(), [CallChange::Started { attempt: 1, .. }]) && started.turn.is_none());
    let finished = rig.finish(0, ok("a"));
    assert!(matches!(finished.calls.as_slice(), [CallChange::Finished { .. }]) && finished.turn.is_none());
    // One that only reads needs no `started`.
    let last = rig.finish(1, ok("read"));
    assert!(last.turn.is_some(), "the batch is closed in the commit of its last result");
}

#[test]
fn a_reply_that_nobody_noted_is_found() {
    // D2: the memory filter stored the reply, and the process died before the turn's commit.
    let mut rig = Rig::new(settings());
    let live = rig.turn.clone();
    let before = rig.stored.clone();
    rig.calls(&["a"]);
    (rig.turn, rig.stored) = (live, before);
    let found = rig.restored();
    assert!(matches!(found.todo(), Todo::Decide(calls) if calls.len() == 1));
}

#[test]
fn replies_in_the_input_are_not_the_turns() {
    // L12: a caller without memory brings the conversation so far.
    let input = vec![Message::user("hi"), Message::Assistant(calling(&[])), Message::user("go on")];
    let mut rig = Rig::with(settings(), true, input);
    rig.calls(&["pay"]);
    rig.rule(&[PAUSE]);
    assert_eq!(rig.restored().reply().map(|reply| reply.tool_calls.len()), Some(1));
}
