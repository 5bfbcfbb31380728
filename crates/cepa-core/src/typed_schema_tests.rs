//! What a model is shown of a Rust type.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::schema_of;

fn shown<T: JsonSchema>() -> Value {
    schema_of::<T>().read().unwrap()
}

/// A place on a map.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Point {
    /// Degrees east.
    x: f64,
    y: Option<f32>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Shape {
    /// Round.
    Circle {
        radius: u8,
    },
    Square,
}

fn three() -> i64 {
    3
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Everything {
    /// The title: a member may have that name.
    title: String,
    point: Point,
    maybe_point: Option<Point>,
    points: Vec<Point>,
    unit: Unit,
    maybe_unit: Option<Unit>,
    shape: Shape,
    numbers: BTreeMap<String, u32>,
    anything: Value,
    when: Option<Value>,
    #[serde(default = "three")]
    days: i64,
    #[serde(default)]
    note: Option<String>,
}

#[test]
fn nested_types_are_inline_and_noise_is_gone() {
    let point = |description: Value| {
        let mut schema = json!({
            "type": "object",
            "properties": {"x": {"type": "number", "description": "Degrees east."}, "y": {"type": "number"}},
            "required": ["x"],
        });
        if !description.is_null() {
            schema["description"] = description;
        }
        schema
    };
    let place = point("A place on a map.".into());
    let wanted = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "The title: a member may have that name."},
            "point": place,
            "maybe_point": place,
            "points": {"type": "array", "items": place},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "maybe_unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "shape": {"oneOf": [
                {
                    "type": "object",
                    "description": "Round.",
                    "properties": {
                        "kind": {"type": "string", "const": "Circle"},
                        "radius": {"type": "integer", "minimum": 0, "maximum": 255},
                    },
                    "required": ["kind", "radius"],
                },
                {"type": "object", "properties": {"kind": {"type": "string", "const": "Square"}}, "required": ["kind"]},
            ]},
            "numbers": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
            "anything": {},
            "when": {},
            "days": {"type": "integer", "default": 3},
            "note": {"type": "string"},
        },
        "required": ["title", "point", "points", "unit", "shape", "numbers", "anything"],
    });
    assert_eq!(shown::<Everything>(), wanted);
}

#[test]
fn a_null_that_means_something_stays() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Required {
        #[schemars(required)]
        must_say: Option<String>,
        list: Vec<Option<u8>>,
    }
    let wanted = json!({
        "type": "object",
        "properties": {
            "must_say": {"type": "string"},
            "list": {"type": "array", "items": {"type": ["integer", "null"], "minimum": 0, "maximum": 255}},
        },
        "required": ["must_say", "list"],
    });
    assert_eq!(shown::<Required>(), wanted);
}

#[test]
fn a_type_that_contains_itself_refers_to_itself() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Tree {
        name: String,
        children: Vec<Tree>,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Forest {
        tree: Tree,
    }
    assert_eq!(shown::<Tree>()["properties"]["children"]["items"], json!({"$ref": "#"}));
    let forest = shown::<Forest>();
    let tree = &forest["$defs"]["Tree"];
    assert_eq!(tree["properties"]["children"]["items"], json!({"$ref": "#/$defs/Tree"}));
    assert_eq!(tree.get("title"), None);
    // The check follows it.
    let args = crate::Args::decode(r#"{"tree":{"name":"a","children":[{"name":5,"children":[]}]}}"#);
    let error = crate::schema::check(&schema_of::<Forest>().read().unwrap(), &args).unwrap_err();
    assert_eq!(error, "`tree.children[0].name` must be of type string, not number");
}

#[test]
fn it_always_says_object_unless_it_is_none() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Nothing {}
    assert_eq!(shown::<Nothing>(), json!({"type": "object", "properties": {}}));
    assert_eq!(shown::<Value>(), json!({"type": "object", "properties": {}}));
    assert_eq!(shown::<Shape>()["type"], "object");
    assert_eq!(shown::<BTreeMap<String, bool>>()["properties"], json!({}));
    assert_eq!(shown::<Unit>()["type"], "string");
    assert_eq!(shown::<Vec<u8>>()["type"], "array");
}

#[test]
fn the_text_is_the_same_each_time() {
    // W2: tools are part of what a provider caches.
    assert_eq!(schema_of::<Everything>().as_str(), schema_of::<Everything>().as_str());
    assert!(schema_of::<Everything>().as_str().starts_with(r#"{"type":"object","properties":{"anything""#));
}
