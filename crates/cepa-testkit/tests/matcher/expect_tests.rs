//! The comparison is as strict as the protocol says, and not stricter.

use super::{checks, expect::matches, json::Json};

fn differs(expected: &str, observed: &str) -> bool {
    let (expected, observed) = (Json::parse(expected).expect("JSON"), Json::parse(observed).expect("JSON"));
    !matches(&expected, Some(&observed), "").is_empty()
}

#[test]
fn objects_are_subsets_except_arguments() {
    assert!(!differs(r#"{"a":1}"#, r#"{"b":2,"a":1}"#));
    assert!(differs(r#"{"a":1,"b":null}"#, r#"{"a":1}"#));
    assert!(differs(r#"{"args":{"a":1}}"#, r#"{"args":{"a":1,"b":2}}"#));
    assert!(!differs(r#"{"args":{"a":{"x":1}}}"#, r#"{"args":{"a":{"x":1}}}"#));
    assert!(differs(r#"{"input":{"a":{"x":1}}}"#, r#"{"input":{"a":{"x":1,"y":2}}}"#));
    // The input of a request of Responses is a list of items.
    assert!(!differs(r#"{"input":[{"x":1}]}"#, r#"{"input":[{"x":1,"y":2}]}"#));
    assert!(!differs(r#"{"input":{"1":{"x":1}}}"#, r#"{"input":[{},{"x":1,"y":2}]}"#));
    assert!(differs(r#"{"input":[{"args":{}}]}"#, r#"{"input":[{"args":{"y":2}}]}"#));
}

#[test]
fn lists_have_equal_length_unless_elements_are_picked() {
    assert!(!differs("[1,2]", "[1,2]"));
    assert!(differs("[1]", "[1,2]"));
    assert!(differs("[1,2]", "[1]"));
    assert!(!differs(r#"{"1":{"a":2}}"#, r#"[{"a":1},{"a":2}]"#));
    assert!(differs(r#"{"2":{"a":2}}"#, r#"[{"a":1},{"a":2}]"#));
}

#[test]
fn numbers_are_compared_by_kind_and_digit() {
    assert!(differs("1", "1.0"));
    assert!(differs("1", "true"));
    assert!(differs("12345678901234567891", "12345678901234567892"));
    assert!(differs("2512292042121000001", "2512292042121000000"));
    assert!(!differs("0.10", "0.1"));
}

#[test]
fn each_wild_card_fits_what_it_says() {
    for (expected, fits, misfit) in [
        (r#"{"$any":"nonempty-string"}"#, r#""x""#, r#"" ""#),
        (r#"{"$any":"integer"}"#, "3", "3.5"),
        (r#"{"$any":"object"}"#, "{}", "[]"),
        (r#"{"$re":"^a.b$"}"#, r#""a\nb""#, r#""ab""#),
        (r#"{"$contains":"ell"}"#, r#""hello""#, r#""help""#),
        (r#"{"$max_chars":2}"#, r#""é晴""#, r#""abc""#),
        (r#"{"$max":5}"#, "5", "6"),
        (r#"{"$absent":true}"#, "null", "0"),
        (r#"{"$empty":true}"#, "[]", "false"),
        (r#"{"$json":{"a":1}}"#, r#""{ \"a\" : 1 }""#, r#""{\"a\":1.0}""#),
        (r#"{"$one_of":[1,{"a":2}]}"#, r#"{"a":2,"b":3}"#, "2"),
        (r#"{"$re":"^a","$max_chars":2}"#, r#""ab""#, r#""abc""#),
    ] {
        assert!(!differs(expected, fits), "{expected} does not take {fits}");
        assert!(differs(expected, misfit), "{expected} takes {misfit}");
    }
}

#[test]
fn a_member_may_be_missing_only_where_that_is_said() {
    assert!(!differs(r#"{"a":{"$absent":true}}"#, "{}"));
    assert!(!differs(r#"{"a":{"$one_of":["x",null]}}"#, "{}"));
    assert!(differs(r#"{"a":{"$one_of":["x","y"]}}"#, "{}"));
    assert!(differs(r#"{"a":{"$any":"anything"}}"#, "{}"));
}

#[test]
fn labels_tie_places_together() {
    let pair = r#"[{"$same":"p"},{"$same":"p"},{"$diff":"d"},{"$diff":"d"}]"#;
    assert!(!differs(pair, "[1,1,2,3]"));
    assert!(differs(pair, "[1,2,2,3]"));
    assert!(differs(pair, "[1,1,2,2]"));
}

#[test]
fn deltas_are_compared_joined() {
    assert!(!differs(r#"{"deltas":["ab","c"]}"#, r#"{"deltas":["a","bc"]}"#));
    assert!(differs(r#"{"deltas":["ab"]}"#, r#"{"deltas":["ab",""]}"#));
    assert!(differs(r#"{"deltas":["ab"]}"#, r#"{"deltas":["b","a"]}"#));
}

#[test]
fn checks_look_at_the_text() {
    let view = Json::parse(r#"{"body":{"messages":["one","two","one"],"same":[1,1]}}"#).expect("JSON");
    for (check, holds) in [
        (r#"[{"at":"body","never":"three"}]"#, true),
        (r#"[{"at":"body","never":"two"}]"#, false),
        (r#"[{"at":"body.messages","once":"two"}]"#, true),
        (r#"[{"at":"body.messages","once":"one"}]"#, false),
        (r#"[{"at":"body.messages.1","contains":"two"}]"#, true),
        (r#"[{"at":["body.nowhere","body.messages"],"contains":"two"}]"#, true),
        (r#"[{"at":"body.nowhere","never":"two"}]"#, false),
        (r#"[{"at":"body.messages","in_order":["one","two","one"]}]"#, true),
        (r#"[{"at":"body.messages","in_order":["two","two"]}]"#, false),
        (r#"[{"at":"body.messages","re":"(?<!\\w)two"}]"#, true),
        (r#"[{"at":"body.same","all_equal":true}]"#, true),
        (r#"[{"at":"body.messages","all_equal":true}]"#, false),
        (r#"[{"at":"body","unknown":true}]"#, false),
    ] {
        let found = checks::judge(&Json::parse(check).expect("JSON"), &view);
        assert_eq!(found.is_empty(), holds, "{check}: {found:?}");
    }
}
