//! `cargo xtask fuzz [MINUTES]`: every reader of what servers send, fed with broken bodies for so long each.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::run;

const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);
const TEST: [&str; 5] = ["test", "-p", "cepa-providers", "--test", "fuzz"];

/// Not a release: there an overflow would pass unseen. One after another, so that a time means the same on any machine.
pub(crate) fn command(minutes: &str) -> Result<()> {
    let minutes: u64 = minutes.parse().context("MINUTES is a whole number")?;
    run::shown(&mut run::cargo(&[&TEST[..], &["--no-run"]].concat())?, BUILD_LIMIT)?;
    let list = run::capture(&mut run::cargo(&[&TEST[..], &["--", "--list", "--format", "terse"]].concat())?)?;
    let targets = list.lines().filter(|line| line.ends_with(": test")).count() as u64;
    let each = minutes.saturating_mul(60);
    println!("{targets} targets, {minutes} min each");
    let mut fuzz = run::cargo(&[&TEST[..], &["--", "--test-threads=1", "--nocapture"]].concat())?;
    let limit = Duration::from_secs(each.saturating_mul(targets).saturating_add(600));
    run::shown(fuzz.env("CEPA_FUZZ_SECONDS", each.to_string()), limit)
}
