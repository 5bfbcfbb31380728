//! One case: a child works and is killed, others recover and are killed too, until all is over; then it is judged.

use std::{path::PathBuf, time::Duration};

use cepa_testkit::arbitrary::Rng;

use crate::durability::{
    Child, Exit, Left, judge,
    program::Program,
    task::{Kill, Said, Task, What, When},
};

/// The conversation of every case.
const CONVERSATION: &str = "c";
/// A dead child keeps others waiting so long.
const LEASE: Duration = Duration::from_millis(200);
/// More than any case needs: one that needs more will never end.
const ROUNDS: usize = 24;

/// All programs.
pub(crate) const PROGRAMS: [Program; 11] = [
    Program::OneCall,
    Program::Batch,
    Program::Concurrent,
    Program::TwoBatches,
    Program::Sensitive,
    Program::Environment,
    Program::ReturnDirect,
    Program::CutResult,
    Program::CutReply,
    Program::NoReply,
    Program::NoAnswer,
];

/// Whether calls of the program wait for a person although nothing went wrong.
pub(crate) fn pauses(program: Program) -> bool {
    matches!(program, Program::Sensitive | Program::Environment)
}

/// Which child of a case is the first to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// The one that begins the turn.
    Begins,
    /// The one that takes the decisions of a turn that waits.
    Decides,
}

/// Where the first death is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// At a write.
    At(Kill),
    /// From outside, so long after the child has begun.
    Outside(Duration),
    /// Nowhere.
    None,
}

/// What is told apart in the failure's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) program: Program,
    pub(crate) streamed: bool,
    pub(crate) stage: Stage,
    pub(crate) death: Death,
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// How often children were killed.
    pub(crate) kills: usize,
    /// How often the child of the case's stage wrote, where it lived.
    pub(crate) writes: usize,
    /// How long it took, where it lived.
    pub(crate) took: Duration,
}

/// A case under way.
struct Running {
    case: Case,
    folder: tempfile::TempDir,
    rng: Rng,
    said: Vec<Said>,
    kills: usize,
    touches: usize,
    pausing: bool,
    refuse: bool,
}

impl Case {
    pub(crate) fn run(self) -> Outcome {
        let mut rng = Rng::new(self.seed);
        let pausing = pauses(self.program) || rng.chance(60);
        let refuse = rng.chance(50);
        let folder = tempfile::tempdir().unwrap();
        Running { case: self, folder, rng, said: Vec::new(), kills: 0, touches: 0, pausing, refuse }.run()
    }
}

impl Running {
    fn run(mut self) -> Outcome {
        let go = || What::Chat { conversation: CONVERSATION.into(), text: "go".into() };
        let decide = || What::Decide { conversation: CONVERSATION.into() };
        let mut outcome = match self.case.stage {
            Stage::Begins => self.first(go()),
            Stage::Decides => {
                self.child(go(), Death::None);
                self.first(decide())
            }
        };
        self.recover();
        self.child(What::Chat { conversation: CONVERSATION.into(), text: "and now?".into() }, Death::None);
        outcome.kills = self.kills;

        let left = Left::read(&self.database(), &self.ran());
        let wrong = judge(self.case.program, &left, &self.said);
        let now = left.turns.iter().filter(|turn| turn.input == "and now?" && turn.state == "completed").count();
        assert_eq!(now, 1, "D2 {:?}: the conversation does not go on: {:?}", self.case, left.turns);
        assert!(wrong.is_empty(), "{:?}:\n{}\n{:#?}\n{:#?}", self.case, wrong.join("\n"), left.turns, left.calls);
        outcome
    }

    /// The child that the case is about.
    fn first(&mut self, what: What) -> Outcome {
        let from = std::time::Instant::now();
        let exit = self.child(what, self.case.death);
        let writes = |said: &Said| if let Said::Writes { writes } = said { Some(*writes) } else { None };
        Outcome { kills: 0, writes: exit.said.iter().find_map(writes).unwrap_or_default(), took: from.elapsed() }
    }

    /// Fresh processes touch what is left, some of them killed too, until nothing is left to do.
    fn recover(&mut self) {
        for round in 0..ROUNDS {
            let left = self.open_ends();
            if left.is_empty() {
                return;
            }
            // Whoever recovers may die as well; at last one lives.
            let death = if round < 3 && self.case.death != Death::None && self.rng.chance(50) {
                let when = if self.rng.chance(50) { When::Before } else { When::After };
                Death::At(Kill { write: self.rng.below(14), when })
            } else {
                Death::None
            };
            let waits = left.iter().all(|(_, paused)| *paused);
            let decide = What::Decide { conversation: CONVERSATION.into() };
            let what = match self.rng.below(4) {
                _ if waits && self.rng.chance(75) => decide,
                0 | 1 => {
                    self.touches += 1;
                    What::Chat { conversation: CONVERSATION.into(), text: format!("next {}", self.touches) }
                }
                2 => What::Recover { conversation: CONVERSATION.into() },
                _ => What::Sweep,
            };
            self.child(what, death);
        }
        panic!("D3 {:?}: not over after {ROUNDS} rounds: {:?}", self.case, self.open_ends());
    }

    /// The turns that are not over, each with whether it waits for a person.
    fn open_ends(&self) -> Vec<(String, bool)> {
        let database = rusqlite::Connection::open(self.database()).unwrap();
        let sql = "SELECT t.id, t.state = 'paused'
                     AND EXISTS (SELECT 1 FROM pauses p WHERE p.turn = t.key AND p.state = 'pending')
                   FROM turns t WHERE t.state IN ('running', 'paused')";
        // A child that died before there were tables has begun nothing.
        let Ok(mut statement) = database.prepare(sql) else { return Vec::new() };
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn child(&mut self, what: What, death: Death) -> Exit {
        let task = Task {
            database: self.database(),
            ran: self.ran(),
            program: self.case.program,
            seed: self.case.seed,
            what,
            kill: if let Death::At(kill) = death { Some(kill) } else { None },
            streamed: self.case.streamed,
            pausing: self.pausing,
            refuse: self.refuse,
            lease_ms: LEASE.as_millis() as u64,
            lease_wait_ms: 60_000,
            pace_ms: 3,
        };
        let mut child = Child::start(&task);
        if let Death::Outside(after) = death {
            child.wait_until_ready();
            std::thread::sleep(after);
            child.kill();
        }
        let exit = child.wait();
        self.kills += usize::from(exit.killed);
        self.check_failures(&task.what, &exit);
        self.said.extend(exit.said.iter().cloned());
        exit
    }

    /// A turn may fail because its model does, and a message may be refused while calls wait. Nothing else fails.
    fn check_failures(&self, what: &What, exit: &Exit) {
        for said in &exit.said {
            let Said::Failed { kind, .. } = said else { continue };
            let model = kind == "server" && matches!(self.case.program, Program::NoReply | Program::NoAnswer);
            let refused = kind == "busy" && self.refuse && matches!(what, What::Chat { .. });
            assert!(model || refused, "D2 {:?}: {what:?} failed: {said:?}", self.case);
        }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("chat.db")
    }

    fn ran(&self) -> PathBuf {
        self.folder.path().join("ran")
    }
}
