//! A turn that is cancelled in the middle of a batch, or while filters still work on a reply that is stored.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use cepa_agent::{
    Agent, AgentBuilder, Decision, InMemory, Siblings, TurnOptions, TurnStatus, TurnStore, turn::CancelReason,
};
use cepa_core::{Chat, Stage as _, Tool, ToolContext, ToolFlags, ToolOutput, ToolSpec, ToolStatus, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};

const SHORT: Duration = Duration::from_millis(100);

fn spec(name: &str, flags: ToolFlags) -> ToolSpec {
    ToolSpec::new(name, "Does it.", None).unwrap().with_flags(flags)
}

/// A call that asks, beside one that takes long and either ends when it is told to or does not.
fn agent(model: ScriptedModel, store: &InMemory, ran: &Arc<AtomicUsize>) -> AgentBuilder {
    let sensitive = ToolFlags { sensitive: true, ..ToolFlags::default() };
    let ran = ran.clone();
    Agent::builder(model)
        .tool(Tool::new(spec("ask", sensitive), move |_, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            async { Ok(ToolOutput::new("asked")) }
        }))
        .tool(Tool::new(spec("polite", ToolFlags::default()), |_, context: ToolContext| async move {
            context.cancel().cancelled().await;
            Ok(ToolOutput::new("stopped"))
        }))
        .tool(Tool::new(spec("stubborn", ToolFlags::default()), |_, _| async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok(ToolOutput::new("late"))
        }))
        .pausing(true)
        .siblings(Siblings::RunOthers)
        .memory(store.clone())
}

#[tokio::test]
async fn what_was_cancelled_does_not_depend_on_the_manners_of_a_sibling() {
    // L11, L7: by its deadline, and by its caller.
    for (sibling, status) in [("polite", ToolStatus::Ok), ("stubborn", ToolStatus::Unknown)] {
        for reason in [CancelReason::Deadline, CancelReason::Caller] {
            let (store, ran) = (InMemory::new(), Arc::default());
            let model = ScriptedModel::new([Reply::empty().call("a", "ask", "{}").call("b", sibling, "{}")]);
            let conversation = agent(model, &store, &ran).build().unwrap().conversation("c");
            let mut options = TurnOptions::new();
            let cancel = options.cancel.clone();
            if reason == CancelReason::Deadline {
                options = options.deadline(SHORT);
            }
            let (result, ()) = tokio::join!(conversation.chat_with("go", options), async {
                if reason == CancelReason::Caller {
                    tokio::time::sleep(SHORT).await;
                    cancel.cancel();
                }
            });
            let result = result.unwrap();
            assert_eq!((result.status, result.cancelled), (TurnStatus::Cancelled, Some(reason)), "{sibling}");
            let ends: Vec<ToolStatus> = result.records.iter().map(|record| record.outcome).collect();
            assert_eq!(ends, [ToolStatus::Cancelled, status], "{sibling}");
            assert_eq!(conversation.pending().await.unwrap(), []);
            assert_eq!(pairing::validate(&conversation.history().await.unwrap()), Ok(()));
        }
    }
}

#[tokio::test]
async fn a_decision_made_meanwhile_does_not_keep_a_cancelled_turn_alive() {
    // L11, H3: the call that was approved had not started; the records say what is stored.
    let (store, ran) = (InMemory::new(), Arc::<AtomicUsize>::default());
    let model = ScriptedModel::new([Reply::empty().call("a", "ask", "{}").call("b", "stubborn", "{}")]);
    let agent = agent(model, &store, &ran).build().unwrap();
    let conversation = agent.conversation("c");
    let (result, ()) = tokio::join!(conversation.chat_with("go", TurnOptions::new().deadline(SHORT)), async {
        while store.pending(Some("c")).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let pause = store.pending(Some("c")).await.unwrap().remove(0);
        store.decide(&pause.id, Decision::Approve, "anna", 1).await.unwrap();
    });
    let result = result.unwrap();
    assert_eq!((result.status, result.cancelled), (TurnStatus::Cancelled, Some(CancelReason::Deadline)));
    agent.recover().await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 0, "it ran after the turn was cancelled");
    assert!(store.live_turns(None).await.unwrap().is_empty());
    let stored = store.turn(&result.turn).await.unwrap().unwrap();
    let kept: Vec<ToolStatus> = stored.calls.iter().map(|call| call.result.as_ref().unwrap().status).collect();
    let told: Vec<ToolStatus> = result.records.iter().map(|record| record.outcome).collect();
    assert_eq!(told, kept);
}

#[tokio::test]
async fn one_grace_for_all_calls_of_a_batch() {
    // L11: however many of them end meanwhile.
    let concurrent = ToolFlags { concurrent: true, ..ToolFlags::default() };
    let count = Arc::new(AtomicUsize::new(0));
    let slow = Tool::new(spec("slow", concurrent), move |_, _| {
        let nth = u64::try_from(count.fetch_add(1, Ordering::SeqCst)).unwrap();
        async move {
            tokio::time::sleep(Duration::from_millis(200) * u32::try_from(nth).unwrap()).await;
            Ok(ToolOutput::new("done"))
        }
    });
    let mut calls = Reply::empty();
    for n in 0..40 {
        calls = calls.call(format!("c{n}"), "slow", "{}");
    }
    let agent = Agent::builder(ScriptedModel::new([calls])).tool(slow).memory(InMemory::new()).build().unwrap();
    let from = Instant::now();
    let late = agent.conversation("c").chat_with("go", TurnOptions::new().deadline(SHORT)).await.unwrap();
    assert_eq!(late.status, TurnStatus::Cancelled);
    assert!(from.elapsed() < Duration::from_secs(4), "{:?}, where all calls take 8 s", from.elapsed());
}

#[tokio::test]
async fn a_reply_that_is_stored_is_answered_when_a_filter_outside_is_cut_off() {
    // L11: the filter takes its time after the memory has stored the reply with its call.
    let (store, ran) = (InMemory::new(), Arc::default());
    let model = ScriptedModel::new([Reply::empty().call("a", "polite", "{}"), Reply::text("hi")]);
    let slow = Chat::around("moderation", |request, next| async move {
        let response = next.run(request).await?;
        if !response.message.tool_calls.is_empty() {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        Ok(response)
    });
    let conversation = agent(model, &store, &ran).chat_filter(slow).build().unwrap().conversation("c");
    let late = conversation.chat_with("go", TurnOptions::new().deadline(SHORT)).await.unwrap();
    assert_eq!(late.status, TurnStatus::Cancelled);
    assert_eq!(late.records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [ToolStatus::Cancelled]);
    let history = conversation.history().await.unwrap();
    assert_eq!((history.len(), pairing::validate(&history)), (3, Ok(())));
    assert_eq!(conversation.chat("again").await.unwrap().text, "hi");
}
