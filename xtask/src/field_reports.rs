//! `contracts`, second part: every line of `docs/field-reports.md` is pinned by a test that names it, or says why not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::contracts::{self, Mode, Tests};
use crate::pins;

const LINES: &str = "docs/field-reports.md";
const TABLE: &str = "docs/field-report-tests.md";

/// How a report is dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// A test has to name it.
    Pinned,
    /// These lines of the contract promise it, and their tests pin it.
    By(Vec<String>),
    /// Decided, not built yet; with the reason.
    Later(String),
    /// Nothing that we do; with the reason.
    NotOurs(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    id: String,
    state: State,
}

/// What is wrong with the reports and their tests. `built` are the lines of the contract that are promised today.
pub(crate) fn check(root: &Path, mode: Mode, built: &BTreeSet<String>) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(LINES)).context(LINES)?;
    let lines = parse(&text)?;
    let tests = contracts::tests_by_line(root, pins::reports)?;
    let table = table(&lines, &tests);
    if mode == Mode::Write {
        std::fs::write(root.join(TABLE), &table).context(TABLE)?;
    }
    println!("{}", summary(&lines));
    let mut problems = unpinned(&lines, &tests, built);
    if std::fs::read_to_string(root.join(TABLE)).unwrap_or_default() != table {
        problems.push(format!("{TABLE} is out of date: run `cargo xtask contracts --write`"));
    }
    Ok(problems)
}

/// The reports: table rows `| FR-001 | state | what goes wrong | what is right | sources |`.
fn parse(text: &str) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for row in text.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", id, state, rest @ ..] = cells.as_slice() else { continue };
        if pins::reports(id) != [*id] {
            continue;
        }
        let [wrong, right, source, ""] = rest else { bail!("{LINES}: {id} needs three texts without a | in them") };
        if [wrong, right, source].iter().any(|text| text.is_empty()) {
            bail!("{LINES}: {id} lacks a text: what goes wrong, what is right, or where it was told");
        }
        let expected = format!("FR-{:03}", lines.len() + 1);
        if *id != expected {
            bail!("{LINES}: {id} stands where {expected} is due");
        }
        lines.push(Line { id: (*id).to_owned(), state: read_state(id, state)? });
    }
    Ok(lines)
}

fn read_state(id: &str, state: &str) -> Result<State> {
    let reason = |why: &str| match why.trim() {
        "" => bail!("{LINES}: {id} does not say why"),
        why => Ok(why.to_owned()),
    };
    if state == "pinned" {
        return Ok(State::Pinned);
    }
    if let Some(names) = state.strip_prefix("by ") {
        let found = pins::names(names);
        if found.join(", ") != names {
            bail!("{LINES}: {id} is `{state}`, which names no lines of the contract");
        }
        return Ok(State::By(found));
    }
    match state.split_once(':') {
        Some(("later", why)) => Ok(State::Later(reason(why)?)),
        Some(("not ours", why)) => Ok(State::NotOurs(reason(why)?)),
        _ => bail!("{LINES}: {id} is `{state}`: write `pinned`, `by H4`, `later: why` or `not ours: why`"),
    }
}

fn unpinned(lines: &[Line], tests: &Tests, built: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    for Line { id, state } in lines {
        match state {
            State::Pinned if !tests.contains_key(id) => {
                problems.push(format!("{id} is called pinned, but no test's comment names it"));
            }
            State::By(names) => {
                let missing = names.iter().filter(|name| !built.contains(*name));
                problems.extend(missing.map(|name| format!("{id} relies on {name}, which is not built")));
            }
            State::Pinned | State::Later(_) | State::NotOurs(_) => {}
        }
    }
    for (id, tests) in tests {
        if !lines.iter().any(|line| line.id == *id) {
            let test = tests.first().map(String::as_str).unwrap_or_default();
            problems.push(format!("{test} names {id}, which is not a line of {LINES}"));
        }
    }
    problems
}

/// One paragraph a report: how it is dealt with, then each file with the tests in it.
fn table(lines: &[Line], tests: &Tests) -> String {
    let mut out = String::from(
        "# Which test pins which field report\n\nMade by `cargo xtask contracts --write` from the comments of the tests; \
         the reports are in [field-reports.md](field-reports.md).\n",
    );
    for Line { id, state } in lines {
        let state = match state {
            State::Pinned => "pinned".to_owned(),
            State::By(names) => format!("by {}, see [contract-tests.md](contract-tests.md)", names.join(", ")),
            State::Later(why) => format!("later: {why}"),
            State::NotOurs(why) => format!("not ours: {why}"),
        };
        out.push_str(&format!("\n**{id}** ({state})\n"));
        contracts::write_tests(&mut out, tests.get(id));
    }
    out
}

fn summary(lines: &[Line]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        let word = match line.state {
            State::Pinned => "pinned by tests",
            State::By(_) => "by lines of the contract",
            State::Later(_) => "later",
            State::NotOurs(_) => "not ours",
        };
        *counts.entry(word).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    format!("{} field reports: {}", lines.len(), counts.join(", "))
}

#[cfg(test)]
#[path = "field_reports_tests.rs"]
mod tests;
