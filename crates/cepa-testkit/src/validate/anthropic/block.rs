//! What may stand in a message of Anthropic's wire: roles, content blocks, sources.

use serde_json::Value;

use super::{
    super::{
        Report,
        shape::{
            ANYTHING, BOOL, FULL_TEXT, Kind, Member, OBJECT, TEXT, is_base64, is_word, list, may, need, text, text_of,
        },
    },
    CACHE, CONTENT, OPT_CITATIONS, RULES, Version, rules,
};

const MESSAGE: &[Member] = &[need("role", TEXT), need("content", CONTENT)];

const TEXT_BLOCK: &[Member] = &[
    need("type", TEXT),
    need("text", TEXT),
    may("cache_control", CACHE).by(rules::CACHE_MARK),
    may("citations", Kind::new("a list or null", |v| v.is_array() || v.is_null())),
];
const MEDIA_BLOCK: &[Member] = &[
    need("type", TEXT),
    need("source", OBJECT),
    may("cache_control", CACHE).by(rules::CACHE_MARK),
    may("citations", OPT_CITATIONS),
    may("context", TEXT),
    may("title", TEXT),
    may("transformations", OBJECT),
];
const TOOL_USE: &[Member] = &[
    need("type", TEXT),
    need("id", FULL_TEXT),
    need(
        "name",
        Kind::new("a text of 1 to 200 characters", |v| {
            v.as_str().is_some_and(|t| (1..=200).contains(&t.chars().count()))
        }),
    )
    .by(rules::USE_NAME),
    // Checked by the rule `an.input_object`.
    need("input", ANYTHING),
    may("cache_control", CACHE).by(rules::CACHE_MARK),
    may("caller", OBJECT),
    may("toolset_name", TEXT),
];
const TOOL_RESULT: &[Member] = &[
    need("type", TEXT),
    need("tool_use_id", FULL_TEXT),
    may("content", CONTENT),
    may("is_error", BOOL),
    may("cache_control", CACHE).by(rules::CACHE_MARK),
    may("toolset_name", TEXT),
];
/// "Thinking blocks cannot be explicitly marked with cache_control."
const NO_CACHE: Member = may("cache_control", Kind::new("for thinking", |_| false)).by(rules::CACHE_THINKING);
const THINKING: &[Member] =
    &[need("type", TEXT), need("thinking", TEXT), need("signature", FULL_TEXT).by(rules::SIGNED), NO_CACHE];
const REDACTED: &[Member] = &[need("type", TEXT), need("data", FULL_TEXT).by(rules::SIGNED), NO_CACHE];

/// A message: its role, its content, and which blocks its role may send.
pub(super) fn message(report: &mut Report, message: &Value, at: &str, version: Version) {
    let role = text_of(message, "role");
    let Some(object) = RULES.check(report, message, at, MESSAGE, &[]) else { return };
    if !matches!(role, "user" | "assistant") {
        return report.add(rules::ROLE, at, format!("the role `{role}`"));
    }
    match object.get("content") {
        // "messages.0: user messages must have non-empty content"
        Some(Value::String(text)) if text.trim().is_empty() => {
            report.add(rules::MESSAGE_EMPTY, at, "the content is blank")
        }
        Some(Value::Array(blocks)) if blocks.is_empty() => report.add(rules::MESSAGE_EMPTY, at, "the content is []"),
        Some(_) | None => {}
    }
    for (index, block) in list(object, "content").iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        let kind = text_of(block, "type");
        // "`tool_use` blocks can only be in `assistant` messages", "`tool_result` blocks can only be in `user` messages"
        let belongs = match kind {
            "text" => true,
            "image" | "tool_result" | "search_result" | "container_upload" => role == "user",
            // Version 2023-06-01 takes documents in replies, as the fetch tool made them; the newer one does not.
            "document" => role == "user" || version == Version::V2023_06_01,
            _ => role == "assistant",
        };
        if !belongs {
            report.add(rules::BLOCK_ROLE, &at, format!("a block `{kind}` in a message of role {role}"));
        }
        check(report, block, &at);
    }
}

