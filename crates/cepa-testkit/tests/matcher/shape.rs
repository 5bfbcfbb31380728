//! What an observation must look like before anything is compared: each key reported, of the right kind.

use super::{
    expect::{Difference, Differences},
    json::Json,
};

const FINISH: [&str; 7] = ["stop", "tool_calls", "length", "content_filter", "refusal", "pause", "unknown"];
const MODEL_CLASSES: [&str; 13] = [
    "rate_limit",
    "quota",
    "overloaded",
    "server",
    "auth",
    "invalid_request",
    "context_length",
    "truncated",
    "decode",
    "network",
    "timeout",
    "cancelled",
    "provider",
];
const OTHER_CLASSES: [&str; 11] = [
    "length",
    "not_paused",
    "already_decided",
    "expired",
    "busy",
    "conflict",
    "corrupt",
    "store",
    "invalid_input",
    "invalid_tool",
    "invalid_config",
];
const STATUSES: [&str; 6] = ["completed", "paused", "cancelled", "exhausted", "dropped", "ok"];

type Fits = fn(&Json) -> bool;

pub(crate) fn text(value: &Json) -> bool {
    value.text().is_some()
}
pub(crate) fn opt_text(value: &Json) -> bool {
    value.is_null() || text(value)
}
pub(crate) fn integer(value: &Json) -> bool {
    value.integer().is_some()
}
fn opt_integer(value: &Json) -> bool {
    value.is_null() || integer(value)
}
pub(crate) fn milliseconds(value: &Json) -> bool {
    value.number().is_some_and(|number| number >= 0.0)
}
pub(crate) fn texts(value: &Json) -> bool {
    matches!(value, Json::List(_)) && value.items().iter().all(text)
}
pub(crate) fn objects(value: &Json) -> bool {
    matches!(value, Json::List(_)) && value.items().iter().all(Json::is_object)
}
fn is_bool(value: &Json) -> bool {
    matches!(value, Json::Bool(_))
}
fn word_of(value: &Json, words: &[&str]) -> bool {
    value.text().is_some_and(|text| words.contains(&text))
}
fn model_class(value: &Json) -> bool {
    word_of(value, &MODEL_CLASSES)
}
fn any_class(value: &Json) -> bool {
    word_of(value, &MODEL_CLASSES) || word_of(value, &OTHER_CLASSES)
}

/// An object that has every key of the table with a value that fits.
pub(crate) fn fields(value: &Json, table: &[(&str, Fits)], at: &str) -> Differences {
    if !value.is_object() {
        return vec![Difference::new(at, "an object", value)];
    }
    let mut found = Differences::new();
    for (name, fits) in table {
        match value.get(name) {
            None => found.push(Difference::new(format!("{at}.{name}"), "to be reported", "(missing)")),
            Some(inner) if !fits(inner) => {
                found.push(Difference::new(format!("{at}.{name}"), "another kind of value", inner));
            }
            Some(_) => {}
        }
    }
    found
}

/// The error of an operation.
pub(crate) fn small_error(value: &Json, at: &str) -> Differences {
    fields(value, &[("class", any_class), ("message", text)], at)
}

/// The outcome of one model reply.
pub(crate) fn outcome(value: &Json, at: &str, stream: bool) -> Differences {
    match (value.get("ok"), value.get("error")) {
        (None, Some(error)) => fields(
            error,
            &[
                ("class", model_class),
                ("retryable", is_bool),
                ("status", opt_integer),
                ("code", |v| opt_text(v) || integer(v)),
                ("retry_after_ms", opt_integer),
                ("message", text),
                ("partial_text", opt_text),
            ],
            &format!("{at}.error"),
        ),
        (Some(ok), None) => ok_outcome(ok, &format!("{at}.ok"), stream),
        _ => vec![Difference::new(at, "an object with either ok or error", value)],
    }
}

