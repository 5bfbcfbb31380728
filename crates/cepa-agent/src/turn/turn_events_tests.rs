//! Events in any order: nothing panics, what is illegal changes nothing, and every end leaves a legal history.

use cepa_core::{FinishReason, Message, Role, ToolFailure, ToolStatus, pairing};
use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    CancelReason, Did, OnExhausted, RulingOutcome, Siblings, TurnSettings,
    batch::text_result,
    rig::{Rig, calling, failure, ok, ruling, saying, text_only, writing},
};
use crate::{
    pause::{Decision, PauseState},
    store::CallResult,
};

/// Something that somebody might do, sensible or not.
#[derive(Clone, Debug)]
enum Event {
    Reply(Vec<&'static str>, FinishReason),
    Fail,
    Verdicts(Vec<RulingOutcome>),
    Start(u32),
    Finish(u32, CallResult),
    Lose(u32, bool),
    /// One of the pauses that there ever were.
    Decide(usize, Decision),
    /// A decision that reaches the store only.
    DecideInStore(usize, Decision),
    Cancel(CancelReason, Option<&'static str>),
    Now(i64),
    /// The turn goes on in another process.
    Restart,
}

const TOOLS: &[&str] = &["a", "read", "put", "pay", "answer"];

fn outcome() -> impl Strategy<Value = RulingOutcome> {
    prop_oneof![
        3 => Just(RulingOutcome::Proceed),
        2 => Just(RulingOutcome::Pause { reason: None }),
        1 => Just(RulingOutcome::Reject { reason: Some("no".into()) }),
        1 => Just(RulingOutcome::Reply { content: "cached".into() }),
        1 => Just(RulingOutcome::Refuse { text: "no such tool".into() }),
    ]
}

fn result() -> impl Strategy<Value = CallResult> {
    prop_oneof![
        4 => Just(ok("fine")),
        1 => Just(writing("noted", r#"{"x": 1}"#)),
        1 => Just(text_result(ToolStatus::Cancelled, "stopped")),
        1 => select(vec![ToolFailure::Semantic, ToolFailure::Transient]).prop_map(|class| failure(class, "failed")),
        2 => Just(failure(ToolFailure::Environment, "disk full")),
    ]
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        3 => Just(Decision::Approve),
        1 => Just(Decision::Edit { args: r#"{"n": 2}"#.into() }),
        1 => Just(Decision::Edit { args: "[".into() }),
        1 => Just(Decision::Reject { reason: None }),
        1 => Just(Decision::Reply { content: "done by hand".into() }),
    ]
}

fn finish() -> impl Strategy<Value = FinishReason> {
    prop_oneof![
        6 => Just(FinishReason::ToolCalls),
        1 => select(vec![FinishReason::Stop, FinishReason::Length, FinishReason::PauseTurn, FinishReason::Other]),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let reason = select(vec![CancelReason::Caller, CancelReason::Superseded]);
    prop_oneof![
        4 => (vec(select(TOOLS), 0..4), finish()).prop_map(|(tools, finish)| Event::Reply(tools, finish)),
        4 => vec(outcome(), 1..4).prop_map(Event::Verdicts),
        6 => (0..3u32).prop_map(Event::Start),
        8 => (0..3u32, result()).prop_map(|(idx, result)| Event::Finish(idx, result)),
        2 => (0..3u32, any::<bool>()).prop_map(|(idx, repeatable)| Event::Lose(idx, repeatable)),
        6 => (0..4usize, decision()).prop_map(|(n, decision)| Event::Decide(n, decision)),
        2 => (0..4usize, decision()).prop_map(|(n, decision)| Event::DecideInStore(n, decision)),
        1 => (reason, select(vec![None, Some("It"), Some(" ")])).prop_map(|(why, text)| Event::Cancel(why, text)),
        1 => Just(Event::Fail),
        2 => (0..60i64).prop_map(Event::Now),
        2 => Just(Event::Restart),
    ]
}

fn settings() -> impl Strategy<Value = TurnSettings> {
    (
        0..4u32,
        select(vec![OnExhausted::Stop, OnExhausted::Finish]),
        select(vec![Siblings::Hold, Siblings::RunOthers]),
        any::<bool>(),
        select(vec![None, Some(40)]),
    )
        .prop_map(|(max_batches, on_exhausted, siblings, pausing, expires_ms)| TurnSettings {
            max_batches,
            on_exhausted,
            siblings,
            pausing,
            expires_ms,
            ..TurnSettings::default()
        })
}

/// Feeds an event; says whether the turn took it.
fn feed(rig: &mut Rig, event: Event) -> bool {
    let at = rig.tick();
    let what = match event {
        Event::Reply(tools, finish) => {
            let reply = if tools.is_empty() { saying("text") } else { calling(&tools) };
            return rig.reply(reply, finish).is_ok();
        }
        Event::Fail => Did::Failed { at },
        Event::Verdicts(outcomes) => {
            // Verdicts of the right number are rare by chance: they are cut or repeated to fit.
            let names: Vec<String> = match rig.turn.todo() {
                super::Todo::Decide(calls) => calls.into_iter().map(|call| call.name).collect(),
                _ => vec!["a".to_owned()],
            };
            let rulings = names.iter().zip(outcomes.into_iter().cycle()).map(|(name, outcome)| ruling(name, outcome));
            Did::Verdicts { rulings: rulings.collect(), at }
        }
        Event::Start(idx) => Did::Started { idx, at },
        Event::Finish(idx, result) => Did::Finished { idx, result, took_ms: 1, at },
        Event::Lose(idx, repeatable) => Did::Lost { idx, repeatable, at },
        Event::Decide(n, decision) | Event::DecideInStore(n, decision) if n >= rig.stored.pauses.len() => {
            drop(decision);
            return false;
        }
        Event::DecideInStore(n, decision) => {
            // The store refuses what is no decision, as the agent does before it asks.
            let id = rig.stored.pauses[n].id.clone();
            return !is_broken(&decision) && rig.decide_in_store(&id, decision).is_some();
        }
        Event::Decide(n, decision) => {
            let id = rig.stored.pauses[n].id.clone();
            let pause = if is_broken(&decision) {
                crate::Pause { state: PauseState::Edited, decision: Some(decision), ..rig.stored.pauses[n].clone() }
            } else {
                let Some(pause) = rig.decide_in_store(&id, decision) else { return false };
                pause
            };
            Did::Decided { pause, at }
        }
        Event::Cancel(why, partial) => Did::Cancelled { why, partial: partial.map(text_only), at },
        Event::Now(later) => {
            rig.clock += later;
            Did::Now { at: rig.clock }
        }
        Event::Restart => {
            rig.restart();
            return true;
        }
    };
    let (before, kept) = (format!("{:?}", rig.turn), rig.turn.clone());
    if rig.turn.did(what.clone()).is_err() {
        assert_eq!(format!("{:?}", rig.turn), before, "an illegal event leaves the turn as it was");
        return false;
    }
    rig.turn = kept;
    rig.try_did(what).is_ok()
}

fn is_broken(decision: &Decision) -> bool {
    matches!(decision, Decision::Edit { args } if args == "[")
}

/// Brings a turn to its end, so that every run has one.
fn end(rig: &mut Rig) {
    if rig.turn.state().is_live() {
        // Decisions that the turn was not told of are found by whoever goes on with it.
        rig.restart();
    }
    if rig.turn.state().is_live() {
        rig.cancel(CancelReason::Caller, None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    // L11, D2: whatever happens in whatever order, the turn that is made of the rows is due the same as the live one
    // (asserted after every commit), and what is left in the end is a legal conversation.
    #[test]
    fn any_events(
        settings in settings(),
        carries in any::<bool>(),
        greeting in any::<bool>(),
        events in vec(event(), 0..40),
    ) {
        let mut input = vec![Message::user("hi")];
        if greeting {
            input = vec![Message::user("hello"), Message::assistant("hi"), Message::user("go on")];
        }
        let mut rig = Rig::with(settings, carries, input);
        for event in events {
            feed(&mut rig, event);
        }
        end(&mut rig);
        let history = rig.history();
        prop_assert_eq!(pairing::validate(&history), Ok(()), "{:#?}", rig.story());
        prop_assert!(history.messages().next().is_none_or(|first| first.role() == Role::User));
        // H3: nothing ran that was not let run.
        for call in &rig.stored.calls {
            let asked = rig.stored.pauses.iter().filter(|pause| pause.key == call.key());
            let first = asked.min_by_key(|pause| pause.created);
            let let_run = first.is_none_or(|pause| {
                pause.kind != crate::PauseKind::Approval
                    || matches!(pause.state, PauseState::Approved | PauseState::Edited)
            });
            prop_assert!(call.attempt == 0 || let_run, "{call:?} ran undecided");
        }
        // Nothing waits for a turn that is over.
        prop_assert_eq!(rig.pending(), Vec::<String>::new());
        // H2: no id is given twice.
        let mut ids: Vec<_> = history.iter().filter_map(|entry| entry.id.clone()).collect();
        let all = ids.len();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), all);
    }
}
