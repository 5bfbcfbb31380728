//! A turn that takes longer than it was given is cancelled, as safely as by its caller.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{future::pending, time::Duration};

use cepa_agent::{
    Agent, AgentBuilder, Decisions, InMemory, Texts, TurnOptions, TurnResult, TurnStatus, turn::CancelReason,
};
use cepa_core::{ChatEvent, FinishReason, Message, Tool, ToolFlags, ToolOutput, ToolSpec, ToolStatus, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};

const SHORT: Duration = Duration::from_millis(80);

fn tool(name: &str, flags: ToolFlags, hangs: bool) -> Tool {
    let spec = ToolSpec::new(name, "Does it.", Some(r#"{"type":"object","properties":{}}"#)).unwrap();
    Tool::new(spec.with_flags(flags), move |_, _| async move {
        if hangs {
            pending::<()>().await;
        }
        Ok(ToolOutput::new("done"))
    })
}

fn agent(replies: impl IntoIterator<Item = Reply>, store: &InMemory) -> AgentBuilder {
    let sensitive = ToolFlags { sensitive: true, ..ToolFlags::default() };
    Agent::builder(ScriptedModel::new(replies))
        .tool(tool("hang", ToolFlags::default(), true))
        .tool(tool("work", ToolFlags::default(), false))
        .tool(tool("pay", sensitive, false))
        .memory(store.clone())
}

fn is_late(result: &TurnResult) -> bool {
    result.status == TurnStatus::Cancelled && result.cancelled == Some(CancelReason::Deadline)
}

#[tokio::test]
async fn a_silent_model_leaves_no_message() {
    // L11
    let store = InMemory::new();
    let agent = agent([Reply::silence(), Reply::text("hi")], &store).turn_deadline(SHORT).build().unwrap();
    let conversation = agent.conversation("c");
    assert!(is_late(&conversation.chat("one").await.unwrap()));
    assert_eq!(conversation.history().await.unwrap().len(), 0);
    assert_eq!(conversation.chat("two").await.unwrap().text, "hi");
}

#[tokio::test]
async fn a_tool_that_hangs_is_unknown_and_what_comes_after_it_does_not_run() {
    // L11: not started and unknown are told apart, and the conversation goes on.
    let store = InMemory::new();
    let calls = Reply::empty().call("a", "work", "{}").call("b", "hang", "{}").call("c", "work", "{}");
    let agent = agent([calls, Reply::text("hi")], &store).build().unwrap();
    let conversation = agent.conversation("c");
    let late = conversation.chat_with("one", TurnOptions::new().deadline(SHORT)).await.unwrap();
    assert!(is_late(&late), "{late:?}");
    let ends: Vec<_> = late.records.iter().map(|record| (record.outcome, record.result.as_str())).collect();
    let texts = Texts::default();
    let expected = [
        (ToolStatus::Ok, "done"),
        (ToolStatus::Unknown, texts.unknown.as_str()),
        (ToolStatus::Cancelled, texts.deadline.as_str()),
    ];
    assert_eq!(ends, expected);
    assert_eq!(pairing::validate(&conversation.history().await.unwrap()), Ok(()));
    assert_eq!(conversation.chat("two").await.unwrap().text, "hi");
}

#[tokio::test]
async fn the_text_received_so_far_is_kept() {
    // L11
    let store = InMemory::new();
    let agent = agent([Reply::silence().streaming([ChatEvent::Text("half of it".into())])], &store)
        .turn_deadline(SHORT)
        .build()
        .unwrap();
    let conversation = agent.conversation("c");
    let late = conversation.chat_with("one", TurnOptions::new().on_event(|_| ())).await.unwrap();
    assert!(is_late(&late), "{late:?}");
    let history = conversation.history().await.unwrap();
    let messages: Vec<&Message> = history.messages().collect();
    let Some(Message::Assistant(reply)) = messages.last() else { unreachable!("{messages:?}") };
    assert_eq!(reply.finish_reason, Some(FinishReason::Cancelled));
    assert_eq!(reply.content.as_ref().unwrap().text(), "half of it");
    // Who wrote it is known as of any reply.
    assert_eq!(reply.origin.as_ref(), Some(agent.kernel().origin()));
}

#[tokio::test]
async fn waiting_for_a_person_does_not_count() {
    // L11, H1
    let store = InMemory::new();
    let calls = Reply::empty().call("a", "pay", "{}");
    let agent = agent([calls, Reply::text("paid")], &store).pausing(true).turn_deadline(SHORT).build().unwrap();
    let conversation = agent.conversation("c");
    assert!(conversation.chat("pay").await.unwrap().is_paused());
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(conversation.resume(Decisions::approved()).await.unwrap().text, "paid");
}

#[tokio::test]
async fn an_ephemeral_turn_has_its_time_too() {
    // L11, L12
    let model = ScriptedModel::new([Reply::silence()]);
    let agent = Agent::builder(model).turn_deadline(SHORT).build().unwrap();
    assert!(is_late(&agent.chat("one").await.unwrap()));
}

#[tokio::test]
async fn a_caller_who_cancels_is_told_so() {
    // L11
    let store = InMemory::new();
    let agent = agent([Reply::silence()], &store).turn_deadline(Duration::from_secs(60)).build().unwrap();
    let options = TurnOptions::new();
    let cancel = options.cancel.clone();
    let conversation = agent.conversation("c");
    let (result, ()) = tokio::join!(conversation.chat_with("one", options), async {
        tokio::time::sleep(SHORT).await;
        cancel.cancel();
    });
    assert_eq!(result.unwrap().cancelled, Some(CancelReason::Caller));
}
