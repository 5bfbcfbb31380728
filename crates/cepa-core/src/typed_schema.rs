//! The JSON Schema of a Rust type, in the plain form that every provider takes.

use std::collections::BTreeSet;

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, ReplaceBoolSchemas, RestrictFormats, Transform},
};
use serde_json::{Map, Value};

use crate::RawJson;

/// The JSON Schema of a type: nested types inline (but for types that contain themselves), no titles, no `$schema`,
/// no formats of one programming language; a member that may be left out is not said to be null as well. It says
/// `"type": "object"` unless the type is read from something else.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// struct Weather {
///     /// The city's name.
///     city: String,
///     days: Option<u8>,
/// }
/// assert_eq!(
///     cepa_core::schema_of::<Weather>().as_str(),
///     concat!(
///         r#"{"type":"object","properties":{"city":{"description":"The city's name.","type":"string"},"#,
///         r#""days":{"type":"integer","maximum":255,"minimum":0}},"required":["city"]}"#,
///     )
/// );
/// ```
pub fn schema_of<T: JsonSchema + ?Sized>() -> RawJson {
    let mut schema = derive::<T>();
    RecursiveTransform(optional_without_null).transform(&mut schema);
    raw(&schema)
}

/// The schema with the null that optional members take.
pub(crate) fn schema_as_derived<T: JsonSchema + ?Sized>() -> RawJson {
    raw(&derive::<T>())
}

fn raw(schema: &Schema) -> RawJson {
    // A JSON value is always JSON.
    RawJson::of(schema).unwrap_or_else(|_| RawJson::empty_object())
}

fn derive<T: JsonSchema + ?Sized>() -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RestrictFormats::default().transform(&mut schema);
    let mut bools = ReplaceBoolSchemas::default();
    bools.skip_additional_properties = true;
    bools.transform(&mut schema);
    RecursiveTransform(|schema: &mut Schema| drop(schema.remove("title"))).transform(&mut schema);
    let root = schema.ensure_object();
    root.remove("$schema");
    if root.get("type").is_none_or(|kind| kind == "object") {
        root.insert("type".to_owned(), "object".into());
        root.entry("properties").or_insert_with(|| Map::new().into());
    }
    schema
}

/// Some providers refuse a null among the types, and models write it where leaving out is meant.
fn optional_without_null(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    let required: BTreeSet<String> = members
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let properties = members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, property) in properties.filter(|(name, _)| !required.contains(*name)) {
        if let Some(property) = property.as_object_mut() {
            without_null(property);
        }
    }
}

fn without_null(property: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(alternatives)) = property.get_mut("anyOf") {
        alternatives.retain(|one| one.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = alternatives.as_slice() {
            let only = only.clone();
            property.remove("anyOf");
            // What is said about the member goes before what is said about its type.
            for (name, value) in only {
                property.entry(name).or_insert(value);
            }
        }
    }
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
}

#[cfg(test)]
#[path = "typed_schema_tests.rs"]
mod tests;
