//! What a store acknowledged is there when it is opened again.

use std::sync::Arc;

use cepa_agent::{
    Commit, Decision, StoredTurn, TurnState, TurnStore, Version,
    store::{CallChange, CallKey, SharedEntry, TurnChange},
};
use cepa_core::{Entry, Message, RawJson};

use super::{
    Outcome, ensure, fine, plain,
    turns::{call_result, call_row, pause, turn_row},
    whole,
};
use crate::arbitrary::{Plan, Rng, history};

pub(super) const PROMISE: &str = "what was acknowledged is there when the store is opened again";

const AT: i64 = 1_700_000_000_000;

/// What was written, as it was read back before the store was closed.
pub(super) struct Written {
    version: Version,
    entries: Vec<Arc<Entry>>,
    turn: StoredTurn,
    token: u64,
}

pub(super) async fn write<S: TurnStore>(store: Arc<S>) -> Result<Written, String> {
    for message in history(&mut Rng::new(3), Plan::WILD) {
        let (version, _) = whole(&*store, "c").await?;
        fine("append", store.append("c", version, vec![Arc::new(Entry::new(message))]).await)?;
    }
    fine("clear", store.clear("gone").await)?;
    let lease = fine("lease", store.lease("c", "me", AT, AT + 1_000).await)?;
    fine("begin", store.begin(turn_row("t1", "c"), lease.token).await)?;
    let keys = [CallKey { batch: 0, idx: 0 }, CallKey { batch: 0, idx: 1 }, CallKey { batch: 0, idx: 2 }];
    let [first, second, third] = keys;
    let data = RawJson::empty_object().into();
    let commit = Commit {
        turn: Some(TurnChange { state: TurnState::Paused, data, carried: None }),
        calls: vec![
            CallChange::Planned(call_row(0, 0)),
            CallChange::Planned(call_row(0, 1)),
            CallChange::Planned(call_row(0, 2)),
            CallChange::Started { key: first, attempt: 1, executed_args: None, at: AT },
            CallChange::Finished { key: first, result: call_result(), at: AT },
        ],
        pauses: vec![pause("t1", "c", second), pause("t1", "c", third)],
        messages: vec![SharedEntry(Arc::new(Entry::with_id("t1/u0", AT, Message::user("in the turn"))))],
        at: AT,
        ..Commit::default()
    };
    fine("commit", store.commit("t1", lease.token, commit).await)?;
    fine("decide", store.decide("t1.0.1", Decision::Approve, "anna", AT).await)?;
    let (version, entries) = whole(&*store, "c").await?;
    let turn = fine("turn", store.turn("t1").await)?.ok_or("the turn is gone")?;
    Ok(Written { version, entries, turn, token: lease.token })
}

impl Written {
    pub(super) async fn compare<S: TurnStore>(self, store: Arc<S>) -> Outcome {
        let (version, entries) = whole(&*store, "c").await?;
        ensure!(version == self.version, "{:?} became {version:?}", self.version);
        ensure!(plain(&entries) == plain(&self.entries), "the messages changed");
        let turn = fine("turn", store.turn("t1").await)?.ok_or("the turn is gone")?;
        ensure!(turn == self.turn, "{:?} became {turn:?}", self.turn);
        let waiting = fine("pending", store.pending(Some("c")).await)?;
        ensure!(waiting.iter().map(|pause| pause.id.as_str()).eq(["t1.0.2"]), "{waiting:?}");
        let (epoch, _) = whole(&*store, "gone").await?;
        ensure!(epoch.seq == 0, "{epoch:?}");
        // The lease outlives the process that took it, until its time is over.
        let lease = fine("lease", store.lease("c", "you", AT + 1_000, AT + 2_000).await)?;
        ensure!(lease.token > self.token, "token {} after {}", lease.token, self.token);
        Ok(())
    }
}
