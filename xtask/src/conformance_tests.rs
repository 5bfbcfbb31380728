//! Reading the rules of judges and judging what is tried.

use std::collections::BTreeMap;

use super::{Rule, link, parse, trials, untried, write_section};

const RULES: &str = "rules! {
    SHAPE = \"OC-01\", \"oa.shape\",
        \"It has a shape.\",
        \"https://example.com/docs/shape FR-001\";
    PAIRING = \"OC-03\", \"oa.pairing\", \"Results answer calls.\", \"M6\";
    FIRST = \"SC-01\", \"oa.first\", \"First.\", \"https://github.com/a/b/issues/1\";
}
";

#[test]
fn rules_are_read_with_gaps_and_in_sections() {
    let rules = parse(RULES).unwrap();
    let shape = Rule {
        id: "OC-01".to_owned(),
        says: "It has a shape.".to_owned(),
        sources: vec!["https://example.com/docs/shape".to_owned(), "FR-001".to_owned()],
    };
    assert_eq!(rules.first(), Some(&shape));
    assert_eq!(rules.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["OC-01", "OC-03", "SC-01"]);
}

#[test]
fn what_is_no_rule_is_an_error() {
    for (from, to) in [
        ("OC-03", "OC-01"),
        ("OC-03", "OC-00"),
        ("OC-03", "oc-03"),
        ("\"M6\"", "\"\""),
        ("\"M6\"", "\"a friend\""),
        ("\"M6\"", "\"https://\""),
        ("Results answer calls.", ""),
        ("Results answer calls.", "a | b"),
        ("\"oa.pairing\", ", ""),
        ("rules! {", "{"),
    ] {
        assert!(parse(&RULES.replace(from, to)).is_err(), "{from} -> {to}");
    }
}

#[test]
fn sources_have_short_names() {
    for (source, expected) in [
        ("https://github.com/a/b/issues/1", "[b#1](https://github.com/a/b/issues/1)"),
        ("https://github.com/a/b", "[b](https://github.com/a/b)"),
        ("https://example.com/x/y#z", "[example.com: z](https://example.com/x/y#z)"),
        ("FR-012", "[FR-012](field-reports.md)"),
        ("M6", "[M6](contracts.md)"),
    ] {
        assert_eq!(link(source).unwrap(), expected);
    }
}

#[test]
fn a_rule_needs_a_trial() {
    let tests = "fn settings(trials: &mut Trials) {
    trials.refuse(\"OC-01\", |b| b[\"model\"] = json!(\"\"));
    // trials.refuse(\"OC-03\", |b| {});
}

#[test]
fn every_rule() {
    trials.beside(\"SC-01\", |b| {}, |b| {});
}
";
    let rules = parse(RULES).unwrap();
    let trials = trials(tests);
    let found: BTreeMap<&str, Vec<&str>> =
        trials.iter().map(|(id, names)| (id.as_str(), names.iter().map(String::as_str).collect())).collect();
    assert_eq!(found, BTreeMap::from([("OC-01", vec!["settings"]), ("SC-01", vec!["every_rule"])]));
    assert_eq!(
        untried(&rules, &trials, "a_tests.rs"),
        ["OC-03 is tried by no test: add a body to a_tests.rs that breaks nothing else"]
    );
    let mut out = String::new();
    write_section(&mut out, "Chat", &rules, &trials, "x/a_tests.rs");
    let row = "| OC-01 | It has a shape. | [example.com: shape](https://example.com/docs/shape), [FR-001](field-reports.md) | `settings` |";
    assert!(out.contains(row), "{out}");
}
