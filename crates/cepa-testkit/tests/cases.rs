//! Every acceptance case in `tests/cases`, through the driver, against what it expects. Nothing may be skipped.

#![allow(clippy::expect_used, clippy::panic, reason = "a test")]

mod matcher;

use std::{fs, path::Path};

use matcher::{driver::Driver, expect::Difference, json::Json, judge};

/// The cases of one kind, each with its file's name.
fn cases(kind: &str) -> Vec<(String, Json)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<(String, Json)> = fs::read_dir(folder)
        .expect("the cases are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a case can be read");
            let case = Json::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned()), case)
        })
        .filter(|(_, case)| case.get("kind").and_then(Json::text) == Some(kind))
        .collect();
    cases.sort_by(|(a, _), (b, _)| a.cmp(b));
    cases
}

fn run(kind: &str, at_least: usize) {
    let cases = cases(kind);
    assert!(cases.len() >= at_least, "only {} cases of kind {kind}", cases.len());
    let mut driver = Driver::start(env!("CARGO_BIN_EXE_case-driver")).expect("the driver starts");
    let mut failures = Vec::new();
    for (name, case) in &cases {
        match driver.ask(case) {
            Ok(observed) => {
                let differences = judge(case, &observed);
                if !differences.is_empty() {
                    let lines: Vec<String> = differences.iter().map(Difference::to_string).collect();
                    failures.push(format!("{name}\n  {}", lines.join("\n  ")));
                }
            }
            Err(problem) => {
                failures.push(format!("{name}\n  {problem}"));
                // A driver that died is started anew for the next case.
                driver.kill();
                driver = Driver::start(env!("CARGO_BIN_EXE_case-driver")).expect("the driver starts");
            }
        }
    }
    driver.end().expect("the driver ends quietly");
    assert!(failures.is_empty(), "{} of {} cases fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// The comparison itself: what is not what a case expects is never taken for it.
#[test]
fn an_observation_of_nothing_passes_no_case() {
    for kind in ["response", "stream", "request", "history", "scenario"] {
        for (name, case) in cases(kind) {
            for nothing in
                ["null", "{}", "[]", r#"{"error":{"class":"cancelled","message":""}}"#, r#"{"bodies":["{}","{}"]}"#]
            {
                let nothing = Json::parse(nothing).expect("JSON");
                assert!(!judge(&case, &nothing).is_empty(), "{name} passes with {nothing}");
            }
        }
    }
}

#[test]
fn responses() {
    run("response", 32);
}

#[test]
fn streams() {
    run("stream", 43);
}

#[test]
fn requests() {
    run("request", 33);
}

#[test]
fn histories() {
    run("history", 14);
}

#[test]
fn scenarios() {
    run("scenario", 52);
}
