//! What the tests of this crate share: a model made of a function, tools, and strategies for messages.

use std::sync::{Arc, Mutex};

use proptest::{collection::vec, option, prelude::*};

use crate::{
    Args, AssistantMessage, BoxFuture, ChatModel, ChatRequest, ChatResponse, Content, Error, Extra, FinishReason,
    Media, Message, Origin, Part, RawJson, Replay, Source, SystemMessage, Tool, ToolCall, ToolContext, ToolMessage,
    ToolOutput, ToolRequest, ToolSpec, ToolStatus, Usage, UserMessage,
};

/// A model made of a function.
pub(crate) struct ToyModel<F> {
    origin: Origin,
    reply: F,
}

pub(crate) fn model<F>(reply: F) -> ToyModel<F>
where
    F: Fn(ChatRequest) -> Result<ChatResponse, Error> + Send + Sync + 'static,
{
    ToyModel { origin: Origin { provider: "toy".into(), model: "toy-1".into() }, reply }
}

impl<F> ChatModel for ToyModel<F>
where
    F: Fn(ChatRequest) -> Result<ChatResponse, Error> + Send + Sync + 'static,
{
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(std::future::ready((self.reply)(request)))
    }
}

/// A reply of text.
pub(crate) fn says(text: &str) -> Result<ChatResponse, Error> {
    Ok(ChatResponse::new(AssistantMessage { content: Some(text.into()), ..AssistantMessage::default() }))
}

/// A list that several closures write to.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A tool that answers with its arguments.
pub(crate) fn echo(name: &str) -> Tool {
    let spec = ToolSpec::new(name, "Says its arguments.", None).unwrap();
    Tool::new(spec, |args, _context| async move { Ok(ToolOutput::new(args.as_str())) })
}

/// A call of a tool that nobody decided on.
pub(crate) fn request(tool: &Tool, args: &str) -> ToolRequest {
    let call = ToolCall::new("c1", tool.name(), Args::decode(args));
    ToolRequest { tool: tool.clone(), call, context: ToolContext::new(), decided: None }
}

/// An assistant message with calls of these ids, all of the tool `t`.
pub(crate) fn calls(ids: &[&str]) -> Message {
    Message::Assistant(AssistantMessage {
        tool_calls: ids.iter().map(|id| ToolCall::new(*id, "t", Args::empty())).collect(),
        ..AssistantMessage::default()
    })
}

/// The result of the call of this id.
pub(crate) fn result(id: &str, text: &str) -> Message {
    Message::tool(id, "t", ToolStatus::Ok, text)
}

/// Texts of JSON values, with numbers, spaces and orders that only the text itself can keep.
pub(crate) fn json_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("123456789012345678901234567890.000".to_owned()),
        Just(r#"{ "b" : 1e2 ,"a":[ ]}"#.to_owned()),
        Just(r#""\u00e9\ud83d\ude00\/""#.to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        vec(any::<u8>(), 0..4).prop_map(|list| serde_json::to_string_pretty(&list).unwrap()),
    ]
}

/// Texts of JSON objects that are arguments.
pub(crate) fn object_text() -> impl Strategy<Value = String> {
    vec((any::<String>(), json_text()), 0..4).prop_map(|members| {
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("{} :{value}", serde_json::to_string(name).unwrap())).collect();
        format!("{{{}}}", members.join(", "))
    })
}

fn raw(text: impl Strategy<Value = String>) -> impl Strategy<Value = RawJson> {
    text.prop_map(|text| RawJson::parse(&text).unwrap())
}

/// Members that this version does not know.
pub(crate) fn extra() -> impl Strategy<Value = Extra> {
    let member = (any::<String>().prop_map(|name| format!("x-{name}")), raw(json_text()));
    vec(member, 0..3).prop_map(|members| members.into_iter().collect())
}

