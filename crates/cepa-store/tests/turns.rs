//! What a turn leaves behind: rows, fencing, forgetting, the audit.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use cepa_agent::{
    ChatMemory, Commit, LiveTurn, PauseState, TurnState, TurnStore, load_whole,
    store::{CallChange, CallKey, CallResult, CallState, SharedEntry, TurnChange, VerdictKind},
};
use cepa_core::{Args, ErrorKind, ToolStatus};
use common::{
    KEY, Place, at, call_row, entry, finished, kind_of, open, pause, paused_turn, raw, result, started, texts, turn_row,
};

const SECOND: CallKey = CallKey { batch: 0, idx: 1 };

// D1: the turn, its calls with verdicts and results, and its pauses come back as they were written.
#[tokio::test]
async fn a_turn_comes_back_as_it_was_written() {
    let place = Place::new();
    let store = place.open();
    let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
    let row = turn_row("t", "c");
    store.begin(row.clone(), token).await.unwrap();
    // The same step again changes nothing; another turn of that id is refused.
    store.begin(row.clone(), token).await.unwrap();
    assert_eq!(kind_of(store.begin(turn_row("t", "d"), 0).await), "conflict");

    let mut broken = call_row(SECOND);
    broken.args = Args::Invalid { raw: "{\"a\":".into(), why: "cut".into() };
    broken.verdict = VerdictKind::Refuse;
    let full = CallResult {
        status: ToolStatus::Error,
        content: raw(r#"[{"type":"text","text":"cut…"}]"#),
        full: Some(raw(r#""all of it""#)),
        writes: Some(raw(r#"{"k": 1.0, "gone": null}"#)),
        failure: Some("semantic".into()),
    };
    let mut step = started(KEY, 1);
    step.calls.insert(0, CallChange::Planned(call_row(KEY)));
    step.calls.insert(1, CallChange::Planned(broken.clone()));
    step.pauses = vec![pause("p2", "t", SECOND), pause("p1", "t", KEY)];
    step.turn = Some(TurnChange {
        state: TurnState::Paused,
        data: raw(r#"{"n":2}"#).into(),
        carried: Some(cepa_core::History::new()),
    });
    store.commit("t", token, step).await.unwrap();
    store.commit("t", token, finished(KEY, full.clone())).await.unwrap();

    drop(store);
    let store = place.open();
    let stored = store.turn("t").await.unwrap().unwrap();
    let mut expected_row = row;
    expected_row.state = TurnState::Paused;
    expected_row.data = raw(r#"{"n":2}"#);
    expected_row.carried = Some(raw("[]"));
    expected_row.updated = 130;
    assert_eq!(stored.row, expected_row);
    let mut ran = call_row(KEY);
    ran.state = CallState::Finished;
    ran.attempt = 1;
    ran.started = Some(120);
    ran.finished = Some(130);
    ran.result = Some(full.clone());
    assert_eq!(stored.calls, [ran, broken]);
    assert_eq!(stored.pauses, [pause("p1", "t", KEY), pause("p2", "t", SECOND)]);
    assert_eq!(store.full_result("t/t0.0").await.unwrap(), full.full);
    assert_eq!(store.full_result("t/t0.1").await.unwrap(), None);
    assert_eq!(store.turn("nobody").await.unwrap(), None);
}

// D1: a token that is not the newest writes nothing.
#[tokio::test]
async fn who_was_taken_over_writes_nothing() {
    let place = Place::new();
    let store = place.open();
    let old = paused_turn(&store).await;
    let other = open(&place.path());
    let busy = other.lease("c", "you", 500, 2000).await.unwrap_err();
    assert_eq!((busy.kind(), busy.is_retryable()), (ErrorKind::Busy, true));
    assert!(busy.message().contains("free in at most 1 s"), "{busy}");
    let new = other.lease("c", "you", 1000, 2000).await.unwrap().token;
    assert!(new > old);

    let before = store.turn("t").await.unwrap();
    let mut step = started(KEY, 1);
    step.messages = vec![SharedEntry(entry("x", "late"))];
    step.closed_pauses = vec![("p".into(), PauseState::Cancelled)];
    assert_eq!(kind_of(store.commit("t", old, step.clone()).await), "busy");
    assert_eq!(kind_of(store.begin(turn_row("t2", "c"), old).await), "busy");
    store.release("c", old).await.unwrap();
    assert_eq!(store.turn("t").await.unwrap(), before);
    assert_eq!(texts(&store, "c").await, ["pay"]);
    assert_eq!(kind_of(store.lease("c", "third", 1500, 3000).await), "busy");

    other.commit("t", new, step).await.unwrap();
    // The holder keeps his token; after a release the next one's is newer.
    assert_eq!(other.lease("c", "you", 1500, 3000).await.unwrap().token, new);
    other.release("c", new).await.unwrap();
    assert!(store.lease("c", "third", 1500, 3000).await.unwrap().token > new);
}

// D1: one step is one transaction: what fails at its end leaves nothing of its beginning.
#[tokio::test]
async fn a_commit_is_written_whole_or_not_at_all() {
    let place = Place::new();
    let store = place.open();
    let token = paused_turn(&store).await;
    let before = store.turn("t").await.unwrap();
    let mut step = started(KEY, 1);
    step.pauses = vec![pause("p2", "t", SECOND)];
    step.messages = vec![SharedEntry(entry("t/a0", "new"))];
    step.closed_pauses = vec![("p".into(), PauseState::Cancelled), ("nobody".into(), PauseState::Cancelled)];
    assert_eq!(kind_of(store.commit("t", token, step.clone()).await), "conflict");
    assert_eq!(store.turn("t").await.unwrap(), before);
    assert_eq!(texts(&store, "c").await, ["pay"]);
    place.sql("CREATE TRIGGER stop BEFORE UPDATE ON turns BEGIN SELECT raise(ABORT, 'stop'); END");
    step.closed_pauses.pop();
    assert_eq!(kind_of(store.commit("t", token, step.clone()).await), "store");
    assert_eq!(store.turn("t").await.unwrap(), before);
    place.sql("DROP TRIGGER stop");
    store.commit("t", token, step).await.unwrap();
    assert_eq!(texts(&store, "c").await, ["pay", "new"]);
    assert_eq!(store.pending(None).await.unwrap(), [pause("p2", "t", SECOND)]);
}

// M1: messages of a commit that are there by id are left out, the rest moves the head.
#[tokio::test]
async fn messages_of_a_commit_join_once() {
    let place = Place::new();
    let store = place.open();
    let token = paused_turn(&store).await;
    let step = || Commit {
        messages: vec![SharedEntry(entry("t/u0", "pay")), SharedEntry(entry("t/a0", "ok"))],
        at: 140,
        ..Commit::default()
    };
    store.commit("t", token, step()).await.unwrap();
    store.commit("t", token, step()).await.unwrap();
    let (version, _) = load_whole(&store, "c").await.unwrap();
    assert_eq!((version, texts(&store, "c").await), (at(0, 2), vec!["pay".to_owned(), "ok".to_owned()]));
    assert_eq!(
        place.ask::<String>("SELECT group_concat(m.id ORDER BY seq) FROM messages m JOIN turns t ON t.key = m.scope"),
        "u0,a0"
    );
}

// D2: a body is entered once per attempt, and a result stays; only a failure that a person repairs runs again.
#[tokio::test]
async fn a_call_goes_forward_only() {
    let place = Place::new();
    let store = place.open();
    let token = paused_turn(&store).await;
    assert_eq!(kind_of(store.commit("t", token, started(SECOND, 1)).await), "conflict");
    store.commit("t", token, started(KEY, 1)).await.unwrap();
    assert_eq!(kind_of(store.commit("t", token, started(KEY, 1)).await), "conflict");
    let planned = Commit { calls: vec![CallChange::Planned(call_row(KEY))], ..Commit::default() };
    assert_eq!(kind_of(store.commit("t", token, planned).await), "conflict");
    let mut repair = result(r#""disk full""#);
    repair.failure = Some("environment".into());
    repair.full = Some(raw(r#""long""#));
    store.commit("t", token, finished(KEY, repair)).await.unwrap();
    assert!(store.full_result("t/t0.0").await.unwrap().is_some());
    store.commit("t", token, started(KEY, 2)).await.unwrap();
    assert_eq!(store.full_result("t/t0.0").await.unwrap(), None);
    let unknown = Commit { calls: vec![CallChange::Unknown { key: KEY, at: 125 }], ..Commit::default() };
    store.commit("t", token, unknown.clone()).await.unwrap();
    store.commit("t", token, started(KEY, 3)).await.unwrap();
    store.commit("t", token, finished(KEY, result(r#""paid""#))).await.unwrap();
    store.commit("t", token, finished(KEY, result(r#""paid""#))).await.unwrap();
    assert_eq!(kind_of(store.commit("t", token, finished(KEY, result(r#""twice""#))).await), "conflict");
    assert_eq!(kind_of(store.commit("t", token, started(KEY, 4)).await), "conflict");
    assert_eq!(kind_of(store.commit("t", token, unknown).await), "conflict");
    let stored = store.turn("t").await.unwrap().unwrap();
    assert_eq!((stored.calls[0].attempt, stored.calls[0].result.clone()), (3, Some(result(r#""paid""#))));
}

#[tokio::test]
async fn live_turns_say_whether_they_wait() {
    let place = Place::new();
    let store = place.open();
    let token = paused_turn(&store).await;
    store.begin(turn_row("d1", "d"), 0).await.unwrap();
    let live =
        |id: &str, conversation: &str, paused| LiveTurn { id: id.into(), conversation: conversation.into(), paused };
    assert_eq!(store.live_turns(None).await.unwrap(), [live("t", "c", true), live("d1", "d", false)]);
    assert_eq!(store.live_turns(Some("d")).await.unwrap(), [live("d1", "d", false)]);
    store.decide("p", cepa_agent::Decision::Approve, "ann", 500).await.unwrap();
    assert_eq!(store.live_turns(Some("c")).await.unwrap(), [live("t", "c", false)]);
    let done = Some(TurnChange { state: TurnState::Completed, data: raw("{}").into(), carried: None });
    store.commit("t", token, Commit { turn: done, ..Commit::default() }).await.unwrap();
    assert_eq!(store.live_turns(Some("c")).await.unwrap(), []);
}

// L12: nothing of an ephemeral turn stays.
#[tokio::test]
async fn an_ephemeral_turn_is_forgotten_whole() {
    let place = Place::new();
    let store = place.open();
    let token = store.lease("e", "me", 0, 1000).await.unwrap().token;
    let mut row = turn_row("e", "e");
    row.ephemeral = true;
    store.begin(row, token).await.unwrap();
    let mut waiting = pause("p", "e", KEY);
    waiting.conversation = "e".into();
    let mut full = result("\"x\"");
    full.full = Some(raw("\"xx\""));
    let mut step = finished(KEY, full);
    step.calls.insert(0, CallChange::Planned(call_row(KEY)));
    step.pauses = vec![waiting];
    step.messages = vec![SharedEntry(entry("e/u0", "hi"))];
    store.commit("e", token, step).await.unwrap();
    store.forget("e").await.unwrap();
    store.forget("e").await.unwrap();
    store.release("e", token).await.unwrap();
    for table in ["conversations", "messages", "turns", "calls", "pauses"] {
        assert_eq!(place.ask::<i64>(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(kind_of(store.decide("p", cepa_agent::Decision::Approve, "ann", 1).await), "not_paused");
    paused_turn(&store).await;
    assert_eq!(kind_of(store.forget("t").await), "invalid_input");
}

// H4: after a clear nothing waits any more, and what ran on finds that out.
#[tokio::test]
async fn a_clear_ends_what_waits() {
    let place = Place::new();
    let store = place.open();
    let token = paused_turn(&store).await;
    store.clear("c").await.unwrap();
    assert_eq!(store.pending(None).await.unwrap(), []);
    assert_eq!(store.live_turns(None).await.unwrap(), []);
    assert_eq!(kind_of(store.decide("p", cepa_agent::Decision::Approve, "ann", 500).await), "not_paused");
    let error = store.commit("t", token, started(KEY, 1)).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("cleared"), "{error}");
    assert_eq!(store.load("c", None).await.unwrap().version(), at(1, 0));
    // Tokens and epochs never fall.
    assert!(store.lease("c", "you", 5000, 6000).await.unwrap().token > token);
    store.clear("c").await.unwrap();
    assert_eq!(store.load("c", None).await.unwrap().version(), at(2, 0));
}

trait Versioned {
    fn version(self) -> cepa_agent::Version;
}

impl Versioned for cepa_agent::Loaded {
    fn version(self) -> cepa_agent::Version {
        match self {
            Self::Whole { version, .. } | Self::Added { version, .. } => version,
            Self::Unchanged => panic!("unchanged"),
        }
    }
}

// H1: what was shown, what was decided and by whom, and what then ran can be read afterwards, also after a clear.
#[tokio::test]
async fn the_audit_tells_what_was_shown_decided_and_run() {
    let place = Place::new();
    let store = place.open();
    let token = paused_turn(&store).await;
    let edit = cepa_agent::Decision::edit(r#"{"amount": 1.00}"#).unwrap();
    store.decide("p", edit.clone(), "ann", 500).await.unwrap();
    store.decide("p", edit, "bob", 600).await.unwrap();
    let change = CallChange::Started { key: KEY, attempt: 1, executed_args: Some(raw(r#"{"amount": 1.00}"#)), at: 700 };
    store.commit("t", token, Commit { calls: vec![change], at: 700, ..Commit::default() }).await.unwrap();
    let step = Commit { pauses: vec![pause("p2", "t", KEY)], at: 710, ..Commit::default() };
    store.commit("t", token, step).await.unwrap();
    store.clear("c").await.unwrap();
    let rows: String = place.ask(
        "SELECT group_concat(concat_ws(' ', what, pause, actor, coalesce(data ->> 'edited_args', data ->> 'args')), ';')
         FROM (SELECT * FROM audit ORDER BY seq)",
    );
    let expected = [
        r#"shown p {"amount": 1.10}"#,
        r#"edited p ann {"amount": 1.00}"#,
        r#"ran p {"amount": 1.00}"#,
        r#"shown p2 {"amount": 1.10}"#,
        r#"cancelled p2 {"amount": 1.10}"#,
        "cleared",
    ];
    assert_eq!(rows, expected.join(";"));
}

#[tokio::test]
async fn a_row_of_a_turn_that_does_not_parse_is_corrupt() {
    for sql in [
        "UPDATE turns SET state = 'dancing'",
        "UPDATE turns SET data = '{'",
        "UPDATE calls SET args = '{'",
        "UPDATE calls SET verdict = x'00'",
        "UPDATE calls SET attempt = -1",
        "UPDATE pauses SET decision = '{}'",
        "UPDATE pauses SET kind = 'tea'",
    ] {
        let place = Place::new();
        let store = place.open();
        paused_turn(&store).await;
        place.sql(sql);
        assert_eq!(kind_of(store.turn("t").await), "corrupt", "{sql}");
    }
}
