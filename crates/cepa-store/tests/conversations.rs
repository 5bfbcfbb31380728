//! Conversations in a file: appends, loads, and what goes wrong with them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::sync::Arc;

use cepa_agent::{ChatMemory, Loaded, load_whole};
use cepa_core::{Entry, ErrorKind, Message};
use common::{Place, at, entries, entry, kind_of, open, texts, unnamed};

#[tokio::test]
async fn a_file_that_is_opened_again_has_what_was_appended() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(store.append("c", at(0, 0), vec![entry("a", "1"), unnamed("2")]).await.unwrap(), at(0, 2));
    let before = entries(&store, "c").await;
    drop(store);
    let store = place.open();
    assert_eq!(entries(&store, "c").await, before);
    assert_eq!(before.iter().map(|(id, ..)| id.as_deref()).collect::<Vec<_>>(), [Some("a"), Some("m0-2")]);
}

// M7: every message comes back as it went in, digits, spaces and unknown members included.
#[tokio::test]
async fn messages_come_back_to_the_byte() {
    let bodies = [
        r#"{"role":"system","content":"be kind"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"\u0000 晴 \ud83d\ude00"},{"type":"image","media_type":"image/png","data":"AAEC"},{"type":"hologram","x":1.10}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","name":"f","args":{"n": 123456789012345678901234567890, "b" :1.0}},{"id":"c2","name":"g","args":null,"raw_args":"{\"a\":","why":"cut"}],"origin":{"provider":"p","model":"m"},"finish_reason":"tool_calls","usage":{"input":1,"output":2},"replay":[{"format":"f","provider":"p","model":"m","data":{"s": 1.0 }}],"later":{"x": 1.50}}"#,
        r#"{"role":"tool","tool_call_id":"c1","name":"f","content":"","status":"unknown","writes":{"k":null},"executed_args":{"n": 1.0}}"#,
    ];
    let messages: Vec<Message> = bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let place = Place::new();
    let store = place.open();
    let appended = messages.iter().map(|message| Arc::new(Entry::new(message.clone()))).collect();
    store.append("c", at(0, 0), appended).await.unwrap();
    drop(store);
    let (_, history) = load_whole(&place.open(), "c").await.unwrap();
    assert_eq!(history.messages().cloned().collect::<Vec<_>>(), messages);
    let written: Vec<String> = history.messages().map(|message| serde_json::to_string(message).unwrap()).collect();
    assert_eq!(written[2..], bodies[2..]);
}

