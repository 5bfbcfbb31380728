//! The check of arguments: what each keyword refuses, in which words, and that nothing else is refused.

use serde_json::json;

use super::check;
use crate::{Args, Tool, ToolOutput, ToolSpec};

fn verdict(schema: &serde_json::Value, args: &str) -> Result<(), String> {
    check(schema, &Args::decode(args))
}

/// L9: an argument that breaks the schema is told to the model, with its place.
#[test]
fn what_is_refused_and_how_it_is_said() {
    let fits = "";
    let point = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]});
    let of = |property: serde_json::Value| json!({"type": "object", "properties": {"a": property}});
    let table: Vec<(serde_json::Value, &str, &str)> = vec![
        // required
        (json!({"required": ["a", "b"]}), r#"{"a":1}"#, "`b` is required"),
        (json!({"required": ["a"]}), r#"{"a":null}"#, fits),
        (of(point.clone()), r#"{"a":{}}"#, "`a.x` is required"),
        // type
        (of(json!({"type": "string"})), r#"{"a":5}"#, "`a` must be of type string, not number"),
        (of(json!({"type": "string"})), r#"{"a":null}"#, "`a` must be of type string, not null"),
        (of(json!({"type": ["string", "null"]})), r#"{"a":null}"#, fits),
        (of(json!({"type": ["string", "null"]})), r#"{"a":[]}"#, "`a` must be of type string or null, not array"),
        (of(json!({"type": "integer"})), r#"{"a":1.5}"#, "`a` must be of type integer, not number"),
        (of(json!({"type": "integer"})), r#"{"a":1.0}"#, fits),
        (of(json!({"type": "integer"})), r#"{"a":123456789012345678901234567890}"#, fits),
        (of(json!({"type": "integer"})), r#"{"a":"1"}"#, "`a` must be of type integer, not string"),
        (of(json!({"type": "number"})), r#"{"a":1}"#, fits),
        (of(json!({"type": "boolean"})), r#"{"a":"true"}"#, "`a` must be of type boolean, not string"),
        (of(json!({"type": "array"})), r#"{"a":{}}"#, "`a` must be of type array, not object"),
        (of(json!({"type": "object"})), r#"{"a":true}"#, "`a` must be of type object, not boolean"),
        (of(json!({"type": "timestamp"})), r#"{"a":1}"#, fits),
        (of(json!({"type": 7})), r#"{"a":1}"#, fits),
        // places
        (
            of(json!({"items": point.clone()})),
            r#"{"a":[{"x":1},{"x":"1"}]}"#,
            "`a[1].x` must be of type integer, not string",
        ),
        // enum and const
        (of(json!({"enum": ["c", "f", 1]})), r#"{"a":"k"}"#, "`a` must be one of \"c\", \"f\", 1"),
        (of(json!({"enum": ["c", "f", 1]})), r#"{"a":1}"#, fits),
        (of(json!({"const": "c"})), r#"{"a":"k"}"#, "`a` must be \"c\""),
        // limits
        (of(json!({"minimum": 1})), r#"{"a":0}"#, "`a` must be at least 1"),
        (of(json!({"maximum": 9})), r#"{"a":9.5}"#, "`a` must be at most 9"),
        (of(json!({"exclusiveMinimum": 1})), r#"{"a":1}"#, "`a` must be more than 1"),
        (of(json!({"exclusiveMaximum": 9})), r#"{"a":9}"#, "`a` must be less than 9"),
        (of(json!({"minimum": 1, "maximum": 9})), r#"{"a":5}"#, fits),
        (of(json!({"minLength": 2})), r#"{"a":"北"}"#, "`a` is too short: 1 of at least 2"),
        (of(json!({"maxLength": 2})), r#"{"a":"北京"}"#, fits),
        (of(json!({"maxLength": 2})), r#"{"a":"abc"}"#, "`a` is too long: 3 of at most 2"),
        (of(json!({"minItems": 1})), r#"{"a":[]}"#, "`a` is too short: 0 of at least 1"),
        (of(json!({"maxItems": 1})), r#"{"a":[1,2]}"#, "`a` is too long: 2 of at most 1"),
        (json!({"minProperties": 1}), "{}", "the object is too short: 0 of at least 1"),
        (of(json!({"maxProperties": 0})), r#"{"a":{"b":1}}"#, "`a` is too long: 1 of at most 0"),
        // unknown members
        (json!({"properties": {"a": {}}}), r#"{"b":1}"#, fits),
        (
            json!({"properties": {"a": {}, "c": {}}, "additionalProperties": false}),
            r#"{"b":1}"#,
            "`b` is not known; known are: a, c",
        ),
        (json!({"additionalProperties": {"type": "string"}}), r#"{"b":1}"#, "`b` must be of type string, not number"),
        (json!({"additionalProperties": false, "patternProperties": {"^b": {}}}), r#"{"b":1}"#, fits),
        (json!({"properties": {"a": false}}), r#"{"a":1}"#, "`a` must not be given"),
        (json!({"properties": {"a": true}}), r#"{"a":1}"#, fits),
        // alternatives
        (of(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})), r#"{"a":null}"#, fits),
        (
            of(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
            r#"{"a":1}"#,
            "`a` must be of type string, not number",
        ),
        (of(json!({"oneOf": [{"const": 1}, {"const": 2}]})), r#"{"a":2}"#, fits),
        (of(json!({"oneOf": [{"const": 1}, {"const": 2}]})), r#"{"a":3}"#, "`a` must be 1"),
        (of(json!({"allOf": [{"minimum": 1}, {"maximum": 2}]})), r#"{"a":3}"#, "`a` must be at most 2"),
        // references
        (
            json!({"properties": {"a": {"$ref": "#/$defs/point"}}, "$defs": {"point": point}}),
            r#"{"a":{"x":"1"}}"#,
            "`a.x` must be of type integer, not string",
        ),
        (json!({"properties": {"a": {"$ref": "#/$defs/gone"}}}), r#"{"a":1}"#, fits),
        (json!({"properties": {"a": {"$ref": "https://example.com/x.json"}}}), r#"{"a":1}"#, fits),
        (
            json!({"properties": {"next": {"$ref": "#"}, "a": {"type": "string"}}}),
            r#"{"next":{"next":{"a":1}}}"#,
            "`next.next.a` must be of type string, not number",
        ),
        // keywords that are not checked
        (of(json!({"pattern": "^x", "format": "date", "multipleOf": 7, "not": {}})), r#"{"a":"y"}"#, fits),
        (json!({}), r#"{"anything":[1]}"#, fits),
    ];
    for (schema, args, wanted) in table {
        let wanted = if wanted.is_empty() { Ok(()) } else { Err(wanted.to_owned()) };
        assert_eq!(verdict(&schema, args), wanted, "{schema} {args}");
    }
}

#[test]
fn without_a_schema_nothing_is_refused_and_without_an_object_everything() {
    let spec = ToolSpec::new("t", "", None).unwrap();
    let tool = Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) });
    let args = Args::decode(r#"{"a":1}"#);
    assert_eq!(tool.prepare(&args), Ok(args));
    assert!(verdict(&json!({}), "[1]").unwrap_err().contains("not a JSON object"));
}

#[test]
fn schemas_that_go_in_circles_come_to_an_end() {
    assert_eq!(verdict(&json!({"$ref": "#"}), "{}"), Ok(()));
    // Each level has two ways to the next: without a limit 2 to the power of 64.
    let circle = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    assert_eq!(verdict(&circle, "{}"), Ok(()));
}
