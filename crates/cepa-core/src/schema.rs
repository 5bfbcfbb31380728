//! A check of arguments against the part of JSON Schema that tools use.
//!
//! Keywords that are not listed here never refuse anything; a body that needs the whole of JSON Schema checks itself
//! ([`ToolBody::check`](crate::ToolBody::check)).

use std::{cell::Cell, fmt};

use serde_json::{Map, Value};

use crate::Args;

/// Deeper schemas (or references in a circle) are not followed.
const MAX_DEPTH: u8 = 64;
/// References in a circle inside alternatives double with each level: after so many steps nothing more is refused.
const MAX_STEPS: u32 = 1_000_000;

/// Checks arguments; the error names the place and what is wanted there.
pub(crate) fn check(schema: &Value, args: &Args) -> Result<(), String> {
    let value: Value = args.read()?;
    Checker { root: schema, steps: Cell::new(0) }.check(schema, &value, At::Root, 0)
}

/// A place in the arguments: put into words only where something is wrong there.
#[derive(Clone, Copy)]
enum At<'a> {
    Root,
    Member(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Self::Root, name) => f.write_str(name),
            Self::Member(outer, name) => write!(f, "{outer}.{name}"),
            Self::Item(outer, index) => write!(f, "{outer}[{index}]"),
        }
    }
}

struct Checker<'a> {
    root: &'a Value,
    steps: Cell<u32>,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: At<'_>, depth: u8) -> Result<(), String> {
        let place = || place_of(at);
        self.steps.set(self.steps.get() + 1);
        let schema = match schema {
            _ if self.steps.get() > MAX_STEPS => return Ok(()),
            Value::Bool(false) => return Err(format!("{} must not be given", place())),
            Value::Object(schema) if depth < MAX_DEPTH => schema,
            _ => return Ok(()),
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|path| self.resolve(path)) {
            self.check(target, value, at, depth + 1)?;
        }
        if let Some(wanted) = schema.get("type").filter(|wanted| !has_type(wanted, value)) {
            return Err(format!("{} must be of type {}, not {}", place(), type_names(wanted), type_name(value)));
        }
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|all| !all.contains(value)) {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            return Err(format!("{} must be one of {}", place(), allowed.join(", ")));
        }
        if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
            return Err(format!("{} must be {wanted}", place()));
        }
        self.check_alternatives(schema, value, at, depth)?;
        match value {
            Value::Object(members) => self.check_object(schema, members, at, depth),
            Value::Array(items) => self.check_array(schema, items, at, depth),
            Value::Number(number) => check_number(schema, number.as_f64(), place),
            Value::String(text) => check_length(schema, "minLength", "maxLength", || text.chars().count(), place),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn check_alternatives(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        at: At<'_>,
        depth: u8,
    ) -> Result<(), String> {
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        if let Some(all) = list("allOf") {
            all.iter().try_for_each(|one| self.check(one, value, at, depth + 1))?;
        }
        for alternatives in [list("anyOf"), list("oneOf")].into_iter().flatten() {
            let mut first_error = None;
            let mut fits = false;
            for one in alternatives {
                match self.check(one, value, at, depth + 1) {
                    Ok(()) => fits = true,
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
            if let Some(error) = first_error.filter(|_| !fits) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn check_object(
        &self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        at: At<'_>,
        depth: u8,
    ) -> Result<(), String> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = required.into_iter().find(|name| !members.contains_key(*name)) {
            return Err(format!("`{}` is required", At::Member(&at, missing)));
        }
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let additional = schema.get("additionalProperties");
        // Names that match a pattern are allowed; which, this check does not know.
        let closed = !schema.contains_key("patternProperties");
        for (name, value) in members {
            match (properties.get(name), additional) {
                (Some(property), _) => self.check(property, value, At::Member(&at, name), depth + 1)?,
                (None, Some(Value::Bool(false))) if closed => {
                    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    return Err(format!("`{}` is not known; known are: {known}", At::Member(&at, name)));
                }
                (None, Some(additional)) if closed => {
                    self.check(additional, value, At::Member(&at, name), depth + 1)?
                }
                (None, _) => {}
            }
        }
        let place = || if matches!(at, At::Root) { "the object".to_owned() } else { place_of(at) };
        check_length(schema, "minProperties", "maxProperties", || members.len(), place)
    }

    fn check_array(&self, schema: &Map<String, Value>, items: &[Value], at: At<'_>, depth: u8) -> Result<(), String> {
        if let Some(wanted) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.check(wanted, item, At::Item(&at, index), depth + 1)?;
            }
        }
        check_length(schema, "minItems", "maxItems", || items.len(), || place_of(at))
    }

    fn resolve(&self, path: &str) -> Option<&Value> {
        self.root.pointer(path.strip_prefix('#')?)
    }
}

fn place_of(at: At<'_>) -> String {
    if matches!(at, At::Root) { "the arguments".to_owned() } else { format!("`{at}`") }
}

fn check_number(schema: &Map<String, Value>, number: Option<f64>, place: impl Fn() -> String) -> Result<(), String> {
    let Some(number) = number else { return Ok(()) };
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    type Fits = fn(f64, f64) -> bool;
    let rules: [(&str, &str, Fits); 4] = [
        ("minimum", "at least", |n, limit| n >= limit),
        ("maximum", "at most", |n, limit| n <= limit),
        ("exclusiveMinimum", "more than", |n, limit| n > limit),
        ("exclusiveMaximum", "less than", |n, limit| n < limit),
    ];
    for (name, words, fits) in rules {
        if let Some(limit) = limit(name).filter(|limit| !fits(number, *limit)) {
            return Err(format!("{} must be {words} {limit}", place()));
        }
    }
    Ok(())
}

fn check_length(
    schema: &Map<String, Value>,
    min: &str,
    max: &str,
    length: impl FnOnce() -> usize,
    place: impl FnOnce() -> String,
) -> Result<(), String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    let (min, max) = (limit(min), limit(max));
    if min.is_none() && max.is_none() {
        return Ok(());
    }
    let length = length() as u64;
    if let Some(min) = min.filter(|min| length < *min) {
        return Err(format!("{} is too short: {length} of at least {min}", place()));
    }
    if let Some(max) = max.filter(|max| length > *max) {
        return Err(format!("{} is too long: {length} of at most {max}", place()));
    }
    Ok(())
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    match wanted {
        Value::String(name) => match name.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
            _ => true,
        },
        Value::Array(names) => names.iter().any(|name| has_type(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn type_names(wanted: &Value) -> String {
    match wanted {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
