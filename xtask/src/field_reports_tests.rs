//! Reading the reports and judging how they are dealt with.

use std::collections::{BTreeMap, BTreeSet};

use super::{Line, State, parse, summary, table, unpinned};

const REPORTS: &str = "# Field reports\n\n| id | state | what goes wrong | what is right | told in |\n|---|---|---|---|---|\n\
    | FR-001 | pinned | a pair is cut | cut between groups | [a/b#1](https://example.org) |\n\
    | FR-002 | by H4, D3 | it runs twice | it runs once | a/b#2 |\n\
    | FR-003 | later: no server yet | a header is missing | it is sent | a/b#3 |\n\
    | FR-004 | not ours: a user interface | a button lies | it does not | a/b#4 |\n";

fn states() -> Vec<State> {
    let contract = ["H4", "D3"].map(str::to_owned).to_vec();
    vec![
        State::Pinned,
        State::By(contract),
        State::Later("no server yet".to_owned()),
        State::NotOurs("a user interface".to_owned()),
    ]
}

#[test]
fn rows_are_read() {
    let ids = ["FR-001", "FR-002", "FR-003", "FR-004"].map(str::to_owned);
    let expected: Vec<Line> = ids.into_iter().zip(states()).map(|(id, state)| Line { id, state }).collect();
    assert_eq!(parse(REPORTS).unwrap(), expected);
}

#[test]
fn a_gap_an_unknown_state_a_missing_reason_and_a_missing_text_are_errors() {
    for (from, to) in [
        ("FR-002", "FR-001"),
        ("FR-004", "FR-005"),
        ("| pinned", "| soon"),
        ("| pinned", "| later"),
        ("no server yet", ""),
        ("a user interface", " "),
        ("by H4, D3", "by "),
        ("by H4, D3", "by whom"),
        ("it runs once", ""),
        ("a button", "a | button"),
        (" a/b#4 ", " "),
    ] {
        assert!(parse(&REPORTS.replace(from, to)).is_err(), "{from} -> {to}");
    }
}

#[test]
fn a_report_is_pinned_or_marked_and_a_test_names_a_report() {
    let lines = parse(REPORTS).unwrap();
    let pinned = |id: &str| (id.to_owned(), BTreeSet::from(["a_tests.rs::t".to_owned()]));
    let built = BTreeSet::from(["D3", "H4"].map(str::to_owned));
    assert_eq!(unpinned(&lines, &BTreeMap::from([pinned("FR-001"), pinned("FR-003")]), &built), Vec::<String>::new());
    let nothing = unpinned(&lines, &BTreeMap::from([pinned("FR-009")]), &BTreeSet::from(["H4".to_owned()]));
    let expected = [
        "FR-001 is called pinned, but no test's comment names it",
        "FR-002 relies on D3, which is not built",
        "a_tests.rs::t names FR-009, which is not a line of docs/field-reports.md",
    ];
    assert_eq!(nothing, expected);
}

#[test]
fn the_table_lists_tests_by_file_and_says_why_there_are_none() {
    let lines = parse(REPORTS).unwrap();
    let tests = BTreeSet::from(["a.rs::one", "a.rs::two", "b.rs::three"].map(str::to_owned));
    let text = table(&lines, &BTreeMap::from([("FR-001".to_owned(), tests)]));
    let expected = "\n**FR-001** (pinned)\n* `a.rs`: one, two\n* `b.rs`: three\n\
        \n**FR-002** (by H4, D3, see [contract-tests.md](contract-tests.md))\n\
        \n**FR-003** (later: no server yet)\n\n**FR-004** (not ours: a user interface)\n";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!(summary(&lines), "4 field reports: 1 by lines of the contract, 1 later, 1 not ours, 1 pinned by tests");
}
