//! A turn's events for whoever reads them: the same in the same order, whoever else listens, panics or goes away.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cepa_agent::{Agent, AgentEvent, TurnOptions, TurnStream};
use cepa_core::{Tool, ToolOutput, ToolSpec};
use cepa_testkit::scripted::{Reply, ScriptedModel};

fn agent() -> Agent {
    let model = ScriptedModel::new([
        Reply::text("let me see").call("c1", "lookup", r#"{"a":1}"#).call("c2", "lookup", "{}"),
        Reply::empty().call("c3", "lookup", "{}"),
        Reply::text("the answer is 42"),
    ]);
    let spec = ToolSpec::new("lookup", "A test tool.", Some(r#"{"type":"object","properties":{}}"#)).unwrap();
    let lookup = Tool::new(spec, |_, _| async {
        tokio::task::yield_now().await;
        Ok(ToolOutput::new("done"))
    });
    Agent::builder(model).tool(lookup).build().unwrap()
}

fn options(seen: &Arc<Mutex<Vec<String>>>) -> TurnOptions {
    let seen = seen.clone();
    TurnOptions::new().on_event(move |event| seen.lock().unwrap().push(told(event)))
}

/// An event without what differs from turn to turn.
fn told(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Done(result) => format!("Done {}", result.text),
        other => format!("{other:?}"),
    }
}

async fn read(mut stream: TurnStream, pause: Option<Duration>) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(told(&event.unwrap()));
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
    assert!(stream.next().await.is_none());
    events
}

#[tokio::test(start_paused = true)]
async fn listeners_and_the_stream_hear_the_same_in_the_same_order() {
    let alone = read(agent().chat_stream("go"), None).await;
    assert!(alone.len() > 10 && alone.last().unwrap().starts_with("Done the answer"), "{alone:?}");
    for pause in [None, Some(Duration::from_secs(1))] {
        let (one, other) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let agent = agent();
        let kept = Arc::clone(&other);
        let options = options(&one)
            .on_event(|_| panic!("a listener panics"))
            .on_event(move |event| kept.lock().unwrap().push(told(event)));
        let events = read(agent.own_conversation().chat_stream_with("go", options), pause).await;
        assert_eq!(events, alone);
        // The stream itself tells of the end.
        for heard in [&one, &other] {
            let heard: Vec<String> = heard.lock().unwrap().clone();
            let without: Vec<_> = alone.iter().filter(|event| !event.starts_with("Done")).cloned().collect();
            let heard: Vec<_> = heard.into_iter().filter(|event| !event.starts_with("Done")).collect();
            assert_eq!(heard, without);
        }
    }
}

// Wherever it is dropped: what was told until then was right, and the next turn goes on.
#[tokio::test]
async fn a_stream_can_be_dropped_at_any_event() {
    let all = read(agent().chat_stream("go"), None).await;
    for read_until in 0..all.len() {
        let agent = agent();
        let mut stream = agent.chat_stream("go");
        for expected in &all[..read_until] {
            assert_eq!(&told(&stream.next().await.unwrap().unwrap()), expected);
        }
        drop(stream);
    }
}
