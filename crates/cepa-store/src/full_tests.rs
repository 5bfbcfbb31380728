//! A database that may not grow: the limit is met at every page that a turn with a pause, a huge result and streamed
//! replies adds.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use cepa_agent::{Agent, Clock, Conversation, Decision, Decisions, PauseKind, TurnError, TurnOptions, TurnResult};
use cepa_core::{Error, ErrorKind, Message, Role, Tool, ToolFlags, ToolOutput, ToolSpec, pairing};
use cepa_testkit::{
    rows::rows,
    scripted::{Reply, ScriptedModel},
    watched::{Watch, Watched, Write},
};

use super::{Options, Sqlite, Synchronous};
use crate::failure::Failure;

/// Keeps what the database says after each write that was acknowledged, and compares after each that was not.
struct Ledger {
    path: PathBuf,
    acknowledged: Mutex<Vec<String>>,
    failed: Mutex<Vec<(&'static str, Error)>>,
}

impl Watch for Ledger {
    fn before(&self, _: Write) {
        self.same("before a write");
    }

    fn after(&self, write: Write, done: Result<(), &Error>) {
        match done {
            Ok(()) => *self.acknowledged.lock().unwrap() = rows(&self.path).unwrap(),
            Err(error) => {
                self.same(write.method);
                self.failed.lock().unwrap().push((write.method, error.clone()));
            }
        }
    }
}

impl Ledger {
    fn new(path: &Path) -> Arc<Self> {
        let acknowledged = Mutex::new(rows(path).unwrap());
        Arc::new(Self { path: path.to_owned(), acknowledged, failed: Mutex::default() })
    }

    /// What was acknowledged is there, and nothing else.
    fn same(&self, when: &str) {
        assert_eq!(rows(&self.path).unwrap(), *self.acknowledged.lock().unwrap(), "{when}");
    }
}

/// Longer than a page: a write with it needs room.
fn long(text: &str) -> String {
    format!("{text}{}", ".".repeat(6_000))
}

fn model() -> ScriptedModel {
    ScriptedModel::choosing(|_, request| {
        let said: Vec<&Message> = request.messages.messages().collect();
        let opened = said.iter().rposition(|message| message.role() == Role::User).unwrap();
        let text = said[opened].text().into_owned();
        match said.len() - opened {
            1 if text.starts_with("go") => {
                Reply::text("Let me see. ".repeat(600)).call("c1", "long", "{}").call("c2", "pay", "{}")
            }
            _ => Reply::text(format!("the answer to {text}{}", ", at length".repeat(600))),
        }
    })
}

/// Who may run how often, and what is noted when a body runs.
fn tools(ran: &Arc<Mutex<Vec<&'static str>>>) -> Vec<Tool> {
    [("long", false), ("pay", true)]
        .map(|(name, sensitive)| {
            let flags = ToolFlags { sensitive, ..ToolFlags::default() };
            let spec = ToolSpec::new(name, "Does it.", None).unwrap().with_flags(flags);
            let ran = ran.clone();
            Tool::new(spec, move |_, _| {
                ran.lock().unwrap().push(name);
                async move { Ok(ToolOutput::new(format!("{name}{}", " and more".repeat(3_000)))) }
            })
        })
        .into()
}

/// One database, one agent after another on it.
struct Scene {
    path: PathBuf,
    ledger: Arc<Ledger>,
    ran: Arc<Mutex<Vec<&'static str>>>,
    clock: Arc<AtomicI64>,
    store: Sqlite,
    conversation: Conversation,
}

impl Scene {
    fn new(path: PathBuf) -> Self {
        let options = Options::default().synchronous(Synchronous::Normal);
        let store = Sqlite::open_with(&path, options).unwrap();
        let (ledger, ran, clock) = (Ledger::new(&path), Arc::default(), Arc::new(AtomicI64::new(1_000_000)));
        let conversation = Self::agent(&store, &ledger, &ran, &clock);
        Self { path, ledger, ran, clock, store, conversation }
    }

    fn agent(
        store: &Sqlite,
        ledger: &Arc<Ledger>,
        ran: &Arc<Mutex<Vec<&'static str>>>,
        clock: &Arc<AtomicI64>,
    ) -> Conversation {
        let now = clock.clone();
        let agent = Agent::builder(model())
            .tools(tools(ran))
            .memory(Watched::new(store.clone(), ledger.clone()))
            .pausing(true)
            .max_result_chars(500)
            .clock(Clock::of(move || now.load(Ordering::SeqCst)));
        agent.build().unwrap().conversation(long("c"))
    }

    /// As if the process had ended and another had come, an hour later.
    fn again(&mut self) {
        self.clock.fetch_add(3_600_000, Ordering::SeqCst);
        let options = Options::default().synchronous(Synchronous::Normal);
        self.store = Sqlite::open_with(&self.path, options).unwrap();
        self.conversation = Self::agent(&self.store, &self.ledger, &self.ran, &self.clock);
    }

    async fn pages(&self) -> u32 {
        let ask = |connection: &mut rusqlite::Connection| {
            connection.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(Failure::from)
        };
        self.store.0.writer.run(ask).await.unwrap()
    }

