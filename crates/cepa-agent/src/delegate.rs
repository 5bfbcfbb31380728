//! The parts of the store's contract that a wrapper hands to what it wraps.

/// The methods of [`crate::TurnStore`] for a wrapper whose field `inner` is one, without `commit`.
macro_rules! delegate_turns {
    () => {
        fn identity(&self) -> Option<String> {
            self.inner.identity()
        }

        fn lease<'a>(
            &'a self,
            conversation: &'a str,
            holder: &'a str,
            now: i64,
            until: i64,
        ) -> BoxFuture<'a, Result<Lease, Error>> {
            self.inner.lease(conversation, holder, now, until)
        }

        fn release<'a>(&'a self, conversation: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
            self.inner.release(conversation, token)
        }

        fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
            self.inner.begin(turn, token)
        }

        fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
            self.inner.forget(turn)
        }

        fn turn<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>> {
            self.inner.turn(id)
        }

        fn live_turns<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>> {
            self.inner.live_turns(conversation)
        }

        fn pending<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>> {
            self.inner.pending(conversation)
        }

        fn pause<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>> {
            self.inner.pause(id)
        }

        fn decide<'a>(
            &'a self,
            pause: &'a str,
            decision: Decision,
            actor: &'a str,
            now: i64,
        ) -> BoxFuture<'a, Result<Pause, Error>> {
            self.inner.decide(pause, decision, actor, now)
        }

        fn full_result<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>> {
            self.inner.full_result(message)
        }
    };
}

pub(crate) use delegate_turns;
