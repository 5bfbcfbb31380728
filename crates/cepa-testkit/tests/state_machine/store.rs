//! The store as one process has it: a handle of its own, whose writes can fail, wait, or be its last.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use cepa_agent::{
    AuditEntry, ChatMemory, Commit, ConversationInfo, Decision, Lease, LiveTurn, Loaded, Opened, Pause, StoredTurn,
    TurnRow, TurnStore, Version,
};
use cepa_core::{BoxFuture, Entry, Error, ErrorKind, RawJson};
use cepa_store::{Options, Sqlite, Synchronous};

use crate::{
    program::{Who, Write},
    scene::{Fate, Scene},
};

#[derive(Clone)]
pub(crate) struct Hand {
    who: Who,
    scene: Scene,
    store: Sqlite,
    /// How many calls are under way.
    busy: Arc<AtomicUsize>,
    /// Whether its process is dead.
    dead: Arc<AtomicBool>,
}

#[derive(PartialEq)]
enum Kind {
    Read,
    Write,
}

impl Hand {
    pub(crate) fn open(who: Who, scene: &Scene) -> Self {
        let options = Options::default().synchronous(Synchronous::Normal);
        let store = Sqlite::open_with(scene.path(), options).unwrap();
        Self { who, scene: scene.clone(), store, busy: Arc::default(), dead: Arc::default() }
    }

    /// Waits until nothing is under way, also what nobody waits for any more.
    pub(crate) async fn settled(&self) {
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            if self.busy.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
    }

    async fn die(&self) -> std::convert::Infallible {
        self.dead.store(true, Ordering::SeqCst);
        self.scene.die(self.who).await
    }

    async fn call<T: Send + 'static>(
        &self,
        kind: Kind,
        job: impl AsyncFnOnce(Sqlite) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self.dead.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Store, "the process is dead"));
        }
        self.scene.moment(self.who).await;
        let fate = if kind == Kind::Write { self.scene.write(self.who).await } else { Fate::Happens };
        match fate {
            Fate::Happens | Fate::Dies(Write::Done) => {}
            Fate::Fails => return Err(Error::new(ErrorKind::Store, "the disk is full (said the test)")),
            Fate::Dies(Write::Lost) => match self.die().await {},
        }
        let (store, busy, runtime) = (self.store.clone(), self.busy.clone(), tokio::runtime::Handle::current());
        busy.fetch_add(1, Ordering::SeqCst);
        // While it runs the paused clock stands: time does not fly because a disk is slow.
        let done = tokio::task::spawn_blocking(move || {
            let done = runtime.block_on(job(store));
            busy.fetch_sub(1, Ordering::SeqCst);
            done
        });
        let done = done.await.unwrap();
        if let Fate::Dies(_) = fate {
            match self.die().await {}
        }
        self.scene.moment(self.who).await;
        done
    }
}

impl ChatMemory for Hand {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        let id = id.to_owned();
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.load(&id, held).await))
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        let id = id.to_owned();
        Box::pin(self.call(Kind::Write, async move |store: Sqlite| store.append(&id, expected, entries).await))
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        let id = id.to_owned();
        Box::pin(self.call(Kind::Write, async move |store: Sqlite| store.clear(&id).await))
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.list(skip, limit).await))
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        let id = id.to_owned();
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.page(&id, after, limit).await))
    }
}

impl TurnStore for Hand {
    fn identity(&self) -> Option<String> {
        // Each handle is a process: they meet in the file only.
        Some(format!("{:p}", Arc::as_ptr(&self.dead)))
    }

    fn lease<'a>(
        &'a self,
        conversation: &'a str,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Lease, Error>> {
        let (conversation, holder) = (conversation.to_owned(), holder.to_owned());
        let job = async move |store: Sqlite| store.lease(&conversation, &holder, now, until).await;
        Box::pin(self.call(Kind::Write, job))
    }

    fn open_turn<'a>(
        &'a self,
        turn: TurnRow,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        let holder = holder.to_owned();
        Box::pin(self.call(Kind::Write, async move |store: Sqlite| store.open_turn(turn, &holder, now, until).await))
    }

    fn release<'a>(&'a self, conversation: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        let conversation = conversation.to_owned();
        Box::pin(self.call(Kind::Write, async move |store: Sqlite| store.release(&conversation, token).await))
    }

    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.call(Kind::Write, async move |store: Sqlite| store.begin(turn, token).await))
    }

    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        let turn = turn.to_owned();
        Box::pin(self.call(Kind::Write, async move |store: Sqlite| store.commit(&turn, token, commit).await))
    }

    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        let turn = turn.to_owned();
        Box::pin(self.call(Kind::Write, async move |store: Sqlite| store.forget(&turn).await))
    }

    fn turn<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>> {
        let id = id.to_owned();
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.turn(&id).await))
    }

    fn live_turns<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>> {
        let conversation = conversation.map(str::to_owned);
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.live_turns(conversation.as_deref()).await))
    }

    fn pending<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>> {
        let conversation = conversation.map(str::to_owned);
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.pending(conversation.as_deref()).await))
    }

    fn pause<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>> {
        let id = id.to_owned();
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.pause(&id).await))
    }

    fn decide<'a>(
        &'a self,
        pause: &'a str,
        decision: Decision,
        actor: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Pause, Error>> {
        let (pause, actor) = (pause.to_owned(), actor.to_owned());
        let job = async move |store: Sqlite| store.decide(&pause, decision, &actor, now).await;
        Box::pin(self.call(Kind::Write, job))
    }

    fn audit<'a>(
        &'a self,
        conversation: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditEntry>, Error>> {
        let conversation = conversation.map(str::to_owned);
        let job = async move |store: Sqlite| store.audit(conversation.as_deref(), after, limit).await;
        Box::pin(self.call(Kind::Read, job))
    }

    fn full_result<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>> {
        let message = message.to_owned();
        Box::pin(self.call(Kind::Read, async move |store: Sqlite| store.full_result(&message).await))
    }
}
