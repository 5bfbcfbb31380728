//! Somebody appends to a conversation while a turn works on it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cepa_agent::{Agent, Bare, ChatMemory, Held, InMemory, TurnStatus, TurnStore, Window, Windowed, load_whole};
use cepa_core::{Chat, ErrorKind, Role, Stage, Tool, ToolOutput, ToolSpec, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};
use common::{Place, entry};

/// A store by its name, and another handle of it.
type Named = (&'static str, Arc<dyn TurnStore>, Arc<dyn ChatMemory>);

fn stores(place: &Place) -> Vec<Named> {
    let (plain, packed, bare, held) = (InMemory::new(), InMemory::new().hot_bytes(0), InMemory::new(), place.open());
    let window = || Window::messages(50).unwrap();
    vec![
        ("in memory", Arc::new(plain.clone()), Arc::new(plain)),
        ("packed", Arc::new(packed.clone()), Arc::new(packed)),
        ("bare", Arc::new(Bare::new(bare.clone())), Arc::new(bare)),
        ("sqlite", Arc::new(place.open()), Arc::new(place.open())),
        ("held", Arc::new(Held::new(Windowed::new(held.clone(), window()))), Arc::new(held)),
        ("windowed", Arc::new(Windowed::new(place.open(), window())), Arc::new(place.open())),
    ]
}

fn model() -> ScriptedModel {
    ScriptedModel::choosing(|_, request| match request.messages.last().map(|last| last.message.clone()) {
        Some(message) if message.role() == Role::User && message.text() == "go" => {
            Reply::text("One.").call("c1", "once", "{}").call("c2", "once", "{}")
        }
        Some(message) if message.role() == Role::Tool => Reply::text("done"),
        _ => Reply::text("hello"),
    })
}

// M1, M2, M3: a conflict fails the turn, leaves nothing of the reply, and the next turn works; however the reply is written.
#[tokio::test]
async fn a_foreign_append_while_the_model_works() {
    for filtered in [false, true] {
        for at in 0..2 {
            let place = Place::new();
            for (name, store, elsewhere) in stores(&place) {
                let what = format!("{name} filtered: {filtered} call {at}");
                let conversation = format!("c {name}");
                let (runs, calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
                let ran = runs.clone();
                let once = Tool::new(ToolSpec::new("once", "", None).unwrap(), move |_, _| {
                    ran.fetch_add(1, Ordering::SeqCst);
                    async { Ok(ToolOutput::new("ran")) }
                });
                let (there, id) = (elsewhere.clone(), conversation.clone());
                let foreign = Chat::around("foreign", move |request, next| {
                    let (there, id, n) = (there.clone(), id.clone(), calls.fetch_add(1, Ordering::SeqCst));
                    async move {
                        let reply = next.run(request).await;
                        if n == at {
                            let version = load_whole(&*there, &id).await.unwrap().0;
                            there.append(&id, version, vec![entry("foreign", "from elsewhere")]).await.unwrap();
                        }
                        reply
                    }
                });
                let mut builder = Agent::builder(model()).tool(once).memory_shared(store.clone());
                builder = builder.chat_filter(foreign.order(200));
                if filtered {
                    builder = builder.chat_filter(Chat::around("outside", |request, next| next.run(request)));
                }
                let agent = builder.build().unwrap();
                let handle = agent.conversation(&conversation);
                let failed = handle.chat("go").await.unwrap_err();
                assert_eq!(failed.error.kind(), ErrorKind::Conflict, "{what}");
                assert_eq!(failed.records.len(), 2 * at, "{what}");
                let texts = || async {
                    let (_, history) = load_whole(&*elsewhere, &conversation).await.unwrap();
                    history.messages().map(|message| message.text().into_owned()).collect::<Vec<_>>()
                };
                let before: &[&str] = if at == 0 { &[] } else { &["go", "One.", "ran", "ran"] };
                assert_eq!(texts().await, [before, &["from elsewhere"]].concat(), "{what}");
                assert!(store.live_turns(Some(&conversation)).await.unwrap().is_empty(), "{what}");
                let lease = store.lease(&conversation, "somebody else", 0, i64::MAX).await.unwrap();
                store.release(&conversation, lease.token).await.unwrap();

                let next = handle.chat("next").await.unwrap();
                assert_eq!((next.status, &*next.text), (TurnStatus::Completed, "hello"), "{what}");
                assert_eq!(texts().await, [before, &["from elsewhere", "next", "hello"]].concat(), "{what}");
                assert_eq!(runs.load(Ordering::SeqCst), 2 * at, "{what}");
                let (_, history) = load_whole(&*elsewhere, &conversation).await.unwrap();
                assert_eq!(pairing::validate(&history), Ok(()), "{what}");
            }
        }
    }
}
