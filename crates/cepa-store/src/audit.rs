//! What people were shown, what they decided, and what then ran. Rows are only ever added; clearing a conversation
//! leaves them.

use cepa_agent::{Decision, Pause, store::CallRow};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::failure::Failure;

fn add(
    connection: &Connection,
    at: i64,
    actor: Option<&str>,
    what: &str,
    pause: Option<&str>,
    data: &Value,
) -> Result<(), Failure> {
    let mut statement =
        connection.prepare_cached("INSERT INTO audit(at, actor, what, pause, data) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    statement.execute(params![at, actor, what, pause, data.to_string()])?;
    Ok(())
}

/// Arguments are kept as text, so that their digits survive.
fn about(pause: &Pause) -> Value {
    json!({
        "conversation": pause.conversation,
        "turn": pause.turn,
        "batch": pause.key.batch,
        "idx": pause.key.idx,
        "call_id": pause.call_id,
        "tool": pause.tool,
        "args": pause.args.as_str(),
        "args_hash": pause.args_hash,
    })
}

/// A call begins to wait: this is what is shown.
pub(crate) fn shown(connection: &Connection, pause: &Pause) -> Result<(), Failure> {
    let mut data = about(pause);
    if let Value::Object(members) = &mut data {
        members.insert("kind".into(), pause.kind.as_str().into());
        members.insert("reason".into(), pause.reason.clone().into());
        members.insert("expires".into(), pause.expires.into());
    }
    add(connection, pause.created, None, "shown", Some(&pause.id), &data)
}

/// Somebody decided.
pub(crate) fn decided(
    connection: &Connection,
    pause: &Pause,
    decision: &Decision,
    actor: &str,
    now: i64,
) -> Result<(), Failure> {
    let mut data = about(pause);
    if let Value::Object(members) = &mut data {
        match decision {
            Decision::Approve => {}
            Decision::Edit { args } => drop(members.insert("edited_args".into(), args.clone().into())),
            Decision::Reject { reason } => drop(members.insert("reason".into(), reason.clone().into())),
            Decision::Reply { content } => drop(members.insert("content".into(), content.clone().into())),
        }
    }
    add(connection, now, Some(actor), decision.state().as_str(), Some(&pause.id), &data)
}

/// A pause is over and nobody decided; `what` is its new state.
pub(crate) fn closed(connection: &Connection, pause: &str, what: &str, now: i64) -> Result<(), Failure> {
    add(connection, now, None, what, Some(pause), &json!({}))
}

/// The body of a call that had been shown is entered.
pub(crate) fn ran(connection: &Connection, turn: i64, call: &CallRow, now: i64) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id FROM pauses WHERE turn = ?1 AND batch = ?2 AND idx = ?3 ORDER BY created DESC, rowid DESC LIMIT 1",
    )?;
    let mut found = statement.query(params![turn, call.batch, call.idx])?;
    let Some(row) = found.next()? else { return Ok(()) };
    let pause: String = row.get(0)?;
    let args = call.executed_args.as_ref().map_or_else(|| call.args.as_str(), |args| args.as_str());
    let data = json!({"tool": call.tool, "args": args, "attempt": call.attempt});
    add(connection, now, None, "ran", Some(&pause), &data)
}

/// A conversation is cleared, with all that waits in it.
pub(crate) fn cleared(connection: &Connection, key: i64, id: &str, now: i64) -> Result<(), Failure> {
    let mut waiting = connection.prepare_cached(
        "SELECT p.id FROM pauses p JOIN turns t ON t.key = p.turn WHERE t.conversation = ?1 AND p.state = 'pending'",
    )?;
    let waiting: Vec<String> = waiting.query_map([key], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for pause in waiting {
        closed(connection, &pause, "cancelled", now)?;
    }
    add(connection, now, None, "cleared", None, &json!({"conversation": id}))
}
