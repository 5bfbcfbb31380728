//! The transformation: one case a rule, and what holds for any schema.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn adapted(schema: Value) -> Value {
    let schema = RawJson::of(&schema).unwrap();
    let text = parameters("t", &schema).unwrap().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What becomes of one property.
fn property(schema: Value) -> Value {
    adapted(json!({"type": "object", "properties": {"p": schema}}))["properties"]["p"].clone()
}

// W3
#[test]
fn each_rule_does_what_it_says() {
    let cases = [
        (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
        (json!({"const": 5}), json!({"enum": [5]})),
        (json!({"const": true}), json!({"description": "(one of [true])"})),
        (json!({"enum": ["a", null], "type": "string"}), json!({"type": ["string", "null"], "enum": ["a"]})),
        (
            json!({"enum": ["", "a"], "type": "string"}),
            json!({"type": "string", "description": "(one of [\"\",\"a\"])"}),
        ),
        (json!({"type": ["string", "null"]}), json!({"type": ["string", "null"]})),
        (json!({"type": ["string"]}), json!({"type": "string"})),
        (
            json!({"type": ["object", "null"], "properties": {"a": {"type": "string"}}, "required": ["a"], "description": "d"}),
            json!({"description": "d", "anyOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"type": "null"}]}),
        ),
        (
            json!({"type": ["string", "integer"], "minimum": 1}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}),
        ),
        (json!({"type": "string", "format": "date-time"}), json!({"type": "string", "format": "date-time"})),
        (json!({"type": "string", "format": "uuid"}), json!({"type": "string", "description": "(format: \"uuid\")"})),
        (
            json!({"type": "string", "pattern": "^a", "minLength": 2, "description": "d"}),
            json!({"type": "string", "description": "d (minLength: 2) (pattern: \"^a\")"}),
        ),
        (json!({"type": "integer", "exclusiveMinimum": 0}), json!({"type": "integer", "minimum": 1})),
        (
            json!({"type": "number", "exclusiveMinimum": 0}),
            json!({"type": "number", "description": "(exclusiveMinimum: 0)"}),
        ),
        (json!({"oneOf": [{"const": "a"}]}), json!({"anyOf": [{"type": "string", "enum": ["a"]}]})),
        (
            json!({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}],
                "type": "object"}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
        ),
        (
            json!({"type": "object", "required": ["gone"], "additionalProperties": {"type": "string", "minLength": 1}}),
            json!({"type": "object", "additionalProperties": {"type": "string", "description": "(minLength: 1)"}}),
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"type": "array", "prefixItems": [{"type": "string"}]}),
        ),
        (json!({"type": "object"}), json!({"type": "object"})),
        (json!(true), json!({})),
        (json!({"$ref": "http://elsewhere"}), json!({})),
    ];
    for (given, wanted) in cases {
        assert_eq!(property(given.clone()), wanted, "{given}");
    }
}

#[test]
fn references_are_replaced_and_their_neighbours_stay() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A~1b", "description": "mine"}},
        "$defs": {"A/b": {"type": "string", "description": "theirs"}},
    });
    let wanted = json!({"type": "object", "properties": {"a": {"type": "string", "description": "mine"}}});
    assert_eq!(adapted(schema), wanted);
}

#[test]
fn a_schema_that_contains_itself_ends() {
    let schema = json!({"$ref": "#/$defs/Tree", "$defs": {"Tree": {
        "type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}}});
    let twice = adapted(schema);
    let end = &twice["properties"]["children"]["items"]["properties"]["children"]["items"];
    assert_eq!(*end, json!({"type": "object", "description": "(the same again)"}));
    let level = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
        (n.to_string(), json!({"type": "object", "properties": {"a": next, "b": next, "c": next, "d": next}}))
    };
    let levels: serde_json::Map<String, Value> = (0..9).map(level).collect();
    let growing = json!({"$ref": "#/$defs/0", "$defs": levels});
    let error = parameters("t", &RawJson::of(&growing).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidTool);
}

#[test]
fn the_order_of_members_is_kept() {
    let schema =
        RawJson::parse(r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}"#).unwrap();
    assert_eq!(parameters("t", &schema).unwrap().as_deref(), Some(schema.as_str()));
}

#[test]
fn tools_without_arguments_have_no_schema() {
    for schema in ["{}", r#"{"type":"object"}"#, r#"{"type":"object","properties":{},"additionalProperties":false}"#] {
        assert_eq!(parameters("t", &RawJson::parse(schema).unwrap()).unwrap(), None, "{schema}");
    }
    let open = r#"{"type":"object","additionalProperties":true}"#;
    assert_eq!(parameters("t", &RawJson::parse(open).unwrap()).unwrap().as_deref(), Some(open));
}

const KNOWN: [&str; 16] = [
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
    "",
];

/// Whether only known keywords stand in a schema, and every required member is there.
fn is_known(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return schema.is_boolean() };
    let all = |value: &Value| value.as_array().is_none_or(|list| list.iter().all(is_known));
    members.iter().all(|(name, value)| {
        KNOWN.contains(&name.as_str())
            && match name.as_str() {
                "properties" => value.as_object().is_some_and(|inner| inner.values().all(is_known)),
                "items" | "additionalProperties" => is_known(value),
                "anyOf" | "prefixItems" => all(value),
                "required" => value.as_array().is_some_and(|names| {
                    names.iter().all(|name| schema["properties"].get(name.as_str().unwrap_or_default()).is_some())
                }),
                _ => true,
            }
    })
}

/// Any schema-like value: the keywords that matter with values that may or may not fit them.
fn schema_like() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "enum",
        "const",
        "$ref",
        "properties",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "required",
        "format",
        "pattern",
        "additionalProperties",
        "prefixItems",
        "description",
        "$defs",
        "minimum",
        "exclusiveMinimum",
        "not",
        "nullable",
    ]);
    let leaf = prop_oneof![
        Just(json!("string")),
        Just(json!("object")),
        Just(json!(["object", "null", "array"])),
        Just(json!("#/$defs/properties")),
        Just(json!("#")),
        Just(json!(7)),
        Just(json!(null)),
        Just(json!(false)),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(words.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    // W3: whatever a schema holds, what is sent holds only what Gemini knows; or it is refused as the tool's fault.
    #[test]
    fn only_known_keywords_are_sent(schema in schema_like()) {
        match parameters("t", &RawJson::of(&schema).unwrap()) {
            Ok(Some(text)) => {
                let sent: Value = serde_json::from_str(&text).unwrap();
                prop_assert!(is_known(&sent), "{schema} became {sent}");
                // Once more changes nothing that is a rule.
                let again = parameters("t", &RawJson::parse(&text).unwrap()).unwrap();
                prop_assert_eq!(again, Some(text));
            }
            Ok(None) => {}
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::InvalidTool),
        }
    }
}
