//! Judge of Anthropic Messages requests.
//!
//! Sources: the reference <https://platform.claude.com/docs/en/api/messages>, the guides on tool use
//! <https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls> and on thinking
//! <https://platform.claude.com/docs/en/build-with-claude/extended-thinking>, and the messages of the 400s that the server
//! answers where they are silent. A rule without a link of its own is the reference's.

mod block;
pub mod rules;
mod turns;

use serde_json::{Map, Value};

use super::{
    Report, Violation,
    shape::{
        BOOL, FULL_TEXT, Kind, LIST, Member, OBJECT, OPT_OBJECT, POSITIVE, Rules, TEXT, first_repeated, is_word, list,
        may, need, text, text_of,
    },
};

/// The value of the header `anthropic-version`, as far as it changes what a request may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// `2023-06-01`.
    #[default]
    V2023_06_01,
    /// `2026-10-21`: without sampling parameters.
    V2026_10_21,
}

const RULES: Rules = Rules { shape: rules::SHAPE, unknown_member: rules::UNKNOWN_MEMBER };

const SHARE: Kind = Kind::new("a number from 0 to 1", |v| v.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)));
const CACHE: Kind = Kind::new("an ephemeral breakpoint", |v| {
    let ttl = v.get("ttl").is_none_or(|ttl| matches!(ttl.as_str(), Some("5m" | "1h")));
    v.is_null() || (text_of(v, "type") == "ephemeral" && ttl)
});
/// A text or a list, both not empty.
const CONTENT: Kind = Kind::new("a text or blocks", |v| v.is_string() || v.is_array());
const STOP: Kind = Kind::new("a list of texts that are not blank", |v| {
    v.as_array().is_some_and(|all| all.iter().all(|one| one.as_str().is_some_and(|text| !text.trim().is_empty())))
});

const BODY: &[Member] = &[
    need("model", FULL_TEXT),
    // Checked by the rule `an.max_tokens`.
    may("max_tokens", Kind::new("anything", |_| true)),
    need("messages", LIST),
    may("system", CONTENT),
    may("tools", LIST),
    may("tool_choice", OBJECT),
    may("thinking", OBJECT),
    // Its effort is looked at below.
    may("output_config", OBJECT),
    may("stop_sequences", STOP).by(rules::STOP),
    may("stream", BOOL),
    may("temperature", SHARE).by(rules::RANGES),
    may("top_p", SHARE).by(rules::RANGES),
    may("top_k", POSITIVE),
    may("metadata", OBJECT),
    may("service_tier", TEXT),
    may("container", TEXT),
    may("cache_control", CACHE).by(rules::CACHE_MARK),
    may("inference_geo", TEXT),
    may("speed", TEXT),
    may("diagnostics", OBJECT),
    may("user_profile_id", TEXT),
    may("workspace_id", TEXT),
];
const TOOL: &[Member] = &[
    need("name", FULL_TEXT),
    need("input_schema", OBJECT),
    may("description", TEXT),
    may("type", Kind::new("custom", |v| v == "custom")),
    may("cache_control", CACHE).by(rules::CACHE_MARK),
    may("strict", BOOL),
    may("input_examples", LIST),
    may("allowed_callers", LIST),
    may("defer_loading", BOOL),
    may("eager_input_streaming", Kind::new("true, false or null", |v| v.is_boolean() || v.is_null())),
];

/// What is wrong with a request of the API version `2023-06-01`.
///
/// ```
/// use cepa_testkit::validate::anthropic::validate;
/// let body = serde_json::json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": " "}]});
/// let rules: Vec<&str> = validate(&body).iter().map(|violation| violation.rule).collect();
/// assert_eq!(rules, ["an.no_empty_text"]);
/// ```
pub fn validate(body: &Value) -> Vec<Violation> {
    validate_for(body, Version::default())
}

/// What is wrong with a request of a certain API version.
pub fn validate_for(body: &Value, version: Version) -> Vec<Violation> {
    let mut report = Report::default();
    if let Some(body) = RULES.check(&mut report, body, "body", BODY, &[]) {
        settings(&mut report, body, version);
        system(&mut report, body);
        tools(&mut report, body);
        thinking(&mut report, body);
        let messages = list(body, "messages");
        for (index, message) in messages.iter().enumerate() {
            block::message(&mut report, message, &format!("body.messages[{index}]"), version);
        }
        turns::check(&mut report, messages);
    }
    // "A maximum of 4 blocks with cache_control may be provided."
    let breakpoints = count_members(body, "cache_control");
    if breakpoints > 4 {
        report.add(rules::CACHE_FOUR, "body", format!("{breakpoints} cache_control members of at most 4"));
    }
    report.0
}

