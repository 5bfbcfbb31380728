//! The promises of a store of turns.

use std::sync::Arc;

use cepa_agent::{
    Commit, Decision, Pause, PauseKind, PauseState, TurnRow, TurnState, TurnStore, ids,
    store::{CallChange, CallKey, CallResult, CallRow, CallState, SharedEntry, TurnChange, VerdictKind},
};
use cepa_core::{Args, Entry, ErrorKind, Message, RawJson, ToolStatus};

use super::{Check, Outcome, checks, ensure, fine, refused, whole};

pub(super) const CHECKS: &[Check<dyn TurnStore>] = checks! { dyn TurnStore:
    "one holder at a time has the lease, and each new one a higher token" => lease,
    "an old token writes nothing" => old_token,
    "a turn begins together with taking its conversation, unless another is live there" => open_turn,
    "a step gives the conversation back if it says so, and only then" => releases,
    "a turn comes back with all that it left behind" => round_trip,
    "the messages of a step join the conversation once" => messages,
    "a call goes forward only" => forward,
    "a pause is decided once" => decide,
    "two decisions at once: one wins" => decide_at_once,
    "a pause past its time is expired" => expired,
    "a pause that was closed is not decided, and a decision is not closed" => closed,
    "what waits is listed, oldest first, of one conversation or of all" => pending,
    "an ephemeral turn is forgotten whole, a kept one is not" => forget,
    "clear takes the turns and their pauses along" => clear,
    "the trail tells what was shown, decided and run, in order, and survives a clear" => super::trail::complete,
    "the trail of what was never shown is empty" => super::trail::unshown,
    "the trail is read in pages" => super::trail::pages,
};

pub(super) type Store = Arc<dyn TurnStore>;
pub(super) const AT: i64 = 1_700_000_000_000;

fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap_or_else(|_| RawJson::empty_object())
}

