//! `kill -9` before and after every write of a turn, and at any instant in between, on an SQLite file; then recovery by
//! other processes, killed too. What is left is judged by the contract.
//!
//! `cargo test` kills a selection; `CEPA_SOAK_KILLS` says how often to kill (`cargo xtask soak kills`).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod case;
#[path = "../durability/mod.rs"]
mod durability;

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use case::{Case, Death, Outcome, PROGRAMS, Stage, pauses};
use cepa_testkit::arbitrary::Rng;
use durability::{
    number,
    program::Program,
    task::{Kill, When},
};

/// How many cases are under way at once: most of their time is waiting for a dead child's lease to run out.
const AT_ONCE: usize = 6;
/// How often children are killed without `CEPA_SOAK_KILLS`.
const KILLS: usize = 60;

/// Runs cases side by side and adds up what came of them; the first that fails fails the test.
fn all(cases: &[Case]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![Outcome::default(); cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { break };
                    let outcome = case.run();
                    outcomes.lock().unwrap()[at] = outcome;
                }
            });
        }
    });
    outcomes.into_inner().unwrap()
}

/// A program in one way, up to the child that is to be killed.
type Way = (Program, bool, Stage);

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for program in PROGRAMS {
        for streamed in [false, true] {
            ways.push((program, streamed, Stage::Begins));
            if pauses(program) {
                ways.push((program, streamed, Stage::Decides));
            }
        }
    }
    ways
}

/// Spreads a number of choices over a list, so that all of it has its share.
fn spread<T: Clone>(all: &[T], count: usize) -> Vec<T> {
    (0..count.min(all.len())).map(|n| all[n * all.len() / count.min(all.len())].clone()).collect()
}

#[test]
fn a_turn_survives_a_kill_at_any_write_and_any_instant() {
    // D1, D2, D3, D4, D5, L6, L17, H2, H3, H4, M1, M2, M3, M6: see `durability/judge.rs` for what each asks.
    let (from, seed) = (Instant::now(), number("CEPA_SEED").unwrap_or(1) as u64);
    let soak = number("CEPA_SOAK_KILLS");
    let ways = ways();

    // Undisturbed: how many writes there are, and how long it takes.
    let case = |(n, &(program, streamed, stage)): (usize, &Way)| Case {
        program,
        streamed,
        stage,
        death: Death::None,
        seed: seed * 1_000 + n as u64,
    };
    let undisturbed: Vec<Case> = ways.iter().enumerate().map(case).collect();
    let lived: HashMap<Way, Outcome> = ways.iter().copied().zip(all(&undisturbed)).collect();
    assert!(lived.values().all(|outcome| outcome.kills == 0 && outcome.writes >= 2), "{lived:?}");

    // Before and after each write of each way.
    let mut points = Vec::new();
    for way in &ways {
        for write in 0..lived[way].writes {
            points.extend([When::Before, When::After].map(|when| (*way, Death::At(Kill { write, when }))));
        }
    }
    // At any instant: as many again as are missing, in turn for each way.
    let kills = soak.unwrap_or(KILLS);
    let at_writes = if soak.is_some() { points.len().min(kills) } else { kills * 2 / 3 };
    let mut rng = Rng::new(seed);
    let mut cases = spread(&points, at_writes);
    for n in 0..kills - at_writes {
        let way = ways[(n * 7) % ways.len()];
        let micros = rng.below(lived[&way].took.as_micros() as usize * 3 / 4) as u64;
        cases.push((way, Death::Outside(Duration::from_micros(micros))));
    }
    let case = |(n, ((program, streamed, stage), death)): (usize, (Way, Death))| Case {
        program,
        streamed,
        stage,
        death,
        seed: seed * 1_000_000 + n as u64,
    };
    let cases: Vec<Case> = cases.into_iter().enumerate().map(case).collect();
    let outcomes = all(&cases);

    let first: usize = outcomes.iter().filter(|outcome| outcome.writes == 0).count();
    let killed: usize = outcomes.iter().map(|outcome| outcome.kills).sum();
    println!(
        "{} programs in {} ways, {} points at writes; {} cases: the first child was killed in {first}, {killed} kills in \
         all, {:.0} s, nothing lost",
        PROGRAMS.len(),
        ways.len(),
        points.len(),
        cases.len(),
        from.elapsed().as_secs_f64()
    );
    assert!(killed >= kills * 4 / 5, "only {killed} children were killed: the test shows less than it says");
}
