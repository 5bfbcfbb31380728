//! What a file holds: nothing twice, and each thing as it was written.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use cepa_agent::{
    ChatMemory, Commit, TurnRow, TurnState, TurnStore, load_whole,
    store::{SharedEntry, TurnChange},
};
use cepa_core::Message;
use cepa_store::Sqlite;
use common::{Place, at, entries, entry, kind_of, raw, turn_row};

const PROMPT: &str = "You answer questions about the sea. Ä, 海, 🐟.";

fn data(tokens: u32) -> String {
    format!(r#"{{"settings":{{"system_prompt":"{PROMPT}"}},"usage":{{"input":{tokens}}},"replies":1}}"#)
}

fn said(row: &TurnRow) -> Vec<SharedEntry> {
    let input: Vec<Message> = row.input.read().unwrap();
    let named = input.iter().enumerate().map(|(n, message)| entry(&format!("{}/u{n}", row.id), &message.text()));
    named.chain([entry(&format!("{}/a0", row.id), "the answer")]).map(SharedEntry).collect()
}

fn ends(data: &str) -> Commit {
    let change = TurnChange { state: TurnState::Completed, data: raw(data).into(), carried: None };
    Commit { turn: Some(change), at: 200, ..Commit::default() }
}

/// A turn that is over, as it must come back.
async fn turn(store: &Sqlite, id: &str, input: &str, data: &str) -> TurnRow {
    let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
    let mut row = TurnRow { input: raw(input), ..turn_row(id, "c") };
    store.begin(row.clone(), token).await.unwrap();
    let commit = Commit { messages: said(&row), ..ends(data) };
    store.commit(id, token, commit).await.unwrap();
    (row.state, row.data, row.updated) = (TurnState::Completed, raw(data), 200);
    row
}

async fn row(store: &Sqlite, id: &str) -> TurnRow {
    store.turn(id).await.unwrap().unwrap().row
}

const INPUT: &str = r#"[{"role":"user","content":"how deep?"}]"#;

// M7: the input and the data of a turn that is over come back to the byte, though the file has them once.
#[tokio::test]
async fn a_turn_that_is_over_comes_back_as_it_was() {
    let place = Place::new();
    let store = place.open();
    let inputs = [
        INPUT,
        r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#,
        // Spaces that no message keeps, another text than the message's, nothing at all.
        r#"[ {"role":"user","content":"how deep?"} ]"#,
        r#"[{"role":"user","content":[{"type":"text","text":"x"}]}]"#,
        "[]",
    ];
    let datas = [data(1), data(22), data(1), data(333), r#"{"n":2}"#.to_owned(), data(4), data(5)];
    let mut rows = Vec::new();
    for (n, (input, data)) in inputs.iter().cycle().zip(&datas).enumerate() {
        rows.push(turn(&store, &format!("t{n}"), input, data).await);
    }
    drop(store);
    let store = place.open();
    for row in &rows {
        assert_eq!(self::row(&store, &row.id).await, *row);
    }
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM turns WHERE typeof(input) = 'integer'"), 4);
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM turns WHERE base IS NULL"), 3);
    assert_eq!(place.ask::<String>("SELECT group_concat(data) FROM turns WHERE base = 1"), "22,,333");
    // The same steps again change nothing.
    let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
    for row in &rows {
        let begun = TurnRow { state: TurnState::Running, ..row.clone() };
        store.begin(begun, token).await.unwrap();
        let commit = Commit { messages: said(row), ..ends(row.data.as_str()) };
        store.commit(&row.id, token, commit).await.unwrap();
        assert_eq!(self::row(&store, &row.id).await, *row);
    }
    // A turn that others keep a difference from may still change.
    store.commit("t0", token, ends(r#"{"other":true}"#)).await.unwrap();
    rows[0].data = raw(r#"{"other":true}"#);
    for row in &rows {
        assert_eq!(self::row(&store, &row.id).await, *row);
    }
    store.clear("c").await.unwrap();
    assert!(store.turn("t1").await.unwrap().is_none());
}

// M1: an id is in a conversation once, whether its message or its turn was there first.
#[tokio::test]
async fn an_id_is_one_whoever_came_first() {
    let place = Place::new();
    let store = place.open();
    let before = ["t/u0", "t/x/y", "t0/u0", "t", "tt/u0", "u"].map(|id| entry(id, id));
    store.append("c", at(0, 0), before.to_vec()).await.unwrap();
    store.append("d", at(0, 0), vec![entry("t/u0", "elsewhere")]).await.unwrap();
    let expected = entries(&store, "c").await;
    turn(&store, "t", INPUT, "{}").await;
    let (version, _) = load_whole(&store, "c").await.unwrap();
    assert_eq!(version, at(0, 7), "t/u0 was there, t/a0 was not");
    assert_eq!(entries(&store, "c").await[..6], expected);
    // The input is not what the message says.
    assert_eq!(row(&store, "t").await.input, raw(INPUT));
    store.append("c", version, before.to_vec()).await.unwrap();
    assert_eq!(kind_of(store.append("c", at(0, 0), vec![entry("t/new", "x")]).await), "conflict");
    assert_eq!(store.append("c", at(0, 0), before.to_vec()).await.unwrap(), version);
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM messages WHERE scope > 0"), 3);
    assert_eq!(entries(&store, "d").await[0].0.as_deref(), Some("t/u0"));
}

// A conversation of short turns without tools takes little more than twice the JSON of its messages: the rest is what
// every file has, most of it the pages of tables that are empty.
#[tokio::test]
async fn a_file_is_small() {
    let place = Place::new();
    let store = place.open();
    let mut json = 0;
    for n in 0..200 {
        let id = format!("t1m8pv0k150{n:08}");
        let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
        let input = format!(r#"[{{"role":"user","content":"hello there 0 {n}"}}]"#);
        store.begin(TurnRow { input: raw(&input), ..turn_row(&id, "c") }, token).await.unwrap();
        let answer = r#"{"role":"assistant","content":"word0 word1 word2 ","origin":{"provider":"openai","model":"say-3"},"finish_reason":"stop","usage":{"input":83,"output":5}}"#;
        let answer = cepa_core::Entry::with_id(format!("{id}/a0"), 7, serde_json::from_str(answer).unwrap());
        let user = entry(&format!("{id}/u0"), &format!("hello there 0 {n}"));
        let messages = vec![SharedEntry(user), SharedEntry(std::sync::Arc::new(answer))];
        json += messages.iter().map(|entry| serde_json::to_string(&entry.0.message).unwrap().len()).sum::<usize>();
        store.commit(&id, token, Commit { messages, ..ends(&data(n)) }).await.unwrap();
    }
    drop(store);
    let size = usize::try_from(std::fs::metadata(place.path()).unwrap().len()).unwrap();
    println!("{size} bytes for {json} bytes of JSON");
    assert!(size <= json * 2 + 24 * 1024, "{size} bytes for {json} bytes of JSON");
}
