//! Ids of messages that look like those of turns, and turns whose ids look like those of messages.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::sync::Arc;

use cepa_agent::{
    ChatMemory, Commit, InMemory, TurnRow, TurnState, TurnStore, Version, load_whole,
    store::{SharedEntry, TurnChange},
};
use common::{Place, entry, kind_of, raw, turn_row};

const INPUT: &str = r#"[{"role":"user","content":"hello"}]"#;

fn ends() -> Commit {
    let change = TurnChange { state: TurnState::Completed, data: raw(r#"{"n":1}"#).into(), carried: None };
    Commit { turn: Some(change), at: 200, ..Commit::default() }
}

async fn begin(store: &dyn TurnStore, id: &str) -> u64 {
    let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
    store.begin(TurnRow { input: raw(INPUT), ..turn_row(id, "c") }, token).await.unwrap();
    token
}

async fn ids(store: &dyn TurnStore) -> Vec<Option<Arc<str>>> {
    load_whole(store, "c").await.unwrap().1.iter().map(|entry| entry.id.clone()).collect()
}

fn stores(place: &Place) -> [Arc<dyn TurnStore>; 3] {
    [Arc::new(place.open()), Arc::new(InMemory::new()), Arc::new(InMemory::new().hot_bytes(0))]
}

// M7: a step may bring messages of another turn; the turn's own input stays what it is.
#[tokio::test]
async fn a_step_with_messages_of_another_turn() {
    let place = Place::new();
    for store in stores(&place) {
        for turn in ["t1", "t2"] {
            begin(&*store, turn).await;
        }
        let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
        let messages = vec![SharedEntry(entry("t1/u0", "hello")), SharedEntry(entry("t2/a0", "hi"))];
        store.commit("t2", token, Commit { messages, ..ends() }).await.unwrap();
        store.commit("t1", token, ends()).await.unwrap();
        for turn in ["t1", "t2"] {
            assert_eq!(store.turn(turn).await.unwrap().unwrap().row.input, raw(INPUT), "{turn}");
        }
        assert_eq!(ids(&*store).await.len(), 2);
    }
}

const ODD: [&str; 18] = [
    "",
    "/",
    "//",
    "/u0",
    "t/",
    "t//",
    "t//u0",
    "t/u0/u0",
    "t/u00",
    "t/u-1",
    "t/u+0",
    "t/u9223372036854775808",
    "t/u0 ",
    "a/b/u0",
    "a/b",
    "海/u0",
    "t\0/u0",
    "t/u0\0",
];

// M1: whatever an id looks like and whichever turn comes, it is in the conversation once, and comes back as it was.
#[tokio::test]
async fn odd_ids_stay_what_they_are() {
    let place = Place::new();
    for store in stores(&place) {
        let before: Vec<_> = ODD.iter().map(|id| entry(id, id)).collect();
        let version = store.append("c", Version::default(), before.clone()).await.unwrap();
        let expected = ids(&*store).await;
        assert_eq!(expected.iter().flatten().map(|id| &**id).collect::<Vec<_>>(), ODD);
        for turn in ["t", "a/b", "a", "", "t/", "海", "t\0", "c"] {
            let token = begin(&*store, turn).await;
            let messages = before.iter().cloned().map(SharedEntry).collect();
            store.commit(turn, token, Commit { messages, ..ends() }).await.unwrap();
            assert_eq!(ids(&*store).await, expected, "{turn:?}");
            assert_eq!(store.append("c", version, before.clone()).await.unwrap(), version, "{turn:?}");
            assert_eq!(store.append("c", Version::default(), before.clone()).await.unwrap(), version, "{turn:?}");
            assert_eq!(kind_of(store.append("c", Version::default(), vec![entry("t/new", "x")]).await), "conflict");
            assert_eq!(store.turn(turn).await.unwrap().unwrap().row.input, raw(INPUT), "{turn:?}");
        }
        // And those that come after their turn.
        let after: Vec<_> = ["t/new", "a/b/new", "/new", "t//new", "海/new"].iter().map(|id| entry(id, id)).collect();
        let later = store.append("c", version, after.clone()).await.unwrap();
        assert_eq!(later.seq, version.seq + 5);
        assert_eq!(store.append("c", later, after.clone()).await.unwrap(), later);
        store.clear("c").await.unwrap();
        let again = load_whole(&*store, "c").await.unwrap().0;
        assert_eq!(store.append("c", again, before.clone()).await.unwrap().seq, ODD.len() as u64);
        assert_eq!(ids(&*store).await, expected);
    }
}

// M1: a conversation that went with its turn may come again, also where little is kept open.
#[tokio::test]
async fn a_conversation_that_went_comes_again() {
    for bytes in [0, 1, 700, 1 << 20] {
        let store = InMemory::new().hot_bytes(bytes);
        for _ in 0..4 {
            let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
            store.begin(TurnRow { ephemeral: true, ..turn_row("t", "c") }, token).await.unwrap();
            let version = load_whole(&store, "c").await.unwrap().0;
            store.append("c", version, vec![entry("t/u0", "hello"), entry("x", "hi")]).await.unwrap();
            store.forget("t").await.unwrap();
            assert_eq!(load_whole(&store, "c").await.unwrap().1.len(), 0);
        }
        store.append("c", Version::default(), vec![entry("y", "hi")]).await.unwrap();
        assert_eq!(ids(&store).await.len(), 1);
    }
}
