//! A turn whose future is dropped, or which is cancelled, at any of its waits: the conversation can be used at once, by its own process and by
//! another, nothing ran twice, and no message is lost or doubled.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod common;

use std::{
    collections::HashSet,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use cepa_agent::{
    Agent, AgentBuilder, InMemory, TurnError, TurnOptions, TurnResult, TurnStatus, TurnStore, Verdict, gate_fn,
    load_whole,
};
use cepa_core::{CancellationToken, Chat, ErrorKind, Role, Stage, Tool, ToolFlags, ToolOutput, ToolSpec, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};
use common::Place;

type Runs = Arc<Mutex<Vec<(String, String)>>>;

/// What stands around.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Around {
    Nothing,
    Listener,
    Chat,
    ChatInside,
    Tool,
    SpawnedTool,
    Turn,
    Gate,
}

fn tool(name: &'static str, flags: ToolFlags, runs: &Runs) -> Tool {
    let (runs, spec) = (runs.clone(), ToolSpec::new(name, "", None).unwrap().with_flags(flags));
    Tool::new(spec, move |_, context| {
        let key = context.idempotency_key().unwrap_or_default().to_owned();
        runs.lock().unwrap().push((name.to_owned(), key));
        async move {
            if name != "quick" {
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::new(format!("{name} done")))
        }
    })
}

/// What it says depends on what it reads since the last thing that a person said.
fn model() -> ScriptedModel {
    ScriptedModel::choosing(|_, request| {
        let later = request.messages.messages().rev().take_while(|message| message.role() != Role::User);
        let said = request.messages.messages().rev().find(|message| message.role() == Role::User);
        if said.is_some_and(|said| said.text() != "go") {
            return Reply::text("hello");
        }
        match later.filter(|message| message.role() == Role::Tool).count() {
            0 => Reply::text("Things.").call("c1", "once", "{}").call("c2", "quick", "{}").call("c3", "reads", "{}"),
            3 => Reply::empty()
                .call("c1", "again", "{}")
                .call("c1", "missing", "{}")
                .call("c2", "side", "{}")
                .call("c3", "side", "{}"),
            _ => Reply::text("done"),
        }
    })
}

fn agent(store: Arc<dyn TurnStore>, runs: &Runs, around: Around) -> AgentBuilder {
    let flags = ToolFlags::default;
    let builder = Agent::builder(model())
        .tool(tool("once", flags(), runs))
        .tool(tool("quick", flags(), runs))
        .tool(tool("reads", ToolFlags { read_only: true, ..flags() }, runs))
        .tool(tool("again", ToolFlags { idempotent: true, ..flags() }, runs))
        .tool(tool("side", ToolFlags { concurrent: true, ..flags() }, runs))
        .memory_shared(store)
        .lease(Duration::from_secs(60));
    let waiting = |name, order| {
        Chat::around(name, |request, next| async move {
            tokio::task::yield_now().await;
            let done = next.run(request).await;
            tokio::task::yield_now().await;
            done
        })
        .order(order)
    };
    match around {
        Around::Nothing => builder,
        Around::Listener => builder.on_event(|_| {}),
        Around::Chat => builder.chat_filter(waiting("outside", 0)),
        Around::ChatInside => builder.chat_filter(waiting("inside", 200)),
        Around::Tool => builder.tool_filter(Tool::around("slow", |request, next| async move {
            tokio::task::yield_now().await;
            let done = next.run(request).await;
            tokio::task::yield_now().await;
            done
        })),
        Around::SpawnedTool => builder.tool_filter(Tool::around("spawns", |request, next| async move {
            tokio::spawn(next.run(request)).await.unwrap()
        })),
        Around::Turn => builder.turn_filter(cepa_agent::Turn::around("turn", |request, next| async move {
            tokio::task::yield_now().await;
            let done = next.run(request).await;
            tokio::task::yield_now().await;
            done
        })),
        Around::Gate => builder.gate(gate_fn(|_| async {
            tokio::task::yield_now().await;
            Ok(Verdict::Proceed)
        })),
    }
}

