//! What holds of pauses and of what is written down about them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    invariants::ensure,
    rows::{Pause, Rows, is_in},
};

/// A pause is decided once, and nothing else of it ever changes.
pub(crate) fn grown(before: &Rows, after: &Rows) -> Result<(), String> {
    for old in &before.pauses {
        // It goes with its turn.
        let Some(new) = after.pauses.iter().find(|new| new.id == old.id) else { continue };
        ensure(old.state == "pending" || new == old, || format!("H4: {old:?} was settled and became {new:?}"))?;
        let shown =
            |pause: &Pause| (pause.kind.clone(), pause.args.clone(), pause.created, pause.expires, pause.rest.clone());
        ensure(shown(old) == shown(new), || format!("H1: what was shown changed: {old:?} became {new:?}"))?;
    }
    for pause in &after.pauses {
        sound(pause)?;
    }
    Ok(())
}

/// H9: the state says what the decision says, and each has its own word.
fn sound(pause: &Pause) -> Result<(), String> {
    let decision: Option<Value> = pause.decision.as_ref().map(|json| serde_json::from_str(json).unwrap());
    let word = decision.as_ref().and_then(|decision| decision.get("decision")).and_then(Value::as_str);
    let fits = match pause.state.as_str() {
        "pending" | "expired" | "cancelled" => word.is_none(),
        "approved" => word == Some("approve"),
        "edited" => word == Some("edit"),
        "rejected" => word == Some("reject"),
        "replied" => word == Some("reply"),
        _ => false,
    };
    let decided = (pause.actor.is_some(), pause.decided.is_some()) == (word.is_some(), word.is_some());
    ensure(fits && decided, || format!("H9: the state and the decision differ: {pause:?}"))?;
    let late = pause.decided.zip(pause.expires).is_some_and(|(at, expires)| at >= expires);
    ensure(!late, || format!("H5: decided after it had expired: {pause:?}"))
}

/// Each pause was shown once, and settled at most once.
pub(crate) fn audited(rows: &Rows) -> Result<(), String> {
    let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &rows.audit {
        if let Some(pause) =
            row.pause.as_deref().filter(|_| !["ran", "finished", "unknown"].contains(&row.what.as_str()))
        {
            told.entry(pause).or_default().push(&row.what);
        }
    }
    for pause in &rows.pauses {
        let told = told.get(pause.id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let expected: &[&str] = if pause.state == "pending" { &["shown"] } else { &["shown", &pause.state] };
        ensure(told == expected, || format!("H1, H4: the audit says {told:?} of {pause:?}"))?;
    }
    Ok(())
}

/// H1: those that wait are all those that wait, and no others.
pub(crate) fn pending(rows: &Rows, now: i64, conversation: Option<&str>, shown: &[&str]) -> Result<(), String> {
    let waits = |pause: &&Pause| {
        pause.state == "pending"
            && pause.expires.is_none_or(|expires| now < expires)
            && is_in(rows, pause, conversation)
    };
    let mut waiting: Vec<&Pause> = rows.pauses.iter().filter(waits).collect();
    waiting.sort_by_key(|pause| (pause.created, pause.turn, pause.batch, pause.idx));
    let waiting: Vec<&str> = waiting.iter().map(|pause| pause.id.as_str()).collect();
    ensure(waiting == shown, || format!("H1, H5: {waiting:?} wait in {conversation:?}, pending() is {shown:?}"))
}
