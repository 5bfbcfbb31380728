//! Starting other programs: where the tree is, output captured or shown, time limits.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The top folder of the repository.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("start this as `cargo xtask …`")?;
    let top = Path::new(&here).parent().context("xtask has no parent folder")?;
    Ok(top.to_path_buf())
}

/// A command in the top folder with no standard input.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Result<Command> {
    let mut command = Command::new(program);
    command.current_dir(root()?).stdin(Stdio::null());
    Ok(command)
}

/// The cargo that runs us.
pub(crate) fn cargo(args: &[&str]) -> Result<Command> {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))?;
    command.args(args);
    Ok(command)
}

/// Runs a command to its end and returns what it printed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stderr(Stdio::piped()).output().with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{shown}: output is not UTF-8"))
}

/// Runs a command with its output shown; an error when it fails or takes longer than `limit`.
///
/// Over the limit it is first asked to end, so that it can stop the servers it has started, and killed 15 seconds later.
pub(crate) fn shown(command: &mut Command, limit: Duration) -> Result<()> {
    let name = show(command);
    println!("$ {name}");
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    let started = Instant::now();
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            if asked {
                bail!("{name}: stopped after {} s", limit.as_secs());
            }
            if !status.success() {
                bail!("{name}: {status}");
            }
            return Ok(());
        }
        let spent = started.elapsed();
        if spent > limit + Duration::from_secs(15) {
            child.kill()?;
        } else if spent > limit && !asked {
            asked = true;
            let pid = child.id().to_string();
            if Command::new("kill").args(["-TERM", &pid]).status().is_err() {
                child.kill()?;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A command as one would type it.
fn show(command: &Command) -> String {
    let root = root().unwrap_or_default();
    let short = |text: &std::ffi::OsStr| {
        let path = Path::new(text);
        path.strip_prefix(&root).unwrap_or(path).display().to_string()
    };
    let mut words = vec![short(command.get_program())];
    if Path::new(command.get_program()).file_stem().is_some_and(|stem| stem == "cargo") {
        words = vec!["cargo".to_owned()];
    }
    words.extend(command.get_args().map(short));
    words.join(" ")
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
