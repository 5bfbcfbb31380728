//! The steps of a run: what each is called, how long it took, how it ended.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

/// What has been run so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    spent: Duration,
    failure: Option<Error>,
}

impl Report {
    /// Runs one step, says so, and remembers how it ended. Returns its value when it passed.
    pub(crate) fn step<T>(&mut self, name: &str, body: impl FnOnce() -> Result<T>) -> Option<T> {
        println!("\n== {name}");
        let started = Instant::now();
        let outcome = body();
        let spent = started.elapsed();
        let (value, failure) = match outcome {
            Ok(value) => (Some(value), None),
            Err(error) => {
                println!("FAILED {name}: {error:#}");
                (None, Some(error))
            }
        };
        self.rows.push(Row { name: name.to_owned(), spent, failure });
        value
    }

    /// A step that could not be run because another one failed: it counts as failed.
    pub(crate) fn not_run(&mut self, name: &str, because: &str) {
        println!("\n== {name}\nFAILED {name}: not run, because {because} failed");
        let failure = Some(anyhow!("not run, because {because} failed"));
        self.rows.push(Row { name: name.to_owned(), spent: Duration::ZERO, failure });
    }

    /// Prints the summary; its last line is `N passed, N failed`.
    pub(crate) fn finish(self) -> ExitCode {
        let failed = self.rows.iter().filter(|row| row.failure.is_some()).count();
        println!("\n== summary");
        for row in &self.rows {
            let word = if row.failure.is_some() { "FAILED" } else { "ok" };
            println!("{word:>6} {:>7.1} s  {}", row.spent.as_secs_f64(), row.name);
            if let Some(error) = &row.failure {
                println!("{:>19}{}", "", error.to_string().lines().next().unwrap_or_default());
            }
        }
        println!("{} passed, {failed} failed", self.rows.len() - failed);
        if failed == 0 && !self.rows.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
