//! File systems without room: the limit for files (`ulimit -f`) met at every page that the log of a turn grows by, and a
//! file system that is full. The process lives on; whoever comes when there is room again goes on.
#![cfg(unix)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rusqlite::Connection;

use crate::durability::{
    Child, Exit, Left, judge, number,
    program::Program,
    task::{Said, Task, What},
};

/// The unit of `ulimit -f`.
const BLOCK: u64 = 512;
/// How many limits are tried of each program without `CEPA_SOAK_DISK`.
const LIMITS: usize = 24;
/// A child that could not give its lease back keeps others waiting so long.
const LEASE: Duration = Duration::from_millis(200);
/// More than any case needs: one that needs more will never end.
const ROUNDS: usize = 12;

/// A database and the notes of its tools.
struct Place {
    folder: tempfile::TempDir,
    database: PathBuf,
    program: Program,
    said: Mutex<Vec<Said>>,
}

impl Place {
    fn new(program: Program) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("chat.db");
        Self { folder, database, program, said: Mutex::default() }
    }

    fn task(&self, what: What) -> Task {
        Task {
            database: self.database.clone(),
            ran: self.folder.path().join("ran"),
            program: self.program,
            seed: 1,
            what,
            kill: None,
            streamed: true,
            pausing: true,
            refuse: false,
            lease_ms: LEASE.as_millis() as u64,
            lease_wait_ms: 60_000,
            pace_ms: 0,
        }
    }

    fn chat(text: &str) -> What {
        What::Chat { conversation: "c".into(), text: text.into() }
    }

    /// A child that is not killed by anybody; what it said must stay true.
    fn child(&self, what: What, blocks: Option<u64>) -> Exit {
        let task = self.task(what);
        let exit = match blocks {
            Some(blocks) => Child::start_limited(&task, blocks).wait(),
            None => Child::start(&task).wait(),
        };
        assert!(!exit.killed, "the limit killed a child");
        self.said.lock().unwrap().extend(exit.said.iter().cloned());
        exit
    }

    fn log(&self) -> u64 {
        fs::metadata(self.folder.path().join("chat.db-wal")).unwrap().len()
    }

    /// There is room again: others bring to an end what is left, and go on. Then it is judged.
    fn recover_and_judge(&self, what: &str) {
        for round in 0.. {
            let open: i64 = Connection::open(&self.database)
                .unwrap()
                .query_row("SELECT count(*) FROM turns WHERE state IN ('running', 'paused')", [], |row| row.get(0))
                .unwrap();
            if open == 0 {
                break;
            }
            assert!(round < ROUNDS, "D3 {what}: not over after {round} rounds");
            // A lease that could not be given back has to run out.
            std::thread::sleep(LEASE / 2);
            let exit =
                self.child(if round % 2 == 0 { What::Sweep } else { What::Decide { conversation: "c".into() } }, None);
            assert!(!exit.said.iter().any(|said| matches!(said, Said::Failed { .. })), "D2 {what}: {:?}", exit.said);
        }
        self.child(Self::chat("and now?"), None);
        let left = Left::read(&self.database, &self.folder.path().join("ran"));
        let said = self.said.lock().unwrap();
        let mut wrong = judge(self.program, &left, &said);
        // A turn may be given up because the store failed: its caller was told, and it is written down where that fits.
        if said.iter().any(|said| matches!(said, Said::Failed { kind, .. } if kind == "store")) {
            wrong.retain(|wrong| {
                !(wrong.starts_with("D2: the turn was not brought to its end") && wrong.contains(", failed, \"go"))
            });
        }
        assert!(wrong.is_empty(), "{what}:\n{}\n{:#?}\n{:#?}", wrong.join("\n"), left.turns, left.calls);
        let now = left.turns.iter().filter(|turn| turn.input == "and now?" && turn.state == "completed").count();
        assert_eq!(now, 1, "D2 {what}: the conversation does not go on: {:?}", left.turns);
    }
}

/// The failures of a child are those of a store that has no room.
fn no_room(exit: &Exit, words: &str) {
    for said in &exit.said {
        let Said::Failed { kind, message, .. } = said else { continue };
        assert!(kind == "store" && message.contains(words) && message.contains("chat.db"), "D5: {said:?}");
    }
}