/// Polls so many times, then drops. Whether it came to its end.
async fn polled<T>(future: impl Future<Output = T>, mut times: usize) -> bool {
    let mut future = pin!(future);
    poll_fn(|context| {
        if times == 0 {
            return Poll::Ready(false);
        }
        times -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if times == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Polls so many times, then cancels. The polls it took.
async fn cancelled(agent: &Agent, times: usize, late: bool, what: &str) -> (usize, Result<TurnResult, TurnError>) {
    let cancel = CancellationToken::new();
    let options = TurnOptions::new().cancel(cancel.clone());
    let conversation = agent.conversation("c");
    let mut future = Box::pin(conversation.chat_with("go", options));
    let mut polls = 0;
    let done = poll_fn(|context| {
        if polls == times && !late {
            cancel.cancel();
        }
        polls += 1;
        let done = future.as_mut().poll(context);
        if polls == times && late {
            cancel.cancel();
        }
        done
    });
    let done = tokio::time::timeout(Duration::from_secs(20), done).await;
    (polls, done.unwrap_or_else(|_| panic!("{what}: it hangs, after {polls} polls")))
}

async fn judge(store: &dyn TurnStore, runs: &Runs, what: &str) {
    let (_, history) = load_whole(store, "c").await.unwrap();
    assert_eq!(pairing::validate(&history), Ok(()), "{what}: {history:?}");
    let ids: Vec<_> = history.iter().map(|entry| entry.id.clone()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{what}: {ids:?}");
    let said = |text: &str| history.messages().filter(|message| message.text() == text).count();
    assert_eq!((said("next"), said("hello")), (1, 1), "{what}: {history:?}");
    assert!(said("go") <= 1, "{what}: {history:?}");
    assert!(said("go") == 1 || history.len() == 2, "{what}: {history:?}");
    let runs = runs.lock().unwrap();
    let mut seen = HashSet::new();
    for (name, key) in runs.iter().filter(|(name, _)| name == "once" || name == "quick" || name == "side") {
        assert!(seen.insert(key), "{what}: `{name}` ran twice: {runs:?}");
    }
}

/// Whether the turn came to its end within so many polls.
async fn dropped(
    store: Arc<dyn TurnStore>,
    other: Arc<dyn TurnStore>,
    around: Around,
    times: usize,
    here: bool,
) -> bool {
    let what = format!("{around:?}, {times} polls, {}", if here { "here" } else { "elsewhere" });
    let runs = Runs::default();
    let first = agent(store.clone(), &runs, around).build().unwrap();
    let done = {
        let conversation = first.conversation("c");
        polled(Box::pin(conversation.chat("go")), times).await
    };
    let next = if here {
        first.clone()
    } else {
        agent(other.clone(), &runs, Around::Nothing).lease_wait(Duration::from_secs(2)).build().unwrap()
    };
    let next = next.conversation("c");
    let result = tokio::time::timeout(Duration::from_secs(10), next.chat("next")).await;
    let result =
        result.unwrap_or_else(|_| panic!("{what}: it hangs")).unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert_eq!((result.status, &*result.text), (TurnStatus::Completed, "hello"), "{what}");
    judge(&*other, &runs, &what).await;
    // What runs on elsewhere changes nothing, and the conversation is free.
    tokio::time::sleep(Duration::from_millis(20)).await;
    judge(&*other, &runs, &what).await;
    assert!(store.live_turns(None).await.unwrap().is_empty(), "{what}");
    let lease = other.lease("c", "a third", 0, 1).await;
    assert!(lease.is_ok(), "{what}: {lease:?}");
    done
}

const ALL: [Around; 8] = [
    Around::Nothing,
    Around::Listener,
    Around::Chat,
    Around::ChatInside,
    Around::Tool,
    Around::SpawnedTool,
    Around::Turn,
    Around::Gate,
];

// L11, D3, M1, L15
#[tokio::test]
async fn a_turn_is_dropped_at_every_wait() {
    for around in ALL {
        for here in [true, false] {
            if !here && !matches!(around, Around::Nothing | Around::Chat | Around::Turn) {
                continue;
            }
            let mut times = 1;
            loop {
                let place = Place::new();
                let (store, other) = (Arc::new(place.open()), Arc::new(place.open()));
                if dropped(store, other, around, times, here).await {
                    break;
                }
                times += 1;
            }
            println!("{around:?} {here}: {times} polls");
        }
    }
}

// L11, D3, M1, L15: the store in the process, with and without conversations that are packed at once.
#[tokio::test]
async fn a_turn_is_dropped_at_every_wait_in_memory() {
    for around in ALL {
        for bytes in [0, 1 << 20] {
            for here in [true, false] {
                for times in 1..200 {
                    let store = Arc::new(InMemory::new().hot_bytes(bytes));
                    if dropped(store.clone(), store, around, times, here).await {
                        println!("{around:?} {here}: {times} polls");
                        break;
                    }
                }
            }
        }
    }
}

// L11, D3, M1, L15: a turn that is cancelled says how it ended, and the conversation is as it says.
#[tokio::test]
async fn a_turn_is_cancelled_at_every_wait() {
    let mut cases = tokio::task::JoinSet::new();
    for around in ALL {
        for late in [false, true] {
            for times in 1..40 {
                // Not all of them at once: a grace that others use up is none.
                while cases.len() >= 32 {
                    cases.join_next().await.unwrap().unwrap();
                }
                // Nearly the same twice: once is enough where it takes a disk.
                for durable in if late { &[false][..] } else { &[false, true] } {
                    let durable = *durable;
                    cases.spawn(async move {
                        let what = format!("{around:?}, {times} polls, {late}, durable: {durable}");
                        let (place, runs) = (Place::new(), Runs::default());
                        let store: Arc<dyn TurnStore> =
                            if durable { Arc::new(place.open()) } else { Arc::new(InMemory::new().hot_bytes(0)) };
                        let agent = agent(store.clone(), &runs, around).build().unwrap();
                        let (polls, done) = cancelled(&agent, times, late, &what).await;
                        match &done {
                            Ok(result) if polls < times => assert_eq!(result.text, "done", "{what}"),
                            Ok(result) => assert!(
                                matches!(result.status, TurnStatus::Cancelled | TurnStatus::Completed),
                                "{what}: {result:?}"
                            ),
                            Err(failed) => assert_eq!(failed.error.kind(), ErrorKind::Cancelled, "{what}: {failed:?}"),
                        }
                        assert!(store.live_turns(None).await.unwrap().is_empty(), "{what}: {done:?}");
                        let lease = store.lease("c", "a third", 0, i64::MAX).await;
                        store
                            .release("c", lease.unwrap_or_else(|error| panic!("{what}: {error}")).token)
                            .await
                            .unwrap();
                        let next = agent.conversation("c").chat("next").await.unwrap();
                        assert_eq!(next.text, "hello", "{what}");
                        judge(&*store, &runs, &what).await;
                    });
                }
            }
        }
    }
    while let Some(case) = cases.join_next().await {
        case.unwrap();
    }
}
