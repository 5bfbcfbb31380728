//! Verdicts, pauses and decisions of the turn, by hand-fed events.

use cepa_core::{Message, ToolFailure};

use super::{
    CancelReason, Did, RulingOutcome, Siblings, Todo, TurnSettings,
    rig::{Rig, failure, ok, ruling},
};
use crate::{
    ids,
    pause::{Decision, PauseKind, PauseState},
    store::{TurnState, VerdictKind},
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
fn a_pause_is_written_with_the_verdicts() {
    // H1: one row per waiting call, complete by itself, in the commit of the verdicts. L6: one verdict per call.
    let mut rig = Rig::new(TurnSettings { expires_ms: Some(500), ..settings() });
    rig.calls(&["a", "pay", "pay"]);
    let commit = rig.rule(&[PROCEED, RulingOutcome::Pause { reason: Some("expensive".into()) }, PAUSE]);
    let verdicts: Vec<VerdictKind> = rig.stored.calls.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [VerdictKind::Proceed, VerdictKind::Pause, VerdictKind::Pause]);
    assert_eq!((commit.calls.len(), commit.pauses.len()), (3, 2));
    assert_eq!(commit.turn.as_ref().map(|turn| turn.state), Some(TurnState::Paused));
    let [first, second] = commit.pauses.as_slice() else { panic!() };
    assert_eq!((first.kind, first.reason.as_deref()), (PauseKind::Approval, Some("expensive")));
    assert_eq!((first.args.as_str(), first.args_hash.as_str()), (r#"{"n": 1}"#, &*ids::hash(r#"{"n": 1}"#)));
    assert_eq!((first.tool.as_str(), first.call_id.as_str(), first.turn.as_str()), ("pay", "c1", "t1"));
    assert_eq!((first.schema_hash.as_str(), first.expires), ("schema", Some(first.created + 500)));
    // D3: names derive from turn, batch and place.
    assert_eq!([first.id.as_str(), second.id.as_str()], ["t1.0.1", "t1.0.2"]);
    // Plain data: what is read back from JSON is what was written.
    let read: crate::Pause = serde_json::from_str(&serde_json::to_string(first).unwrap()).unwrap();
    assert_eq!(&read, first);
}

#[test]
fn a_batch_is_held_or_the_others_run() {
    // L7: hold.
    let mut rig = Rig::new(settings());
    rig.calls(&["a", "pay", "b"]);
    rig.rule(&[PROCEED, PAUSE, PROCEED]);
    assert_eq!(rig.waits().len(), 1);
    // Not even by mistake.
    assert!(rig.try_did(Did::Started { idx: 0, at: 0 }).is_err());
    assert!(rig.try_did(Did::Finished { idx: 1, result: ok("forged"), took_ms: 0, at: 0 }).is_err());
    rig.decide("t1.0.1", Decision::Approve);
    assert_eq!(rig.due(), [0, 1, 2]);

    // L7: run the others.
    let mut rig = Rig::new(run_others());
    rig.calls(&["a", "pay", "b"]);
    rig.rule(&[PROCEED, PAUSE, PROCEED]);
    assert_eq!((rig.due(), rig.turn.state()), (vec![0, 2], TurnState::Running));
    rig.start(0);
    rig.start(2);
    assert_eq!(rig.turn.state(), TurnState::Running, "what runs is not waited for by a person");
    rig.finish(0, ok("a"));
    let last = rig.finish(2, ok("b"));
    assert_eq!(last.turn.map(|turn| turn.state), Some(TurnState::Paused), "now the row says so");
    assert_eq!(rig.waits().len(), 1);
    rig.decide("t1.0.1", Decision::Approve);
    rig.run();
    rig.says("done");
    let results: Vec<String> = rig.story().into_iter().filter(|line| line.starts_with('c')).collect();
    assert_eq!(results, ["c0 ok: a", "c1 ok: pay", "c2 ok: b"], "in call order");
}

#[test]
fn an_environment_failure_waits_for_a_person() {
    // L10: pausing on; the siblings go on.
    let mut rig = Rig::new(settings());
    rig.calls(&["a", "b"]);
    rig.rule(&[PROCEED, PROCEED]);
    rig.start(0);
    let commit = rig.finish(0, failure(ToolFailure::Environment, "no credentials"));
    assert_eq!(commit.pauses[0].kind, PauseKind::Environment);
    assert_eq!(commit.pauses[0].reason.as_deref(), Some("no credentials"));
    assert_eq!(rig.due(), [1]);
    rig.start(1);
    rig.finish(1, ok("b"));
    // Repaired: it runs again; still broken: it waits again, as another pause.
    rig.decide("t1.0.0", Decision::Approve);
    rig.start(0);
    rig.finish(0, failure(ToolFailure::Environment, "still no credentials"));
    assert_eq!(rig.pending(), ["t1.0.0.1"]);
    // Not repairable: the failure is the result.
    rig.decide("t1.0.0.1", Decision::Reject { reason: None });
    rig.says("sorry");
    assert_eq!(rig.story()[2], "c0 error: still no credentials");

    // L10: pausing off; the model is told at once.
    let mut rig = Rig::new(TurnSettings::default());
    rig.calls(&["a"]);
    rig.rule(&[PROCEED]);
    rig.finish(0, failure(ToolFailure::Environment, "no credentials"));
    assert!(matches!(rig.turn.todo(), Todo::CallModel(_)));
}

#[test]
fn decisions_may_come_one_by_one() {
    // H2: partial is fine; the turn goes on when all are settled. The commit names only what is new.
    let mut rig = Rig::new(settings());
    rig.calls(&["pay", "pay", "pay", "pay"]);
    rig.rule(&[PAUSE, PAUSE, PAUSE, PAUSE]);
    rig.decide("t1.0.2", Decision::Reject { reason: Some("too much".into()) });
    rig.decide("t1.0.3", Decision::Reply { content: "paid by hand".into() });
    rig.decide("t1.0.0", Decision::Edit { args: r#"{"n": 7}"#.into() });
    assert_eq!(rig.waits().len(), 1);
    rig.decide("t1.0.1", Decision::Approve);
    let Todo::Run(due) = rig.turn.todo() else { panic!("all are settled") };
    let args: Vec<&str> = due.iter().map(|call| call.call.args.as_str()).collect();
    assert_eq!(args, [r#"{"n": 7}"#, r#"{"n": 1}"#], "what was decided on is what runs");
    rig.run();
    rig.says("done");
    // H3: the rejected call never ran; the model is told in other words than of an error.
    let results: Vec<String> = rig.story().into_iter().filter(|line| line.starts_with('c')).collect();
    assert_eq!(
        results,
        [
            "c0 ok: (Run with changed arguments: {\"n\": 7})\npay",
            "c1 ok: pay",
            "c2 rejected: Rejected: this call was not allowed and did not run. Reason: too much",
            "c3 ok: paid by hand",
        ]
    );
    let Message::Tool(edited) = &rig.history().iter().nth(2).unwrap().message.clone() else { panic!() };
    assert_eq!(edited.executed_args.as_ref().map(|args| args.as_str()), Some(r#"{"n": 7}"#));
}

#[test]
fn what_was_edited_stays_edited_through_a_second_pause() {
    // H7: the second approval is of what it shows, also for a tool whose entering is not written down.
    let mut rig = Rig::new(settings());
    rig.calls(&["read"]);
    rig.rule(&[PAUSE]);
    rig.decide("t1.0.0", Decision::Edit { args: r#"{"n": 7}"#.into() });
    rig.finish(0, failure(ToolFailure::Environment, "host down"));
    rig.decide("t1.0.0.1", Decision::Approve);
    let Todo::Run(due) = rig.restored().todo() else { panic!("it runs again") };
    assert_eq!(due[0].call.args.as_str(), r#"{"n": 7}"#);
    rig.finish(0, ok("up again"));
    rig.says("done");
    assert_eq!(rig.story()[2], "c0 ok: (Run with changed arguments: {\"n\": 7})\nup again");
}

#[test]
fn a_decision_that_fits_nothing_changes_nothing() {
    // H3: unknown, made twice, without a decision, in the wrong state, not an object.
    let mut rig = Rig::new(settings());
    rig.calls(&["pay"]);
    rig.rule(&[PAUSE]);
    let waiting = rig.stored.pauses[0].clone();
    let before = format!("{:?}", rig.turn);
    let edit = |args: &str| Some(Decision::Edit { args: args.into() });
    for (state, decision) in [
        (PauseState::Pending, None),
        (PauseState::Pending, Some(Decision::Approve)),
        (PauseState::Rejected, Some(Decision::Approve)),
        (PauseState::Edited, edit("[1]")),
        (PauseState::Edited, edit("{\"n\":")),
    ] {
        let pause = crate::Pause { state, decision, ..waiting.clone() };
        assert!(rig.try_did(Did::Decided { pause, at: 0 }).is_err());
        assert_eq!(format!("{:?}", rig.turn), before);
    }
    rig.decide("t1.0.0", Decision::Reject { reason: None });
    let again = crate::Pause { state: PauseState::Approved, decision: Some(Decision::Approve), ..waiting };
    assert!(rig.try_did(Did::Decided { pause: again, at: 0 }).is_err());
}

#[test]
fn each_end_has_its_own_word() {
    // H9: in the store, in the record, in the model's text.
    let mut rig = Rig::new(TurnSettings { expires_ms: Some(10_000), siblings: Siblings::RunOthers, ..settings() });
    rig.calls(&["pay", "pay", "pay", "pay", "a", "b", "pay", "pay"]);
    rig.rule(&[PAUSE, PAUSE, PAUSE, PAUSE, RulingOutcome::Reject { reason: None }, PROCEED, PAUSE, PAUSE]);
    rig.decide("t1.0.0", Decision::Approve);
    rig.decide("t1.0.1", Decision::Edit { args: "{}".into() });
    rig.decide("t1.0.2", Decision::Reject { reason: None });
    rig.decide("t1.0.3", Decision::Reply { content: "x".into() });
    rig.start(5);
    let at = rig.tick();
    rig.did(Did::Lost { idx: 5, repeatable: false, at });
    // One expires in the store, which marks it; the turn closes it, and all others, when it is told the time.
    rig.clock += 20_000;
    assert!(rig.decide_in_store("t1.0.6", Decision::Approve).is_none());
    let Todo::Run(due) = rig.restored().todo() else { panic!("two may run") };
    assert_eq!(due.iter().map(|call| call.key.idx).collect::<Vec<_>>(), [0, 1], "what expired is not run");
    let at = rig.tick();
    rig.did(Did::Now { at });
    rig.start(0);
    rig.finish(0, failure(ToolFailure::Environment, "bank closed"));
    rig.cancel(CancelReason::Superseded, None);
    let states: Vec<&str> = rig.stored.pauses.iter().map(|pause| pause.state.as_str()).collect();
    assert_eq!(states, ["approved", "edited", "rejected", "replied", "expired", "expired", "expired", "cancelled"]);
    let statuses: Vec<&str> = rig.turn.records().iter().map(|record| record.outcome.as_str()).collect();
    assert_eq!(statuses, ["error", "cancelled", "rejected", "ok", "rejected", "unknown", "expired", "expired"]);
}

#[test]
fn a_new_message_supersedes_what_waits() {
    // H6: the calls that waited say why, those that did not wait do not.
    let mut rig = Rig::new(settings());
    rig.calls(&["a", "pay"]);
    rig.rule(&[PROCEED, PAUSE]);
    rig.cancel(CancelReason::Superseded, None);
    let texts = Texts::default();
    let expected = [format!("c0 cancelled: {}", texts.cancelled), format!("c1 cancelled: {}", texts.superseded)];
    assert_eq!(rig.story()[2..], expected);
}

#[test]
fn verdicts_come_once_and_for_all() {
    // L6: one recorded verdict per call.
    let mut rig = Rig::new(settings());
    let rulings = |n: usize| (0..n).map(|_| ruling("a", PROCEED)).collect::<Vec<_>>();
    assert!(rig.try_did(Did::Verdicts { rulings: rulings(1), at: 0 }).is_err(), "no batch is open");
    rig.calls(&["a", "b"]);
    assert!(rig.try_did(Did::Verdicts { rulings: rulings(1), at: 0 }).is_err());
    assert!(rig.try_did(Did::Started { idx: 0, at: 0 }).is_err(), "nothing runs before its verdict");
    rig.rule(&[PROCEED, RulingOutcome::Reply { content: "cached".into() }]);
    assert!(rig.try_did(Did::Verdicts { rulings: rulings(2), at: 0 }).is_err());
    assert_eq!(rig.due(), [0], "the gate answered the other");
}
