//! What the golden tests of all wires share: the comparison with a file, and the pieces of conversations.

#![allow(dead_code, reason = "no wire needs all of it")]

#[path = "../golden_openai/pretty.rs"]
pub(crate) mod pretty;

use std::{fs, path::Path};

use cepa_core::{
    Args, AssistantMessage, ChatRequest, Content, Message, Origin, Tool, ToolCall, ToolOutput, ToolSet, ToolSpec,
    ToolStatus,
};
use cepa_providers::wire::Dialect;
use serde_json::Value;

pub(crate) const CITY: &str = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;

/// The body of a request, the same each time.
pub(crate) fn body(dialect: &impl Dialect, request: &ChatRequest) -> String {
    let once = || String::from_utf8(dialect.encode(request).unwrap().concat()).unwrap();
    let body = once();
    assert_eq!(body, once(), "the same request twice");
    body
}

/// Compares a body with the file of this name, or writes it anew.
pub(crate) fn compare(folder: &str, name: &str, body: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cepa-testkit/tests/golden/requests").join(folder);
    let file = folder.join(format!("{name}.json"));
    let sent = pretty::pretty(body);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&file, &sent).unwrap();
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(sent, kept, "{name}: the body is another than in {}", file.display());
}

pub(crate) fn origin(provider: &str, model: &str) -> Origin {
    Origin { provider: provider.into(), model: model.into() }
}

pub(crate) fn tool(name: &str, description: &str, schema: Option<&str>) -> Tool {
    let spec = ToolSpec::new(name, description, schema).unwrap();
    Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })
}

pub(crate) fn weather() -> ToolSet {
    ToolSet::new([tool("get_weather", "Weather of a city.", Some(CITY)), tool("get_time", "The time.", None)]).unwrap()
}

pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> AssistantMessage {
    let call = |(id, name, args): &(&str, &str, &str)| ToolCall::new(*id, *name, Args::decode(args));
    AssistantMessage { tool_calls: calls.iter().map(call).collect(), ..AssistantMessage::default() }
}

pub(crate) fn result(id: &str, content: impl Into<Content>) -> Message {
    Message::tool(id, "get_weather", ToolStatus::Ok, content)
}

/// The message that a dialect makes of a reply.
pub(crate) fn decoded(dialect: &impl Dialect, body: &Value) -> Message {
    Message::Assistant(dialect.decode(body.to_string().as_bytes()).unwrap().message)
}
