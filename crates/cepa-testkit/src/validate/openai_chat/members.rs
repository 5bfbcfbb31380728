//! The objects of a Chat Completions request as tables: members, kinds, ranges.

use serde_json::Value;

use super::{
    super::shape::{
        ANYTHING, BOOL, FULL_TEXT, Kind, LIST, Member, OBJECT, OPT_OBJECT, OPT_TEXT, POSITIVE, TEXT, is_base64, may,
        need,
    },
    rules,
};

const TEMPERATURE: Kind = Kind::new("a number from 0 to 2", |v| v.as_f64().is_some_and(|n| (0.0..=2.0).contains(&n)));
const PENALTY: Kind = Kind::new("a number from -2 to 2", |v| v.as_f64().is_some_and(|n| (-2.0..=2.0).contains(&n)));
const SHARE: Kind = Kind::new("a number from 0 to 1", |v| v.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)));
const STOP: Kind = Kind::new("a text, or a list of 1 to 4 texts", |v| match v {
    Value::Array(all) => (1..=4).contains(&all.len()) && all.iter().all(Value::is_string),
    other => other.is_string() || other.is_null(),
});
const EFFORT: Kind = Kind::new("none, minimal, low, medium, high, xhigh or max", |v| {
    v.as_str().is_some_and(|t| ["none", "minimal", "low", "medium", "high", "xhigh", "max"].contains(&t))
});
const INTEGER: Kind = Kind::new("an integer", |v| v.is_i64() || v.is_u64());

const TEXT_OR_PARTS: Kind = Kind::new("a text, or a list of parts that is not empty", is_content);
const CONTENT_OR_NULL: Kind = Kind::new("a text, parts or null", |v| v.is_null() || is_content(v));

pub(super) const BODY: &[Member] = &[
    need("model", FULL_TEXT),
    need("messages", LIST).by(rules::MESSAGES),
    may("tools", ANYTHING),
    may("tool_choice", ANYTHING),
    may("parallel_tool_calls", BOOL),
    may("max_tokens", POSITIVE).by(rules::LIMIT),
    may("max_completion_tokens", POSITIVE).by(rules::LIMIT),
    may("temperature", TEMPERATURE).by(rules::SAMPLING),
    may("top_p", SHARE).by(rules::SAMPLING),
    may("frequency_penalty", PENALTY).by(rules::SAMPLING),
    may("presence_penalty", PENALTY).by(rules::SAMPLING),
    may("stop", STOP).by(rules::STOP),
    may("stream", BOOL),
    may("stream_options", OPT_OBJECT),
    may("reasoning_effort", EFFORT).by(rules::EFFORT),
    may("n", POSITIVE),
    may("seed", INTEGER),
    may("response_format", OBJECT),
    may("logit_bias", OBJECT),
    may("logprobs", BOOL),
    may("top_logprobs", INTEGER),
    may("metadata", OBJECT),
    may("modalities", LIST),
    may("audio", OBJECT),
    may("prediction", OBJECT),
    may("prompt_cache_key", TEXT),
    may("prompt_cache_options", OBJECT),
    may("prompt_cache_retention", TEXT),
    may("safety_identifier", TEXT),
    may("service_tier", TEXT),
    may("store", BOOL),
    may("user", TEXT),
    may("verbosity", TEXT),
    may("web_search_options", OBJECT),
];
pub(super) const SYSTEM: &[Member] =
    &[need("role", TEXT), need("content", TEXT_OR_PARTS).by(rules::CONTENT), may("name", TEXT)];
pub(super) const USER: &[Member] = SYSTEM;
pub(super) const ASSISTANT: &[Member] = &[
    need("role", TEXT),
    may("content", CONTENT_OR_NULL).by(rules::CONTENT),
    may("refusal", OPT_TEXT),
    may("tool_calls", ANYTHING),
    may("audio", OPT_OBJECT),
    may("name", TEXT),
];
// No `name`: Mistral and Groq answer an unknown member with a 4xx.
pub(super) const TOOL: &[Member] = &[need("role", TEXT), need("tool_call_id", FULL_TEXT), need("content", ANYTHING)];
pub(super) const CALL: &[Member] = &[need("id", FULL_TEXT), need("type", TEXT), need("function", OBJECT)];
pub(super) const CALL_FUNCTION: &[Member] = &[need("name", FULL_TEXT), need("arguments", ANYTHING)];
pub(super) const FUNCTION_TOOL: &[Member] = &[need("type", TEXT), need("function", OBJECT)];
pub(super) const FUNCTION: &[Member] = &[
    need("name", FULL_TEXT),
    may("description", TEXT),
    may("parameters", OBJECT),
    may("strict", Kind::new("true, false or null", |v| v.is_boolean() || v.is_null())),
];
pub(super) const TEXT_PART: &[Member] =
    &[need("type", TEXT), need("text", TEXT), may("prompt_cache_breakpoint", OBJECT)];
pub(super) const REFUSAL_PART: &[Member] = &[need("type", TEXT), need("refusal", TEXT)];
pub(super) const IMAGE_PART: &[Member] =
    &[need("type", TEXT), need("image_url", OBJECT), may("prompt_cache_breakpoint", OBJECT)];
pub(super) const IMAGE_URL: &[Member] = &[
    need("url", Kind::new("an http(s) URL or a data URL of an image", |v| v.as_str().is_some_and(is_image_url)))
        .by(rules::IMAGE),
    may(
        "detail",
        Kind::new("auto, low, high or original", |v| {
            v.as_str().is_some_and(|t| ["auto", "low", "high", "original"].contains(&t))
        }),
    )
    .by(rules::IMAGE),
];
pub(super) const AUDIO_PART: &[Member] =
    &[need("type", TEXT), need("input_audio", OBJECT), may("prompt_cache_breakpoint", OBJECT)];
pub(super) const INPUT_AUDIO: &[Member] = &[
    need("data", Kind::new("base64", |v| v.as_str().is_some_and(is_base64))).by(rules::AUDIO),
    need("format", Kind::new("wav or mp3", |v| matches!(v.as_str(), Some("wav" | "mp3")))).by(rules::AUDIO),
];
pub(super) const FILE_PART: &[Member] =
    &[need("type", TEXT), need("file", OBJECT), may("prompt_cache_breakpoint", OBJECT)];
pub(super) const FILE: &[Member] = &[may("filename", TEXT), may("file_data", FULL_TEXT), may("file_id", FULL_TEXT)];

fn is_content(value: &Value) -> bool {
    match value {
        Value::Array(parts) => !parts.is_empty(),
        other => other.is_string(),
    }
}

fn is_image_url(url: &str) -> bool {
    url.starts_with("https://")
        || url.starts_with("http://")
        || data_url(url).is_some_and(|kind| kind.starts_with("image/"))
}

/// The media type of a data URL in base64.
pub(in super::super) fn data_url(url: &str) -> Option<&str> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    is_base64(data).then_some(kind)
}