fn count_members(value: &Value, name: &str) -> usize {
    match value {
        Value::Object(object) => {
            let own = usize::from(object.get(name).is_some());
            own + object.values().map(|inner| count_members(inner, name)).sum::<usize>()
        }
        Value::Array(all) => all.iter().map(|inner| count_members(inner, name)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn settings(report: &mut Report, body: &Map<String, Value>, version: Version) {
    if body.get("max_tokens").and_then(Value::as_u64).is_none_or(|n| n == 0) {
        report.add(rules::MAX_TOKENS, "body.max_tokens", "is not a positive integer");
    }
    if version == Version::V2026_10_21 {
        for name in ["temperature", "top_p", "top_k"].into_iter().filter(|name| body.contains_key(*name)) {
            report.add(rules::SAMPLING, format!("body.{name}"), "this API version has no sampling parameters");
        }
    }
    let effort = body.get("output_config").and_then(|config| config.get("effort"));
    let is_known = |effort: &Value| matches!(effort.as_str(), Some("low" | "medium" | "high" | "xhigh" | "max"));
    if let Some(effort) = effort.filter(|effort| !is_known(effort)) {
        report.add(rules::EFFORT, "body.output_config.effort", format!("{effort} is no effort"));
    }
}

fn system(report: &mut Report, body: &Map<String, Value>) {
    match body.get("system") {
        Some(Value::String(text)) if text.trim().is_empty() => {
            report.add(rules::TEXT_EMPTY, "body.system", "is blank");
        }
        Some(Value::Array(blocks)) if blocks.is_empty() => report.add(rules::TEXT_EMPTY, "body.system", "is []"),
        Some(Value::Array(blocks)) => {
            for (index, one) in blocks.iter().enumerate() {
                let at = format!("body.system[{index}]");
                if text_of(one, "type") == "text" {
                    block::check(report, one, &at);
                } else {
                    report.add(rules::SHAPE, at, "is not a text block");
                }
            }
        }
        Some(_) | None => {}
    }
}

fn tools(report: &mut Report, body: &Map<String, Value>) {
    let mut names = Vec::new();
    for (index, tool) in list(body, "tools").iter().enumerate() {
        let at = format!("body.tools[{index}]");
        let name = text_of(tool, "name");
        names.push(name);
        // Tools of Anthropic's own have a dated type and no schema.
        if tool.get("type").is_some_and(|kind| kind != "custom") {
            continue;
        }
        RULES.check(report, tool, &at, TOOL, &[]);
        // "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
        if !is_word(name, 128) {
            report.add(
                rules::TOOL_NAMES,
                format!("{at}.name"),
                format!("`{name}` is not a name of 1 to 128 word characters"),
            );
        }
        let schema = tool.get("input_schema").unwrap_or(&Value::Null);
        if text_of(schema, "type") != "object" {
            report.add(rules::TOOL_SCHEMA, format!("{at}.input_schema"), "is not a schema of type object");
        }
        // "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        if let Some(word) = ["oneOf", "allOf", "anyOf"].into_iter().find(|word| schema.get(*word).is_some()) {
            report.add(rules::TOOL_SCHEMA_TOP, format!("{at}.input_schema"), format!("has `{word}` at the top level"));
        }
    }
    // "tools: Tool names must be unique."
    if let Some(name) = first_repeated(&names) {
        report.add(rules::TOOL_NAMES_UNIQUE, "body.tools", format!("two tools are named `{name}`"));
    }
    if let Some(choice) = body.get("tool_choice") {
        tool_choice(report, choice, &names);
    }
}

fn tool_choice(report: &mut Report, choice: &Value, names: &[&str]) {
    const AT: &str = "body.tool_choice";
    match text_of(choice, "type") {
        // "tool_choice may only be specified while providing tools"
        _ if names.is_empty() => report.add(rules::WITHOUT_TOOLS, AT, "stands without tools"),
        "auto" | "any" | "none" => {}
        "tool" if names.contains(&text_of(choice, "name")) => {}
        "tool" => {
            let what = format!("names `{}`, which is no tool of the request", text_of(choice, "name"));
            report.add(rules::TOOL_CHOICE, AT, what);
        }
        kind => report.add(rules::TOOL_CHOICE, AT, format!("`{kind}` is no choice")),
    }
    if choice
        .get("disable_parallel_tool_use")
        .is_some_and(|value| !value.is_boolean() || text_of(choice, "type") == "none")
    {
        report.add(rules::ONE_AT_A_TIME, AT, "disable_parallel_tool_use is misplaced");
    }
}

fn thinking(report: &mut Report, body: &Map<String, Value>) {
    let Some(thinking) = body.get("thinking").and_then(Value::as_object) else { return };
    let budget = thinking.get("budget_tokens");
    match text(thinking, "type") {
        "enabled" => {}
        "adaptive" | "disabled" | "between_tools" if budget.is_none() => return,
        _ => {
            let what = "has a type that is not known, or a budget that does not belong to its type";
            return report.add(rules::THINKING_TYPE, "body.thinking", what);
        }
    }
    // "Must be ≥1024 and less than `max_tokens`."
    let most = body.get("max_tokens").and_then(Value::as_u64).unwrap_or_default();
    if !budget.and_then(Value::as_u64).is_some_and(|budget| budget >= 1024 && budget < most) {
        report.add(rules::BUDGET, "body.thinking.budget_tokens", "is below 1024 or not below max_tokens");
    }
    // "Thinking isn't compatible with temperature or top_k modifications", "top_p between 1 and 0.95"
    if body.get("temperature").and_then(Value::as_f64).is_some_and(|n| (n - 1.0).abs() > f64::EPSILON) {
        report.add(rules::THINKING_SAMPLING, "body.temperature", "is not 1 although the model thinks");
    }
    if body.contains_key("top_k") || body.get("top_p").and_then(Value::as_f64).is_some_and(|n| n < 0.95) {
        report.add(rules::THINKING_SAMPLING, "body", "top_k, or top_p below 0.95, although the model thinks");
    }
    // "Thinking may not be enabled when tool_choice forces tool use."
    if body.get("tool_choice").is_some_and(|choice| matches!(text_of(choice, "type"), "any" | "tool")) {
        report.add(rules::THINKING_FORCED, "body.tool_choice", "forces a tool although the model thinks");
    }
    turns::starts_with_thinking(report, list(body, "messages"));
}

/// The blocks of a message whose content is a list; none if it is a text.
fn blocks(message: &Value) -> &[Value] {
    message.as_object().map_or(&[], |message| list(message, "content"))
}

fn is_thinking(block: &Value) -> bool {
    matches!(text_of(block, "type"), "thinking" | "redacted_thinking")
}

const OPT_CITATIONS: Kind = OPT_OBJECT;

#[cfg(test)]
#[path = "../anthropic_tests.rs"]
mod tests;
