//! `cargo xtask bench`: builds everything that is measured, and starts what measures it: `bench/driver/run.py`, with
//! `--check` `bench/driver/check.py`, and for `micro` divan.

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

/// The words after `cargo xtask bench`; those that are not ours go to what measures.
pub(crate) fn command(args: &[&str]) -> Result<()> {
    let root = run::root()?;
    let bench = root.join("bench");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| bench.join("target"), PathBuf::from);
    let places = Places { release: target.join("release"), root, bench, target };
    match args {
        ["micro", args @ ..] => places.micro(args),
        args if args.contains(&"--check") => places.check(args),
        args => places.measure(args),
    }
}

struct Places {
    root: PathBuf,
    bench: PathBuf,
    target: PathBuf,
    release: PathBuf,
}

impl Places {
    /// Single parts; the words choose some of them, or are options of divan.
    fn micro(&self, args: &[&str]) -> Result<()> {
        // The whole workspace, so that what it shares is built as for the clients, and once.
        let mut all = vec!["bench", "--locked", "--workspace", "--bench", "micro", "--"];
        all.extend(args);
        self.cargo(&self.bench, &all)
    }

    /// Instructions of fixed work, against the baseline.
    fn check(&self, args: &[&str]) -> Result<()> {
        self.cargo(&self.bench, &["build", "--release", "--locked"])?;
        let mut driver = run::command("python3")?;
        driver.arg(self.bench.join("driver/check.py")).arg("--bin").arg(&self.release);
        driver.arg("--baseline").arg(self.bench.join("baseline.json"));
        driver.args(args.iter().filter(|arg| **arg != "--check"));
        run::shown(&mut driver, RUN_LIMIT)
    }

    /// Whole programs, beside others.
    fn measure(&self, args: &[&str]) -> Result<()> {
        let renders = args.contains(&"--render");
        let home = if args.contains(&"--peers") && !renders {
            install::parts(OTHER_PEERS.into_iter())?
        } else {
            self.root.join("target/peers")
        };
        if !renders {
            self.cargo(&self.bench, &["build", "--release", "--locked"])?;
            for peer in RUST_PEERS {
                // rig asks for a newer compiler than it needs: everybody is built with the same one.
                let args = ["build", "--release", "--locked", "--ignore-rust-version"];
                self.cargo(&self.bench.join("peers").join(peer), &args)?;
            }
            // With its symbols: the driver reads them, and strips a copy to tell the size.
            let symbols = "profile.release.strip=\"debuginfo\"";
            let args = ["build", "--release", "--locked", "--package", "cepa-cli", "--config", symbols];
            self.cargo(&self.root, &args)?;
        }
        let mut driver = run::command("python3")?;
        driver.arg(self.bench.join("driver/run.py")).arg("--bin").arg(&self.release);
        driver.arg("--cli").arg(self.release.join("cepa")).arg("--home").arg(home);
        driver.arg("--out").arg(self.bench.join("results")).args(args);
        run::shown(&mut driver, RUN_LIMIT)
    }

    fn cargo(&self, folder: &Path, args: &[&str]) -> Result<()> {
        let mut cargo = run::cargo(args)?;
        // What cargo told us of ourselves: ring's build script looks at it, and would be run again after a cargo without it.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
                cargo.env_remove(name);
            }
        }
        // By the environment: behind `--` cargo would take an option for the program's.
        run::shown(cargo.current_dir(folder).env("CARGO_TARGET_DIR", &self.target), BUILD_LIMIT)
    }
}
