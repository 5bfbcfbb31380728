//! Files that older versions wrote.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use cepa_agent::{
    ChatMemory, TurnRow, TurnState, TurnStore,
    store::{CallResult, CallRow, CallState, SharedEntry, VerdictKind},
};
use cepa_store::Sqlite;
use common::{KEY, Place, at, call_row, entries, entry, kind_of, pause, raw, result, started, turn_row};

/// The tables of version 1.
const TABLES: &str = "
CREATE TABLE conversations(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL DEFAULT 0,
    head INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    title TEXT,
    parent INTEGER REFERENCES conversations(key),
    parent_seq INTEGER,
    lease_by TEXT,
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX conversations_by_change ON conversations(updated DESC, key DESC) WHERE head > 0;

CREATE TABLE messages(
    conversation INTEGER NOT NULL REFERENCES conversations(key),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    turn TEXT,
    created INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY(conversation, seq),
    UNIQUE(conversation, id)
);

CREATE TABLE turns(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversations(key),
    state TEXT NOT NULL,
    ephemeral INTEGER NOT NULL,
    input TEXT NOT NULL,
    carried TEXT,
    data TEXT NOT NULL,
    token INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
);
CREATE INDEX turns_of_conversation ON turns(conversation);
CREATE INDEX turns_live ON turns(conversation) WHERE state IN ('running', 'paused');

CREATE TABLE calls(
    turn INTEGER NOT NULL REFERENCES turns(key) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    args TEXT NOT NULL,
    args_why TEXT,
    args_hash TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    executed_args TEXT,
    status TEXT,
    result TEXT,
    writes TEXT,
    failure TEXT,
    started INTEGER,
    finished INTEGER,
    PRIMARY KEY(turn, batch, idx)
);

CREATE TABLE results(
    message TEXT PRIMARY KEY,
    turn INTEGER NOT NULL REFERENCES turns(key) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX results_of_turn ON results(turn, batch, idx);

CREATE TABLE pauses(
    id TEXT PRIMARY KEY,
    turn INTEGER NOT NULL REFERENCES turns(key) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    kind TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    args TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    reason TEXT,
    created INTEGER NOT NULL,
    expires INTEGER,
    state TEXT NOT NULL,
    decision TEXT,
    actor TEXT,
    decided INTEGER
);
CREATE INDEX pauses_of_turn ON pauses(turn, batch, idx);
CREATE INDEX pauses_waiting ON pauses(created) WHERE state = 'pending';

CREATE TABLE audit(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT,
    what TEXT NOT NULL,
    pause TEXT,
    data TEXT NOT NULL
);
";

const HEAD: &str = "PRAGMA journal_mode = wal;
BEGIN;
PRAGMA application_id = 1667592289;
PRAGMA user_version = 1;";

/// A conversation with two turns that are over, one that waits, and messages that nobody's turn made.
const ROWS: &str = r#"
INSERT INTO conversations(key, id, epoch, head, created, updated, lease_by, lease_token, lease_until)
    VALUES (1, 'c', 2, 7, 10, 20, NULL, 5, 0), (2, 'd', 0, 1, 11, 21, 'me', 1, 1000), (3, 'e', 0, 0, 12, 12, NULL, 1, 0);
INSERT INTO turns VALUES
    (1, 't1', 1, 'completed', 0, '[{"role":"user","content":"ä"}]', NULL, '{"prompt":"You are helpful.","n":1}', 3, 100, 110),
    (2, 't2', 1, 'failed', 0, '[{"role":"user","content":"lost"}]', NULL, '{"prompt":"You are helpful.","n":22}', 4, 120, 130),
    (3, 't3', 1, 'paused', 0, '[{"role":"user","content":"pay"}]', NULL, '{"prompt":"You are helpful.","n":3}', 5, 140, 150),
    (4, 'e', 3, 'paused', 1, '[{"role":"user","content":"x"}]', '[]', '{"n":4}', 1, 12, 12);
INSERT INTO messages VALUES
    (1, 1, 't1/u0', 't1', 101, '{"role":"user","content":"ä"}'),
    (1, 2, 't1/a0', 't1', 102, '{"role":"assistant","content":"b", "extra": 1.0}'),
    (1, 3, 'm2-3', NULL, 103, '{"role":"user","content":"by hand"}'),
    (1, 4, 'gone/u0', 'gone', 104, '{"role":"user","content":"of a turn that is not here"}'),
    (1, 5, 't3/u0', 't3', -9223372036854775808, '{"role":"user","content":"pay"}'),
    (1, 6, 't3/a0', 't3', 106, '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","name":"pay","args":{}}]}'),
    (1, 7, 'e/u0', 'e', 107, '{"role":"user","content":"e"}'),
    (2, 1, 't1/u0', 't1', 105, '{"role":"user","content":"the same id elsewhere"}');
INSERT INTO calls VALUES
    (3, 0, 0, 'c1', 'pay', 's', '{"amount": 1.10}', NULL, 'h', 'pause', 'much', 'planned', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (1, 0, 0, 'c1', 'pay', 's', '{"amount": 1.10}', NULL, 'h', 'proceed', NULL, 'finished', 1, NULL, 'ok', '"cut"', NULL, NULL, 5, 6);
INSERT INTO results VALUES ('t1/t0.0', 1, 0, 0, '"all of it"');
INSERT INTO pauses VALUES
    ('p', 3, 0, 0, 'approval', 'c1', 'pay', '{"amount": 1.10}', 'h', 's', 'much', 110, 1000, 'pending', NULL, NULL, NULL);
INSERT INTO audit VALUES (7, 110, NULL, 'shown', 'p', '{"conversation":"c"}');
COMMIT;
"#;

fn old() -> Place {
    let place = Place::new();
    place.sql(&[HEAD, TABLES, ROWS].concat());
    place
}

async fn holds_all(store: &Sqlite) {
    let found = entries(store, "c").await;
    let ids: Vec<&str> = found.iter().map(|(id, ..)| id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["t1/u0", "t1/a0", "m2-3", "gone/u0", "t3/u0", "t3/a0", "e/u0"]);
    let times: Vec<i64> = found.iter().map(|(_, at, _)| *at).collect();
    assert_eq!(times, [101, 102, 103, 104, i64::MIN, 106, 107]);
    assert!(serde_json::to_string(&found[1].2).unwrap().contains(r#""extra":1.0"#));
    assert_eq!(entries(store, "d").await[0].0.as_deref(), Some("t1/u0"));
    for (id, state, input, data, created, updated) in [
        ("t1", TurnState::Completed, "ä", r#"{"prompt":"You are helpful.","n":1}"#, 100, 110),
        ("t2", TurnState::Failed, "lost", r#"{"prompt":"You are helpful.","n":22}"#, 120, 130),
        ("t3", TurnState::Paused, "pay", r#"{"prompt":"You are helpful.","n":3}"#, 140, 150),
    ] {
        let row = store.turn(id).await.unwrap().unwrap().row;
        let input = raw(&format!(r#"[{{"role":"user","content":"{input}"}}]"#));
        let expected = TurnRow { state, input, data: raw(data), created, updated, ..turn_row(id, "c") };
        assert_eq!(row, expected);
    }
    let e = store.turn("e").await.unwrap().unwrap().row;
    assert_eq!((e.ephemeral, e.carried, e.conversation.as_str()), (true, Some(raw("[]")), "e"));
    let waits = store.turn("t3").await.unwrap().unwrap();
    assert_eq!((waits.calls, waits.pauses), (vec![call_row(KEY)], vec![pause("p", "t3", KEY)]));
    let calls = store.turn("t1").await.unwrap().unwrap().calls;
    let mut expected = CallRow { reason: None, attempt: 1, state: CallState::Finished, ..call_row(KEY) };
    (expected.started, expected.finished) = (Some(5), Some(6));
    expected.verdict = VerdictKind::Proceed;
    expected.result = Some(CallResult { full: Some(raw(r#""all of it""#)), ..result(r#""cut""#) });
    assert_eq!(calls, [expected]);
    assert_eq!(store.full_result("t1/t0.0").await.unwrap(), Some(raw(r#""all of it""#)));
    assert_eq!(store.audit(None, 0, 10).await.unwrap()[0].seq, 7);
}

// M7, M1: what a file of the first version held is there afterwards, with its ids and times, and goes on.
#[tokio::test]
async fn a_file_of_version_1_is_brought_up_to_date() {
    let place = old();
    let store = place.open();
    holds_all(&store).await;
    assert_eq!(place.ask::<i64>("PRAGMA user_version"), 2);
    assert_eq!(place.ask::<String>("PRAGMA integrity_check"), "ok");
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    // Said once: the input of two turns, the data of the second that is over.
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM turns WHERE typeof(input) = 'integer'"), 2);
    assert_eq!(place.ask::<i64>("SELECT base FROM turns WHERE id = 't2'"), 1);

    let again = ["t1/u0", "gone/u0", "t3/u0", "e/u0", "m2-3"].map(|id| entry(id, "again"));
    assert_eq!(store.append("c", at(0, 0), again.to_vec()).await.unwrap(), at(2, 7));
    let token = store.lease("c", "me", 2000, 3000).await.unwrap().token;
    assert_eq!(token, 6);
    let mut step = started(KEY, 1);
    step.messages = vec![SharedEntry(entry("t3/u0", "again")), SharedEntry(entry("t3/t0.0", "paid"))];
    store.commit("t3", token, step).await.unwrap();
    assert_eq!(store.load("c", None).await.map(|_| ()).map_err(|error| error.to_string()), Ok(()));
    assert_eq!(kind_of(store.begin(turn_row("t1", "d"), 1).await), "conflict");
    drop(store);
    // The next one to open it finds nothing to do.
    let store = place.open();
    assert_eq!(entries(&store, "c").await.len(), 8);
    store.clear("c").await.unwrap();
    for (table, left) in [("turns", 1), ("messages", 1), ("calls", 0), ("pauses", 0)] {
        assert_eq!(place.ask::<i64>(&format!("SELECT count(*) FROM {table}")), left, "{table}");
    }
}

// The tables of a file that was brought up to date are those of a new one.
#[test]
fn the_tables_are_those_of_a_new_file() {
    let (old, new) = (old(), Place::new());
    drop((old.open(), new.open()));
    let tables = "SELECT group_concat(name || ' ' || CASE name WHEN 'calls' THEN '' ELSE sql END, ';' ORDER BY name)
        FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND sql IS NOT NULL AND tbl_name IN ('messages', 'turns', 'audit')";
    assert_eq!(old.ask::<String>(tables), new.ask::<String>(tables));
    let names = "SELECT group_concat(name, ' ' ORDER BY name) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'";
    assert_eq!(old.ask::<String>(names), new.ask::<String>(names));
    let columns = "SELECT group_concat(name, ' ' ORDER BY name) FROM pragma_table_info('calls')";
    assert_eq!(old.ask::<String>(columns), new.ask::<String>(columns));
}

// D5: a file that cannot be brought up to date stays as it is.
#[test]
fn a_file_that_cannot_be_brought_up_to_date_is_not_changed() {
    let place = old();
    place.sql("DROP TABLE results");
    let error = Sqlite::open(place.path()).unwrap_err();
    assert_eq!(error.kind().as_str(), "corrupt", "{error}");
    assert_eq!(place.ask::<i64>("PRAGMA user_version"), 1);
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM messages WHERE turn = 't1'"), 3);
}

#[test]
fn many_open_an_old_file_at_once() {
    let place = old();
    let path = place.path();
    let open = || Sqlite::open(&path).map(|_| ());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
    assert_eq!(place.ask::<i64>("SELECT count(*) FROM messages"), 8);
}
