//! The rules of OpenAI's strict mode, in which a model can only write arguments that fit the schema, and how a schema is
//! brought under them: <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>.
//!
//! The rules: an object at the top; each object says `additionalProperties: false` and requires all of its properties; only
//! the keywords listed in [`KEYWORDS`]; nothing beside a `$ref`; at most 10 levels, 5,000 properties, 1,000 values in enums.
//! A schema that breaks one is refused with its whole request, so doubtful ones are not sent as strict.
//!
//! [`narrowed`] only takes values away: what fits the narrowed schema fits the original, so arguments need no way back.
//! * Objects with known properties are closed.
//! * Optional properties that may be null become required (`Option<T>` of Rust); others cannot be kept, because the model
//!   would have to write a value that the original refuses.
//! * Members that rule nothing are left out: `$schema`, `$id`, `$comment`, `default`, `examples`, other formats, …
//!
//! What cannot be narrowed (a map with free names, `oneOf`, `allOf`, …) stays as it is and is not strict.

use std::collections::HashSet;

use cepa_core::RawJson;
use serde_json::{Value, json};

use super::Members;

/// The keywords that strict mode knows.
pub const KEYWORDS: &[&str] = &[
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "definitions",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
];
const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];
/// Members that rule nothing.
const SILENT: &[&str] =
    &["$schema", "$id", "$comment", "default", "example", "examples", "deprecated", "readOnly", "writeOnly"];

const MAX_LEVELS: usize = 10;
const MAX_PROPERTIES: usize = 5_000;
const MAX_VALUES: usize = 1_000;
/// Of names and values together; the limits are 120,000, and 15,000 for one long enum.
const MAX_CHARS: usize = 15_000;

/// Whether a schema (JSON) keeps all rules as it is.
///
/// ```
/// use cepa_providers::wire::schema::openai_strict::keeps_the_rules;
/// let city = r#""type":"object","properties":{"city":{"type":"string"}}"#;
/// assert!(keeps_the_rules(&format!(r#"{{{city},"required":["city"],"additionalProperties":false}}"#)));
/// assert!(!keeps_the_rules(&format!(r#"{{{city},"required":["city"]}}"#)));
/// ```
pub fn keeps_the_rules(schema: &str) -> bool {
    let Ok(schema) = RawJson::parse(schema) else { return false };
    let mut check = Check::default();
    let is_object = Members::of(&schema)
        .is_some_and(|members| members.text("type").as_deref() == Some("object") && members.get("anyOf").is_none());
    is_object && check.schema(&schema, 0).is_some() && check.is_small()
}

/// The schema (JSON) narrowed to the rules; `None` if it cannot be.
///
/// ```
/// use cepa_providers::wire::schema::openai_strict::narrowed;
/// let schema = r#"{"type":"object","properties":{"days":{"type":["integer","null"],"format":"uint8"}}}"#;
/// assert_eq!(narrowed(schema).as_deref(), Some(concat!(
///     r#"{"type":"object","properties":{"days":{"type":["integer","null"]}},"#,
///     r#""required":["days"],"additionalProperties":false}"#,
/// )));
/// // A caller that leaves `days` out is right, one that writes null is not.
/// assert_eq!(narrowed(r#"{"type":"object","properties":{"days":{"type":"integer"}}}"#), None);
/// ```
pub fn narrowed(schema: &str) -> Option<String> {
    let schema = RawJson::parse(schema).ok()?;
    let narrowed = narrow(&schema, 0)?;
    keeps_the_rules(&narrowed).then_some(narrowed)
}

/// Counts what is limited, while the rules are checked.
#[derive(Default)]
struct Check {
    properties: usize,
    values: usize,
    chars: usize,
}

impl Check {
    fn is_small(&self) -> bool {
        self.properties <= MAX_PROPERTIES && self.values <= MAX_VALUES && self.chars <= MAX_CHARS
    }

    /// `None` if a rule is broken.
    fn schema(&mut self, schema: &RawJson, level: usize) -> Option<()> {
        let members = Members::of(schema).filter(|_| level <= MAX_LEVELS)?;
        if let Some(target) = members.text("$ref") {
            return (members.iter().count() == 1 && target.starts_with('#')).then_some(());
        }
        let types = match members.get("type") {
            Some(types) => words(types).filter(|types| !types.is_empty())?,
            None if members.get("anyOf").is_some() => Vec::new(),
            None => return None,
        };
        let is = |name: &str| types.iter().any(|known| known == name);
        if !types.iter().all(|name| TYPES.contains(&name.as_str()))
            || (is("object") && members.get("properties").is_none())
            || (is("array") && members.get("items").is_none())
        {
            return None;
        }
        for (name, value) in members.iter() {
            match name {
                "properties" => self.object(&members, value, level)?,
                "items" => self.schema(value, level + 1)?,
                "anyOf" => value.read::<Vec<RawJson>>().ok()?.iter().try_for_each(|one| self.schema(one, level))?,
                "$defs" | "definitions" => {
                    for (name, definition) in Members::of(value)?.iter() {
                        self.chars += name.len();
                        self.schema(definition, level)?;
                    }
                }
                "enum" => {
                    self.values += value.read::<Vec<Value>>().ok()?.len();
                    self.chars += value.as_str().len();
                }
                "const" => self.chars += value.as_str().len(),
                "format" => value.read::<String>().ok().filter(|name| FORMATS.contains(&name.as_str())).map(drop)?,
                // Groups with a question mark look around, or are named; not all of them are taken.
                "pattern" => value.read::<String>().ok().filter(|pattern| !pattern.contains("(?")).map(drop)?,
                known if KEYWORDS.contains(&known) => {}
                _ => return None,
            }
        }
        Some(())
    }

