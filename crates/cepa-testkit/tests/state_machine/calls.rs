//! What holds of a call: it ran as often as it may, with what was decided on, and its result is the truth about that.

use crate::{
    facts::{Facts, Run},
    invariants::ensure,
    program::Setup,
    rows::{Call, Pause, Rows, Turn},
    tools,
};

pub(crate) fn of_turn(rows: &Rows, turn: &Turn, facts: &Facts, setup: &Setup) -> Result<(), String> {
    for call in rows.calls_of(turn) {
        let key = format!("{}-{}-{}", turn.id, call.batch, call.idx);
        let (runs, pauses) = (facts.runs(&key), rows.pauses_of(call));
        let at = |why: String| format!("{why}\n{call:#?}\nran: {runs:#?}\npauses: {pauses:#?}");
        allowed(call, &runs, &pauses, setup).map_err(at)?;
        if call.state == "finished" {
            let full = rows.results.get(&format!("{}/t{}.{}", turn.id, call.batch, call.idx));
            truthful(call, &runs, &pauses, full).map_err(at)?;
        }
    }
    Ok(())
}

fn was_let(pause: &Pause) -> bool {
    pause.state == "approved" || pause.state == "edited"
}

fn edit(pause: &Pause) -> Option<String> {
    let decision: serde_json::Value = serde_json::from_str(pause.decision.as_deref()?).unwrap();
    decision.get("args").and_then(serde_json::Value::as_str).map(str::to_owned)
}

/// Whether the runs are those that were allowed.
fn allowed(call: &Call, runs: &[&Run], pauses: &[&Pause], setup: &Setup) -> Result<(), String> {
    let flags = tools::flags_of(&call.tool);
    let (repeats, count) = (flags.idempotent || flags.read_only, i64::try_from(runs.len()).unwrap());
    let asked = pauses.iter().find(|pause| pause.kind == "approval");
    let never = match asked {
        Some(pause) => !was_let(pause),
        None => call.verdict != "proceed",
    };
    ensure(!never || count == 0, || "H3: it ran though nobody let it".to_owned())?;
    ensure(!(flags.sensitive && setup.pausing) || asked.is_some() || call.verdict != "proceed", || {
        "L6: a sensitive call was not asked about".to_owned()
    })?;
    let again = pauses.iter().filter(|pause| pause.kind != "approval" && was_let(pause)).count();
    ensure(repeats || count <= 1 + i64::try_from(again).unwrap(), || "D2: it ran more than once".to_owned())?;
    ensure(flags.read_only || count <= call.attempt, || "D1: it ran more often than it was started".to_owned())?;
    // What waits because it broke or was lost has run with what is shown.
    let own = asked.is_none().then(|| pauses.first().map_or_else(|| call.run_args(), |pause| &pause.args).to_owned());
    let let_run = pauses.iter().filter(|pause| was_let(pause));
    let shown = let_run.map(|pause| edit(pause).unwrap_or_else(|| pause.args.clone()));
    let fit: Vec<String> = own.into_iter().chain(shown).collect();
    ensure(runs.iter().all(|run| fit.contains(&run.args) && run.tool == call.tool), || {
        format!("H2, L5: only {fit:?} may run")
    })
}

/// Whether the result is what happened.
fn truthful(call: &Call, runs: &[&Run], pauses: &[&Pause], full: Option<&String>) -> Result<(), String> {
    let text = full.map_or_else(|| call.text(), |full| serde_json::from_str(full).unwrap()).unwrap_or_default();
    let last = pauses.last();
    let state = last.map(|pause| pause.state.as_str());
    let replied = last.filter(|pause| pause.state == "replied").is_some_and(|pause| {
        let decision: serde_json::Value = serde_json::from_str(pause.decision.as_deref().unwrap()).unwrap();
        decision.get("content").and_then(serde_json::Value::as_str) == Some(&text)
    });
    // The last run that came to its end; one that was stopped says nothing.
    let said = runs.iter().rev().find_map(|run| run.outcome.as_ref());
    let stopped = runs.iter().any(|run| run.outcome.is_none());
    // Of a call that only reads no beginning is written: of one that was dropped nobody knows whether it ran.
    let unnoted = tools::flags_of(&call.tool).read_only;
    let holds = match call.status.as_deref() {
        Some("ok") => replied || said == Some(&Ok(text.clone())) && state != Some("replied"),
        Some("error") => call.verdict == "refuse" && runs.is_empty() || said == Some(&Err(text.clone())),
        Some("rejected") => runs.is_empty() && state == Some("rejected") && text.starts_with("Rejected"),
        Some("cancelled") => (runs.is_empty() || unnoted) && !text.is_empty(),
        Some("expired") => runs.is_empty() && state == Some("expired") && text.starts_with("Expired"),
        // Entered, or about to be: a crash may come between the row and the body.
        Some("unknown") => call.attempt > 0 && text.starts_with("Unknown"),
        _ => false,
    };
    ensure(holds, || format!("L3, L11: {:?} {text:?} is not what happened", call.status))?;
    let silent = call.status.as_deref() == Some("unknown") && !stopped && !runs.is_empty() && call.attempt == 0;
    ensure(!silent, || "D2: unknown, though it ended".to_owned())?;
    let cut = full.is_some();
    let shown = call.text().unwrap_or_default().chars().count();
    ensure(cut == (text.chars().count() > tools::MAX_CHARS), || "L16: cut, or not, against its length".to_owned())?;
    ensure(!cut || shown < text.chars().count(), || "L16: what was cut is not shorter".to_owned())
}
