//! The table of dialects and kinds of checks: which test or peer shows what. That each is there is checked; so is, where a test
//! goes through several dialects, that it knows the dialect.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::peers;

const DIALECTS: [&str; 5] = ["OpenAI chat", "strict compatible", "Anthropic", "Gemini", "OpenAI responses"];

/// What shows something of a dialect.
#[derive(Debug, Clone, Copy)]
enum Shown {
    /// A file of tests, the test in it, and a text that stands in the file if it goes through this dialect.
    Test(&'static str, &'static str, &'static str),
    /// A check of `cargo xtask peers`.
    Peer(&'static str),
}

use Shown::{Peer, Test};

const ANY_HISTORY: &str = "crates/cepa-testkit/tests/wire_properties/any_history.rs";
const SWITCH: &str = "crates/cepa-testkit/tests/wire_properties/provider_switch.rs";
const WINDOWS: &str = "crates/cepa-testkit/tests/wire_properties/windows.rs";
const CHAT_PROPERTIES: &str = "crates/cepa-providers/tests/openai_requests/main.rs";
const GOLDEN_CHAT: &str = "crates/cepa-providers/tests/golden_openai/main.rs";
const FUZZ: &str = "crates/cepa-providers/tests/fuzz/replies.rs";
const CASES: &str = "crates/cepa-testkit/tests/cases.rs";
const CASES_CHAT: &[Shown] = &[Test(CASES, "requests", ""), Test(CASES, "streams", "")];
const FUZZ_CHAT: &[Shown] = &[Test(FUZZ, "openai_chat_reply", ""), Test(FUZZ, "openai_chat_stream", "")];
/// The list of dialects that the tests beside it go through.
const REPORTS: &str = "crates/cepa-testkit/tests/field_reports/wires.rs";

/// A row: what is shown, and by what for each dialect, in the order of [`DIALECTS`].
const ROWS: &[(&str, [&[Shown]; 5])] = &[
    (
        "any history, whole or damaged, becomes a request that the judge takes",
        [
            &[
                Test(ANY_HISTORY, "what_leaves_is_legal", "Wire::openai("),
                Test(CHAT_PROPERTIES, "any_history_becomes_a_legal_request", ""),
            ],
            &[
                Test(ANY_HISTORY, "what_leaves_is_legal", "Wire::strict("),
                Test(ANY_HISTORY, "what_leaves_is_legal", "Wire::named(\"mistral\""),
            ],
            &[
                Test(ANY_HISTORY, "what_leaves_is_legal", "Wire::anthropic("),
                Test(
                    "crates/cepa-providers/tests/anthropic_properties.rs",
                    "any_history_is_legal_and_the_same_each_time",
                    "",
                ),
            ],
            &[Test(ANY_HISTORY, "what_leaves_is_legal", "Wire::gemini(")],
            &[
                Test(ANY_HISTORY, "what_leaves_is_legal", "Wire::responses("),
                Test(
                    "crates/cepa-providers/tests/responses_properties.rs",
                    "any_history_is_legal_and_the_same_each_time",
                    "",
                ),
            ],
        ],
    ),
    (
        "a later request begins with the bytes of an earlier one",
        [
            &[Test(ANY_HISTORY, "a_later_request_begins_with_the_bytes_of_an_earlier_one", "Wire::openai(")],
            &[Test(ANY_HISTORY, "a_later_request_begins_with_the_bytes_of_an_earlier_one", "Wire::named(\"mistral\"")],
            &[Test(ANY_HISTORY, "a_later_request_begins_with_the_bytes_of_an_earlier_one", "Wire::anthropic(")],
            &[Test(ANY_HISTORY, "a_later_request_begins_with_the_bytes_of_an_earlier_one", "Wire::gemini(")],
            &[Test(ANY_HISTORY, "a_later_request_begins_with_the_bytes_of_an_earlier_one", "Wire::responses(")],
        ],
    ),
    (
        "providers continue one conversation in turn, in the middle of a turn too",
        [
            &[Test(SWITCH, "whoever_goes_on_gets_a_request_that_it_takes", "Wire::openai(")],
            &[Test(SWITCH, "whoever_goes_on_gets_a_request_that_it_takes", "Wire::named(\"mistral\"")],
            &[Test(SWITCH, "whoever_goes_on_gets_a_request_that_it_takes", "Wire::anthropic(")],
            &[Test(SWITCH, "whoever_goes_on_gets_a_request_that_it_takes", "Wire::gemini(")],
            &[Test(SWITCH, "whoever_goes_on_gets_a_request_that_it_takes", "Wire::responses(")],
        ],
    ),
    (
        "any conversation through any window becomes a request that the judge takes",
        [
            &[Test(WINDOWS, "any_window_shows_what_every_wire_takes", "Wire::openai(")],
            &[Test(WINDOWS, "any_window_shows_what_every_wire_takes", "Wire::strict(")],
            &[Test(WINDOWS, "any_window_shows_what_every_wire_takes", "Wire::anthropic(")],
            &[Test(WINDOWS, "any_window_shows_what_every_wire_takes", "Wire::gemini(")],
            &[Test(WINDOWS, "any_window_shows_what_every_wire_takes", "Wire::responses(")],
        ],
    ),
    (
        "golden requests: exact bodies that a person can read",
        [
            &[Test(GOLDEN_CHAT, "requests_to_openai", "")],
            &[Test(GOLDEN_CHAT, "requests_to_others", "")],
            &[Test("crates/cepa-providers/tests/golden_anthropic.rs", "damaged_history", "validate_for(")],
            &[Test("crates/cepa-providers/tests/golden_gemini.rs", "damaged_history", "validate_for(")],
            &[Test(
                "crates/cepa-providers/tests/golden_responses.rs",
                "conversations_of_chat_completions",
                "openai_responses::validate(",
            )],
        ],
    ),
    (
        "the types of the vendor's own package take the golden requests and those of our binary",
        [
            &[Peer("requests-openai")],
            &[],
            &[Peer("requests-anthropic")],
            &[Peer("requests-gemini")],
            &[Peer("requests-responses")],
        ],
    ),
    (
        "the vendor's OpenAPI document takes them (with CEPA_OPENAI_SPEC)",
        [&[Peer("requests-openai")], &[], &[], &[], &[Peer("requests-responses")]],
    ),
    (
        "field reports: what went wrong elsewhere, over all dialects of the list",
        [
            &[Test(REPORTS, "ALL", "\"openai\"")],
            &[Test(REPORTS, "ALL", "\"mistral\"")],
            &[Test(REPORTS, "ALL", "\"anthropic\"")],
            &[Test(REPORTS, "ALL", "\"gemini\"")],
            &[Test(REPORTS, "ALL", "\"openai-responses\"")],
        ],
    ),
    (
        "our cases: requests, replies, streams and whole turns, written down as data",
        [
            CASES_CHAT,
            &[],
            CASES_CHAT,
            &[Test(CASES, "gemini_requests", ""), Test(CASES, "gemini_streams", "")],
            &[Test(CASES, "openai_responses_requests", ""), Test(CASES, "openai_responses_streams", "")],
        ],
    ),
    (
        "replies and streams, broken in every way",
        [
            FUZZ_CHAT,
            FUZZ_CHAT,
            &[Test(FUZZ, "anthropic_reply", ""), Test(FUZZ, "anthropic_stream", "")],
            &[Test(FUZZ, "gemini_reply", ""), Test(FUZZ, "gemini_stream", "")],
            &[Test(FUZZ, "openai_responses_reply", ""), Test(FUZZ, "openai_responses_stream", "")],
        ],
    ),
    (
        "a server that somebody else wrote",
        [
            &[Peer("aimock-openai")],
            &[Peer("llamacpp"), Peer("llamacpp-long")],
            &[Peer("aimock-anthropic"), Peer("llamacpp"), Peer("llamacpp-long")],
            &[Peer("aimock-gemini")],
            &[Peer("aimock-responses"), Peer("llamacpp"), Peer("llamacpp-long")],
        ],
    ),
    (
        "a server that breaks its answers, and judges how the client takes it",
        [
            &[Peer("verdict-openai")],
            &[],
            &[Peer("verdict-anthropic")],
            &[Peer("verdict-gemini")],
            &[Peer("verdict-responses")],
        ],
    ),
    (
        "a translator that somebody else wrote finds the same meaning in golden requests on each wire",
        [&[Peer("translate-litellm")]; 5],
    ),
];

/// The table; `problems` gets what it names and is not there.
pub(super) fn table(root: &Path, problems: &mut Vec<String>) -> Result<String> {
    let mut out = format!("| what is shown | {} |\n|{}\n", DIALECTS.join(" | "), "---|".repeat(DIALECTS.len() + 1));
    for (what, cells) in ROWS {
        out.push_str(&format!("| {what} |"));
        for (dialect, shown) in DIALECTS.iter().zip(cells) {
            let mut names: Vec<String> = Vec::new();
            for one in *shown {
                let name = cell(root, one, dialect, problems)?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let names = if names.is_empty() { "–".to_owned() } else { names.join(", ") };
            out.push_str(&format!(" {names} |"));
        }
        out.push('\n');
    }
    Ok(out)
}

fn cell(root: &Path, shown: &Shown, dialect: &str, problems: &mut Vec<String>) -> Result<String> {
    match *shown {
        Test(path, test, knows) => {
            let text = std::fs::read_to_string(root.join(path)).context(path)?;
            // A macro may write the test: its name is looked for, not its `fn`.
            let is_there = text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == test);
            if !is_there || !text.contains(knows) {
                let what =
                    format!("{path} has no `{test}` that knows `{knows}`, which is to show something of {dialect}");
                problems.push(format!("{what}: mend it, or the table in {}", file!()));
            }
            Ok(format!("[{test}](../{path})"))
        }
        Peer(name) => {
            if !peers::CHECKS.iter().any(|check| check.name == name) {
                let what = format!("no peer is called {name}, which is to show something of {dialect}");
                problems.push(format!("{what}: mend the table in {}", file!()));
            }
            Ok(format!("peer `{name}`"))
        }
    }
}
