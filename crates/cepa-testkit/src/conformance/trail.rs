//! The promises of a store about its audit trail.

use cepa_agent::{
    AuditEntry, AuditKind, Commit, Decision, PauseState, audit,
    store::{CallChange, CallKey, CallResult, CallRow, VerdictKind},
};
use cepa_core::RawJson;

use super::{
    Outcome, ensure, fine,
    turns::{AT, KEY, Store, call_result, call_row, pause, paused},
};

/// One step of a call.
fn step(change: CallChange) -> Commit {
    Commit { calls: vec![change], at: AT, ..Commit::default() }
}

fn started(key: CallKey, attempt: u32, args: Option<&str>, at: i64) -> CallChange {
    let executed_args = args.and_then(|args| RawJson::parse(args).ok());
    CallChange::Started { key, attempt, executed_args, at }
}

/// Without what the store gives: the places.
fn plain(trail: Vec<AuditEntry>) -> Vec<AuditEntry> {
    trail.into_iter().map(|entry| AuditEntry { seq: 0, ..entry }).collect()
}

// H1: what was shown, by whom it was decided, and what ran.
pub(super) async fn complete(store: Store) -> Outcome {
    let shown = pause("t1", "c", KEY);
    let token = paused(&store, "t1", "c").await?;
    let edit = fine("edit", Decision::edit(r#"{"amount": 1.00}"#))?;
    fine("decide", store.decide("t1.0.0", edit.clone(), "anna", AT + 1).await)?;
    fine("the same decision", store.decide("t1.0.0", edit.clone(), "bert", AT + 2).await)?;
    let other = store.decide("t1.0.0", Decision::Approve, "bert", AT + 2).await;
    ensure!(other.is_err(), "another decision was taken");
    fine("start", store.commit("t1", token, step(started(KEY, 1, Some(r#"{"amount": 1.00}"#), AT + 3))).await)?;
    let finished = CallChange::Finished { key: KEY, result: call_result(), at: AT + 4 };
    fine("finish", store.commit("t1", token, step(finished)).await)?;
    // A second call is lost, and a third one is given up with the conversation.
    let (second, third) = (CallKey { batch: 0, idx: 1 }, CallKey { batch: 0, idx: 2 });
    let (lost, left) = (pause("t1", "c", second), pause("t1", "c", third));
    let calls = vec![CallChange::Planned(call_row(0, 1)), CallChange::Planned(call_row(0, 2))];
    let more = Commit { calls, pauses: vec![lost.clone(), left.clone()], at: AT, ..Commit::default() };
    fine("pauses", store.commit("t1", token, more).await)?;
    fine("decide", store.decide(&lost.id, Decision::Approve, "anna", AT + 5).await)?;
    fine("start", store.commit("t1", token, step(started(second, 1, None, AT + 6))).await)?;
    fine("lose", store.commit("t1", token, step(CallChange::Unknown { key: second, at: AT + 7 })).await)?;
    fine("clear", store.clear("c").await)?;

    let mut trail = fine("audit", store.audit(Some("c"), 0, 100).await)?;
    ensure!(trail.windows(2).all(|two| matches!(two, [a, b] if a.seq < b.seq)), "places do not rise: {trail:?}");
    // A store's own clock tells when the conversation was cleared.
    for entry in trail.iter_mut().rev().take(2) {
        entry.at = AT;
    }
    let ran = |attempt, args: Option<&str>, result: Option<CallResult>, idx| CallRow {
        attempt,
        executed_args: args.and_then(|args| RawJson::parse(args).ok()),
        result,
        ..call_row(0, idx)
    };
    let edited = Some(r#"{"amount": 1.00}"#);
    let wanted = [
        AuditEntry::shown(&shown),
        AuditEntry::decided(&shown, &edit, "anna", AT + 1),
        AuditEntry::ran(&shown, &ran(1, edited, None, 0), AT + 3),
        AuditEntry::finished(&shown, &ran(1, edited, Some(call_result()), 0), AT + 4),
        AuditEntry::shown(&lost),
        AuditEntry::shown(&left),
        AuditEntry::decided(&lost, &Decision::Approve, "anna", AT + 5),
        AuditEntry::ran(&lost, &ran(1, None, None, 1), AT + 6),
        AuditEntry::unknown(&lost, &ran(1, None, None, 1), AT + 7),
        AuditEntry::closed(&left, PauseState::Cancelled, AT),
        AuditEntry::cleared("c", AT),
    ];
    let trail = plain(trail);
    for (place, (found, wanted)) in trail.iter().zip(&wanted).enumerate() {
        ensure!(found == wanted, "entry {place} is {found:?}, not {wanted:?}");
    }
    ensure!(trail.len() == wanted.len(), "{} entries, not {}: {trail:?}", trail.len(), wanted.len());
    Ok(())
}

// H1: only what a person was shown is in the trail; a call that simply runs is in the turn's rows.
pub(super) async fn unshown(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    let key = CallKey { batch: 0, idx: 1 };
    let row = CallRow { verdict: VerdictKind::Proceed, ..call_row(0, 1) };
    ensure!(!audit::may_have_been_shown(&row), "a call that proceeds was never shown");
    fine("plan", store.commit("t1", token, step(CallChange::Planned(row))).await)?;
    fine("start", store.commit("t1", token, step(started(key, 1, None, AT))).await)?;
    let finished = CallChange::Finished { key, result: call_result(), at: AT };
    fine("finish", store.commit("t1", token, step(finished)).await)?;
    let trail = fine("audit", store.audit(None, 0, 100).await)?;
    let kinds: Vec<AuditKind> = trail.iter().map(|entry| entry.what).collect();
    ensure!(kinds == [AuditKind::Shown], "{trail:?}");
    Ok(())
}

pub(super) async fn pages(store: Store) -> Outcome {
    for n in 0..5 {
        let conversation = if n % 2 == 0 { "even" } else { "odd" };
        paused(&store, &format!("t{n}"), conversation).await?;
    }
    let all = fine("audit", store.audit(None, 0, 100).await)?;
    ensure!(all.len() == 5, "{all:?}");
    let (mut paged, mut after) = (Vec::new(), 0);
    loop {
        let page = fine("audit", store.audit(None, after, 2).await)?;
        let Some(last) = page.last() else { break };
        ensure!(page.len() <= 2, "a page of {}", page.len());
        after = last.seq;
        paged.extend(page);
    }
    ensure!(paged == all, "{paged:?} is not {all:?}");
    let odd = fine("audit", store.audit(Some("odd"), 0, 100).await)?;
    ensure!(odd.iter().all(|entry| entry.conversation() == "odd") && odd.len() == 2, "{odd:?}");
    let nobody = fine("audit", store.audit(Some("nobody"), 0, 100).await)?;
    ensure!(nobody.is_empty(), "{nobody:?}");
    Ok(())
}