// M7: members that another version put into a row are kept.
#[tokio::test]
async fn unknown_members_of_a_row_are_kept() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    place.sql(r#"UPDATE messages SET body = json_set(body, '$.mood', json('{"joy": 1.50}'))"#);
    let (_, history) = load_whole(&store, "c").await.unwrap();
    let message = history.last().unwrap().message.clone();
    store.append("d", at(0, 0), vec![Arc::new(Entry::new(message))]).await.unwrap();
    let body: String = place.ask("SELECT body FROM messages WHERE id = 'm0-1'");
    assert_eq!(body, r#"{"role":"user","content":"1","mood":{"joy":1.50}}"#);
}

#[tokio::test]
async fn a_load_gives_what_the_caller_does_not_hold() {
    let place = Place::new();
    let store = place.open();
    assert!(matches!(store.load("c", Some(at(0, 0))).await.unwrap(), Loaded::Unchanged));
    store.append("c", at(0, 0), vec![entry("a", "1"), entry("b", "2"), entry("c", "3")]).await.unwrap();
    assert!(matches!(store.load("c", Some(at(0, 3))).await.unwrap(), Loaded::Unchanged));
    match store.load("c", Some(at(0, 1))).await.unwrap() {
        Loaded::Added { version, entries } => {
            assert_eq!(version, at(0, 3));
            assert_eq!(entries.iter().map(|entry| entry.message.text()).collect::<Vec<_>>(), ["2", "3"]);
        }
        other => panic!("{other:?}"),
    }
    // What a caller holds of the future, or of another epoch, is void.
    for held in [at(0, 4), at(1, 3)] {
        match store.load("c", Some(held)).await.unwrap() {
            Loaded::Whole { version, history } => assert_eq!((version, history.len()), (at(0, 3), 3)),
            other => panic!("{other:?}"),
        }
    }
    store.clear("c").await.unwrap();
    match store.load("c", Some(at(0, 3))).await.unwrap() {
        Loaded::Whole { version, history } => assert_eq!((version, history.len()), (at(1, 0), 0)),
        other => panic!("{other:?}"),
    }
}

// M1: an append at another version is a conflict and leaves nothing; one whose messages are all there is made again.
#[tokio::test]
async fn an_append_is_a_conflict_or_done_once() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    let error = store.append("c", at(0, 0), vec![entry("a", "1"), entry("b", "2")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap(), at(0, 1));
    // At the right version what is there is left out, and a message that is twice in the batch comes once.
    let batch = vec![entry("a", "1"), entry("b", "2"), entry("b", "2")];
    assert_eq!(store.append("c", at(0, 1), batch).await.unwrap(), at(0, 2));
    assert_eq!(store.append("c", at(0, 9), vec![entry("b", "2"), entry("a", "1")]).await.unwrap(), at(0, 2));
    assert_eq!(texts(&store, "c").await, ["1", "2"]);
    store.clear("c").await.unwrap();
    assert_eq!(kind_of(store.append("c", at(0, 0), vec![entry("c", "3")]).await), "conflict");
    assert_eq!(store.append("c", at(1, 0), vec![entry("a", "1")]).await.unwrap(), at(1, 1));
}

#[tokio::test]
async fn an_entry_without_an_id_gets_one_that_is_free() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("m0-2", "1"), unnamed("2")]).await.unwrap();
    let ids: Vec<_> = entries(&store, "c").await.into_iter().map(|(id, ..)| id.unwrap()).collect();
    assert_eq!(ids.iter().map(|id| &**id).collect::<Vec<_>>(), ["m0-2", "m0-2-1"]);
}

