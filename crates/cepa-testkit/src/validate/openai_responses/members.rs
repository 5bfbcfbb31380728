//! The objects of a Responses request as tables: members, kinds, ranges.

use serde_json::Value;

use super::{
    super::{
        openai_chat::members::data_url,
        shape::{ANYTHING, BOOL, FULL_TEXT, Kind, LIST, Member, OBJECT, OPT_OBJECT, TEXT, is_word, may, need},
    },
    rules,
};

const TEMPERATURE: Kind = Kind::new("a number from 0 to 2", |v| v.as_f64().is_some_and(|n| (0.0..=2.0).contains(&n)));
const SHARE: Kind = Kind::new("a number from 0 to 1", |v| v.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)));
const LIMIT: Kind = Kind::new("an integer of at least 16", |v| v.as_u64().is_some_and(|n| n >= 16));
const INTEGER: Kind = Kind::new("an integer", |v| v.is_i64() || v.is_u64());
const INPUT: Kind = Kind::new("a text that is not blank, or a list of items that is not empty", |v| match v {
    Value::Array(items) => !items.is_empty(),
    other => other.as_str().is_some_and(|text| !text.trim().is_empty()),
});
const CONTENT: Kind = Kind::new("a text that is not blank, or a list of parts that is not empty", |v| match v {
    Value::Array(parts) => !parts.is_empty(),
    other => other.as_str().is_some_and(|text| !text.trim().is_empty()),
});
/// `call_id`: "Expected a string with maximum length 64", and by the schema at least one; the characters are those of every id
/// that OpenAI makes.
const CALL_ID: Kind = Kind::new("an id of 1 to 64 word characters", |v| v.as_str().is_some_and(|id| is_word(id, 64)));
const ITEM_ID: Kind = CALL_ID;
const STATUS: Kind = Kind::new("in_progress, completed or incomplete", |v| {
    matches!(v.as_str(), Some("in_progress" | "completed" | "incomplete"))
});
const PHASE: Kind =
    Kind::new("commentary or final_answer", |v| matches!(v.as_str(), Some("commentary" | "final_answer")));
const DETAIL: Kind =
    Kind::new("auto, low, high or original", |v| matches!(v.as_str(), Some("auto" | "low" | "high" | "original")));
const IMAGE_URL: Kind = Kind::new("an http(s) URL or a data URL of an image", |v| {
    v.as_str().is_some_and(|url| is_url(url) || data_url(url).is_some_and(|kind| kind.starts_with("image/")))
});
const URL: Kind = Kind::new("an http(s) URL", |v| v.as_str().is_some_and(is_url));
const DATA_URL: Kind = Kind::new("a data URL in base64", |v| v.as_str().is_some_and(|url| data_url(url).is_some()));
const LIST_OR_NONE: Kind = Kind::new("a list", Value::is_array);
const EFFORT: Kind = Kind::new("none, minimal, low, medium, high, xhigh or max", |v| {
    matches!(v.as_str(), Some("none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max"))
});
const SUMMARY: Kind =
    Kind::new("auto, concise or detailed", |v| matches!(v.as_str(), Some("auto" | "concise" | "detailed")));
const INCLUDE: Kind = Kind::new("a list of what may be included", |v| {
    let known = [
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
    ];
    v.as_array().is_some_and(|all| all.iter().all(|one| one.as_str().is_some_and(|one| known.contains(&one))))
});

pub(super) const BODY: &[Member] = &[
    need("model", FULL_TEXT),
    need("input", INPUT).by(rules::INPUT),
    may("instructions", FULL_TEXT),
    may("tools", LIST),
    may("tool_choice", ANYTHING),
    may("parallel_tool_calls", BOOL),
    may("max_output_tokens", LIMIT).by(rules::LIMIT),
    may("temperature", TEMPERATURE).by(rules::SAMPLING),
    may("top_p", SHARE).by(rules::SAMPLING),
    may("reasoning", OPT_OBJECT),
    may("text", OBJECT),
    may("store", BOOL),
    may("include", INCLUDE).by(rules::INCLUDE),
    may("stream", BOOL),
    may("stream_options", OPT_OBJECT),
    may("background", BOOL),
    may("previous_response_id", FULL_TEXT),
    may("conversation", ANYTHING),
    may("context_management", LIST),
    may("max_tool_calls", INTEGER),
    may("top_logprobs", INTEGER),
    may("metadata", OBJECT),
    may("moderation", OBJECT),
    may("prompt", OBJECT),
    may("prompt_cache_key", TEXT),
    may("prompt_cache_options", OBJECT),
    may("prompt_cache_retention", TEXT),
    may("safety_identifier", TEXT),
    may("service_tier", TEXT),
    may("truncation", TEXT),
    may("user", TEXT),
];
pub(super) const REASONING_SETTINGS: &[Member] = &[
    may("effort", EFFORT).by(rules::EFFORT),
    may("summary", SUMMARY).by(rules::EFFORT),
    may("mode", TEXT),
    may("context", TEXT),
];
pub(super) const INPUT_MESSAGE: &[Member] =
    &[may("type", TEXT), need("role", TEXT), need("content", CONTENT).by(rules::CONTENT)];
