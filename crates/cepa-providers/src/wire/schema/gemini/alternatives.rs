//! Keywords that Gemini knows in another form only.

use cepa_core::RawJson;
use serde_json::{Value, json};

use super::Members;

/// Makes one schema of `allOf` and what stands beside it.
pub(super) fn merge_all_of(members: &mut Members, mut unfolded: impl FnMut(&RawJson) -> Members) {
    let Some(all) = members.remove("allOf").and_then(|all| all.read::<Vec<RawJson>>().ok()) else { return };
    for schema in &all {
        let mut more = unfolded(schema);
        if let (Some(mine), Some(theirs)) = (object(members, "properties"), object(&more, "properties")) {
            let mut both = mine;
            both.fill_from(theirs);
            members.put("properties", both.to_string());
        }
        if let (Some(mine), Some(theirs)) = (names(members), names(&more)) {
            let both: Vec<&String> = mine.iter().chain(theirs.iter().filter(|name| !mine.contains(name))).collect();
            members.put("required", json!(both).to_string());
        }
        // Two sets of alternatives cannot be one: the second is told.
        if let Some(extra) = more.remove("allOf").or_else(|| more.remove("anyOf").filter(|_| members.has("anyOf"))) {
            members.say(&format!("and all of: {extra}"));
        }
        members.fill_from(more);
    }
}

fn object(members: &Members, name: &str) -> Option<Members> {
    members.get(name).and_then(Members::of)
}

fn names(members: &Members) -> Option<Vec<String>> {
    members.get("required")?.read().ok()
}

/// `const` as `enum`; values other than texts and numbers as words.
pub(super) fn only_known_values(members: &mut Members) {
    if let Some(only) = members.remove("const") {
        members.put("enum", format!("[{only}]"));
    }
    let Some(values) = members.get("enum").and_then(|values| values.read::<Vec<Value>>().ok()) else { return };
    let (nulls, values): (Vec<Value>, Vec<Value>) = values.into_iter().partition(Value::is_null);
    let known = |value: &Value| value.is_number() || value.as_str().is_some_and(|text| !text.is_empty());
    if values.is_empty() || !values.iter().all(known) {
        if let Some(values) = members.remove("enum") {
            members.say(&format!("one of {values}"));
        }
    } else if !nulls.is_empty() {
        members.put("enum", json!(values).to_string());
        if let Some(name) = members.text("type") {
            members.put("type", json!([name, "null"]).to_string());
        }
    }
    // The values say their type where nothing else does.
    if members.has("enum") && !members.has("type") && values.iter().all(Value::is_string) {
        let kind = if nulls.is_empty() { json!("string") } else { json!(["string", "null"]) };
        members.put_first("type", kind.to_string());
    }
}

/// Exclusive bounds of integers as inclusive ones.
pub(super) fn bounds(members: &mut Members) {
    if members.text("type").as_deref() != Some("integer") {
        return;
    }
    for (name, inclusive, step) in [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)] {
        let bound = members.get(name).and_then(|bound| bound.read::<i64>().ok()).and_then(|n| n.checked_add(step));
        if let Some(bound) = bound.filter(|_| !members.has(inclusive)) {
            members.remove(name);
            members.put(inclusive, bound.to_string());
        }
    }
}

/// Copies the names of required members that there are.
pub(super) fn required(from: &Members, to: &mut Members) {
    let properties = object(to, "properties").unwrap_or_default();
    let names: Vec<String> = names(from).unwrap_or_default().into_iter().filter(|name| properties.has(name)).collect();
    if !names.is_empty() {
        to.put("required", json!(names).to_string());
    }
}

/// Alternatives in place of a list of types, each with the keywords of its own.
pub(super) fn one_type_each(members: &mut Members) {
    let Some(types) = members.get("type").and_then(|kind| kind.read::<Vec<String>>().ok()) else { return };
    let real: Vec<&String> = types.iter().filter(|name| *name != "null").collect();
    match real.as_slice() {
        [] => return,
        [name] if types.len() == 1 => return members.put("type", json!(name).to_string()),
        [name] if !matches!(name.as_str(), "object" | "array") => return,
        // What stands there already says more than the types.
        _ if members.has("anyOf") => return drop(members.remove("type")),
        _ => {}
    }
    let mut alternatives = Vec::new();
    for name in &types {
        let mut one = Members::default();
        one.put("type", json!(name).to_string());
        for keyword in keywords(name) {
            if let Some(value) = members.get(keyword) {
                one.put(keyword, value.as_str().to_owned());
            }
        }
        alternatives.push(one.to_string());
    }
    for keyword in types.iter().flat_map(|name| keywords(name)) {
        members.remove(keyword);
    }
    members.remove("type");
    members.put("anyOf", format!("[{}]", alternatives.join(",")));
}

/// The keywords that belong to one type.
fn keywords(name: &str) -> &'static [&'static str] {
    match name {
        "object" => &["properties", "additionalProperties", "required"],
        "array" => &["items", "prefixItems", "minItems", "maxItems"],
        "string" => &["format", "enum"],
        "number" | "integer" => &["minimum", "maximum"],
        _ => &[],
    }
}