/// A database in use by us, whose log has grown over what an index takes: the limit then meets the log alone.
fn in_use(program: Program) -> (Place, Connection) {
    let place = Place::new(program);
    place.child(Place::chat("hello"), None);
    let holder = Connection::open(&place.database).unwrap();
    holder.query_row("SELECT count(*) FROM turns", [], |row| row.get::<_, i64>(0)).unwrap();
    while fs::metadata(place.folder.path().join("chat.db-wal")).unwrap().len() < 40_000 {
        place.child(Place::chat("hello again"), None);
    }
    (place, holder)
}

/// What the child of a case does: a turn, and then the decisions that it waits for.
fn work(place: &Place, blocks: Option<u64>) -> Vec<Exit> {
    let first = place.child(Place::chat("go"), blocks);
    vec![first, place.child(What::Decide { conversation: "c".into() }, blocks)]
}

/// The first write that failed in each of these children.
fn first_failed(exits: &[Exit]) -> Option<(usize, String)> {
    exits.iter().enumerate().find_map(|(n, exit)| {
        exit.said.iter().find_map(|said| {
            let Said::WriteFailed { number, method } = said else { return None };
            Some((n * 1_000 + number, method.clone()))
        })
    })
}

// D5, D2: the file limit is met at each page of the log. The signal kills nobody, the error names the limit, and later
// nothing that was acknowledged is lost and nothing runs twice.
#[test]
fn the_limit_for_files_at_any_write() {
    let mut methods = BTreeSet::new();
    let (mut writes, mut cases) = (BTreeSet::new(), 0);
    for program in [Program::Sensitive, Program::CutResult] {
        let (place, holder) = in_use(program);
        let begins = place.log() / BLOCK;
        assert_eq!(first_failed(&work(&place, None)), None);
        let ends = place.log() / BLOCK;
        drop(holder);
        place.recover_and_judge("no limit");

        // A frame is a little longer than 2 blocks: none is stepped over.
        let all: Vec<u64> = (begins..ends).step_by(2).collect();
        let count = number("CEPA_SOAK_DISK").unwrap_or(LIMITS).min(all.len());
        let mut limits: Vec<u64> = (0..count).map(|n| all[n * all.len() / count]).collect();
        // The last write of all gives the lease back.
        limits.extend(all.iter().rev().take(3));
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(limit) = limits.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let (place, holder) = in_use(program);
                        let exits = work(&place, Some(*limit));
                        exits.iter().for_each(|exit| no_room(exit, "ulimit -f"));
                        drop(holder);
                        place.recover_and_judge(&format!("{program:?} at {limit} blocks"));
                        failed.lock().unwrap().extend(first_failed(&exits));
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap();
        assert!(failed.len() * 10 >= limits.len() * 9, "{failed:?} of {limits:?}");
        cases += limits.len();
        for (number, method) in failed {
            writes.insert((program as usize, number));
            methods.insert(method);
        }
    }
    println!("{cases} limits; the first write that failed was one of {} writes: {methods:?}", writes.len());
    for method in ["lease", "open_turn", "commit", "decide", "release"] {
        assert!(methods.contains(method), "no {method} failed: {methods:?}");
    }
}

/// A file system of its own, of some size, that is gone with the test.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    /// `None` where this user may not mount.
    fn mount(at: &'a Path, size: &str) -> Option<Self> {
        let ran = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at).output();
        ran.is_ok_and(|ran| ran.status.success()).then_some(Self(at))
    }

    fn grow(&self, size: &str) {
        let ran = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(self.0).status();
        assert!(ran.unwrap().success());
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0).status().unwrap();
    }
}

// D5, D2: a file system that fills up in the middle of turns, and is given room later.
#[test]
fn a_file_system_that_is_full() {
    for (program, kilobytes) in [(Program::CutResult, 220), (Program::Sensitive, 240), (Program::Batch, 260)] {
        let mut place = Place::new(program);
        let at = place.folder.path().join("small");
        fs::create_dir(&at).unwrap();
        let Some(small) = Small::mount(&at, &format!("{kilobytes}k")) else {
            println!("not shown here: this user may not mount");
            return;
        };
        place.database = at.join("chat.db");
        let messages = What::Write { conversations: vec!["c".into()], messages: 40, name: "first".into() };
        let exit = place.child(messages, None);
        no_room(&exit, "disk is full");
        let done = exit.said.iter().filter(|said| matches!(said, Said::Done { .. })).count();
        let failed = exit.said.iter().filter(|said| matches!(said, Said::Failed { .. })).count();
        println!("{kilobytes} kB: {done} turns were acknowledged, {failed} failed");
        assert!(done > 0 && failed > 0, "{:?}", exit.said);
        small.grow("64m");
        place.recover_and_judge(&format!("{program:?} in {kilobytes} kB"));
    }
}