/// `EasyInputMessage`.
pub(super) const ASSISTANT_TEXT: &[Member] =
    &[may("type", TEXT), need("role", TEXT), need("content", FULL_TEXT).by(rules::CONTENT), may("phase", PHASE)];
/// `OutputMessage`.
pub(super) const OUTPUT_MESSAGE: &[Member] = &[
    need("type", TEXT).by(rules::OUTPUT_MESSAGE),
    need("id", ITEM_ID).by(rules::OUTPUT_MESSAGE),
    need("role", TEXT),
    need("content", LIST).by(rules::CONTENT),
    need("status", STATUS).by(rules::OUTPUT_MESSAGE),
    may("phase", PHASE),
];
pub(super) const FUNCTION_CALL: &[Member] = &[
    need("type", TEXT),
    may("id", ITEM_ID).by(rules::CALL_ID),
    need("call_id", CALL_ID).by(rules::CALL_ID),
    need("name", FULL_TEXT),
    need("arguments", ANYTHING),
    may("status", STATUS),
    may("namespace", TEXT),
    may("caller", OBJECT),
];
pub(super) const FUNCTION_OUTPUT: &[Member] = &[
    need("type", TEXT),
    may("id", ITEM_ID).by(rules::CALL_ID),
    need("call_id", CALL_ID).by(rules::CALL_ID),
    need("output", Kind::new("a text, or a list of parts", |v| v.is_string() || v.is_array())),
    may("status", STATUS),
];
pub(super) const REASONING: &[Member] = &[
    need("type", TEXT),
    need("id", ITEM_ID).by(rules::CALL_ID),
    // "Input[N] missing required field `summary`"
    need("summary", LIST_OR_NONE).by(rules::SUMMARY),
    may("content", LIST_OR_NONE),
    may("encrypted_content", Kind::new("a text or null", |v| v.is_string() || v.is_null())),
    may("status", STATUS),
];
pub(super) const INPUT_TEXT: &[Member] =
    &[need("type", TEXT), need("text", FULL_TEXT), may("prompt_cache_breakpoint", OBJECT)];
pub(super) const INPUT_IMAGE: &[Member] = &[
    need("type", TEXT),
    need("detail", DETAIL),
    may("image_url", IMAGE_URL).by(rules::IMAGE_URL),
    may("file_id", FULL_TEXT),
    may("prompt_cache_breakpoint", OBJECT),
];
pub(super) const INPUT_FILE: &[Member] = &[
    need("type", TEXT),
    may("filename", FULL_TEXT),
    may("file_data", DATA_URL).by(rules::FILE_DATA),
    may("file_url", URL),
    may("file_id", FULL_TEXT),
    may("detail", DETAIL),
    may("prompt_cache_breakpoint", OBJECT),
];
pub(super) const OUTPUT_TEXT: &[Member] = &[
    need("type", TEXT),
    need("text", FULL_TEXT),
    need("annotations", LIST_OR_NONE).by(rules::OUTPUT_MESSAGE),
    need("logprobs", LIST_OR_NONE).by(rules::OUTPUT_MESSAGE),
];
pub(super) const REFUSAL: &[Member] = &[need("type", TEXT), need("refusal", FULL_TEXT)];
pub(super) const FUNCTION_TOOL: &[Member] = &[
    need("type", TEXT),
    need("name", FULL_TEXT),
    may("description", TEXT),
    need("parameters", OBJECT),
    need("strict", BOOL).by(rules::STRICT_SAID),
    may("defer_loading", BOOL),
    may("output_schema", OBJECT),
    may("allowed_callers", LIST),
];

fn is_url(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}
