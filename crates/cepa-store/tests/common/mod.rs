//! What the tests of the store share.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cepa_agent::{
    Commit, Pause, PauseKind, PauseState, TurnRow, TurnState, TurnStore, Version, load_whole,
    store::{CallChange, CallKey, CallResult, CallRow, CallState, SharedEntry, TurnChange, VerdictKind},
};
use cepa_core::{Args, Entry, Error, Message, RawJson, ToolStatus};
use cepa_store::{Options, Sqlite, Synchronous};

/// A folder that is gone with the test, and a path in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("chat.db")
    }

    /// A store that need not survive a power cut.
    pub(crate) fn open(&self) -> Sqlite {
        open(&self.path())
    }

    /// The names in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<String> = names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs SQL on the file, as another program would.
    pub(crate) fn sql(&self, sql: &str) {
        rusqlite::Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }

    pub(crate) fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        rusqlite::Connection::open(self.path()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

pub(crate) fn open(path: &Path) -> Sqlite {
    Sqlite::open_with(path, Options::default().synchronous(Synchronous::Normal)).unwrap()
}

pub(crate) fn entry(id: &str, text: &str) -> Arc<Entry> {
    Arc::new(Entry::with_id(id, 7, Message::user(text)))
}

pub(crate) fn unnamed(text: &str) -> Arc<Entry> {
    Arc::new(Entry::new(Message::user(text)))
}

pub(crate) fn at(epoch: u64, seq: u64) -> Version {
    Version { epoch, seq }
}

/// The texts of a conversation.
pub(crate) async fn texts(store: &Sqlite, id: &str) -> Vec<String> {
    load_whole(store, id).await.unwrap().1.messages().map(|message| message.text().into_owned()).collect()
}

/// Ids with messages and times: all that an entry holds.
pub(crate) async fn entries(store: &Sqlite, id: &str) -> Vec<(Option<Arc<str>>, i64, Message)> {
    let (_, history) = load_whole(store, id).await.unwrap();
    history.iter().map(|entry| (entry.id.clone(), entry.created, entry.message.clone())).collect()
}

pub(crate) fn kind_of<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.kind().as_str(),
    }
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

pub(crate) fn turn_row(id: &str, conversation: &str) -> TurnRow {
    TurnRow {
        id: id.into(),
        conversation: conversation.into(),
        state: TurnState::Running,
        ephemeral: false,
        input: raw(r#"[{"role":"user","content":"pay"}]"#),
        carried: None,
        data: raw(r#"{"n": 1.50}"#),
        created: 100,
        updated: 100,
    }
}

pub(crate) const KEY: CallKey = CallKey { batch: 0, idx: 0 };

pub(crate) fn call_row(key: CallKey) -> CallRow {
    CallRow {
        batch: key.batch,
        idx: key.idx,
        call_id: "c1".into(),
        tool: "pay".into(),
        schema_hash: "s".into(),
        args: Args::Object(raw(r#"{"amount": 1.10}"#)),
        verdict: VerdictKind::Pause,
        reason: Some("much".into()),
        state: CallState::Planned,
        attempt: 0,
        executed_args: None,
        result: None,
        started: None,
        finished: None,
    }
}

pub(crate) fn pause(id: &str, turn: &str, key: CallKey) -> Pause {
    Pause {
        id: id.into(),
        kind: PauseKind::Approval,
        conversation: "c".into(),
        turn: turn.into(),
        key,
        call_id: "c1".into(),
        tool: "pay".into(),
        args: raw(r#"{"amount": 1.10}"#),
        args_hash: "h".into(),
        schema_hash: "s".into(),
        reason: Some("much".into()),
        created: 110,
        expires: Some(1000),
        state: PauseState::Pending,
        decision: None,
        actor: None,
        decided: None,
    }
}

pub(crate) fn result(text: &str) -> CallResult {
    CallResult { status: ToolStatus::Ok, content: raw(text), full: None, writes: None, failure: None }
}

pub(crate) fn started(key: CallKey, attempt: u32) -> Commit {
    let change = CallChange::Started { key, attempt, executed_args: None, at: 120 };
    Commit { calls: vec![change], at: 120, ..Commit::default() }
}

pub(crate) fn finished(key: CallKey, result: CallResult) -> Commit {
    Commit { calls: vec![CallChange::Finished { key, result, at: 130 }], at: 130, ..Commit::default() }
}

/// A turn `t` of conversation `c` that waits for pause `p`; returns the lease's token.
pub(crate) async fn paused_turn(store: &Sqlite) -> u64 {
    let token = store.lease("c", "me", 0, 1000).await.unwrap().token;
    store.begin(turn_row("t", "c"), token).await.unwrap();
    let commit = Commit {
        turn: Some(TurnChange { state: TurnState::Paused, data: raw("{}").into(), carried: None }),
        calls: vec![CallChange::Planned(call_row(KEY))],
        pauses: vec![pause("p", "t", KEY)],
        messages: vec![SharedEntry(entry("t/u0", "pay"))],
        at: 110,
        ..Commit::default()
    };
    store.commit("t", token, commit).await.unwrap();
    token
}