pub(super) fn turn_row(id: &str, conversation: &str) -> TurnRow {
    TurnRow {
        id: id.to_owned(),
        conversation: conversation.to_owned(),
        state: TurnState::Running,
        ephemeral: false,
        input: json(r#"[{"role":"user","content":"hi 晴"}]"#),
        carried: None,
        data: json(r#"{ "n" : 12345678901234567890123 }"#),
        created: AT,
        updated: AT,
    }
}

pub(super) fn call_row(batch: u32, idx: u32) -> CallRow {
    CallRow {
        batch,
        idx,
        call_id: format!("call_{batch}.{idx}").into(),
        tool: "pay".into(),
        schema_hash: "s".into(),
        args: Args::decode(r#"{"amount": 12345678901234567890123}"#),
        verdict: VerdictKind::Pause,
        reason: Some("too much".to_owned()),
        state: CallState::Planned,
        attempt: 0,
        executed_args: None,
        result: None,
        started: None,
        finished: None,
    }
}

pub(super) fn pause(turn: &str, conversation: &str, key: CallKey) -> Pause {
    Pause {
        id: format!("{turn}.{}.{}", key.batch, key.idx),
        kind: PauseKind::Approval,
        conversation: conversation.to_owned(),
        turn: turn.to_owned(),
        key,
        call_id: format!("call_{}.{}", key.batch, key.idx),
        tool: "pay".to_owned(),
        args: json(r#"{ "amount": 5.0 }"#),
        args_hash: "h".to_owned(),
        schema_hash: "s".to_owned(),
        reason: None,
        created: AT + i64::from(key.idx),
        expires: None,
        state: PauseState::Pending,
        decision: None,
        actor: None,
        decided: None,
    }
}

pub(super) fn call_result() -> CallResult {
    CallResult {
        status: ToolStatus::Error,
        content: json(r#""cut""#),
        full: Some(json(r#""the full text \u0000""#)),
        writes: Some(json(r#"{"seen":true}"#)),
        failure: Some("semantic".to_owned()),
    }
}

pub(super) const KEY: CallKey = CallKey { batch: 0, idx: 0 };

/// A turn with one call that waits; its token.
pub(super) async fn paused(store: &Store, turn: &str, conversation: &str) -> Result<u64, String> {
    let lease = fine("lease", store.lease(conversation, "me", AT, AT + 1_000_000).await)?;
    fine("begin", store.begin(turn_row(turn, conversation), lease.token).await)?;
    let commit = Commit {
        turn: Some(TurnChange { state: TurnState::Paused, data: json("{}").into(), carried: None }),
        calls: vec![CallChange::Planned(call_row(0, 0))],
        pauses: vec![pause(turn, conversation, KEY)],
        at: AT,
        ..Commit::default()
    };
    fine("commit", store.commit(turn, lease.token, commit).await)?;
    Ok(lease.token)
}

async fn lease(store: Store) -> Outcome {
    let one = fine("lease", store.lease("c", "me", AT, AT + 100).await)?;
    ensure!(one.until == AT + 100, "until {}", one.until);
    let again = fine("the same holder", store.lease("c", "me", AT + 50, AT + 150).await)?;
    ensure!(again.token == one.token && again.until == AT + 150, "{again:?} after {one:?}");
    refused("another holder", ErrorKind::Busy, store.lease("c", "you", AT + 100, AT + 200).await)?;
    fine("another conversation", store.lease("d", "you", AT, AT + 100).await)?;
    let two = fine("another holder, later", store.lease("c", "you", AT + 150, AT + 250).await)?;
    ensure!(two.token > one.token, "{two:?} after {one:?}");
    fine("release of an old token", store.release("c", one.token).await)?;
    refused("a held conversation", ErrorKind::Busy, store.lease("c", "me", AT + 160, AT + 300).await)?;
    fine("release", store.release("c", two.token).await)?;
    let three = fine("a free conversation", store.lease("c", "me", AT + 160, AT + 300).await)?;
    ensure!(three.token > two.token, "{three:?} after {two:?}");
    Ok(())
}

async fn old_token(store: Store) -> Outcome {
    let old = paused(&store, "t1", "c").await?;
    fine("release", store.release("c", old).await)?;
    let new = fine("lease", store.lease("c", "you", AT, AT + 100).await)?;
    refused("begin", ErrorKind::Busy, store.begin(turn_row("t2", "c"), old).await)?;
    let commit = Commit {
        turn: Some(TurnChange { state: TurnState::Failed, data: json("{}").into(), carried: None }),
        calls: vec![CallChange::Started { key: KEY, attempt: 1, executed_args: None, at: AT }],
        messages: vec![SharedEntry(Arc::new(Entry::with_id("m", AT, Message::user("x"))))],
        at: AT,
        ..Commit::default()
    };
    refused("commit", ErrorKind::Busy, store.commit("t1", old, commit.clone()).await)?;
    let stored = fine("turn", store.turn("t1").await)?.ok_or("the turn is gone")?;
    ensure!(stored.row.state == TurnState::Paused, "state {:?}", stored.row.state);
    ensure!(stored.calls.iter().all(|call| call.state == CallState::Planned), "calls {:?}", stored.calls);
    ensure!(whole(&*store, "c").await?.1.is_empty(), "messages were written");
    ensure!(fine("turn", store.turn("t2").await)?.is_none(), "a turn was begun");
    fine("the new token", store.commit("t1", new.token, commit).await)
}

async fn open_turn(store: Store) -> Outcome {
    let first = fine("open", store.open_turn(turn_row("t1", "c"), "me", AT, AT + 100).await)?;
    ensure!(first.begun && first.lease.until == AT + 100, "{first:?}");
    ensure!(fine("turn", store.turn("t1").await)?.is_some(), "the turn is not there");
    refused("a held conversation", ErrorKind::Busy, store.open_turn(turn_row("t2", "c"), "you", AT, AT + 100).await)?;
    let second = fine("beside a live turn", store.open_turn(turn_row("t2", "c"), "me", AT + 1, AT + 200).await)?;
    ensure!(!second.begun && second.lease.token == first.lease.token, "{second:?} after {first:?}");
    ensure!(fine("turn", store.turn("t2").await)?.is_none(), "a turn began beside a live one");
    let done = TurnChange { state: TurnState::Completed, data: json("{}").into(), carried: None };
    let done = Commit { turn: Some(done), at: AT, ..Commit::default() };
    fine("commit", store.commit("t1", first.lease.token, done).await)?;
    let third = fine("behind a turn that is over", store.open_turn(turn_row("t2", "c"), "me", AT, AT + 300).await)?;
    ensure!(third.begun, "{third:?}");
    fine("a write under it", store.begin(turn_row("t3", "c"), third.lease.token).await)
}

async fn releases(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    let step = |releases| Commit { releases, at: AT, ..Commit::default() };
    fine("a step", store.commit("t1", token, Commit { turn: None, ..step(false) }).await)?;
    refused("a held conversation", ErrorKind::Busy, store.lease("c", "you", AT, AT + 100).await)?;
    fine("the last step", store.commit("t1", token, step(true)).await)?;
    let next = fine("a free conversation", store.lease("c", "you", AT, AT + 100).await)?;
    ensure!(next.token > token, "token {} after {token}", next.token);
    refused("an old token", ErrorKind::Busy, store.commit("t1", token, step(true)).await)?;
    refused("a conversation that was taken", ErrorKind::Busy, store.lease("c", "me", AT, AT + 100).await)
}

async fn round_trip(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    let mut broken = call_row(0, 1);
    broken.args = Args::decode("{\"broken");
    broken.verdict = VerdictKind::Refuse;
    let commit = Commit {
        calls: vec![
            CallChange::Planned(broken.clone()),
            CallChange::Started { key: KEY, attempt: 1, executed_args: Some(json(r#"{ "amount":1}"#)), at: AT + 1 },
            CallChange::Finished { key: KEY, result: call_result(), at: AT + 2 },
            CallChange::Unknown { key: CallKey { batch: 0, idx: 1 }, at: AT + 3 },
        ],
        turn: Some(TurnChange {
            state: TurnState::Running,
            data: json(r#"{"b":2}"#).into(),
            carried: Some(vec![Message::user("1")].into()),
        }),
        at: AT + 3,
        ..Commit::default()
    };
    fine("commit", store.commit("t1", token, commit).await)?;
    let stored = fine("turn", store.turn("t1").await)?.ok_or("the turn is gone")?;
    let row = TurnRow {
        state: TurnState::Running,
        data: json(r#"{"b":2}"#),
        carried: Some(json(r#"[{"role":"user","content":"1"}]"#)),
        updated: stored.row.updated,
        ..turn_row("t1", "c")
    };
    ensure!(stored.row == row, "{:?} became {:?}", row, stored.row);
    let calls = [
        CallRow {
            state: CallState::Finished,
            attempt: 1,
            executed_args: Some(json(r#"{ "amount":1}"#)),
            result: Some(call_result()),
            started: Some(AT + 1),
            finished: Some(AT + 2),
            ..call_row(0, 0)
        },
        CallRow { state: CallState::Unknown, ..broken },
    ];
    ensure!(stored.calls == calls, "{calls:?} became {:?}", stored.calls);
    ensure!(stored.pauses == [pause("t1", "c", KEY)], "{:?}", stored.pauses);
    let full = fine("full_result", store.full_result(&ids::result_id("t1", KEY)).await)?;
    ensure!(full == call_result().full, "the full result is {full:?}");
    let none = fine("full_result", store.full_result("nothing").await)?;
    ensure!(none.is_none(), "{none:?}");
    ensure!(fine("turn", store.turn("nobody").await)?.is_none(), "a turn that never was");
    Ok(())
}

async fn messages(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    let message = |id: &str| SharedEntry(Arc::new(Entry::with_id(id, AT, Message::user(id))));
    let commit =
        |ids: &[&str]| Commit { messages: ids.iter().map(|id| message(id)).collect(), at: AT, ..Commit::default() };
    fine("commit", store.commit("t1", token, commit(&["a", "b"])).await)?;
    fine("the same commit", store.commit("t1", token, commit(&["a", "b"])).await)?;
    fine("commit", store.commit("t1", token, commit(&["b", "c"])).await)?;
    let (version, entries) = whole(&*store, "c").await?;
    let found: Vec<_> = entries.iter().filter_map(|entry| entry.id.as_deref()).collect();
    ensure!(found == ["a", "b", "c"] && version.seq == 3, "{found:?} at {version:?}");
    Ok(())
}

async fn forward(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    let step = |change: CallChange| Commit { calls: vec![change], at: AT, ..Commit::default() };
    let started = |attempt| CallChange::Started { key: KEY, attempt, executed_args: None, at: AT };
    let finished = |status| {
        let result = CallResult { status, failure: None, ..call_result() };
        CallChange::Finished { key: KEY, result, at: AT }
    };
    let other = CallKey { batch: 9, idx: 9 };
    let unplanned = CallChange::Unknown { key: other, at: AT };
    refused("a call that was never planned", ErrorKind::Conflict, store.commit("t1", token, step(unplanned)).await)?;
    fine("started", store.commit("t1", token, step(started(1))).await)?;
    refused("the same start", ErrorKind::Conflict, store.commit("t1", token, step(started(1))).await)?;
    let replanned = CallChange::Planned(call_row(0, 0));
    refused("planned again", ErrorKind::Conflict, store.commit("t1", token, step(replanned)).await)?;
    fine("finished", store.commit("t1", token, step(finished(ToolStatus::Ok))).await)?;
    fine("finished again", store.commit("t1", token, step(finished(ToolStatus::Ok))).await)?;
    refused("another result", ErrorKind::Conflict, store.commit("t1", token, step(finished(ToolStatus::Error))).await)?;
    refused("started again", ErrorKind::Conflict, store.commit("t1", token, step(started(2))).await)?;
    // A step of which one part is refused leaves nothing.
    let half = Commit {
        calls: vec![CallChange::Planned(call_row(1, 0)), started(3)],
        messages: vec![SharedEntry(Arc::new(Entry::with_id("half", AT, Message::user("x"))))],
        at: AT,
        ..Commit::default()
    };
    refused("half a step", ErrorKind::Conflict, store.commit("t1", token, half).await)?;
    let stored = fine("turn", store.turn("t1").await)?.ok_or("the turn is gone")?;
    ensure!(stored.calls.len() == 1, "half a step left {:?}", stored.calls);
    ensure!(whole(&*store, "c").await?.1.is_empty(), "half a step left messages");
    Ok(())
}

// H4: the same decision again is the same; another one is refused.
async fn decide(store: Store) -> Outcome {
    paused(&store, "t1", "c").await?;
    let edit = fine("edit", Decision::edit(r#"{"amount": 1}"#))?;
    let decided = fine("decide", store.decide("t1.0.0", edit.clone(), "anna", AT + 5).await)?;
    let wanted = Pause {
        state: PauseState::Edited,
        decision: Some(edit.clone()),
        actor: Some("anna".to_owned()),
        decided: Some(AT + 5),
        ..pause("t1", "c", KEY)
    };
    ensure!(decided == wanted, "{wanted:?} became {decided:?}");
    let again = fine("the same decision", store.decide("t1.0.0", edit, "bert", AT + 9).await)?;
    ensure!(again == wanted, "the same decision again made {again:?}");
    for other in [Decision::Approve, Decision::Reject { reason: None }, fine("edit", Decision::edit("{}"))?] {
        refused("another decision", ErrorKind::AlreadyDecided, store.decide("t1.0.0", other, "bert", AT + 9).await)?;
    }
    let kept = fine("pause", store.pause("t1.0.0").await)?;
    ensure!(kept.as_ref() == Some(&wanted), "{kept:?}");
    refused("a pause that never was", ErrorKind::NotPaused, store.decide("no", Decision::Approve, "x", AT).await)?;
    ensure!(fine("pause", store.pause("no").await)?.is_none(), "a pause that never was");
    Ok(())
}

async fn decide_at_once(store: Store) -> Outcome {
    for round in 0..10 {
        let (turn, conversation) = (format!("t{round}"), format!("c{round}"));
        paused(&store, &turn, &conversation).await?;
        let mut people = Vec::new();
        for person in 0..8 {
            let (store, pause) = (store.clone(), format!("{turn}.0.0"));
            people.push(tokio::spawn(async move {
                let decision = if person % 2 == 0 { Decision::Approve } else { Decision::Reject { reason: None } };
                let actor = format!("p{person}");
                (decision.state(), store.decide(&pause, decision, &actor, AT + person).await)
            }));
        }
        let mut won = Vec::new();
        for person in people {
            match person.await.map_err(|error| error.to_string())? {
                (state, Ok(pause)) => won.push((state, pause)),
                (_, Err(error)) if error.kind() == ErrorKind::AlreadyDecided => {}
                (_, Err(error)) => return Err(format!("a decision failed with {error}")),
            }
        }
        let first = won.first().ok_or("nobody won")?;
        ensure!(won.iter().all(|one| *one == *first), "several won: {won:?}");
        ensure!(won.len() == 4, "{} of the 4 who agree were told so", won.len());
    }
    Ok(())
}

async fn expired(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    let mut late = pause("t1", "c", CallKey { batch: 0, idx: 1 });
    late.expires = Some(AT + 100);
    let commit = Commit {
        calls: vec![CallChange::Planned(call_row(0, 1))],
        pauses: vec![late.clone()],
        at: AT,
        ..Commit::default()
    };
    fine("commit", store.commit("t1", token, commit).await)?;
    refused("too late", ErrorKind::Expired, store.decide(&late.id, Decision::Approve, "anna", AT + 100).await)?;
    let kept = fine("pause", store.pause(&late.id).await)?.ok_or("the pause is gone")?;
    ensure!(kept.state == PauseState::Expired, "state {:?}", kept.state);
    // The clock of another machine may be behind.
    refused("expired", ErrorKind::Expired, store.decide(&late.id, Decision::Approve, "anna", AT).await)?;
    fine("the other one", store.decide("t1.0.0", Decision::Approve, "anna", AT + 100).await).map(drop)
}

async fn closed(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    let close =
        |id: &str| Commit { closed_pauses: vec![(id.to_owned(), PauseState::Cancelled)], at: AT, ..Commit::default() };
    fine("close", store.commit("t1", token, close("t1.0.0")).await)?;
    fine("close again", store.commit("t1", token, close("t1.0.0")).await)?;
    refused("decide", ErrorKind::NotPaused, store.decide("t1.0.0", Decision::Approve, "anna", AT).await)?;
    let token = paused(&store, "t2", "d").await?;
    fine("decide", store.decide("t2.0.0", Decision::Approve, "anna", AT).await)?;
    refused("close", ErrorKind::Conflict, store.commit("t2", token, close("t2.0.0")).await)?;
    let kept = fine("pause", store.pause("t2.0.0").await)?.ok_or("the pause is gone")?;
    ensure!(kept.state == PauseState::Approved, "a decision was closed: {:?}", kept.state);
    Ok(())
}

async fn pending(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    paused(&store, "t2", "d").await?;
    let key = CallKey { batch: 0, idx: 2 };
    let commit = Commit {
        calls: vec![CallChange::Planned(call_row(0, 2))],
        pauses: vec![pause("t1", "c", key)],
        at: AT,
        ..Commit::default()
    };
    fine("commit", store.commit("t1", token, commit).await)?;
    let ids = |pauses: Vec<Pause>| pauses.into_iter().map(|pause| pause.id).collect::<Vec<_>>();
    let of_one = ids(fine("pending", store.pending(Some("c")).await)?);
    ensure!(of_one == ["t1.0.0", "t1.0.2"], "{of_one:?}");
    let of_all = ids(fine("pending", store.pending(None).await)?);
    ensure!(of_all.len() == 3 && of_all.last().is_some_and(|id| id == "t1.0.2"), "{of_all:?}");
    fine("decide", store.decide("t1.0.0", Decision::Approve, "anna", AT).await)?;
    let left = ids(fine("pending", store.pending(Some("c")).await)?);
    ensure!(left == ["t1.0.2"], "{left:?}");
    let live = fine("live_turns", store.live_turns(Some("c")).await)?;
    ensure!(live.len() == 1 && live.iter().all(|turn| turn.id == "t1" && turn.conversation == "c"), "{live:?}");
    let done = TurnChange { state: TurnState::Completed, data: json("{}").into(), carried: None };
    fine("commit", store.commit("t1", token, Commit { turn: Some(done), at: AT, ..Commit::default() }).await)?;
    let live = fine("live_turns", store.live_turns(None).await)?;
    ensure!(live.iter().map(|turn| turn.id.as_str()).eq(["t2"]), "{live:?}");
    ensure!(live.iter().all(|turn| turn.paused), "{live:?}");
    Ok(())
}

async fn forget(store: Store) -> Outcome {
    paused(&store, "t1", "c").await?;
    refused("a kept turn", ErrorKind::InvalidInput, store.forget("t1").await)?;
    let lease = fine("lease", store.lease("t2", "me", AT, AT + 1000).await)?;
    let row = TurnRow { ephemeral: true, ..turn_row("t2", "t2") };
    fine("begin", store.begin(row, lease.token).await)?;
    let commit = Commit {
        calls: vec![CallChange::Planned(call_row(0, 0))],
        pauses: vec![pause("t2", "t2", KEY)],
        at: AT,
        ..Commit::default()
    };
    fine("commit", store.commit("t2", lease.token, commit).await)?;
    fine("forget", store.forget("t2").await)?;
    ensure!(fine("turn", store.turn("t2").await)?.is_none(), "the turn is still there");
    ensure!(fine("pause", store.pause("t2.0.0").await)?.is_none(), "its pause is still there");
    ensure!(fine("turn", store.turn("t1").await)?.is_some(), "another turn is gone");
    fine("forget what is gone", store.forget("t2").await)
}

async fn clear(store: Store) -> Outcome {
    let token = paused(&store, "t1", "c").await?;
    paused(&store, "t2", "d").await?;
    fine("clear", store.clear("c").await)?;
    let waiting = fine("pending", store.pending(None).await)?;
    ensure!(waiting.iter().map(|pause| pause.id.as_str()).eq(["t2.0.0"]), "{waiting:?}");
    let live = fine("live_turns", store.live_turns(Some("c")).await)?;
    ensure!(live.is_empty(), "{live:?}");
    refused("decide", ErrorKind::NotPaused, store.decide("t1.0.0", Decision::Approve, "anna", AT).await)?;
    let late = store.commit("t1", token, Commit { at: AT, ..Commit::default() }).await;
    refused("a late commit", ErrorKind::Conflict, late)
}
