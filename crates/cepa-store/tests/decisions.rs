//! Decisions of people: one wins, the same again is the same, late ones fail.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use cepa_agent::{Commit, Decision, PauseState, TurnStore, store::SharedEntry};
use cepa_core::ErrorKind;
use common::{KEY, Place, entry, kind_of, open, pause, paused_turn, texts};

// H4: the same decision again gives the same outcome, another is refused.
#[tokio::test]
async fn a_decision_holds() {
    let decisions = [
        (Decision::Approve, PauseState::Approved),
        (Decision::edit(r#"{"amount": 1.00}"#).unwrap(), PauseState::Edited),
        (Decision::Reject { reason: Some("too much".into()) }, PauseState::Rejected),
        (Decision::Reply { content: "paid by hand".into() }, PauseState::Replied),
    ];
    for (decision, state) in &decisions {
        let place = Place::new();
        let store = place.open();
        paused_turn(&store).await;
        let mut expected = pause("p", "t", KEY);
        assert_eq!(store.pending(Some("c")).await.unwrap(), [expected.clone()]);
        expected.state = *state;
        expected.decision = Some(decision.clone());
        expected.actor = Some("ann".into());
        expected.decided = Some(999);
        assert_eq!(store.decide("p", decision.clone(), "ann", 999).await.unwrap(), expected);
        // By somebody else, from elsewhere, and after the time is over.
        let elsewhere = open(&place.path());
        assert_eq!(elsewhere.decide("p", decision.clone(), "bob", 2000).await.unwrap(), expected);
        assert_eq!(elsewhere.pause("p").await.unwrap(), Some(expected.clone()));
        assert_eq!(elsewhere.pending(None).await.unwrap(), []);
        for (other, _) in decisions.iter().filter(|(other, _)| other != decision) {
            assert_eq!(kind_of(elsewhere.decide("p", other.clone(), "bob", 500).await), "already_decided");
        }
        assert_eq!(store.pause("p").await.unwrap(), Some(expected));
    }
}

// H5: past its time a pause cannot be decided, and is marked so.
#[tokio::test]
async fn a_late_decision_is_expired() {
    let place = Place::new();
    let store = place.open();
    paused_turn(&store).await;
    assert_eq!(kind_of(store.decide("p", Decision::Approve, "ann", 1000).await), "expired");
    drop(store);
    let store = place.open();
    let stored = store.pause("p").await.unwrap().unwrap();
    assert_eq!((stored.state, stored.decision, stored.actor), (PauseState::Expired, None, None));
    // Not even by a clock that is behind.
    assert_eq!(kind_of(store.decide("p", Decision::Approve, "ann", 1).await), "expired");
    assert_eq!(store.pending(None).await.unwrap(), []);
}

#[tokio::test]
async fn what_does_not_wait_cannot_be_decided() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(kind_of(store.decide("p", Decision::Approve, "ann", 1).await), "not_paused");
    let token = paused_turn(&store).await;
    let cancel = Commit { closed_pauses: vec![("p".into(), PauseState::Cancelled)], ..Commit::default() };
    store.commit("t", token, cancel.clone()).await.unwrap();
    store.commit("t", token, cancel).await.unwrap();
    assert_eq!(kind_of(store.decide("p", Decision::Approve, "ann", 1).await), "not_paused");
    // The step that made it wait, written again, does not make it wait again.
    let again = Commit { pauses: vec![pause("p", "t", KEY)], ..Commit::default() };
    store.commit("t", token, again).await.unwrap();
    assert_eq!(store.pending(None).await.unwrap(), []);
    let mut other = pause("p", "t", KEY);
    other.args_hash = "other".into();
    let error = store.commit("t", token, Commit { pauses: vec![other], ..Commit::default() }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

// H4: who gives a call up while somebody decides on it hears of the decision; nothing of the step is written.
#[tokio::test]
async fn a_decision_is_never_cancelled_over() {
    let place = Place::new();
    let store = place.open();
    let token = paused_turn(&store).await;
    open(&place.path()).decide("p", Decision::Approve, "ann", 500).await.unwrap();
    let give_up = Commit {
        closed_pauses: vec![("p".into(), PauseState::Cancelled)],
        messages: vec![SharedEntry(entry("t/t0.0", "cancelled"))],
        ..Commit::default()
    };
    let error = store.commit("t", token, give_up).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("decided meanwhile"), "{error}");
    assert_eq!(store.pause("p").await.unwrap().unwrap().state, PauseState::Approved);
    assert_eq!(texts(&store, "c").await, ["pay"]);
}

// H4: of many handles that decide at once exactly one wins; all hear of the same outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_handles_wins() {
    for round in 0..10 {
        let place = Place::new();
        let store = place.open();
        paused_turn(&store).await;
        let deciders: Vec<_> = (0..6)
            .map(|n| {
                let store = open(&place.path());
                let decision = Decision::Reply { content: n.to_string() };
                tokio::spawn(async move { store.decide("p", decision, &n.to_string(), 500).await })
            })
            .collect();
        let mut winners = Vec::new();
        for decider in deciders {
            match decider.await.unwrap() {
                Ok(pause) => winners.push(pause),
                Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyDecided, "{error}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        assert_eq!(store.pause("p").await.unwrap().as_ref(), winners.first());
    }
}
