//! What may be declared and chosen.

use serde_json::{Map, Value};

use super::{
    super::{
        Report,
        shape::{ANYTHING, FULL_TEXT, LIST, Member, OBJECT, TEXT, first_repeated, list, may, need, text_of},
    },
    RULES, rules,
};

const FUNCTION: &[Member] = &[
    need("name", FULL_TEXT),
    may("description", TEXT),
    may("parameters", OBJECT),
    may("parametersJsonSchema", OBJECT),
    may("response", OBJECT),
    may("responseJsonSchema", ANYTHING),
    may("behavior", TEXT),
];
const CHOICE: &[Member] = &[need("mode", FULL_TEXT), may("allowedFunctionNames", LIST)];

/// Keywords of JSON Schema that are known.
const KEYWORDS: [&str; 20] = [
    "$id",
    "$defs",
    "$ref",
    "$anchor",
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
    "propertyOrdering",
];

pub(super) fn check(report: &mut Report, body: &Map<String, Value>) {
    let mut names = Vec::new();
    let mut others = false;
    for (index, tool) in list(body, "tools").iter().enumerate() {
        let at = format!("body.tools[{index}]");
        let Some(tool) = tool.as_object() else {
            report.add(rules::SHAPE, at, "is not an object");
            continue;
        };
        // Google's own tools (search, code) have other members.
        others |= !tool.contains_key("functionDeclarations");
        for (place, function) in list(tool, "functionDeclarations").iter().enumerate() {
            let at = format!("{at}.functionDeclarations[{place}]");
            names.push(text_of(function, "name"));
            declaration(report, function, &at);
        }
    }
    // "Duplicate function declaration found"
    if let Some(name) = first_repeated(&names) {
        report.add(rules::TOOL_NAMES_UNIQUE, "body.tools", format!("two functions are named `{name}`"));
    }
    if let Some(config) = body.get("toolConfig") {
        choice(report, config, &names, others);
    }
}

fn declaration(report: &mut Report, function: &Value, at: &str) {
    let Some(function) = RULES.check(report, function, at, FUNCTION, &[]) else { return };
    name(report, function.get("name").and_then(Value::as_str).unwrap_or_default(), &format!("{at}.name"));
    // "This field is mutually exclusive with `parameters`."
    if function.contains_key("parameters") && function.contains_key("parametersJsonSchema") {
        report.add(rules::ONE_SCHEMA, at, "two schemas");
    }
    if let Some(schema) = function.get("parametersJsonSchema") {
        let at = format!("{at}.parametersJsonSchema");
        // "The schema must describe an object where the properties are the parameters to the function."
        if text_of(schema, "type") != "object" {
            report.add(rules::SCHEMA_OBJECT, &at, "is not of the type object");
        }
        schema_is_known(report, schema, &at);
    }
}

fn schema_is_known(report: &mut Report, schema: &Value, at: &str) {
    let Some(members) = schema.as_object() else { return };
    for (name, value) in members {
        let at = format!("{at}.{name}");
        match name.as_str() {
            "properties" | "$defs" => {
                for (property, inner) in value.as_object().into_iter().flatten() {
                    schema_is_known(report, inner, &format!("{at}.{property}"));
                }
            }
            "anyOf" | "prefixItems" => {
                for inner in value.as_array().into_iter().flatten() {
                    schema_is_known(report, inner, &at);
                }
            }
            "items" | "additionalProperties" => schema_is_known(report, value, &at),
            "enum" if !value.as_array().is_some_and(|all| all.iter().all(|v| v.is_string() || v.is_number())) => {
                report.add(rules::ENUM, at, "values that are no texts and no numbers");
            }
            // "required: property is not defined"
            "required" => {
                for name in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if schema.get("properties").and_then(|all| all.get(name)).is_none() {
                        report.add(rules::REQUIRED, &at, format!("`{name}` is required and not defined"));
                    }
                }
            }
            name if !KEYWORDS.contains(&name) => report.add(rules::KEYWORDS, at, "a keyword that is not known"),
            _ => {}
        }
    }
    // "If a schema node contains a ref, it cannot contain any other fields except for description and default"
    if members.contains_key("$ref") && members.keys().any(|name| name != "$ref" && name != "description") {
        report.add(rules::REFERENCE, at, "a reference beside other members");
    }
}

fn choice(report: &mut Report, config: &Value, names: &[&str], others: bool) {
    const AT: &str = "body.toolConfig.functionCallingConfig";
    let Some(choice) = config.get("functionCallingConfig") else { return };
    let Some(choice) = RULES.check(report, choice, AT, CHOICE, &[]) else { return };
    let mode = choice.get("mode").and_then(Value::as_str).unwrap_or_default();
    if !matches!(mode, "AUTO" | "ANY" | "NONE" | "VALIDATED") {
        report.add(rules::MODE, AT, format!("the mode `{mode}`"));
    }
    if names.is_empty() && !others {
        report.add(rules::WITHOUT_TOOLS, AT, "stands without functions");
    }
    // "This should only be set when the Mode is ANY or VALIDATED."
    let allowed = list(choice, "allowedFunctionNames");
    if !allowed.is_empty() && !matches!(mode, "ANY" | "VALIDATED") {
        report.add(rules::ALLOWED, AT, format!("allowed names in the mode {mode}"));
    }
    for name in allowed.iter().filter_map(Value::as_str).filter(|name| !names.contains(name)) {
        report.add(rules::ALLOWED, AT, format!("`{name}` is no function of the request"));
    }
}

/// "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_),
/// dots (.), colons (:), or dashes (-), with a maximum length of 64."
pub(super) fn name(report: &mut Report, name: &str, at: &str) {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-');
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !(starts && name.len() <= 64 && name.bytes().all(legal)) {
        report.add(rules::NAMES, at, format!("`{name}`"));
    }
}
