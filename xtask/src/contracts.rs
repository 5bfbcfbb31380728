//! `contracts`: every built line of `docs/contracts.md` is pinned by a test that names it; then the field reports and the
//! rules of judges.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::{conformance, field_reports, pins, run};

const LINES: &str = "docs/contracts.md";
const TABLE: &str = "docs/contract-tests.md";

/// What to do with the table of lines and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Compare it with the committed one.
    Check,
    /// Write it.
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Promised today: a test has to pin it.
    Built,
    /// Decided, not promised yet.
    Later,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    name: String,
    state: State,
}

/// The tests that pin each line.
pub(crate) type Tests = BTreeMap<String, BTreeSet<String>>;

/// Lines and the tests that pin them; fails on a built line without a test, and on a field report that is neither pinned nor
/// marked.
pub(crate) fn command(mode: Mode) -> Result<()> {
    let root = run::root()?;
    let text = std::fs::read_to_string(root.join(LINES)).context(LINES)?;
    let lines = parse(&text)?;
    let tests = tests_by_line(&root, pins::names)?;
    let table = table(&lines, &tests);
    println!("{table}");
    if mode == Mode::Write {
        std::fs::write(root.join(TABLE), &table).context(TABLE)?;
    }
    let mut problems = unpinned(&lines, &tests);
    if std::fs::read_to_string(root.join(TABLE)).unwrap_or_default() != table {
        problems.push(format!("{TABLE} is out of date: run `cargo xtask contracts --write`"));
    }
    let built = lines.iter().filter(|line| line.state == State::Built).map(|line| line.name.clone()).collect();
    problems.extend(field_reports::check(&root, mode, &built)?);
    problems.extend(conformance::check(&root, mode)?);
    if problems.is_empty() {
        return Ok(());
    }
    for problem in &problems {
        println!("- {problem}");
    }
    bail!("{} problems, listed above", problems.len())
}

/// The lines of the contract: table rows `| L3 | built | … |`.
fn parse(text: &str) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for row in text.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", name, state, words, ..] = cells.as_slice() else { continue };
        if pins::names(name) != [*name] {
            continue;
        }
        let state = match *state {
            "built" => State::Built,
            "later" => State::Later,
            other => bail!("{LINES}: {name} is {other:?}, which is neither built nor later"),
        };
        if words.is_empty() || cells.len() != 5 {
            bail!("{LINES}: {name} needs one text without a | in it");
        }
        lines.push(Line { name: (*name).to_owned(), state });
    }
    complete(&lines)?;
    Ok(lines)
}

/// Each section is numbered 1, 2, 3 … without a gap, so that no line can get lost.
fn complete(lines: &[Line]) -> Result<()> {
    for letter in pins::SECTIONS.chars() {
        let numbers = lines.iter().filter_map(|line| line.name.strip_prefix(letter));
        let expected: Vec<String> = (1..=numbers.clone().count()).map(|number| number.to_string()).collect();
        let found: Vec<&str> = numbers.collect();
        if found != expected {
            bail!("{LINES}: section {letter} is numbered {}", found.join(" "));
        }
    }
    Ok(())
}

/// The pins of all Rust files under `crates`, by the names that are looked for.
pub(crate) fn tests_by_line(root: &Path, names: pins::Names) -> Result<Tests> {
    let mut tests = Tests::new();
    let mut folders = vec![root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let name = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                for pin in pins::pins(&name, &text, names) {
                    tests.entry(pin.line).or_default().insert(pin.test);
                }
            }
        }
    }
    Ok(tests)
}

fn unpinned(lines: &[Line], tests: &Tests) -> Vec<String> {
    let mut problems = Vec::new();
    for line in lines {
        if line.state == State::Built && !tests.contains_key(&line.name) {
            problems.push(format!("{} is built, but no test's comment names it", line.name));
        }
    }
    for (name, tests) in tests {
        if !lines.iter().any(|line| line.name == *name) {
            let test = tests.first().map(String::as_str).unwrap_or_default();
            problems.push(format!("{test} names {name}, which is not a line of {LINES}"));
        }
    }
    problems
}

/// One paragraph a line: its state, then each file with the tests in it.
fn table(lines: &[Line], tests: &Tests) -> String {
    let mut out = String::from(
        "# Which test pins which line\n\nMade by `cargo xtask contracts --write` from the comments of the tests; \
         the lines are in [contracts.md](contracts.md).\n",
    );
    for Line { name, state } in lines {
        let state = match state {
            State::Built => "built",
            State::Later => "later",
        };
        out.push_str(&format!("\n**{name}** ({state})\n"));
        write_tests(&mut out, tests.get(name));
    }
    out
}

/// One line a file, with the tests in it.
pub(crate) fn write_tests(out: &mut String, tests: Option<&BTreeSet<String>>) {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in tests.into_iter().flatten() {
        let (file, function) = test.split_once("::").unwrap_or((test, ""));
        files.entry(file).or_default().push(function);
    }
    for (file, functions) in files {
        out.push_str(&format!("* `{file}`: {}\n", functions.join(", ")));
    }
}

#[cfg(test)]
#[path = "contracts_tests.rs"]
mod tests;
