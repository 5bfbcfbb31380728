//! The parts of the store's contract that a wrapper hands to what it wraps.

use std::sync::Arc;

use cepa_core::{BoxFuture, Entry, Error, History, RawJson};

use crate::{
    audit::AuditEntry,
    memory::{ChatMemory, ConversationInfo, CorruptRow, Loaded, Version},
    pause::{Decision, Pause},
    store::{Commit, Lease, LiveTurn, StoredTurn, TurnRow, TurnStore},
};

/// The methods of [`TurnStore`] but `commit`, for a wrapper around one: `delegate_turns!(self => self.inner)`.
macro_rules! delegate_turns {
    ($self:ident => $inner:expr) => {
        fn identity(&$self) -> Option<String> {
            ($inner).identity()
        }

        fn lease<'a>(
            &'a $self,
            conversation: &'a str,
            holder: &'a str,
            now: i64,
            until: i64,
        ) -> BoxFuture<'a, Result<Lease, Error>> {
            ($inner).lease(conversation, holder, now, until)
        }

        fn release<'a>(&'a $self, conversation: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
            ($inner).release(conversation, token)
        }

        fn open_turn<'a>(
            &'a $self,
            turn: TurnRow,
            holder: &'a str,
            now: i64,
            until: i64,
        ) -> BoxFuture<'a, Result<$crate::store::Opened, Error>> {
            ($inner).open_turn(turn, holder, now, until)
        }

        fn begin<'a>(&'a $self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
            ($inner).begin(turn, token)
        }

        fn forget<'a>(&'a $self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
            ($inner).forget(turn)
        }

        fn turn<'a>(&'a $self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>> {
            ($inner).turn(id)
        }

        fn live_turns<'a>(&'a $self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>> {
            ($inner).live_turns(conversation)
        }

        fn pending<'a>(&'a $self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>> {
            ($inner).pending(conversation)
        }

        fn pause<'a>(&'a $self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>> {
            ($inner).pause(id)
        }

        fn decide<'a>(
            &'a $self,
            pause: &'a str,
            decision: Decision,
            actor: &'a str,
            now: i64,
        ) -> BoxFuture<'a, Result<Pause, Error>> {
            ($inner).decide(pause, decision, actor, now)
        }

        fn audit<'a>(
            &'a $self,
            conversation: Option<&'a str>,
            after: u64,
            limit: usize,
        ) -> BoxFuture<'a, Result<Vec<AuditEntry>, Error>> {
            ($inner).audit(conversation, after, limit)
        }

        fn full_result<'a>(&'a $self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>> {
            ($inner).full_result(message)
        }
    };
}

pub(crate) use delegate_turns;

/// A memory that several own.
impl<M: ChatMemory + ?Sized> ChatMemory for Arc<M> {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        (**self).load(id, held)
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        (**self).append(id, expected, entries)
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        (**self).clear(id)
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        (**self).list(skip, limit)
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        (**self).page(id, after, limit)
    }

    fn load_lossy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(History, Vec<CorruptRow>), Error>> {
        (**self).load_lossy(id)
    }
}

/// A store that several own.
impl<M: TurnStore + ?Sized> TurnStore for Arc<M> {
    delegate_turns!(self => **self);

    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        (**self).commit(turn, token, commit)
    }
}
