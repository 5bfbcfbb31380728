//! Two that share a store or an agent: decisions reach whom they are about, and none is left lying.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cepa_agent::{
    Agent, AgentBuilder, Decision, Decisions, InMemory, Siblings, TurnOptions, TurnStatus, TurnStore, WhilePaused,
    Window, Windowed,
};
use cepa_core::{ErrorKind, Tool, ToolFlags, ToolOutput, ToolSpec, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};
use tokio::sync::Notify;

type Runs = Arc<Mutex<Vec<String>>>;

fn tool(name: &'static str, sensitive: bool, runs: &Runs, until: Option<Arc<Notify>>) -> Tool {
    let flags = ToolFlags { sensitive, ..ToolFlags::default() };
    let spec = ToolSpec::new(name, "Does it.", None).unwrap().with_flags(flags);
    let runs = runs.clone();
    Tool::new(spec, move |args, _| {
        runs.lock().unwrap().push(format!("{name} {}", args.as_str()));
        let until = until.clone();
        async move {
            if let Some(until) = until {
                until.notified().await;
            }
            Ok(ToolOutput::new(format!("{name} done")))
        }
    })
}

/// A model that asks for one payment by whoever speaks, and then answers.
fn paying() -> ScriptedModel {
    ScriptedModel::choosing(|_, request| {
        let said = request.messages.messages().find(|message| message.role() == cepa_core::Role::User);
        let who = said.map(|message| message.text().into_owned()).unwrap_or_default();
        if request.messages.messages().any(|message| message.role() == cepa_core::Role::Tool) {
            return Reply::text(format!("paid for {who}"));
        }
        Reply::empty().call("c", "pay", &format!("{{\"who\":\"{who}\"}}"))
    })
}

fn agent(model: ScriptedModel, runs: &Runs) -> AgentBuilder {
    Agent::builder(model).tool(tool("pay", true, runs, None)).pausing(true)
}