    fn object(&mut self, members: &Members, properties: &RawJson, level: usize) -> Option<()> {
        let properties = Members::of(properties)?;
        let is_closed = members.get("additionalProperties").is_some_and(|value| value.as_str() == "false");
        let required: HashSet<String> = match members.get("required") {
            Some(names) => names.read().ok()?,
            None => HashSet::new(),
        };
        if !is_closed || required.len() != properties.iter().count() {
            return None;
        }
        for (name, property) in properties.iter() {
            self.properties += 1;
            self.chars += name.len();
            required.get(name)?;
            self.schema(property, level + 1)?;
        }
        Some(())
    }
}

/// The schema with what can be taken away taken away; whether that is enough is checked afterwards.
fn narrow(schema: &RawJson, level: usize) -> Option<String> {
    let members = Members::of(schema).filter(|_| level <= MAX_LEVELS)?;
    if let Some(target) = members.get("$ref") {
        let says_nothing = |name: &str| name == "$ref" || name == "description" || SILENT.contains(&name);
        let alone = members.iter().all(|(name, _)| says_nothing(name));
        return alone.then(|| format!(r#"{{"$ref":{target}}}"#));
    }
    let types = members.get("type").and_then(words).unwrap_or_default();
    let is_object = types.iter().any(|name| name == "object");
    let mut out = Members::default();
    for (name, value) in members.iter() {
        let value = match name {
            "required" | "additionalProperties" if is_object => continue,
            "format" if !value.read::<String>().is_ok_and(|name| FORMATS.contains(&name.as_str())) => continue,
            silent if SILENT.contains(&silent) => continue,
            "items" => narrow(value, level + 1)?,
            "properties" | "$defs" | "definitions" => {
                let mut narrowed = Members::default();
                for (name, inner) in Members::of(value)?.iter() {
                    narrowed.put(name, narrow(inner, level + 1)?);
                }
                narrowed.to_string()
            }
            "anyOf" => {
                let all = value.read::<Vec<RawJson>>().ok()?;
                let all: Vec<String> = all.iter().map(|one| narrow(one, level)).collect::<Option<_>>()?;
                format!("[{}]", all.join(","))
            }
            _ => value.as_str().to_owned(),
        };
        out.put(name, value);
    }
    if is_object {
        close(&members, &mut out, level)?;
    }
    Some(out.to_string())
}

/// Closes an object and requires all its properties.
fn close(members: &Members, out: &mut Members, level: usize) -> Option<()> {
    let properties = match members.get("properties") {
        Some(properties) => Members::of(properties)?,
        None => Members::default(),
    };
    // Without properties anything may stand in it; only the arguments themselves then mean "none".
    let takes_names = members.get("additionalProperties").is_some_and(|value| value.as_str() != "false");
    if properties.is_empty() && (level > 0 || takes_names) {
        return None;
    }
    if members.get("properties").is_none() {
        out.put("properties", "{}".to_owned());
    }
    let required: HashSet<String> = members.get("required").and_then(|names| names.read().ok()).unwrap_or_default();
    if !properties.iter().all(|(name, property)| required.contains(name) || takes_null(property)) {
        return None;
    }
    let names: Vec<&str> = properties.iter().map(|(name, _)| name).collect();
    out.put("required", json!(names).to_string());
    out.put("additionalProperties", "false".to_owned());
    Some(())
}

fn takes_null(schema: &RawJson) -> bool {
    let Some(members) = Members::of(schema) else { return false };
    let by_type = members.get("type").and_then(words).is_some_and(|types| types.iter().any(|name| name == "null"));
    let has_null = |values: &RawJson| values.read::<Vec<Value>>().is_ok_and(|values| values.contains(&Value::Null));
    let by_values = members.get("enum").is_none_or(has_null);
    let any_of = members.get("anyOf").and_then(|all| all.read::<Vec<RawJson>>().ok());
    match any_of {
        Some(all) => members.get("type").is_none() && all.iter().any(takes_null),
        None => by_type && by_values && members.get("const").is_none(),
    }
}

/// A word or a list of words.
fn words(value: &RawJson) -> Option<Vec<String>> {
    match value.read().ok()? {
        Value::String(word) => Some(vec![word]),
        Value::Array(words) => words.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
#[path = "openai_strict_tests.rs"]
mod tests;
