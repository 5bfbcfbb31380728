//! Rules about the files themselves: size, words that a layer must not know, paths of one machine.

use anyhow::{Context as _, Result};

use crate::{pins, run};

/// A source file with more lines than this has two subjects.
const LINES: usize = 500;

/// The kernel knows no memory: not even the word. (Written in two pieces here and below, so that the rules do not match themselves.)
const NOT_IN_CORE: &str = concat!("Chat", "Memory");

/// Starts of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/fa", "rm/"),
    concat!("/tm", "p/"),
];

/// Looks through every file that git would commit.
pub(crate) fn problems() -> Result<Vec<String>> {
    let root = run::root()?;
    let mut git = run::command("git")?;
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    let list = run::capture(&mut git).context("listing the files needs a git checkout")?;
    let mut problems = Vec::new();
    let mut read = 0;
    for path in list.split('\0').filter(|path| !path.is_empty()) {
        // a file deleted but not yet committed, or one that is not text
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        read += 1;
        problems.extend(problems_of(path, &text));
    }
    println!("{read} files read");
    Ok(problems)
}

fn problems_of(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let source = path.ends_with(".rs") && path.split('/').any(|part| part == "src");
    if source && !pins::is_test_file(path) {
        let lines = pins::inline_tests(text).unwrap_or(text.lines().count());
        if lines > LINES {
            problems.push(format!("{path} has {lines} lines of at most {LINES}: it has two subjects, split it"));
        }
    }
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        if path.starts_with("crates/cepa-core/") && line.contains(NOT_IN_CORE) {
            problems.push(format!("{path}:{number} says {NOT_IN_CORE}: the kernel knows no memory"));
        }
        if let Some(found) = MACHINE_PATHS.iter().find(|start| names_path(line, start)) {
            problems.push(format!("{path}:{number} names a path of one machine ({found}…)"));
        }
    }
    problems
}

/// Whether an absolute path with this start stands in the line: `a/tmp/x` and `https://host/tmp/x` are none.
fn names_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + start.len()..).and_then(|text| text.chars().next());
        let inside = before.is_some_and(|c| c.is_alphanumeric() || "._-*}/$)".contains(c));
        !inside && after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
#[path = "hygiene_tests.rs"]
mod tests;