/// A content block.
pub(super) fn check(report: &mut Report, block: &Value, at: &str) -> Option<()> {
    match text_of(block, "type") {
        "text" => {
            let block = RULES.check(report, block, at, TEXT_BLOCK, &[])?;
            // "text content blocks must contain non-whitespace text", "text content blocks must be non-empty"
            if text(block, "text").trim().is_empty() {
                report.add(rules::TEXT_EMPTY, at, "the text is blank");
            }
        }
        kind @ ("image" | "document") => {
            let block = RULES.check(report, block, at, MEDIA_BLOCK, &[])?;
            source(report, block.get("source")?, kind, &format!("{at}.source"));
        }
        "tool_use" => {
            let block = RULES.check(report, block, at, TOOL_USE, &[])?;
            id(report, text(block, "id"), &format!("{at}.id"));
            if !block.get("input").is_some_and(Value::is_object) {
                report.add(rules::INPUT_OBJECT, format!("{at}.input"), "is not an object");
            }
        }
        "tool_result" => {
            let block = RULES.check(report, block, at, TOOL_RESULT, &[])?;
            id(report, text(block, "tool_use_id"), &format!("{at}.tool_use_id"));
            // "These content blocks can use the text, image, document, or search_result types."
            for (index, inner) in list(block, "content").iter().enumerate() {
                let at = format!("{at}.content[{index}]");
                match text_of(inner, "type") {
                    "text" | "image" | "document" => drop(check(report, inner, &at)),
                    "search_result" | "tool_reference" => {}
                    kind => report.add(rules::RESULT_BLOCKS, at, format!("a block `{kind}` in a tool result")),
                }
            }
            // "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true"
            let empty = match block.get("content") {
                Some(Value::String(text)) => text.trim().is_empty(),
                Some(Value::Array(blocks)) => blocks.is_empty(),
                _ => true,
            };
            if empty && block.get("is_error") == Some(&Value::Bool(true)) {
                report.add(rules::ERROR_EMPTY, at, "an error without content");
            }
        }
        "thinking" => drop(RULES.check(report, block, at, THINKING, &[])?),
        "redacted_thinking" => drop(RULES.check(report, block, at, REDACTED, &[])?),
        "server_tool_use" => id(report, text_of(block, "id"), &format!("{at}.id")),
        kind if kind.ends_with("_tool_result") => {
            id(report, text_of(block, "tool_use_id"), &format!("{at}.tool_use_id"))
        }
        "search_result" | "container_upload" | "compaction" | "mcp_tool_use" => {}
        // (A provider gets its own new kinds of blocks back: whoever knows that they are its own leaves this rule out.)
        kind => report.add(rules::BLOCK_TYPE, at, format!("a block of the unknown type `{kind}`")),
    }
    Some(())
}

/// "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
fn id(report: &mut Report, id: &str, at: &str) {
    if !is_word(id, usize::MAX) {
        report.add(rules::IDS_CHARSET, at, format!("`{id}`"));
    }
}

fn source(report: &mut Report, source: &Value, block: &str, at: &str) {
    let media_type = text_of(source, "media_type");
    let data = text_of(source, "data");
    let problem = match (block, text_of(source, "type")) {
        (_, "base64") if !is_base64(data) => Some("data is not base64"),
        ("image", "base64") => (!matches!(media_type, "image/jpeg" | "image/png" | "image/gif" | "image/webp"))
            .then_some("media_type is none of image/jpeg, image/png, image/gif, image/webp"),
        ("document", "base64") => (media_type != "application/pdf").then_some("media_type is not application/pdf"),
        ("document", "text") => (media_type != "text/plain" || data.trim().is_empty()).then_some("not a plain text"),
        ("document", "content") => None,
        (_, "url") => (!text_of(source, "url").starts_with("http")).then_some("url is not one"),
        (_, "file") => text_of(source, "file_id").is_empty().then_some("file_id is missing"),
        _ => Some("a source of unknown type"),
    };
    if let Some(problem) = problem {
        report.add(if block == "image" { rules::IMAGE } else { rules::DOCUMENT }, at, problem);
    }
}