// M1: eight stores on one file, 25 appends each: every message is there once, in the order of its worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_appends_all_arrive() {
    let place = Place::new();
    drop(place.open());
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let store = open(&place.path());
            tokio::spawn(async move {
                for i in 0..25 {
                    let batch = vec![entry(&format!("{worker}/{i}"), &format!("{worker} {i}"))];
                    loop {
                        let (version, _) = load_whole(&store, "c").await.unwrap();
                        match store.append("c", version, batch.clone()).await {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                        }
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    let texts = texts(&place.open(), "c").await;
    assert_eq!(texts.len(), 200);
    for worker in 0..8 {
        let mine: Vec<_> = texts.iter().filter(|text| text.starts_with(&format!("{worker} "))).cloned().collect();
        assert_eq!(mine, (0..25).map(|i| format!("{worker} {i}")).collect::<Vec<_>>());
    }
}

// M1: an append that fails at its third row leaves neither the first nor the second.
#[tokio::test]
async fn an_append_that_fails_half_way_leaves_nothing() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    place.sql("CREATE TRIGGER stop BEFORE INSERT ON messages WHEN NEW.seq = 4 BEGIN SELECT raise(ABORT, 'stop'); END");
    let batch = || vec![entry("b", "2"), entry("c", "3"), entry("d", "4")];
    let error = store.append("c", at(0, 1), batch()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    assert_eq!(texts(&store, "c").await, ["1"]);
    assert_eq!(
        kind_of(store.append("new", at(0, 0), [batch(), batch(), vec![entry("e", "5")]].concat()).await),
        "store"
    );
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM conversations"), 1);
    place.sql("DROP TRIGGER stop");
    assert_eq!(store.append("c", at(0, 1), batch()).await.unwrap(), at(0, 4));
}

// M7: a row that does not parse is named; the lossy load leaves it out and says so.
#[tokio::test]
async fn a_row_that_does_not_parse_is_named() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), ["1", "2", "3", "4"].map(unnamed).to_vec()).await.unwrap();
    for (sql, why) in [
        ("UPDATE messages SET body = '{\"role\":' WHERE seq = 2", "EOF"),
        ("UPDATE messages SET body = x'ff' WHERE seq = 2", "Invalid"),
        ("UPDATE messages SET body = '{\"role\":\"wizard\",\"content\":\"\"}' WHERE seq = 2", "wizard"),
        ("DELETE FROM messages WHERE seq = 2", "missing"),
    ] {
        place.sql(sql);
        for result in [load_whole(&store, "c").await.map(|_| ()), store.page("c", 1, 1).await.map(|_| ())] {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.message().contains("message 2 of conversation `c`"), "{error}");
            assert!(error.message().contains(why), "{error}");
        }
        let (history, lost) = store.load_lossy("c").await.unwrap();
        assert_eq!(history.messages().map(|message| message.text().into_owned()).collect::<Vec<_>>(), ["1", "3", "4"]);
        assert_eq!(lost.iter().map(|row| row.seq).collect::<Vec<_>>(), [2]);
        // What the caller holds is not read again.
        assert!(matches!(store.load("c", Some(at(0, 2))).await.unwrap(), Loaded::Added { .. }));
    }
    place.sql("DELETE FROM messages WHERE seq = 4");
    assert_eq!(kind_of(store.load("c", Some(at(0, 2))).await), "corrupt");
}

#[tokio::test]
async fn conversations_are_listed_and_paged() {
    let place = Place::new();
    let store = place.open();
    for id in ["a", "b", "c"] {
        store.append(id, at(0, 0), vec![unnamed("1"), unnamed("2"), unnamed("3")]).await.unwrap();
    }
    store.append("a", at(0, 3), vec![unnamed("4")]).await.unwrap();
    store.clear("b").await.unwrap();
    place.sql("UPDATE conversations SET updated = CASE id WHEN 'a' THEN 30 ELSE 20 END");
    let list = store.list(0, 10).await.unwrap();
    assert_eq!(list.iter().map(|info| (&*info.id, info.messages)).collect::<Vec<_>>(), [("a", 4), ("c", 3)]);
    assert_eq!(store.list(1, 10).await.unwrap()[0].id, "c");
    assert_eq!(store.list(0, 1).await.unwrap().len(), 1);
    let page = store.page("a", 1, 2).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.message.text()).collect::<Vec<_>>(), ["2", "3"]);
    assert!(store.page("a", 4, 2).await.unwrap().is_empty());
    assert!(store.page("nobody", 0, 2).await.unwrap().is_empty());
}

// M8: an append and the next load of a long conversation read and write as much as those of a short one.
#[tokio::test]
async fn the_next_load_does_not_read_what_is_held() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), (0..2000).map(|n| unnamed(&n.to_string())).collect()).await.unwrap();
    // Were one of the old rows read, it would be found broken.
    place.sql("UPDATE messages SET body = 'broken' WHERE seq <= 2000");
    store.append("c", at(0, 2000), vec![unnamed("new")]).await.unwrap();
    assert!(
        matches!(store.load("c", Some(at(0, 2000))).await.unwrap(), Loaded::Added { entries, .. } if entries.len() == 1)
    );
}

#[tokio::test]
async fn a_message_of_fifty_megabytes_is_stored() {
    let place = Place::new();
    let store = place.open();
    let text = "x".repeat(50 << 20);
    store.append("c", at(0, 0), vec![unnamed(&text)]).await.unwrap();
    drop(store);
    assert_eq!(texts(&place.open(), "c").await, [text]);
}
