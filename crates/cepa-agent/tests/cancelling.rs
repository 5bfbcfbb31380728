//! Whatever a caller waits for, cancelling ends the wait, and the conversation stays usable.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cepa_agent::{
    Agent, AgentBuilder, Decisions, InMemory, TurnError, TurnOptions, TurnResult, TurnStatus, TurnStore, Verdict,
    WhilePaused, gate_fn,
};
use cepa_core::{CancellationToken, ErrorKind, Tool, ToolFlags, ToolOutput, ToolSpec, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};

/// Longer than every wait that a cancelled turn may still need, shorter than what it would wait for.
const SOON: Duration = Duration::from_secs(3);

fn pay() -> Tool {
    let spec = ToolSpec::new("pay", "Pays.", Some(r#"{"type":"object","properties":{}}"#)).unwrap();
    let flags = ToolFlags { sensitive: true, ..ToolFlags::default() };
    Tool::new(spec.with_flags(flags), |_, _| async { Ok(ToolOutput::new("paid")) })
}

fn agent(model: &ScriptedModel, store: &InMemory) -> AgentBuilder {
    Agent::builder(model.clone()).tool(pay()).memory(store.clone()).lease_wait(Duration::from_secs(60))
}

/// Runs a turn with a token that is cancelled when the turn has had time to wait.
async fn cancelled<T>(turn: impl AsyncFnOnce(TurnOptions) -> T) -> T {
    let cancel = CancellationToken::new();
    let options = TurnOptions::new().cancel(cancel.clone());
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
        pending::<()>().await;
    };
    tokio::select! {
        done = tokio::time::timeout(SOON, turn(options)) => done.unwrap_or_else(|_| panic!("cancelling had no effect")),
        () = cancelling => unreachable!(),
    }
}

fn is_cancelled(done: &Result<TurnResult, TurnError>) -> bool {
    match done {
        Ok(result) => result.status == TurnStatus::Cancelled,
        Err(failed) => failed.error.kind() == ErrorKind::Cancelled,
    }
}

#[tokio::test]
async fn a_wait_for_the_turn_before_is_cancelled() {
    // L11, L15
    let (model, store) = (ScriptedModel::new([Reply::silence(), Reply::text("hi")]), InMemory::new());
    let conversation = agent(&model, &store).build().unwrap().conversation("c");
    let first_cancel = CancellationToken::new();
    let first = conversation.chat_with("one", TurnOptions::new().cancel(first_cancel.clone()));
    let (first, ()) = tokio::join!(first, async {
        let second = cancelled(async |options| conversation.chat_with("two", options).await).await;
        assert!(is_cancelled(&second), "{second:?}");
        first_cancel.cancel();
    });
    assert!(is_cancelled(&first));
    assert_eq!(conversation.chat("three").await.unwrap().text, "hi");
}

#[tokio::test]
async fn a_wait_for_another_process_is_cancelled_and_a_decision_stands() {
    // L11, L15, H4
    let call = Reply::empty().call("a", "pay", "{}");
    let (model, store) = (ScriptedModel::new([call, Reply::text("it is paid")]), InMemory::new());
    let conversation = agent(&model, &store).pausing(true).build().unwrap().conversation("c");
    assert!(conversation.chat("pay").await.unwrap().is_paused());
    let lease = store.lease("c", "another process", 0, i64::MAX).await.unwrap();
    let chat = cancelled(async |options| conversation.chat_with("two", options).await).await;
    let resumed =
        cancelled(async |options| conversation.resume_with_options(Decisions::approved(), options).await).await;
    assert!(is_cancelled(&chat) && is_cancelled(&resumed), "{chat:?} {resumed:?}");
    store.release("c", lease.token).await.unwrap();
    assert_eq!(conversation.recover().await.unwrap().unwrap().text, "it is paid");
}

#[tokio::test]
async fn a_wait_for_decisions_is_cancelled() {
    // L11, H6
    let call = Reply::empty().call("a", "pay", "{}");
    let (model, store) = (ScriptedModel::new([call]), InMemory::new());
    let agent = agent(&model, &store).pausing(true).while_paused(WhilePaused::Queue).build().unwrap();
    let conversation = agent.conversation("c");
    assert!(conversation.chat("pay").await.unwrap().is_paused());
    let second = cancelled(async |options| conversation.chat_with("two", options).await).await;
    assert!(is_cancelled(&second), "{second:?}");
    assert!(conversation.is_paused().await.unwrap());
}

#[tokio::test]
async fn a_gate_that_hangs_is_cancelled() {
    // L11: on the first way to the gate, and nothing ran.
    let call = Reply::empty().call("a", "pay", "{}");
    let (model, store) = (ScriptedModel::new([call, Reply::text("hi")]), InMemory::new());
    let asked = Arc::new(AtomicBool::new(false));
    let seen = asked.clone();
    let gate = gate_fn(move |_| {
        seen.store(true, Ordering::SeqCst);
        async { Ok(pending::<Verdict>().await) }
    });
    let conversation = agent(&model, &store).gate(gate).build().unwrap().conversation("c");
    let done = cancelled(async |options| conversation.chat_with("pay", options).await).await;
    assert!(asked.load(Ordering::SeqCst) && is_cancelled(&done), "{done:?}");
    assert!(done.unwrap().records.iter().all(|record| record.result != "paid"));
    assert_eq!(conversation.chat("hello").await.unwrap().text, "hi");
    let history = conversation.history().await.unwrap();
    assert_eq!(pairing::validate(&history), Ok(()));
}

#[tokio::test]
async fn finishing_what_a_crash_left_behind_is_cancelled() {
    // L11, D3: a turn that was begun elsewhere and never driven is brought to its end first.
    let call = Reply::empty().call("a", "pay", "{}");
    let model = ScriptedModel::new([call, Reply::silence(), Reply::text("hi")]);
    let store = InMemory::new();
    let conversation = agent(&model, &store).pausing(true).build().unwrap().conversation("c");
    let pause = conversation.chat("pay").await.unwrap().pending.remove(0);
    store.decide(&pause.id, cepa_agent::Decision::Approve, "another process", 1).await.unwrap();
    let done = cancelled(async |options| conversation.chat_with("two", options).await).await;
    assert!(is_cancelled(&done), "{done:?}");
    assert_eq!(conversation.chat("three").await.unwrap().text, "hi");
}
