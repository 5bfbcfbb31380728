//! `contracts`, third part: every rule of the judges of request bodies is tried by a test, and `docs/conformance.md` shows them.

mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::contracts::Mode;
use crate::pins;

const TABLE: &str = "docs/conformance.md";
const JUDGES: &str = "crates/cepa-testkit/src/validate";

/// The numbers that begin so, the heading over them, and the judge that enforces them.
const SECTIONS: &[(&str, &str, &str)] = &[
    ("OC", "OpenAI chat completions", "openai_chat"),
    ("SC", "Servers that are stricter than OpenAI (settings of the same judge)", "openai_chat"),
    ("OR", "OpenAI responses", "openai_responses"),
    ("AN", "Anthropic messages", "anthropic"),
    ("GE", "Gemini generateContent", "gemini"),
    ("HI", "Neutral messages (our own rules)", "neutral"),
];

/// A rule as its judge has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    id: String,
    says: String,
    sources: Vec<String>,
}

/// The functions that try each rule.
type Trials = BTreeMap<String, BTreeSet<String>>;

/// What is wrong with the rules and their trials.
pub(crate) fn check(root: &Path, mode: Mode) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut out = String::from(
        "# What is shown of each dialect\n\nMade by `cargo xtask contracts --write`. Requests are judged by rules that the \
         providers publish, or that their servers have been seen to enforce; the judges are in \
         [validate](../crates/cepa-testkit/src/validate), written from those pages and not from our encoders. A refusal names \
         the rule's number.\n\n## Dialects and what is shown of them\n\n",
    );
    out.push_str(&shown::table(root, &mut problems)?);
    for (letters, heading, judge) in SECTIONS {
        let path = format!("{JUDGES}/{judge}/rules.rs");
        let rules = parse(&std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?)
            .with_context(|| path.clone())?;
        let rules: Vec<Rule> = rules.into_iter().filter(|rule| letters_of(&rule.id) == *letters).collect();
        let path = format!("{JUDGES}/{judge}_tests.rs");
        let text = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        let trials = trials(&text);
        problems.extend(untried(&rules, &trials, &path));
        if !text.contains("complete(rules::ALL)") {
            problems.push(format!("{path} does not show that every rule is tried: call `complete(rules::ALL)`"));
        }
        write_section(&mut out, heading, &rules, &trials, &path);
    }
    if mode == Mode::Write {
        std::fs::write(root.join(TABLE), &out).context(TABLE)?;
    }
    if std::fs::read_to_string(root.join(TABLE)).unwrap_or_default() != out {
        problems.push(format!("{TABLE} is out of date: run `cargo xtask contracts --write`"));
    }
    Ok(problems)
}

/// The rules in a `rules! { NAME = "id", "name", "sentence", "source source"; … }`: four texts each, without escapes.
fn parse(text: &str) -> Result<Vec<Rule>> {
    let (_, inside) = text.split_once("rules! {").context("there is no `rules! {`")?;
    let texts: Vec<&str> = inside.split('"').skip(1).step_by(2).collect();
    let mut rules: Vec<Rule> = Vec::new();
    for four in texts.chunks(4) {
        let [id, name, says, sources] = four else {
            bail!("a rule has four texts, the last one here has {}", four.len())
        };
        if pins::rules(id) != [*id] {
            bail!("`{id}` is no number of a rule: write two capitals, a dash and two digits");
        }
        if let Some(before) =
            rules.last().filter(|before| letters_of(&before.id) == letters_of(id) && *before.id >= **id)
        {
            bail!("{id} stands behind {}: numbers ascend, and are not used again", before.id);
        }
        let sources: Vec<String> = sources.split_whitespace().map(str::to_owned).collect();
        if name.is_empty() || says.is_empty() || says.contains('|') || sources.is_empty() {
            bail!("{id} needs a name, a sentence without a |, and where it was read");
        }
        for source in &sources {
            link(source).with_context(|| id.to_string())?;
        }
        rules.push(Rule { id: (*id).to_owned(), says: (*says).to_owned(), sources });
    }
    Ok(rules)
}

fn letters_of(id: &str) -> &str {
    id.split('-').next().unwrap_or_default()
}

/// Where a rule was read, as a link: a page, a field report, a line of the contract.
fn link(source: &str) -> Result<String> {
    if let Some(page) = source.strip_prefix("https://") {
        let words: Vec<&str> = page.split(['/', '#']).filter(|word| !word.is_empty()).collect();
        let name = match words.as_slice() {
            ["github.com", _, repository, "issues" | "pull" | "discussions", number] => {
                format!("{repository}#{number}")
            }
            ["github.com", _, repository, ..] => (*repository).to_owned(),
            [host] => (*host).to_owned(),
            [host, .., last] => format!("{}: {last}", host.trim_start_matches("www.")),
            [] => bail!("`{source}` leads nowhere"),
        };
        return Ok(format!("[{name}]({source})"));
    }
    if pins::reports(source) == [source] {
        return Ok(format!("[{source}](field-reports.md)"));
    }
    if pins::names(source) == [source] {
        return Ok(format!("[{source}](contracts.md)"));
    }
    bail!("`{source}` is no page, no field report and no line of the contract")
}

/// The functions of a test file in which each rule's number stands as a text of its own, `"OC-28"`.
fn trials(text: &str) -> Trials {
    let mut trials = Trials::new();
    let mut function = "";
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        function = pins::function(line.trim()).unwrap_or(function);
        for word in line.split('"').skip(1).step_by(2) {
            if pins::rules(word) == [word] {
                trials.entry(word.to_owned()).or_default().insert(function.to_owned());
            }
        }
    }
    trials
}

fn untried(rules: &[Rule], trials: &Trials, path: &str) -> Vec<String> {
    rules
        .iter()
        .filter(|rule| !trials.contains_key(&rule.id))
        .map(|rule| format!("{} is tried by no test: add a body to {path} that breaks nothing else", rule.id))
        .collect()
}

fn write_section(out: &mut String, heading: &str, rules: &[Rule], trials: &Trials, path: &str) {
    out.push_str(&format!(
        "\n## {heading}\n\n{} rules. Each is tried in [{}](../{path}): a body that breaks it alone is refused under its number, \
         its neighbour is taken.\n\n| rule | what it says | read in | tried in |\n|---|---|---|---|\n",
        rules.len(),
        path.rsplit('/').next().unwrap_or(path),
    ));
    for Rule { id, says, sources } in rules {
        let sources: Vec<String> = sources.iter().filter_map(|source| link(source).ok()).collect();
        let tried: Vec<String> = trials.get(id).into_iter().flatten().map(|name| format!("`{name}`")).collect();
        out.push_str(&format!("| {id} | {says} | {} | {} |\n", sources.join(", "), tried.join(", ")));
    }
}

#[cfg(test)]
#[path = "conformance_tests.rs"]
mod tests;
