//! The database as it lies on disk, read without the store: what the invariants are about.

use std::{collections::BTreeMap, path::Path};

use cepa_core::{Args, ToolContext};
use cepa_testkit::rows::{MESSAGES, TURNS};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row};
use serde_json::Value;

use crate::{facts::Fact, program::Name, scene::Scene, tools};

/// All rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows {
    pub(crate) conversations: Vec<Conversation>,
    pub(crate) messages: Vec<Stored>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) calls: Vec<Call>,
    pub(crate) pauses: Vec<Pause>,
    pub(crate) results: BTreeMap<String, String>,
    pub(crate) audit: Vec<Audit>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conversation {
    pub(crate) key: i64,
    pub(crate) id: String,
    pub(crate) epoch: i64,
    pub(crate) head: i64,
    pub(crate) token: i64,
    pub(crate) held_by: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) conversation: i64,
    pub(crate) seq: i64,
    pub(crate) id: String,
    pub(crate) turn: Option<String>,
    pub(crate) body: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) key: i64,
    pub(crate) id: String,
    pub(crate) conversation: i64,
    pub(crate) state: String,
    pub(crate) ephemeral: bool,
    pub(crate) input: String,
    pub(crate) data: String,
}

impl Turn {
    pub(crate) fn is_live(&self) -> bool {
        self.state == "running" || self.state == "paused"
    }

    pub(crate) fn data(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) turn: i64,
    pub(crate) batch: i64,
    pub(crate) idx: i64,
    pub(crate) call_id: String,
    pub(crate) tool: String,
    pub(crate) args: String,
    pub(crate) verdict: String,
    pub(crate) reason: Option<String>,
    pub(crate) state: String,
    pub(crate) attempt: i64,
    pub(crate) executed_args: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) result: Option<String>,
    pub(crate) failure: Option<String>,
}

impl Call {
    /// The arguments as they run if nobody changes them.
    pub(crate) fn run_args(&self) -> &str {
        self.executed_args.as_deref().unwrap_or(&self.args)
    }

    /// The text of its result.
    pub(crate) fn text(&self) -> Option<String> {
        self.result.as_ref().map(|json| serde_json::from_str(json).unwrap())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pause {
    pub(crate) id: String,
    pub(crate) turn: i64,
    pub(crate) batch: i64,
    pub(crate) idx: i64,
    pub(crate) kind: String,
    pub(crate) args: String,
    pub(crate) created: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) state: String,
    pub(crate) decision: Option<String>,
    pub(crate) actor: Option<String>,
    pub(crate) decided: Option<i64>,
    pub(crate) rest: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Audit {
    pub(crate) seq: i64,
    pub(crate) what: String,
    pub(crate) pause: Option<String>,
    pub(crate) data: String,
}

/// The texts of results that were cut for the model, by the ids of their messages.
const RESULTS: &str =
    "SELECT t.id || '/t' || l.batch || '.' || l.idx, l.full FROM calls l JOIN turns t ON t.key = l.turn
    WHERE l.full IS NOT NULL";

fn open(path: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).unwrap()
}

fn all<T>(connection: &Connection, sql: &str, row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
    let mut statement = connection.prepare_cached(sql).unwrap();
    statement.query_map([], row).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

impl Rows {
    pub(crate) fn read(path: &Path) -> Self {
        let mut connection = open(path);
        let db = connection.transaction().unwrap();
        let conversations =
            all(&db, "SELECT key, id, epoch, head, lease_token, lease_by FROM conversations ORDER BY key", |row| {
                Ok(Conversation {
                    key: row.get(0)?,
                    id: row.get(1)?,
                    epoch: row.get(2)?,
                    head: row.get(3)?,
                    token: row.get(4)?,
                    held_by: row.get(5)?,
                })
            });
        let messages = all(
            &db,
            &format!("SELECT conversation, seq, id, turn, body FROM {MESSAGES} ORDER BY conversation, seq"),
            |row| {
                Ok(Stored {
                    conversation: row.get(0)?,
                    seq: row.get(1)?,
                    id: row.get(2)?,
                    turn: row.get(3)?,
                    body: row.get(4)?,
                })
            },
        );
        let turns = all(
            &db,
            &format!("SELECT key, id, conversation, state, ephemeral, input, data FROM {TURNS} ORDER BY key"),
            |row| {
                Ok(Turn {
                    key: row.get(0)?,
                    id: row.get(1)?,
                    conversation: row.get(2)?,
                    state: row.get(3)?,
                    ephemeral: row.get(4)?,
                    input: row.get(5)?,
                    data: row.get(6)?,
                })
            },
        );
        let calls = all(
            &db,
            "SELECT turn, batch, idx, call_id, tool, args, verdict, reason, state, attempt, executed_args, status, result,
                failure FROM calls ORDER BY turn, batch, idx",
            |row| {
                Ok(Call {
                    turn: row.get(0)?,
                    batch: row.get(1)?,
                    idx: row.get(2)?,
                    call_id: row.get(3)?,
                    tool: row.get(4)?,
                    args: row.get(5)?,
                    verdict: row.get(6)?,
                    reason: row.get(7)?,
                    state: row.get(8)?,
                    attempt: row.get(9)?,
                    executed_args: row.get(10)?,
                    status: row.get(11)?,
                    result: row.get(12)?,
                    failure: row.get(13)?,
                })
            },
        );
        let pauses = all(
            &db,
            "SELECT id, turn, batch, idx, kind, args, created, expires, state, decision, actor, decided,
                call_id || tool || args_hash || schema_hash || coalesce(reason, '') FROM pauses ORDER BY rowid",
            |row| {
                Ok(Pause {
                    id: row.get(0)?,
                    turn: row.get(1)?,
                    batch: row.get(2)?,
                    idx: row.get(3)?,
                    kind: row.get(4)?,
                    args: row.get(5)?,
                    created: row.get(6)?,
                    expires: row.get(7)?,
                    state: row.get(8)?,
                    decision: row.get(9)?,
                    actor: row.get(10)?,
                    decided: row.get(11)?,
                    rest: row.get(12)?,
                })
            },
        );
        let results = all(&db, RESULTS, |row| Ok((row.get(0)?, row.get(1)?)));
        let audit = all(&db, "SELECT seq, what, pause, data FROM audit ORDER BY seq", |row| {
            Ok(Audit { seq: row.get(0)?, what: row.get(1)?, pause: row.get(2)?, data: row.get(3)? })
        });
        Self { conversations, messages, turns, calls, pauses, results: results.into_iter().collect(), audit }
    }

    /// Without who drives what: the part that a fenced writer must not change.
    pub(crate) fn without_tokens(mut self) -> Self {
        for conversation in &mut self.conversations {
            (conversation.token, conversation.held_by) = (0, None);
        }
        // A conversation that was only ever looked at is none.
        self.conversations.retain(|conversation| (conversation.epoch, conversation.head) != (0, 0));
        self
    }

    pub(crate) fn conversation(&self, id: &str) -> Option<&Conversation> {
        self.conversations.iter().find(|conversation| conversation.id == id)
    }

    pub(crate) fn turn(&self, id: &str) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.id == id)
    }