fn ok_outcome(ok: &Json, at: &str, stream: bool) -> Differences {
    let mut found = fields(
        ok,
        &[
            ("message", Json::is_object),
            ("finish", |v| word_of(v, &FINISH)),
            ("usage", |v| v.is_null() || fields(v, &[("input", integer), ("output", integer)], "").is_empty()),
            ("invalid_args", texts),
            ("reasoning", opt_text),
            ("replay", Json::is_object),
        ],
        at,
    );
    if stream {
        let full = |v: &Json| texts(v) && v.items().iter().all(|delta| !delta.is_empty());
        if !ok.get("deltas").is_some_and(full) {
            found.push(Difference::new(format!("{at}.deltas"), "a list of texts, none empty", ok));
        }
    }
    let Some(message) = ok.get("message").filter(|_| found.is_empty()) else { return found };
    let at = format!("{at}.message");
    found.extend(fields(
        message,
        &[
            ("role", |v| v.text() == Some("assistant")),
            ("content", opt_text),
            ("tool_calls", |v| v.is_null() || objects(v)),
        ],
        &at,
    ));
    let calls = message.get("tool_calls").map_or(&[][..], Json::items);
    for call in calls {
        found.extend(call_shape(call, &at));
    }
    let id = |call: &Json| call.get("id").and_then(Json::text).unwrap_or_default().to_owned();
    let mut ids: Vec<String> = calls.iter().map(id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair.first() == pair.last()) {
        found.push(Difference::new(&at, "ids that are all different", format!("{ids:?}")));
    }
    let mut null: Vec<String> = calls.iter().filter(|c| c.get("args").is_none_or(Json::is_null)).map(id).collect();
    let mut invalid: Vec<String> =
        ok.get("invalid_args").map_or(&[][..], Json::items).iter().filter_map(Json::text).map(str::to_owned).collect();
    null.sort_unstable();
    invalid.sort_unstable();
    if null != invalid {
        found.push(Difference::new(&at, format!("invalid_args: {null:?}"), format!("{invalid:?}")));
    }
    found
}

fn call_shape(call: &Json, at: &str) -> Differences {
    let table: &[(&str, Fits)] = &[
        ("id", |v| v.text().is_some_and(|id| !id.is_empty())),
        ("name", text),
        ("args", |v| v.is_null() || v.is_object()),
    ];
    fields(call, table, at)
}

/// Neutral messages; with `only_seen` nothing but what a model gets to see.
pub(crate) fn messages(value: &Json, at: &str, only_seen: bool) -> Differences {
    const SEEN: [&str; 5] = ["role", "content", "tool_calls", "tool_call_id", "name"];
    if !matches!(value, Json::List(_)) {
        return vec![Difference::new(at, "a list of messages", value)];
    }
    let mut found = Differences::new();
    for (index, message) in value.items().iter().enumerate() {
        let at = format!("{at}[{index}]");
        let table: &[(&str, Fits)] = match message.get("role").and_then(Json::text) {
            Some("system" | "user") => &[("content", text)],
            Some("assistant") => &[("content", opt_text)],
            Some("tool") => &[("content", text), ("tool_call_id", text), ("name", text)],
            _ => return vec![Difference::new(at, "a message with a role", message)],
        };
        found.extend(fields(message, table, &at));
        for call in message.get("tool_calls").map_or(&[][..], Json::items) {
            found.extend(call_shape(call, &at));
        }
        let extra = message.members().iter().filter(|(name, _)| only_seen && !SEEN.contains(&name.as_str()));
        found.extend(
            extra.map(|(name, value)| Difference::new(format!("{at}.{name}"), "not to be seen by a model", value)),
        );
    }
    found
}

/// The outcome of one step.
pub(crate) fn step(value: &Json, at: &str) -> Differences {
    if let Some(parallel) = value.get("parallel") {
        let inner = |(index, one): (usize, &Json)| step(one, &format!("{at}.parallel[{index}]"));
        return parallel.items().iter().enumerate().flat_map(inner).collect();
    }
    if let Some(error) = value.get("error") {
        return small_error(error, &format!("{at}.error"));
    }
    let table: &[(&str, Fits)] = match value.get("status").and_then(Json::text) {
        Some("completed") => &[("text", opt_text), ("finish", |v| word_of(v, &FINISH)), ("records", integer)],
        Some("paused") => &[("pending", texts), ("records", integer)],
        Some(status) if STATUSES.contains(&status) => &[],
        _ => return vec![Difference::new(at, "an outcome of a step", value)],
    };
    fields(value, table, at)
}
