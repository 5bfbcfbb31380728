//! Reading the contract and judging what is pinned.

use std::collections::{BTreeMap, BTreeSet};

use super::{State, parse, unpinned};

const CONTRACT: &str = "# The onion\n\n| line | state | what holds |\n|---|---|---|\n| F1 | built | order |\n| F2 | later | one executor |\n";

#[test]
fn rows_are_read() {
    let lines = parse(CONTRACT).unwrap();
    let found: Vec<(&str, State)> = lines.iter().map(|line| (line.name.as_str(), line.state)).collect();
    assert_eq!(found, [("F1", State::Built), ("F2", State::Later)]);
}

#[test]
fn a_gap_an_unknown_state_and_a_missing_text_are_errors() {
    for (from, to) in [("F2", "F3"), ("F2", "F1"), ("later", "soon"), ("one executor", ""), ("order", "a | b")] {
        assert!(parse(&CONTRACT.replace(from, to)).is_err(), "{from} -> {to}");
    }
}

#[test]
fn a_built_line_needs_a_test_and_a_test_needs_a_line() {
    let lines = parse(CONTRACT).unwrap();
    let pinned = |name: &str| (name.to_owned(), BTreeSet::from(["a_tests.rs::t".to_owned()]));
    assert_eq!(unpinned(&lines, &BTreeMap::from([pinned("F1")])), Vec::<String>::new());
    assert_eq!(unpinned(&lines, &BTreeMap::new()), ["F1 is built, but no test's comment names it"]);
    let with_unknown = BTreeMap::from([pinned("F1"), pinned("F9")]);
    assert_eq!(unpinned(&lines, &with_unknown), ["a_tests.rs::t names F9, which is not a line of docs/contracts.md"]);
}
