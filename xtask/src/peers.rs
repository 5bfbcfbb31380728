//! Checks against programs that nobody here wrote. The scripts that start and drive them are in `peers/`.

pub(crate) mod install;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::report::Report;
use crate::run;

/// One check: what it needs on this machine, and the script that does it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Parts of `peers/versions.json`; the first is the environment whose Python runs the script.
    parts: &'static [&'static str],
    script: &'static str,
    feed: Feed,
}

/// What a script gets on its command line.
#[derive(Debug, Clone, Copy)]
enum Feed {
    /// The request bodies of these wires: the golden ones and those that the drives have recorded.
    Requests(&'static [&'static str]),
    /// Our binary, the peers' folder, and these words.
    Binary(&'static [&'static str]),
}

/// Every check. The validators come last: they also judge what our binary sent in the drives before them.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "aimock-openai",
        parts: &["node", "aimock"],
        script: "drive_aimock.py",
        feed: Feed::Binary(&["openai"]),
    },
    Check {
        name: "aimock-responses",
        parts: &["node", "aimock"],
        script: "drive_aimock.py",
        feed: Feed::Binary(&["openai-responses"]),
    },
    Check {
        name: "aimock-anthropic",
        parts: &["node", "aimock"],
        script: "drive_aimock.py",
        feed: Feed::Binary(&["anthropic"]),
    },
    Check {
        name: "aimock-gemini",
        parts: &["node", "aimock"],
        script: "drive_aimock.py",
        feed: Feed::Binary(&["gemini"]),
    },
    Check { name: "verdict-openai", parts: &["llmock"], script: "drive_llmock.py", feed: Feed::Binary(&["openai"]) },
    Check {
        name: "verdict-responses",
        parts: &["llmock"],
        script: "drive_llmock.py",
        feed: Feed::Binary(&["openai-responses"]),
    },
    Check {
        name: "verdict-anthropic",
        parts: &["llmock"],
        script: "drive_llmock.py",
        feed: Feed::Binary(&["anthropic"]),
    },
    Check { name: "verdict-gemini", parts: &["llmock"], script: "drive_llmock.py", feed: Feed::Binary(&["gemini"]) },
    Check { name: "llamacpp", parts: &["llama"], script: "drive_llamacpp.py", feed: Feed::Binary(&[]) },
    Check { name: "llamacpp-long", parts: &["llama"], script: "drive_llamacpp_long.py", feed: Feed::Binary(&[]) },
    Check {
        name: "requests-openai",
        parts: &["validate"],
        script: "validate_openai.py",
        feed: Feed::Requests(&["openai_chat"]),
    },
    Check {
        name: "requests-responses",
        parts: &["validate"],
        script: "validate_responses.py",
        feed: Feed::Requests(&["openai_responses"]),
    },
    Check {
        name: "requests-anthropic",
        parts: &["validate"],
        script: "validate_anthropic.py",
        feed: Feed::Requests(&["anthropic"]),
    },
    Check {
        name: "requests-gemini",
        parts: &["validate-gemini"],
        script: "validate_gemini.py",
        feed: Feed::Requests(&["gemini"]),
    },
    Check {
        name: "translate-litellm",
        parts: &["translate"],
        script: "translate_litellm.py",
        feed: Feed::Requests(&["openai_chat", "openai_compatible", "openai_responses", "anthropic", "gemini"]),
    },
];

/// Checks that take minutes: `cargo xtask peers` has them, `cargo xtask test` does not wait for them.
pub(crate) const LONG: &[&str] = &["llamacpp-long"];

const GOLDEN: &str = "crates/cepa-testkit/tests/golden/requests";
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Fetches what the checks need, builds our binary if one drives it, and runs them.
pub(crate) fn steps(report: &mut Report, checks: &[Check]) {
    const FETCH: &str = "fetch peers";
    const BUILD: &str = "build cepa";
    let parts = checks.iter().flat_map(|check| check.parts);
    let home = report.step(FETCH, || install::parts(parts.copied()));
    let drives = |check: &Check| matches!(check.feed, Feed::Binary(_));
    let cepa = if checks.iter().any(drives) { report.step(BUILD, build) } else { None };
    for check in checks {
        let name = format!("peer {}", check.name);
        match (&home, check.feed, &cepa) {
            (None, ..) => report.not_run(&name, FETCH),
            (_, Feed::Binary(_), None) => report.not_run(&name, BUILD),
            (Some(home), Feed::Binary(words), Some(cepa)) => {
                let mut args: Vec<OsString> = vec!["--cepa".into(), cepa.into(), "--peers".into(), home.into()];
                args.extend(words.iter().map(OsString::from));
                report.step(&name, || script(check, home, &args));
            }
            (Some(home), Feed::Requests(folders), _) => {
                report.step(&name, || {
                    let mut files = Vec::new();
                    for folder in folders {
                        files.extend(requests(home, folder)?.into_iter().map(OsString::from));
                    }
                    script(check, home, &files)
                });
            }
        }
    }
}

fn script(check: &Check, home: &Path, args: &[OsString]) -> Result<()> {
    let environment = check.parts.first().context("a check without parts")?;
    let mut command = run::command(install::python(home, environment))?;
    command.arg(run::root()?.join("peers").join(check.script)).args(args);
    run::shown(&mut command, LIMIT)
}

/// Golden request bodies of one wire (none is an error: then nothing would be checked), then those that the drives have recorded.
fn requests(home: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let mut files = json_files(&run::root()?.join(GOLDEN).join(folder))?;
    if files.is_empty() {
        bail!("{GOLDEN}/{folder} has no golden request");
    }
    for drive in entries(&home.join("work"))? {
        files.extend(json_files(&drive.join("sent").join(folder))?);
    }
    Ok(files)
}

fn json_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(folder)?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    Ok(files)
}

/// What is in a folder, in order of name; nothing when it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn build() -> Result<PathBuf> {
    // drives need what the command does not have: shorter time limits, a window, answers in one piece. Example programs have them
    let packages = ["build", "--locked", "-p", "cepa-cli", "-p", "cepa", "--bin", "cepa"];
    let mut cargo = run::cargo(&packages)?;
    cargo.args(["--example", "patience", "--example", "window"]);
    run::shown(&mut cargo, LIMIT)?;
    let text = run::capture(&mut run::cargo(&["metadata", "--format-version", "1", "--no-deps"])?)?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let target = metadata
        .get("target_directory")
        .and_then(serde_json::Value::as_str)
        .context("no target_directory in cargo metadata")?;
    Ok(Path::new(target).join("debug").join(format!("cepa{}", std::env::consts::EXE_SUFFIX)))
}