#[tokio::test]
async fn a_blanket_decision_reaches_the_turns_of_its_handle() {
    // H3, L12: without a conversation, with a store that both share and without one.
    for store in [Some(InMemory::new()), None] {
        let runs = Runs::default();
        let builder = agent(paying(), &runs);
        let agent = match store {
            Some(store) => builder.memory(store).build().unwrap(),
            None => builder.build().unwrap(),
        };
        let (alice, bob) = (agent.conversation(""), agent.conversation(" "));
        assert!(alice.chat("ALICE").await.unwrap().is_paused());
        assert!(bob.chat("BOB").await.unwrap().is_paused());
        assert_eq!(alice.clone().pending().await.unwrap().len(), 1);
        let result = alice.resume(Decisions::approved()).await.unwrap();
        assert_eq!(result.text, "paid for ALICE");
        assert_eq!(*runs.lock().unwrap(), [r#"pay {"who":"ALICE"}"#]);
        assert_eq!(alice.resume(Decisions::approved()).await.unwrap_err().error.kind(), ErrorKind::NotPaused);
        alice.reset().await.unwrap();
        assert_eq!(bob.resume(Decisions::approved()).await.unwrap().text, "paid for BOB");
    }
}

#[tokio::test]
async fn a_pause_can_be_named_from_anywhere() {
    // H2, L12
    let runs = Runs::default();
    let agent = agent(paying(), &runs).memory(InMemory::new()).build().unwrap();
    let paused = agent.conversation("").chat("ALICE").await.unwrap();
    let named = Decisions::one(&*paused.pending[0].id, Decision::Approve);
    assert_eq!(agent.conversation("").resume(named).await.unwrap().text, "paid for ALICE");
}

#[tokio::test]
async fn a_decision_made_while_another_drives_is_taken_up_by_it() {
    // H4, L7, L15: whoever decided was told `busy`; whoever drives goes on with the decision.
    let (runs, done) = (Runs::default(), Arc::new(Notify::new()));
    let calls = Reply::empty().call("a", "pay", "{}").call("b", "work", "{}");
    let store = InMemory::new();
    let agent = || {
        agent(ScriptedModel::new([calls.clone(), Reply::text("both done")]), &runs)
            .tool(tool("work", false, &runs, Some(done.clone())))
            .siblings(Siblings::RunOthers)
            .memory(store.clone())
            .build()
            .unwrap()
    };
    let first = agent().conversation("c");
    let (result, ()) = tokio::join!(first.chat("go"), async {
        while runs.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Another process: a handle that does not share the queue would see a lease.
        let pause = store.pending(Some("c")).await.unwrap().remove(0);
        store.decide(&pause.id, Decision::Approve, "anna", 1).await.unwrap();
        done.notify_one();
    });
    let result = result.unwrap();
    assert_eq!((result.status, result.text.as_str()), (TurnStatus::Completed, "both done"));
    assert_eq!(*runs.lock().unwrap(), ["work {}", "pay {}"]);
}

#[tokio::test]
async fn a_paused_turn_goes_on_only_where_its_conversation_is() {
    // H1, M6: moved without its conversation, or after a reset, nothing runs.
    let runs = Runs::default();
    let here = agent(paying(), &runs).memory(InMemory::new()).build().unwrap();
    let there = agent(paying(), &runs).memory(InMemory::new()).build().unwrap();
    let conversation = here.conversation("c");
    let state = conversation.chat("ALICE").await.unwrap().state.unwrap();
    conversation.reset().await.unwrap();
    for agent in [there, here] {
        let refused = agent.resume_with(state.clone(), Decisions::approved(), TurnOptions::new()).await.unwrap_err();
        assert_eq!(refused.error.kind(), ErrorKind::InvalidInput, "{refused}");
        assert_eq!(agent.conversation("c").history().await.unwrap().len(), 0);
    }
    assert!(runs.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_turn_that_waits_goes_on_whatever_else_is_decided_with_it() {
    // H2, H4: a settled pause of an earlier turn beside a live one.
    let runs = Runs::default();
    let calls = [Reply::empty().call("a", "pay", "{}"), Reply::text("one")];
    let more = [Reply::empty().call("b", "pay", "{}"), Reply::text("two")];
    let model = ScriptedModel::new(calls.into_iter().chain(more));
    let conversation = agent(model, &runs).memory(InMemory::new()).build().unwrap().conversation("c");
    let old = conversation.chat("go").await.unwrap().pending.remove(0).id;
    conversation.resume(Decisions::approved()).await.unwrap();
    let new = conversation.chat("go").await.unwrap().pending.remove(0).id;
    let both = Decisions::Each(vec![(new.clone(), Decision::Approve), (old, Decision::Approve)]);
    assert_eq!(conversation.resume(both).await.unwrap().text, "two");
    let twice = vec![(new.clone(), Decision::Approve), (new, Decision::Reject { reason: None })];
    let refused = conversation.resume(Decisions::Each(twice)).await.unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn a_turn_that_is_driven_again_is_not_given_up_for_an_earlier_drop() {
    // L11, H6: the future of a resume was dropped; its turn waits again, and the policy for it holds.
    let (runs, never) = (Runs::default(), Arc::new(Notify::new()));
    let model = ScriptedModel::new([Reply::empty().call("a", "hang", "{}")]);
    let agent = Agent::builder(model)
        .tool(tool("hang", true, &runs, Some(never)))
        .pausing(true)
        .while_paused(WhilePaused::Refuse)
        .memory(InMemory::new())
        .build()
        .unwrap();
    let conversation = agent.conversation("c");
    let pause = conversation.chat("go").await.unwrap().pending.remove(0).id;
    let decide = || Decisions::one(&*pause, Decision::Approve);
    let dropped = tokio::time::timeout(Duration::from_millis(50), conversation.resume(decide())).await;
    assert!(dropped.is_err(), "it hangs");
    let again = conversation.resume(decide()).await.unwrap();
    assert!(again.is_paused(), "nobody knows how it ended");
    assert_eq!(conversation.chat("hello").await.unwrap_err().error.kind(), ErrorKind::Busy);
    assert_eq!(conversation.pending().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_its_caller_dropped_is_given_up_by_the_sweep_too() {
    // L11, D3
    let (runs, never) = (Runs::default(), Arc::new(Notify::new()));
    let model = ScriptedModel::new([Reply::empty().call("a", "hang", "{}").call("b", "work", "{}"), Reply::text("x")]);
    let agent = Agent::builder(model)
        .tools([tool("hang", false, &runs, Some(never)), tool("work", false, &runs, None)])
        .memory(InMemory::new())
        .build()
        .unwrap();
    let conversation = agent.conversation("c");
    assert!(tokio::time::timeout(Duration::from_millis(50), conversation.chat("go")).await.is_err());
    // The place in the queue is kept until the last write has landed.
    tokio::time::sleep(Duration::from_millis(50)).await;
    agent.recover().await.unwrap();
    assert_eq!(*runs.lock().unwrap(), ["hang {}"]);
    assert!(agent.store().live_turns(None).await.unwrap().is_empty());
    assert_eq!(pairing::validate(&conversation.history().await.unwrap()), Ok(()));
}

#[tokio::test]
async fn waiting_for_ever_is_a_time_to_wait() {
    // L15
    let agent = Agent::builder(ScriptedModel::new([Reply::text("hi")]))
        .memory(InMemory::new())
        .lease_wait(Duration::MAX)
        .build()
        .unwrap();
    assert_eq!(agent.conversation("c").chat("go").await.unwrap().text, "hi");
}

#[tokio::test]
async fn an_old_decision_tells_what_came_of_it_also_behind_a_window() {
    // H4, L3, M5: the turn has left the window when its decision is made again.
    let runs = Runs::default();
    let replies = [Reply::empty().call("a", "pay", "{}"), Reply::text("it is paid"), Reply::text("hello")];
    let memory = Windowed::new(InMemory::new(), Window::messages(1).unwrap());
    let conversation = agent(ScriptedModel::new(replies), &runs).memory(memory).build().unwrap().conversation("c");
    let pause = conversation.chat("pay").await.unwrap().pending.remove(0).id;
    let decide = || Decisions::one(&*pause, Decision::Approve);
    assert_eq!(conversation.resume(decide()).await.unwrap().text, "it is paid");
    assert_eq!(conversation.chat("hi").await.unwrap().text, "hello");
    assert_eq!(conversation.resume(decide()).await.unwrap().text, "it is paid");
    assert_eq!(runs.lock().unwrap().len(), 1);
}
