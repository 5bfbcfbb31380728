//! Bodies that ask to be entered from elsewhere, too late, or not at all any more: siblings are not disturbed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cepa_agent::{Agent, AgentBuilder, InMemory, TurnStatus};
use cepa_core::{Role, Stage, Tool, ToolError, ToolFlags, ToolOutput, ToolResponse, ToolSpec, ToolStatus, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};

type Runs = Arc<Mutex<Vec<String>>>;

fn tool(name: &'static str, flags: ToolFlags, takes: Duration, runs: &Runs) -> Tool {
    let (runs, spec) = (runs.clone(), ToolSpec::new(name, "", None).unwrap().with_flags(flags));
    Tool::new(spec, move |_, _| {
        runs.lock().unwrap().push(name.to_owned());
        async move {
            tokio::time::sleep(takes).await;
            if name == "fails" {
                Err(ToolError::transient("later"))
            } else {
                Ok(ToolOutput::new(format!("{name} done")))
            }
        }
    })
}

fn instead(text: &str) -> ToolResponse {
    ToolResponse { output: ToolOutput::new(text), writes: serde_json::Map::new() }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn agent(calls: &'static [&'static str], runs: &Runs) -> AgentBuilder {
    let model = ScriptedModel::choosing(move |_, request| {
        if request.messages.last().is_some_and(|last| last.message.role() == Role::Tool) {
            return Reply::text("done");
        }
        let call = |reply: Reply, (n, name): (usize, &&str)| reply.call(format!("c{n}"), *name, "{}");
        calls.iter().enumerate().fold(Reply::empty(), call)
    });
    let side = || ToolFlags { concurrent: true, ..ToolFlags::default() };
    Agent::builder(model)
        .tool(tool("early", side(), ms(0), runs))
        .tool(tool("again", ToolFlags { idempotent: true, ..side() }, ms(0), runs))
        .tool(tool("fails", ToolFlags { idempotent: true, ..side() }, ms(0), runs))
        .tool(tool("reads", ToolFlags { read_only: true, ..side() }, ms(0), runs))
        .tool(tool("slow", side(), ms(300), runs))
        .tool(tool("hangs", ToolFlags { timeout: Some(ms(50)), ..side() }, ms(10_000), runs))
        .memory(InMemory::new())
        .conversation_id("c")
}

// D3, L8, F3: a filter answers at once and goes on with the inside elsewhere: that body comes too late, and only it.
#[tokio::test]
async fn a_body_that_comes_after_the_end_of_its_call_is_not_entered() {
    for name in ["early", "again"] {
        let runs = Runs::default();
        let calls: &[&str] = if name == "early" { &["early", "slow"] } else { &["again", "slow"] };
        let later = Tool::around("later", move |request, next| async move {
            if request.call.name == "slow" {
                return next.run(request).await;
            }
            tokio::spawn(async move {
                tokio::time::sleep(ms(50)).await;
                next.run(request).await
            });
            Ok(instead("instead"))
        });
        let agent = agent(calls, &runs).tool_filter(later).build().unwrap();
        let done = agent.chat("go").await.unwrap();
        assert_eq!((done.status, &*done.text), (TurnStatus::Completed, "done"), "{name}");
        let results: Vec<_> = done.records.iter().map(|record| (&*record.result, record.outcome)).collect();
        assert_eq!(results, [("instead", ToolStatus::Ok), ("slow done", ToolStatus::Ok)]);
        assert_eq!(*runs.lock().unwrap(), ["slow"]);
    }
}

// D3, L9: bodies on other tasks, one that is dropped while it asks, one that is repeated, one that takes too long.
#[tokio::test(flavor = "current_thread")]
async fn bodies_are_entered_from_other_tasks() {
    let runs = Runs::default();
    let spawns = Tool::around("spawns", move |request, next| async move {
        if request.call.name == "early" {
            // Polled once, so that it asks, and dropped.
            let mut inside = Box::pin(next.run(request));
            std::future::poll_fn(|context| {
                let _ = inside.as_mut().poll(context);
                std::task::Poll::Ready(())
            })
            .await;
            drop(inside);
            return Ok(instead("dropped"));
        }
        tokio::spawn(next.run(request)).await.unwrap()
    });
    let agent =
        agent(&["early", "again", "fails", "reads", "slow", "hangs"], &runs).tool_filter(spawns).build().unwrap();
    let done = tokio::time::timeout(ms(5_000), agent.chat("go")).await.unwrap().unwrap();
    let results: Vec<_> = done.records.iter().map(|record| (&*record.result, record.outcome)).collect();
    assert_eq!(results.len(), 6);
    assert_eq!(results[0].0, "dropped");
    assert_eq!(results[1], ("again done", ToolStatus::Ok));
    assert_eq!(results[2], ("later", ToolStatus::Error));
    assert_eq!(results[4], ("slow done", ToolStatus::Ok));
    assert_eq!(results[5].1, ToolStatus::Error);
    let count = |name: &str| runs.lock().unwrap().iter().filter(|run| *run == name).count();
    assert_eq!(["early", "again", "fails", "reads", "slow", "hangs"].map(count), [0, 1, 3, 1, 1, 1]);
    let history = agent.own_conversation().history().await.unwrap();
    assert_eq!(pairing::validate(&history), Ok(()));
}
