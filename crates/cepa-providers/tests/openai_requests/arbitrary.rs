//! Conversations of every kind: as turns make them, and as no turn would.

use cepa_core::{
    Args, AssistantMessage, Content, Extra, Media, Message, Origin, Part, RawJson, Replay, ToolCall, ToolMessage,
    ToolStatus,
};
use cepa_providers::{
    catalog::ENDPOINTS,
    wire::openai_chat::{NullContent, OpenAiChat},
};
use proptest::prelude::*;

/// The dialect of any endpoint.
pub(crate) fn dialect() -> impl Strategy<Value = OpenAiChat> {
    (prop::sample::select(ENDPOINTS), any::<bool>()).prop_map(|(endpoint, empty)| {
        let mut quirks = (endpoint.quirks)();
        if empty {
            quirks.null_content = NullContent::EmptyString;
        }
        OpenAiChat::new(Origin { provider: endpoint.name.into(), model: "m".into() }, quirks)
    })
}

fn text() -> impl Strategy<Value = String> {
    "([ -~é晴]{0,8}|\\PC{0,4})"
}

fn origin() -> impl Strategy<Value = Option<Origin>> {
    let names: Vec<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.name).chain(["anthropic"]).collect();
    prop::option::of((prop::sample::select(names), "(m|other)"))
        .prop_map(|origin| origin.map(|(provider, model)| Origin { provider: provider.into(), model: model.into() }))
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![4 => "c[0-3]", 1 => Just(String::new()), 1 => "[a-zA-Z0-9]{9}", 1 => "[ -~]{0,60}", 1 => "\\PC{1,3}"]
}

fn args() -> impl Strategy<Value = Args> {
    prop_oneof![
        Just(Args::empty()),
        text().prop_map(|text| Args::of(&serde_json::json!({"v": text, "n": 1}))),
        Just(Args::decode(r#"{"n": 123456789012345678901234567890, "n": 1.10}"#)),
        text().prop_map(|text| Args::decode(&format!("{{{text}"))),
    ]
}

fn sendable() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => text().prop_map(Part::Text),
        1 => Just(Part::Image(Media::bytes("image/png", &b"\x89PNG"[..]))),
        1 => Just(Part::Image(Media::url("https://example.com/a.png"))),
        1 => Just(Part::Document(Media::bytes("application/pdf", &b"%PDF"[..]).named("a\"b.pdf"))),
        1 => Just(Part::Document(Media::bytes("text/plain", &b"text"[..]))),
        1 => Just(Part::Audio(Media::bytes("audio/wav", &b"RIFF"[..]))),
        1 => text().prop_map(Part::Reasoning),
    ]
}

/// Parts of which some fit nowhere on this wire.
fn any_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => sendable(),
        1 => Just(Part::Audio(Media::bytes("audio/flac", &b"fLaC"[..]))),
        1 => Just(Part::Document(Media::url("https://example.com/a.pdf"))),
        1 => Just(Part::Other(RawJson::parse(r#"{"type":"hologram"}"#).unwrap())),
    ]
}

fn content(part: impl Strategy<Value = Part>) -> impl Strategy<Value = Content> {
    prop_oneof![text().prop_map(Content::Text), prop::collection::vec(part, 0..4).prop_map(Content::Parts)]
}

fn system() -> impl Strategy<Value = Message> {
    text().prop_map(Message::system)
}

fn user() -> impl Strategy<Value = Message> {
    content(sendable()).prop_map(Message::user)
}

fn call() -> impl Strategy<Value = ToolCall> {
    (id(), "(get_weather|files.read|[ -~]{0,70})", args(), any::<bool>()).prop_map(|(id, name, args, signed)| {
        let mut call = ToolCall::new(id, name, args);
        if signed {
            let signature = RawJson::parse(r#"{"google":{"thought_signature":"s"}}"#).unwrap();
            call.extra = Extra::from([("extra_content".into(), signature), ("x".into(), RawJson::empty_object())]);
        }
        call
    })
}

fn assistant(calls: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = AssistantMessage> {
    let parts = (prop::option::of(content(any_part())), prop::collection::vec(call(), calls), origin(), any::<bool>());
    parts.prop_map(|(content, tool_calls, origin, replayed)| {
        let replay = Replay {
            format: "openai_chat".into(),
            provider: origin.as_ref().map_or("", |origin| &*origin.provider).into(),
            model: "m".into(),
            data: RawJson::parse(r#"{"reasoning_details":[{"type":"t"}],"content":"not ours to set"}"#).unwrap(),
        };
        let replay = if replayed { vec![replay] } else { Vec::new() };
        AssistantMessage { content, tool_calls, origin, replay, ..AssistantMessage::default() }
    })
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

fn result() -> impl Strategy<Value = ToolMessage> {
    (id(), status(), content(any_part())).prop_map(|(id, status, content)| {
        match Message::tool(id, "t", status, content) {
            Message::Tool(message) => message,
            _ => unreachable!("a tool message is one"),
        }
    })
}

/// Messages in any order: results without calls, calls without results, everything twice.
pub(crate) fn history() -> impl Strategy<Value = Vec<Message>> {
    let message = prop_oneof![
        1 => system(),
        3 => user(),
        3 => assistant(0..4).prop_map(Message::Assistant),
        4 => result().prop_map(Message::Tool),
    ];
    prop::collection::vec(message, 0..14)
}

/// A conversation in the steps in which it is sent: what is new before each model call.
pub(crate) fn turns() -> impl Strategy<Value = Vec<Vec<Message>>> {
    let batch = (assistant(1..4), prop::collection::vec(result(), 3)).prop_map(|(message, results)| {
        let answers: Vec<Message> = message
            .tool_calls
            .iter()
            .zip(results)
            .map(|(call, result)| Message::Tool(ToolMessage { tool_call_id: call.id.clone(), ..result }))
            .collect();
        std::iter::once(Message::Assistant(message)).chain(answers).collect::<Vec<_>>()
    });
    let answer = (assistant(0), user()).prop_map(|(message, next)| vec![Message::Assistant(message), next]);
    let step = prop_oneof![2 => batch, 1 => answer, 1 => user().prop_map(|message| vec![message])];
    (prop::option::of(system()), user(), prop::collection::vec(step, 0..6)).prop_map(|(system, user, steps)| {
        let opening = system.into_iter().chain([user]).collect();
        std::iter::once(opening).chain(steps).collect()
    })
}