    async fn limit(&self, pages: u32) {
        let set = move |connection: &mut rusqlite::Connection| {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(Failure::from)
        };
        self.store.0.writer.run(set).await.unwrap();
    }

    async fn chat(&self, text: &str) -> Result<TurnResult, TurnError> {
        self.conversation.chat_with(text, TurnOptions::new().on_event(|_| {})).await
    }

    /// Decides about everything that waits: what may have run is answered, all else may run.
    async fn decide(&self) -> Result<(), TurnError> {
        while let Some(pause) = self.conversation.pending().await?.into_iter().next() {
            let decision = match pause.kind {
                PauseKind::Approval => Decision::Approve,
                PauseKind::Unknown | PauseKind::Environment => Decision::Reply { content: "it ran".to_owned() },
            };
            let options = TurnOptions::new().actor(long("ann")).on_event(|_| {});
            self.conversation.resume_with_options(Decisions::one(&pause.id, decision), options).await?;
        }
        Ok(())
    }

    async fn has(&self, text: &str) -> bool {
        let history = self.conversation.history().await.unwrap();
        history.messages().any(|message| message.role() == Role::User && message.text() == text)
    }

    /// All that is to happen, from wherever it stands.
    async fn go_on(&self) -> Result<(), TurnError> {
        self.conversation.recover().await?;
        self.decide().await?;
        for text in [long("go"), "and now?".to_owned()] {
            if !self.has(&text).await {
                self.chat(&text).await?;
                self.decide().await?;
            }
        }
        Ok(())
    }

    /// What must be true at the end, whatever happened. Returns how many turns were given up: their callers were told.
    async fn judge(&self, limit: u32) -> usize {
        let history = self.conversation.history().await.unwrap();
        pairing::validate(&history).unwrap();
        let roles: Vec<Role> = history.messages().map(Message::role).collect();
        let (user, reply, tool) = (Role::User, Role::Assistant, Role::Tool);
        let failed: Vec<String> = rows(&self.path)
            .unwrap()
            .into_iter()
            .filter(|row| row.starts_with("turns ") && row.contains("state=\"failed\""))
            .collect();
        let (opened, answered) = ([user, reply, tool, tool], [user, reply]);
        let whole = [&opened[..], &[reply], &answered[..]].concat();
        // The last reply of the first turn could not be stored, and there was room to write that down.
        let given_up = !failed.is_empty() && roles == [&opened[..], &answered[..]].concat();
        assert!(roles == whole || given_up, "limit {limit}: {roles:?}, {failed:?}");
        let mut ran = self.ran.lock().unwrap().clone();
        ran.sort_unstable();
        assert_eq!(ran, ["long", "pay"], "limit {limit}: a call is lost or ran twice");
        let checked: String = rusqlite::Connection::open(&self.path)
            .unwrap()
            .pragma_query_value(None, "integrity_check", |row| row.get(0))
            .unwrap();
        assert_eq!(checked, "ok");
        usize::from(given_up)
    }
}

// D5, D2, L6: the limit is met at each page; what was acknowledged is there and nothing half, the error says what to do,
// and once there is room the same process or the next one goes on, and no call is lost or runs twice.
#[tokio::test]
async fn a_turn_goes_on_after_a_full_disk_at_any_page() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(folder.path().join("whole.db"));
    let first = scene.pages().await;
    scene.go_on().await.unwrap();
    assert_eq!(scene.judge(0).await, 0);
    let last = scene.pages().await;
    assert!(last > first + 15, "{first} to {last}");

    let (mut methods, mut given_up) = (BTreeSet::new(), 0);
    // Every fifth, not to take all day: whatever is written, its steps are met in some pages of theirs.
    for limit in (first..last).step_by(5) {
        let mut scene = Scene::new(folder.path().join(format!("{limit}.db")));
        scene.limit(limit).await;
        let error = match scene.go_on().await {
            Err(TurnError { error, .. }) => error,
            // One run takes a few pages more than another: the order of ids that were made by chance is another.
            Ok(()) if limit + 8 > last => continue,
            Ok(()) => panic!("there was room in {limit} of {last} pages"),
        };
        assert_eq!((error.kind(), error.code()), (ErrorKind::Store, Some("sqlite 13")), "{error}");
        for words in ["disk is full", "size limit", "free some space", &format!("{limit}.db")] {
            assert!(error.message().contains(words), "{error}");
        }
        methods.extend(scene.ledger.failed.lock().unwrap().iter().map(|(method, _)| *method));
        scene.ledger.same("after the turn");
        // Reading goes on meanwhile.
        scene.conversation.history().await.unwrap();
        scene.conversation.pending().await.unwrap();
        // The other half of the limits: the process is restarted instead.
        if limit % 2 == 0 {
            scene.limit(1_000_000).await;
        } else {
            scene.again();
        }
        scene.ledger.same("after there was room");
        scene.go_on().await.unwrap();
        given_up += scene.judge(limit).await;
    }
    println!("{} limits, {first} to {last} pages; {methods:?} failed; {given_up} turns were given up", last - first);
    assert_eq!(methods, BTreeSet::from(["commit", "decide", "lease", "open_turn", "release"]));
}
