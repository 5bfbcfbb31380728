//! Which schemas are strict, and what narrowing makes of the others.

use super::*;

/// A closed object with one property.
fn closed(property: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"p":{property}}},"required":["p"],"additionalProperties":false}}"#)
}

fn open(property: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"p":{property}}}}}"#)
}

#[test]
fn schemas_that_keep_the_rules() {
    for property in [
        r#"{"type":"string","description":"d","pattern":"^a+$","format":"date-time"}"#,
        r#"{"type":["integer","null"],"minimum":1,"maximum":5,"multipleOf":2}"#,
        r#"{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1}"#,
        r##"{"anyOf":[{"$ref":"#/$defs/x"},{"type":"null"}]}"##,
        r##"{"$ref":"#"}"##,
        &closed(r#"{"type":"boolean"}"#),
    ] {
        assert!(keeps_the_rules(&closed(property)), "{property}");
        assert_eq!(narrowed(&closed(property)), Some(closed(property)), "narrowing what is strict changes nothing");
    }
    let none = r#"{"type":"object","properties":{},"additionalProperties":false}"#;
    assert!(keeps_the_rules(none));
}

#[test]
fn schemas_that_break_a_rule() {
    for property in [
        "{}",
        "true",
        r#"{"type":"text"}"#,
        r#"{"type":"string","minLength":1}"#,
        r#"{"type":"string","default":"a"}"#,
        r#"{"type":"string","format":"uri"}"#,
        r#"{"type":"string","pattern":"(?=a)"}"#,
        r#"{"type":"array"}"#,
        r#"{"type":"object"}"#,
        r#"{"oneOf":[{"type":"string"}]}"#,
        r#"{"allOf":[{"type":"string"}]}"#,
        r##"{"$ref":"#/$defs/x","description":"d"}"##,
        r#"{"$ref":"https://example.com/x"}"#,
        &open(r#"{"type":"string"}"#),
    ] {
        assert!(!keeps_the_rules(&closed(property)), "{property}");
    }
    for schema in [
        "[]",
        r#"{"type":"string"}"#,
        r#"{"type":"object","anyOf":[],"properties":{},"additionalProperties":false}"#,
        r#"{"type":"object","properties":{"p":{"type":"string"}},"additionalProperties":false}"#,
        r#"{"type":"object","properties":{},"required":["p"],"additionalProperties":false}"#,
    ] {
        assert!(!keeps_the_rules(schema), "{schema}");
    }
}

#[test]
fn what_is_too_large_is_not_strict() {
    let deep = (0..11).fold(r#"{"type":"string"}"#.to_owned(), |inner, _| closed(&inner));
    assert!(!keeps_the_rules(&deep));
    let values = (0..1001).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    assert!(!keeps_the_rules(&closed(&format!(r#"{{"type":"integer","enum":[{values}]}}"#))));
}

#[test]
fn narrowing_closes_requires_and_drops_what_rules_nothing() {
    let schema = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Args","type":"object",
        "properties":{
            "z":{"type":"string","default":"x"},
            "a":{"type":["integer","null"],"format":"uint8","minimum":0},
            "inner":{"anyOf":[{"$ref":"#/$defs/Inner"},{"type":"null"}]}
        },
        "required":["z"],
        "$defs":{"Inner":{"type":"object","properties":{"n":{"type":"number","format":"double"}},"required":["n"]}}}"##;
    let wanted = concat!(
        r#"{"title":"Args","type":"object","properties":{"z":{"type":"string"},"#,
        r##""a":{"type":["integer","null"],"minimum":0},"inner":{"anyOf":[{"$ref":"#/$defs/Inner"},{"type":"null"}]}},"##,
        r#""$defs":{"Inner":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],"#,
        r#""additionalProperties":false}},"required":["z","a","inner"],"additionalProperties":false}"#,
    );
    assert_eq!(narrowed(schema).as_deref(), Some(wanted));
    let none = r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;
    assert_eq!(narrowed(r#"{"type":"object"}"#).as_deref(), Some(none));
}

#[test]
fn what_would_lose_or_gain_values_is_not_narrowed() {
    for schema in [
        open(r#"{"type":"string"}"#),
        open(r#"{"type":["string","null"],"enum":["a"]}"#),
        closed(r#"{"type":"object","additionalProperties":{"type":"string"}}"#),
        closed(r#"{"type":"string","minLength":1}"#),
        closed(r##"{"$ref":"#/$defs/x","minLength":1}"##),
        r#"{"type":"object","additionalProperties":true}"#.to_owned(),
    ] {
        assert_eq!(narrowed(&schema), None, "{schema}");
    }
}