fn media() -> impl Strategy<Value = Media> {
    let source = prop_oneof![
        vec(any::<u8>(), 0..40).prop_map(|bytes| Source::Bytes(bytes.into())),
        any::<String>().prop_map(Source::Url),
    ];
    (source, option::of(any::<String>()), option::of(any::<String>())).prop_map(|(source, media_type, name)| Media {
        source,
        media_type,
        name,
    })
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        any::<String>().prop_map(Part::Text),
        any::<String>().prop_map(Part::Reasoning),
        media().prop_map(Part::Image),
        media().prop_map(Part::Audio),
        media().prop_map(Part::Document),
        raw(json_text().prop_map(|value| format!(r#"{{"type":"hologram", "data": {value}}}"#))).prop_map(Part::Other),
    ]
}

/// Text, or parts of every kind.
pub(crate) fn content() -> impl Strategy<Value = Content> {
    prop_oneof![any::<String>().prop_map(Content::Text), vec(part(), 0..5).prop_map(Content::Parts)]
}

/// Arguments as a provider sends them: objects, and texts that are none.
pub(crate) fn args() -> impl Strategy<Value = Args> {
    prop_oneof![
        3 => object_text().prop_map(|text| Args::decode(&text)),
        1 => any::<String>().prop_map(|text| Args::decode(&text)),
        1 => object_text().prop_map(|text| Args::decode(text.split_at(text.floor_char_boundary(text.len() / 2)).0)),
    ]
}

fn call() -> impl Strategy<Value = ToolCall> {
    (any::<String>(), any::<String>(), args(), extra()).prop_map(|(id, name, args, extra)| ToolCall {
        id,
        name,
        args,
        extra,
    })
}

fn origin() -> impl Strategy<Value = Origin> {
    (any::<String>(), any::<String>())
        .prop_map(|(provider, model)| Origin { provider: provider.into(), model: model.into() })
}

fn usage() -> impl Strategy<Value = Usage> {
    let small = prop_oneof![Just(0), any::<u64>()];
    (any::<u64>(), any::<u64>(), small.clone(), small.clone(), small).prop_map(
        |(input, output, cache_read, cache_write, reasoning)| Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        },
    )
}

fn replay() -> impl Strategy<Value = Replay> {
    (any::<String>(), any::<String>(), any::<String>(), raw(object_text()))
        .prop_map(|(format, provider, model, data)| Replay { format, provider, model, data })
}

fn finish_reason() -> impl Strategy<Value = FinishReason> {
    prop::sample::select(vec![
        FinishReason::Stop,
        FinishReason::ToolCalls,
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::Refusal,
        FinishReason::PauseTurn,
        FinishReason::Cancelled,
        FinishReason::Other,
    ])
}

fn status() -> impl Strategy<Value = ToolStatus> {
    prop::sample::select(vec![
        ToolStatus::Ok,
        ToolStatus::Error,
        ToolStatus::Rejected,
        ToolStatus::Cancelled,
        ToolStatus::Expired,
        ToolStatus::Unknown,
    ])
}

fn assistant() -> impl Strategy<Value = Message> {
    let what = (option::of(content()), vec(call(), 0..4), vec(replay(), 0..3));
    let about = (option::of(origin()), option::of(finish_reason()), option::of(usage()), extra());
    (what, about).prop_map(|((content, tool_calls, replay), (origin, finish_reason, usage, extra))| {
        Message::Assistant(AssistantMessage { content, tool_calls, origin, finish_reason, usage, replay, extra })
    })
}

fn tool() -> impl Strategy<Value = Message> {
    let call = (any::<String>(), any::<String>(), content(), status());
    let more = (option::of(raw(object_text())), option::of(raw(object_text())), extra());
    (call, more).prop_map(|((tool_call_id, name, content, status), (writes, executed_args, extra))| {
        Message::Tool(ToolMessage { tool_call_id, name, content, status, writes, executed_args, extra })
    })
}

/// Messages of every role, with everything that they can hold.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (content(), extra()).prop_map(|(content, extra)| Message::System(SystemMessage { content, extra })),
        (content(), extra()).prop_map(|(content, extra)| Message::User(UserMessage { content, extra })),
        assistant(),
        tool(),
    ]
}
