//! `cargo xtask bench`: builds everything that is measured, and starts `bench/driver/run.py`, which measures it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;

use crate::{peers::install, run};

const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(6 * 60 * 60);

/// Peers that are a workspace of their own, so that what they switch on in shared dependencies stays theirs.
const RUST_PEERS: [&str; 2] = ["genai", "rig"];
/// Parts of `peers/versions.json`.
const OTHER_PEERS: [&str; 6] =
    ["node", "bench-ai-sdk", "bench-pydantic-ai", "bench-langchain", "bench-openai-agents", "bench-agno"];

/// `args` go to the driver: `--peers`, `--scenarios A,B`, `--clients A,B`, `--reps N`, `--quick`, `--add`, `--render`.
pub(crate) fn command(args: &[&str]) -> Result<()> {
    let root = run::root()?;
    let bench = root.join("bench");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| bench.join("target"), PathBuf::from);
    let release = target.join("release");
    if !args.contains(&"--render") {
        build(&bench, &target, &["build", "--release", "--locked"])?;
        for peer in RUST_PEERS {
            // rig asks for a newer compiler than it needs: everybody is built with the same one.
            let args = ["build", "--release", "--locked", "--ignore-rust-version"];
            build(&bench.join("peers").join(peer), &target, &args)?;
        }
        // With its symbols: the driver reads them, and strips a copy to tell the size.
        let symbols = "profile.release.strip=\"debuginfo\"";
        build(&root, &target, &["build", "--release", "--locked", "--package", "cepa-cli", "--config", symbols])?;
    }
    let home =
        if args.contains(&"--peers") { install::parts(OTHER_PEERS.into_iter())? } else { root.join("target/peers") };
    let mut driver = run::command("python3")?;
    driver.arg(bench.join("driver/run.py")).arg("--bin").arg(&release).arg("--cli").arg(release.join("cepa"));
    driver.arg("--home").arg(home).arg("--out").arg(bench.join("results")).args(args);
    run::shown(&mut driver, RUN_LIMIT)
}

fn build(folder: &Path, target: &Path, args: &[&str]) -> Result<()> {
    let mut cargo = run::cargo(args)?;
    run::shown(cargo.current_dir(folder).arg("--target-dir").arg(target), BUILD_LIMIT)
}
