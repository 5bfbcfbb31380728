//! Where the commits of a turn go: a store, or nowhere until the turn has to wait.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use cepa_core::{Error, ErrorKind, RawJson};

use crate::{
    clock::Clock,
    ids,
    store::{CallChange, Commit, Lease, Opened, TurnRow, TurnState, TurnStore},
    turn::Turn,
};

/// Takes the commits of one turn.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Inside>);

/// Who writes: the store, the name under which conversations are leased, for how long, and by which clock.
pub(crate) struct Keeper {
    pub(crate) store: Arc<dyn TurnStore>,
    pub(crate) holder: Arc<str>,
    pub(crate) lease_ms: i64,
    pub(crate) clock: Clock,
}

impl Keeper {
    /// Keeps a conversation that is held under this token.
    ///
    /// # Errors
    /// `busy` if another held it in between: what was read since is old then, and nothing may be written.
    pub(crate) async fn renew(&self, conversation: &str, token: u64) -> Result<(), Error> {
        let lease = self.lease(conversation).await?;
        if lease.token == token {
            return Ok(());
        }
        self.store.release(conversation, lease.token).await?;
        let text = format!("conversation `{conversation}` was taken over by another turn: nothing was written");
        Err(Error::new(ErrorKind::Busy, text))
    }

    /// Takes a conversation for a new turn, and begins it if no other one is live there.
    pub(crate) async fn open(&self, turn: TurnRow) -> Result<Opened, Error> {
        let now = self.clock.now_ms();
        self.store.open_turn(turn, &self.holder, now, now.saturating_add(self.lease_ms)).await
    }

    /// Takes or keeps a conversation.
    pub(crate) async fn lease(&self, conversation: &str) -> Result<Lease, Error> {
        let now = self.clock.now_ms();
        self.store.lease(conversation, &self.holder, now, now.saturating_add(self.lease_ms)).await
    }
}

struct Inside {
    keeper: Arc<Keeper>,
    /// The token of a turn that is written as it happens.
    token: Option<u64>,
    /// Where the last step may give the conversation back: set once it did.
    released: Option<Arc<AtomicBool>>,
    /// Held by a renewal of the lease, and by the step that gives the conversation back: renewed behind that step, the
    /// conversation would be taken again, for nobody.
    renewing: tokio::sync::Mutex<()>,
    state: tokio::sync::Mutex<State>,
    /// Full results of this turn: an ephemeral turn has no other place for them.
    full: Mutex<HashMap<String, RawJson>>,
}

enum State {
    /// Everything is written as it happens, under this token.
    Written { token: u64 },
    /// An ephemeral turn: kept here until it pauses.
    Held(Box<Commit>),
}

impl Journal {
    /// A journal of a turn whose conversation is leased. With `released` the turn's last step gives it back.
    pub(crate) fn written(keeper: Arc<Keeper>, token: u64, released: Option<Arc<AtomicBool>>) -> Self {
        Self::with(keeper, State::Written { token }, released)
    }

    /// A journal of an ephemeral turn.
    pub(crate) fn held(keeper: Arc<Keeper>) -> Self {
        Self::with(keeper, State::Held(Box::default()), None)
    }

    fn with(keeper: Arc<Keeper>, state: State, released: Option<Arc<AtomicBool>>) -> Self {
        let token = match &state {
            State::Written { token } => Some(*token),
            State::Held(_) => None,
        };
        let state = tokio::sync::Mutex::new(state);
        let (renewing, full) = (tokio::sync::Mutex::default(), Mutex::default());
        Self(Arc::new(Inside { token, released, renewing, keeper, state, full }))
    }

    /// The time.
    pub(crate) fn now_ms(&self) -> i64 {
        self.0.keeper.clock.now_ms()
    }

    /// The token under which the turn writes, if it does.
    pub(crate) fn token(&self) -> Option<u64> {
        self.0.token
    }

    /// Keeps the turn's conversation, unless it was given back.
    ///
    /// # Errors
    /// As [`Keeper::renew`].
    pub(crate) async fn renew(&self, conversation: &str, token: u64) -> Result<(), Error> {
        let _no_release = self.0.renewing.lock().await;
        if self.0.released.as_ref().is_some_and(|released| released.load(Ordering::Acquire)) {
            return Ok(());
        }
        self.0.keeper.renew(conversation, token).await
    }

    /// Writes a step down, or keeps it.
    pub(crate) async fn commit(&self, turn: &Turn, mut commit: Commit) -> Result<(), Error> {
        self.keep_full(turn, &commit);
        if commit.is_empty() {
            return Ok(());
        }
        let mut state = self.0.state.lock().await;
        match &mut *state {
            State::Written { token } => {
                let released = self.0.released.as_ref().filter(|_| !turn.state().is_live());
                commit.releases = released.is_some();
                let _no_renewal = if commit.releases { Some(self.0.renewing.lock().await) } else { None };
                self.0.keeper.store.commit(turn.id(), *token, commit).await?;
                if let Some(released) = released {
                    released.store(true, Ordering::Release);
                }
            }
            State::Held(held) => {
                held.then(commit);
                if turn.state() == TurnState::Paused {
                    let token = self.persist(turn, std::mem::take(held)).await?;
                    *state = State::Written { token };
                }
            }
        }
        Ok(())
    }

    /// An ephemeral turn that waits is kept, with all that it did so far.
    async fn persist(&self, turn: &Turn, commit: Box<Commit>) -> Result<u64, Error> {
        let row = turn.row(self.0.keeper.clock.now_ms());
        let Lease { token, .. } = self.0.keeper.lease(&row.conversation).await?;
        let conversation = row.conversation.clone();
        // In one step: a turn that is there without its calls would be driven from its beginning.
        let commit = Commit { begins: Some(row), ..*commit };
        self.0.keeper.store.commit(turn.id(), token, commit).await?;
        self.0.keeper.store.release(&conversation, token).await?;
        Ok(token)
    }

    fn keep_full(&self, turn: &Turn, commit: &Commit) {
        for change in &commit.calls {
            if let CallChange::Finished { key, result, .. } = change
                && let Some(full) = &result.full
            {
                let mut kept = self.0.full.lock().unwrap_or_else(PoisonError::into_inner);
                kept.insert(ids::result_id(turn.id(), *key), full.clone());
            }
        }
    }

    /// The full text of a result that was cut.
    pub(crate) async fn full_result(&self, id: &str) -> Result<Option<RawJson>, Error> {
        let kept = self.0.full.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        match kept {
            Some(full) => Ok(Some(full)),
            None => self.0.keeper.store.full_result(id).await,
        }
    }
}
