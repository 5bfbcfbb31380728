//! Many processes write to one SQLite file: in one conversation, in many, refused at once, and some of them killed.
//!
//! `cargo test` takes a few processes; `CEPA_SOAK_WRITERS` says how many (`cargo xtask soak writers`: 16, with more
//! messages and conversations). The figures are printed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod durability;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use cepa_agent::ids;
use cepa_testkit::arbitrary::Rng;
use durability::{
    Child, Left, judge, number,
    program::Program,
    task::{Said, Task, What},
};

/// The series load the machine and measure time: one after another.
static ALONE: Mutex<()> = Mutex::new(());

/// One series: who writes what, and what may go wrong.
#[derive(Clone, Copy)]
struct Series {
    name: &'static str,
    processes: usize,
    conversations: usize,
    /// How many messages each process sends.
    messages: usize,
    lease: Duration,
    lease_wait: Duration,
    /// How many of the processes are killed meanwhile.
    killed: usize,
}

/// What a series left and said.
struct Done {
    left: Left,
    said: Vec<Said>,
    took: Duration,
    killed: usize,
    bytes: u64,
}

/// How long each process waits for a conversation where none is to be refused.
const PATIENCE: Duration = Duration::from_secs(500);

fn writers() -> Option<usize> {
    number("CEPA_SOAK_WRITERS")
}

impl Series {
    /// Enough to see what goes wrong, and what `cargo xtask soak writers` makes of it.
    fn new(name: &'static str, messages: usize, soak_messages: usize) -> Self {
        let (lease, lease_wait) = (Duration::from_secs(60), PATIENCE);
        let (processes, messages) = writers().map_or((6, messages), |processes| (processes, soak_messages));
        Self { name, processes, conversations: 1, messages, lease, lease_wait, killed: 0 }
    }

    fn run(self) -> Done {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let (database, ran) = (folder.path().join("chat.db"), folder.path().join("ran"));
        let task = |what| self.task(database.clone(), ran.clone(), what);
        let from = Instant::now();
        let mut children: Vec<Child> = (0..self.processes)
            .map(|process| {
                // Each begins elsewhere, so that they meet now and then.
                let begin = process * self.conversations / self.processes;
                let conversations =
                    (0..self.conversations).map(|n| format!("c{}", (begin + n) % self.conversations)).collect();
                let what = What::Write { conversations, messages: self.messages, name: format!("p{process}") };
                Child::start(&task(what))
            })
            .collect();
        let mut rng = Rng::new(number("CEPA_SEED").unwrap_or(1) as u64);
        for child in children.iter_mut().take(self.killed) {
            child.wait_until_ready();
            std::thread::sleep(Duration::from_millis(50 + rng.below(300) as u64));
            child.kill();
        }
        let exits: Vec<_> = children.into_iter().map(Child::wait).collect();
        let took = from.elapsed();
        let bytes = std::fs::metadata(&database).unwrap().len();
        let killed = exits.iter().filter(|exit| exit.killed).count();
        let mut said: Vec<Said> = exits.into_iter().flat_map(|exit| exit.said).collect();
        if self.killed > 0 {
            // What they left open is taken up by whoever comes next.
            said.extend(Child::run(&Task { lease_wait_ms: 60_000, ..task(What::Sweep) }).said);
        }
        let left = Left::read(&database, &ran);
        let done = Done { left, said, took, killed, bytes };
        self.judge(&done);
        self.print(&done);
        done
    }

    fn task(&self, database: PathBuf, ran: PathBuf, what: What) -> Task {
        Task {
            database,
            ran,
            program: Program::OneCall,
            seed: 1,
            what,
            kill: None,
            streamed: false,
            pausing: false,
            refuse: false,
            lease_ms: self.lease.as_millis() as u64,
            lease_wait_ms: self.lease_wait.as_millis() as u64,
            pace_ms: 2,
        }
    }

    /// D4, D5, L15, M1: nothing is lost, doubled or interleaved, and turns stand in the order of their tokens.
    fn judge(&self, done: &Done) {
        let mut said = done.said.clone();
        if self.killed > 0 {
            // The turn of a process that was taken for dead is finished by another: here a failure promises nothing.
            said.retain(|said| !matches!(said, Said::Failed { .. }));
        }
        let mut wrong = judge(Program::OneCall, &done.left, &said);
        let tokens: HashMap<&str, u64> = done.left.turns.iter().map(|turn| (turn.id.as_str(), turn.token)).collect();
        for (conversation, history) in &done.left.conversations {
            let mut turns: Vec<&str> = history.iter().filter_map(|entry| ids::turn_of(entry.id.as_deref()?)).collect();
            turns.dedup();
            let tokens: Vec<u64> = turns.iter().map(|turn| tokens[turn]).collect();
            // Whoever finishes a dead process's turn goes on under the same token with his own.
            let rises = |pair: &[u64]| if self.killed > 0 { pair[0] <= pair[1] } else { pair[0] < pair[1] };
            if !tokens.windows(2).all(rises) {
                wrong.push(format!("L15: the turns of {conversation} stand in the order of tokens {tokens:?}"));
            }
        }
        assert!(
            wrong.is_empty(),
            "{}: {} complaints:\n{}",
            self.name,
            wrong.len(),
            wrong[..wrong.len().min(9)].join("\n")
        );
    }

