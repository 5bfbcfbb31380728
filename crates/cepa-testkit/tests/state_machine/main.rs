//! Random programs of an agent on a database: chats, decisions, cancels, crashes, clocks and second processes, in any
//! order. After every step the database is read as it lies there, and the contract's lines are held against it.
//!
//! `CEPA_SOAK_PROGRAMS` sets how many programs are tried; of one that fails the shortest form is printed as a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod calls;
mod child;
mod deeds;
mod facts;
mod found;
mod histories;
mod invariants;
mod judges;
mod model;
mod pauses;
mod program;
mod rows;
mod scene;
mod store;
mod strategy;
mod tools;
mod world;

use std::sync::Once;

use proptest::{
    strategy::{Just, Strategy as _},
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

use program::Program;
use world::World;

/// How many programs `cargo test` tries.
const PROGRAMS: u32 = 500;

/// Runs a program to its end, and says which contract it broke after which step.
fn run(program: &Program) -> Result<(), String> {
    quiet_panics();
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(program.setup, &folder.path().join("cepa.db"));
        for (n, step) in program.steps.iter().enumerate() {
            world.step(step).await.map_err(|why| format!("after step {n}, {step:?}\n{why}"))?;
        }
        world.end().await.map_err(|why| format!("after the end\n{why}"))
    })
}

/// What a program that was found is run by.
fn holds(program: Program) {
    run(&program).unwrap_or_else(|why| panic!("{why}"));
}

/// The tools that panic on purpose do not fill the output.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&tools::ON_PURPOSE) {
                hook(info);
            }
        }));
    });
}

fn programs() -> u32 {
    std::env::var("CEPA_SOAK_PROGRAMS").ok().map_or(PROGRAMS, |n| n.parse().unwrap())
}

fn try_all(count: u32, processes: bool) {
    let config = Config {
        cases: count,
        max_shrink_iters: 2_000,
        max_shrink_time: 60_000,
        failure_persistence: None,
        ..Config::default()
    };
    // `cargo test` tries the same programs each time; other ones are for the long run.
    let mut runner = match std::env::var_os("CEPA_SOAK_PROGRAMS") {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let found =
        runner.run(&strategy::programs(Just(processes).boxed()), |program| run(&program).map_err(TestCaseError::fail));
    match found {
        Ok(()) => {}
        Err(TestError::Fail(why, program)) => {
            panic!("{why}\n\n#[test]\nfn found() {{\n    holds({program:?});\n}}\n")
        }
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

// FR-036, FR-040: whatever was paused, decided and resumed, each call stands once, with its result.
#[test]
fn any_program_keeps_the_contract() {
    // Goal 1, 2, 3; H1, H2, H3, H4, H5, H6, H9; L3, L5, L6, L7, L11, L12, L15, L16; M1, M2, M3, M6, M7; D1, D2, D3, D5.
    try_all(programs() - programs() / 10, false);
}

#[test]
fn any_program_keeps_the_contract_when_processes_are_killed() {
    // D4: the steps that crash are processes of their own, killed by SIGKILL at a write.
    try_all(programs() / 10, true);
}

/// Not a test: what [`child::run`] starts.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_process_that_dies() {
    child::main().await;
}