    pub(crate) fn calls_of(&self, turn: &Turn) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.turn == turn.key).collect()
    }

    /// The pauses of a call, the oldest first.
    pub(crate) fn pauses_of(&self, call: &Call) -> Vec<&Pause> {
        let mine = |pause: &&Pause| (pause.turn, pause.batch, pause.idx) == (call.turn, call.batch, call.idx);
        self.pauses.iter().filter(mine).collect()
    }

    pub(crate) fn messages_of(&self, conversation: i64) -> Vec<&Stored> {
        self.messages.iter().filter(|message| message.conversation == conversation).collect()
    }
}

/// A turn's id, batch and place from an idempotency key.
pub(crate) fn parts(key: &str) -> Option<(&str, i64, i64)> {
    let (rest, idx) = key.rsplit_once('-')?;
    let (turn, batch) = rest.rsplit_once('-')?;
    Some((turn, batch.parse().ok()?, idx.parse().ok()?))
}

/// Looks, at the moment that a body is entered, whether the rows let it in.
pub(crate) fn may_enter(scene: &Scene, name: Name, key: &str, context: &ToolContext, args: &Args) {
    if let Err(why) = look(scene, name, key, context, args.as_str()) {
        scene
            .facts()
            .add(Fact::Wrong(format!("{why}: the body of {name:?} ({key}) was entered with {}", args.as_str())));
    }
}

fn look(scene: &Scene, name: Name, key: &str, context: &ToolContext, args: &str) -> Result<(), String> {
    let (turn, batch, idx) = parts(key).ok_or("D3: the key is not of turn, batch and place")?;
    let db = open(scene.path());
    let is_stored: bool =
        db.query_row("SELECT count(*) > 0 FROM turns WHERE id = ?1", [turn], |row| row.get(0)).unwrap();
    if !is_stored {
        // An ephemeral turn leaves nothing before it waits.
        return if context.conversation_id().is_none() { Ok(()) } else { Err("D1: without a row of its turn".into()) };
    }
    let sql = "SELECT c.state, c.verdict, coalesce(c.executed_args, c.args) FROM calls c JOIN turns t ON t.key = c.turn
         WHERE t.id = ?1 AND c.batch = ?2 AND c.idx = ?3";
    let call = db.query_row(sql, (turn, batch, idx), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let Some((state, verdict, planned)) = call.optional().unwrap() else {
        return Err("D1: before it was planned".into());
    };
    let (state, verdict, planned): (String, String, String) = (state, verdict, planned);
    let flags = tools::flags(name);
    if state != "started" && !flags.read_only {
        return Err(format!("D1: while its row says {state}"));
    }
    let sql = "SELECT p.state, p.args, p.decision FROM pauses p JOIN turns t ON t.key = p.turn
         WHERE t.id = ?1 AND p.batch = ?2 AND p.idx = ?3 ORDER BY p.rowid DESC LIMIT 1";
    let pause = db.query_row(sql, (turn, batch, idx), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let pause: Option<(String, String, Option<String>)> = pause.optional().unwrap();
    let allowed = match pause {
        None if verdict == "proceed" => planned,
        None => return Err(format!("H3: though its verdict is {verdict}")),
        Some((state, shown, _)) if state == "approved" => shown,
        Some((state, _, Some(decision))) if state == "edited" => {
            let decision: Value = serde_json::from_str(&decision).unwrap();
            decision.get("args").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        Some((state, _, _)) => return Err(format!("H3: while its pause is {state}")),
    };
    if allowed == args { Ok(()) } else { Err(format!("H2, L5: though {allowed} was decided on")) }
}

/// Whether a pause is of this conversation; without one, whether its turn has none.
pub(crate) fn is_in(rows: &Rows, pause: &Pause, conversation: Option<&str>) -> bool {
    let Some(turn) = rows.turns.iter().find(|turn| turn.key == pause.turn) else { return false };
    let own = rows.conversations.iter().find(|one| one.key == turn.conversation);
    own.is_some_and(|own| conversation.map_or(own.id == turn.id, |id| own.id == id))
}