    fn print(&self, done: &Done) {
        let waits =
            sorted(&done.said, |said| if let Said::Done { wait_us, .. } = said { Some(*wait_us) } else { None });
        let took = sorted(&done.said, |said| if let Said::Done { took_us, .. } = said { Some(*took_us) } else { None });
        let ms = |sorted: &[u64], part: usize| {
            sorted.get(sorted.len() * part / 100).copied().unwrap_or_default() as f64 / 1e3
        };
        println!(
            "{}: {} processes, {} conversations, {} turns in {:.1} s: {:.1} turns/s; wait p50 {:.0} ms, p99 {:.0} ms; \
             turn p50 {:.0} ms, p99 {:.0} ms; refused {}, SQLITE_BUSY {}, killed {}; file {} KiB",
            self.name,
            self.processes,
            self.conversations,
            took.len(),
            done.took.as_secs_f64(),
            took.len() as f64 / done.took.as_secs_f64(),
            ms(&waits, 50),
            ms(&waits, 99),
            ms(&took, 50),
            ms(&took, 99),
            failures(&done.said, "busy").len(),
            sqlite_busy(&done.said),
            done.killed,
            done.bytes / 1024,
        );
    }
}

fn sorted(said: &[Said], figure: impl Fn(&Said) -> Option<u64>) -> Vec<u64> {
    let mut figures: Vec<u64> = said.iter().filter_map(figure).collect();
    figures.sort_unstable();
    figures
}

/// The messages that failed with an error of this kind.
fn failures<'a>(said: &'a [Said], of: &str) -> Vec<&'a str> {
    let failed = |said: &'a Said| match said {
        Said::Failed { input, kind, .. } if kind == of => input.as_deref(),
        _ => None,
    };
    said.iter().filter_map(failed).collect()
}

fn sqlite_busy(said: &[Said]) -> usize {
    let busy = |said: &&Said| matches!(said, Said::Failed { code: Some(code), .. } if code.starts_with("sqlite 5"));
    said.iter().filter(busy).count()
}

/// Every message was answered, by a turn of its own.
fn all_answered(series: Series, done: &Done) {
    let failed: Vec<&Said> = done.said.iter().filter(|said| matches!(said, Said::Failed { .. })).collect();
    assert!(failed.is_empty(), "L15 {}: somebody failed: {:?}", series.name, failed.first());
    let answered = sorted(&done.said, |said| if let Said::Done { took_us, .. } = said { Some(*took_us) } else { None });
    assert_eq!(answered.len(), series.processes * series.messages, "D5 {}", series.name);
    assert_eq!(done.left.turns.len(), answered.len(), "D5 {}", series.name);
}

#[test]
fn many_processes_in_one_conversation_wait_for_each_other() {
    // L15, M1, D5: nobody is refused who may wait; no turn stands inside another.
    let series = Series::new("one conversation", 4, 20);
    all_answered(series, &series.run());
}

#[test]
fn many_processes_in_many_conversations_lose_nothing() {
    // L15, M1, D5: as above, where they meet only now and then and share the file all the time.
    let conversations = if writers().is_some() { 200 } else { 12 };
    let series = Series { conversations, ..Series::new("many conversations", 8, 200) };
    all_answered(series, &series.run());
}

#[test]
fn whoever_may_not_wait_is_refused_and_leaves_nothing() {
    // L15, M1: a refusal is a typed `busy`, and nothing of the message is stored.
    let series = Series { lease_wait: Duration::ZERO, ..Series::new("no wait", 12, 100) };
    let done = series.run();
    let refused = failures(&done.said, "busy");
    let others = done.said.iter().filter(|said| matches!(said, Said::Failed { kind, .. } if kind != "busy"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&Said>::new(), "L15: a refusal is not typed");
    assert!(!refused.is_empty(), "nobody was refused: the test shows nothing");
    assert_eq!(refused.len() + done.left.turns.len(), series.processes * series.messages, "L15: a message is neither");
    for turn in &done.left.turns {
        assert!(!refused.contains(&turn.input.as_str()), "L15: something of a refused message is stored: {turn:?}");
    }
}

#[test]
fn processes_that_are_killed_hold_up_nobody_for_ever() {
    // L15, D1, D2, D4, M1: their leases run out, their turns are finished by others, nothing runs twice.
    let few = Series::new("some killed", 8, 40);
    let series = Series { conversations: 3, lease: Duration::from_secs(2), killed: few.processes / 3, ..few };
    let done = series.run();
    assert!(done.killed > 0, "nobody was killed: the test shows nothing");
    for said in &done.said {
        // A process that the machine left without time for two seconds may have been taken for dead: it is told so.
        let Said::Failed { kind, .. } = said else { continue };
        assert_eq!(kind, "busy", "L15: {said:?}");
    }
}
