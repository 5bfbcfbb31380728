//! Neutral messages in the form of the protocol.

use cepa_core::{Args, AssistantMessage, Content, FinishReason, Message, Part, RawJson, ToolCall, ToolStatus};
use serde::Serialize;

/// A message as it is reported.
#[derive(Serialize)]
pub(crate) struct Neutral {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<Call>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

/// A call as it is reported; arguments that are no object are null.
#[derive(Serialize)]
pub(crate) struct Call {
    id: String,
    name: String,
    args: Option<RawJson>,
}

/// The text of a content; none if it has no text part.
fn text(content: &Content) -> Option<String> {
    match content {
        Content::Text(text) => Some(text.clone()),
        Content::Parts(parts) if parts.iter().any(|part| matches!(part, Part::Text(_))) => {
            Some(content.text().into_owned())
        }
        Content::Parts(_) => None,
    }
}

/// Arguments as an object, or none.
pub(crate) fn args(args: &Args) -> Option<RawJson> {
    match args {
        Args::Object(raw) => Some(raw.clone()),
        Args::Invalid { .. } => None,
    }
}

pub(crate) fn call(call: &ToolCall) -> Call {
    Call { id: call.id.clone(), name: call.name.clone(), args: args(&call.args) }
}

/// The reply of a model: role, content and calls, each always there.
pub(crate) fn reply(message: &AssistantMessage) -> Neutral {
    Neutral {
        role: "assistant",
        tool_call_id: None,
        name: None,
        content: message.content.as_ref().and_then(text),
        tool_calls: Some(message.tool_calls.iter().map(call).collect()),
        finish: None,
        status: None,
    }
}

/// A message as a model gets to see it.
pub(crate) fn seen(message: &Message) -> Neutral {
    let calls = message.tool_calls();
    let content = message.content().and_then(text);
    let (tool_call_id, name) = match message {
        Message::Tool(tool) => (Some(tool.tool_call_id.clone()), Some(tool.name.clone())),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => (None, None),
    };
    Neutral {
        role: message.role().as_str(),
        tool_call_id,
        name,
        content: match message {
            Message::Assistant(_) => content,
            Message::System(_) | Message::User(_) | Message::Tool(_) => Some(content.unwrap_or_default()),
        },
        tool_calls: (!calls.is_empty()).then(|| calls.iter().map(call).collect()),
        finish: None,
        status: None,
    }
}

/// A message as a store holds it: what a model sees, why a reply ended, how a call ended.
pub(crate) fn stored(message: &Message) -> Neutral {
    let mut neutral = seen(message);
    match message {
        Message::Assistant(reply) => neutral.finish = reply.finish_reason.map(FinishReason::as_str),
        Message::Tool(tool) => neutral.status = (tool.status != ToolStatus::Ok).then(|| tool.status.as_str()),
        Message::System(_) | Message::User(_) => {}
    }
    neutral
}

/// Why a reply ended, in the protocol's words.
pub(crate) fn finish(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::PauseTurn => "pause",
        FinishReason::Other | FinishReason::Cancelled => "unknown",
        FinishReason::Stop
        | FinishReason::ToolCalls
        | FinishReason::Length
        | FinishReason::ContentFilter
        | FinishReason::Refusal => reason.as_str(),
    }
}
