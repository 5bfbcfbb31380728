//! `cargo xtask soak [NAME]`: the tests that a `cargo test` takes a moment of, at full length.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::run;

/// A series: tests that an environment variable makes long.
#[derive(Debug)]
struct Series {
    name: &'static str,
    /// The tests, as arguments of `cargo test`.
    tests: &'static [&'static str],
    /// What makes them long; each value is a run of its own.
    variable: &'static str,
    values: &'static [&'static str],
}

/// All series. A new one is a row here and in `docs/durability.md`.
const SERIES: [Series; 4] = [
    Series {
        name: "kills",
        tests: &["-p", "cepa-testkit", "--test", "kill_matrix"],
        variable: "CEPA_SOAK_KILLS",
        values: &["1000"],
    },
    Series {
        name: "writers",
        tests: &["-p", "cepa-testkit", "--test", "many_writers"],
        variable: "CEPA_SOAK_WRITERS",
        values: &["16"],
    },
    Series {
        name: "disk",
        tests: &["-p", "cepa-testkit", "--test", "disk"],
        variable: "CEPA_SOAK_DISK",
        values: &["1000"],
    },
    // Random programs of an agent; of a tenth of them the steps that crash are processes, and are killed.
    Series {
        name: "programs",
        tests: &["-p", "cepa-testkit", "--test", "state_machine"],
        variable: "CEPA_SOAK_PROGRAMS",
        values: &["20000"],
    },
];

/// Longer than any run took on two cores, several times over.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Runs the series of this name, or all.
pub(crate) fn command(name: &str) -> Result<()> {
    let chosen: Vec<&Series> = SERIES.iter().filter(|series| name == "all" || series.name == name).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
        bail!("no series is called {name:?}; there are: {} all", known.join(" "));
    }
    for Series { name, tests, variable, values } in chosen {
        let from = Instant::now();
        for value in *values {
            println!("{name}: {variable}={value}");
            let mut test = run::cargo(&[&["test"], *tests, &["--", "--nocapture"]].concat())?;
            run::shown(test.env(variable, value), LIMIT)?;
        }
        println!("{name}: passed in {} s", from.elapsed().as_secs());
    }
    Ok(())
}
