//! Every case, through the driver, against what it expects: the acceptance cases in `tests/cases`, and our own of two wires in
//! `tests/cases_responses` and `tests/cases_gemini`. Nothing may be skipped.

#![allow(clippy::expect_used, clippy::panic, reason = "a test")]

mod matcher;

use std::{fs, path::Path};

use matcher::{driver::Driver, expect::Difference, json::Json, judge, written};

const KINDS: [&str; 5] = ["response", "stream", "request", "history", "scenario"];
/// The folders of cases that we wrote.
const OWN: [&str; 2] = ["cases_responses", "cases_gemini"];

/// The cases of one folder and kind, each with its file's name.
fn cases(folder: &str, kind: &str) -> Vec<(String, Json)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut cases: Vec<(String, Json)> = fs::read_dir(folder)
        .expect("the cases are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a case can be read");
            let case = Json::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let case = written::spelled_out(&case);
            (path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned()), case)
        })
        .filter(|(_, case)| case.get("kind").and_then(Json::text) == Some(kind))
        .collect();
    cases.sort_by(|(a, _), (b, _)| a.cmp(b));
    cases
}

fn run(folder: &str, kind: &str, at_least: usize) {
    let cases = cases(folder, kind);
    assert!(cases.len() >= at_least, "only {} cases of kind {kind} in {folder}", cases.len());
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
    let all = ["cases"].into_iter().chain(OWN).flat_map(|folder| KINDS.map(|kind| cases(folder, kind)));
    for (name, case) in all.flatten() {
        for nothing in
            ["null", "{}", "[]", r#"{"error":{"class":"cancelled","message":""}}"#, r#"{"bodies":["{}","{}"]}"#]
        {
            let nothing = Json::parse(nothing).expect("JSON");
            assert!(!judge(&case, &nothing).is_empty(), "{name} passes with {nothing}");
        }
    }
}

#[test]
fn a_list_of_events_is_written_out_as_its_provider_writes_it() {
    let sse = |case: &str| {
        let case = written::spelled_out(&Json::parse(case).expect("JSON"));
        case.get("input").and_then(|input| input.get("sse")).and_then(Json::text).map(str::to_owned)
    };
    assert_eq!(
        sse(r#"{"provider":"openai-responses","input":{"events":[{"type":"a","n":1.0},{"n":2},": x\n\n"]}}"#)
            .as_deref(),
        Some("event: a\ndata: {\"type\":\"a\",\"n\":1.0}\n\ndata: {\"n\":2}\n\n: x\n\n"),
    );
    assert_eq!(
        sse(r#"{"provider":"gemini","input":{"events":[{"type":"a"}]}}"#).as_deref(),
        Some("data: {\"type\":\"a\"}\r\n\r\n"),
    );
    assert_eq!(sse(r#"{"provider":"gemini","input":{"sse":"x"}}"#).as_deref(), Some("x"));
}

/// Each case of ours says what it is about, why that is right, and where that is told; its number is its own.
#[test]
fn our_cases_name_their_source() {
    for folder in OWN {
        let mut ids = std::collections::HashSet::new();
        for (name, case) in KINDS.into_iter().flat_map(|kind| cases(folder, kind)) {
            let word = |member: &str| case.get(member).and_then(Json::text).unwrap_or_default().to_owned();
            assert!(!word("title").is_empty() && !word("why").is_empty(), "{name} has no title or no reason");
            let sources = case.get("sources").map_or(&[][..], Json::items);
            let is_link = |source: &Json| source.text().is_some_and(|source| source.starts_with("https://"));
            assert!(!sources.is_empty() && sources.iter().all(is_link), "{name} has no source");
            let id = word("id");
            assert!(name.starts_with(&format!("{id}-")) && ids.insert(id), "{name} does not bear its number");
        }
    }
}

#[test]
fn responses() {
    run("cases", "response", 32);
}

#[test]
fn streams() {
    run("cases", "stream", 43);
}

#[test]
fn requests() {
    run("cases", "request", 33);
}

#[test]
fn histories() {
    run("cases", "history", 14);
}

#[test]
fn scenarios() {
    run("cases", "scenario", 52);
}

#[test]
fn openai_responses_replies() {
    run("cases_responses", "response", 30);
}

#[test]
fn openai_responses_streams() {
    run("cases_responses", "stream", 27);
}

#[test]
fn openai_responses_requests() {
    run("cases_responses", "request", 20);
}

#[test]
fn openai_responses_scenarios() {
    run("cases_responses", "scenario", 9);
}

#[test]
fn gemini_replies() {
    run("cases_gemini", "response", 44);
}

#[test]
fn gemini_streams() {
    run("cases_gemini", "stream", 21);
}

#[test]
fn gemini_requests() {
    run("cases_gemini", "request", 22);
}

#[test]
fn gemini_scenarios() {
    run("cases_gemini", "scenario", 10);
}
