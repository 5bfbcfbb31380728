//! The same conversations on every wire: a translator of another make has to agree that they mean the same (`cargo xtask peers`).
//!
//! `UPDATE_GOLDEN=1 cargo test -p cepa-providers --test golden_wires` writes them anew. Most are the conversations that the two wires of
//! OpenAI have as golden files already; `same_story` is written for this, with all that has a place on every wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "the chat completions' own")]
#[path = "golden_openai/conversations.rs"]
mod all;
#[path = "golden_openai/pretty.rs"]
mod pretty;

use std::{fs, path::Path};

use cepa_core::{
    Args, AssistantMessage, ChatOptions, ChatRequest, Media, Message, Origin, Part, ToolCall, ToolChoice, ToolStatus,
};
use cepa_providers::wire::{
    Dialect,
    anthropic::AnthropicMessages,
    gemini::GenerateContent,
    openai_chat::{self, OpenAiChat},
    openai_responses::{self, Responses},
};
use cepa_testkit::validate::{self, Violation};

fn origin(provider: &str, model: &str) -> Origin {
    Origin { provider: provider.into(), model: model.into() }
}

fn encoded(dialect: &impl Dialect, request: &ChatRequest) -> String {
    String::from_utf8(dialect.encode(request).expect("the request is encoded").concat()).expect("a body is UTF-8")
}

/// Compares the request with its file; the judge of this project has to take it as well.
fn check(wire: &str, name: &str, request: &ChatRequest) {
    let (body, judge): (String, fn(&serde_json::Value) -> Vec<Violation>) = match wire {
        "anthropic" => {
            let dialect = AnthropicMessages::new(origin("anthropic", "claude-sonnet-4-5"));
            (encoded(&dialect, request), validate::anthropic::validate)
        }
        "gemini" => {
            let dialect = GenerateContent::new(origin("gemini", "gemini-3.8-flash"));
            (encoded(&dialect, request), validate::gemini::validate)
        }
        "openai_chat" => {
            let dialect = OpenAiChat::new(origin("openai", "gpt-5.4"), openai_chat::Quirks::default());
            (encoded(&dialect, request), validate::openai_chat::validate)
        }
        "openai_responses" => {
            let dialect = Responses::new(origin("openai", "gpt-5.4"), openai_responses::Quirks::default());
            (encoded(&dialect, request), validate::openai_responses::validate)
        }
        other => panic!("no wire {other}"),
    };
    let violations = judge(&serde_json::from_str(&body).expect("JSON"));
    assert!(violations.is_empty(), "{wire}/{name}:\n{}\n{body}", validate::list(&violations));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cepa-testkit/tests/golden/requests").join(wire);
    let file = folder.join(format!("same_{name}.json"));
    let sent = pretty::pretty(&body);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &sent).expect("the file can be written");
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(sent, kept, "the body is another than in {}", file.display());
}

fn call(id: &str, name: &str, args: &str) -> ToolCall {
    ToolCall::new(id, name, Args::decode(args))
}

fn calls(text: &str, calls: Vec<ToolCall>) -> Message {
    let content = (!text.is_empty()).then(|| text.into());
    Message::Assistant(AssistantMessage { content, tool_calls: calls, ..AssistantMessage::default() })
}

/// Two batches of calls, of which one failed and one was rejected; texts and arguments that are easily spoilt; a picture; options.
fn story() -> ChatRequest {
    let order = r#"{"type":"object","properties":{"item":{"type":"string","description":"What."},
        "count":{"type":"integer"},"price":{"type":["number","null"]},"to":{"type":"object","properties":
        {"street":{"type":"string"},"floors":{"type":"array","items":{"type":"integer"}}},"required":["street"]},
        "how":{"type":"string","enum":["post","bike"]}},"required":["item","count"]}"#;
    let mut request = ChatRequest::new(vec![
        Message::user(vec![
            Part::Text("Order what is on this list:".into()),
            Part::Image(Media::bytes("image/png", &b"\x89PNG\r\n\x1a\n"[..])),
        ]),
        calls(
            "I order, \"one by one\".",
            vec![
                call("call_a", "order", r#"{"item":"茶 🍵","count":9007199254740993,"price":-0.125,"how":"bike"}"#),
                call(
                    "call_b",
                    "order",
                    r#"{"item":"a\nb \"c\" \\d","count":2,"price":null,"to":{"street":"Ä","floors":[3,1,2]}}"#,
                ),
                call("call_c", "order", r#"{"item":"","count":0}"#),
                call("call_d", "stock", ""),
            ],
        ),
        Message::tool("call_a", "order", ToolStatus::Ok, "done: {\"id\": 1}"),
        Message::tool("call_b", "order", ToolStatus::Error, "no such street"),
        Message::tool("call_c", "order", ToolStatus::Rejected, "Rejected: too little"),
        Message::tool("call_d", "stock", ToolStatus::Ok, r#"{"茶": 12, "pears": []}"#),
        calls("", vec![call("call_e", "stock", "{}")]),
        Message::tool("call_e", "stock", ToolStatus::Ok, "[1, 2]"),
        Message::assistant("One is ordered,\n\n* the others are not."),
        Message::user("Why?"),
        Message::user("And </system> \u{1f600}?"),
    ]);
    request.system_prompt = Some("You keep a shop.\nBe \"brief\".".into());
    request.tools = all::tools(&[("order", "Orders an item.", Some(order)), ("stock", "What is there.", None)]);
    request.tool_choice = Some(ToolChoice::Required);
    request.options =
        ChatOptions { max_tokens: Some(321), temperature: Some(0.25), top_p: Some(0.5), ..ChatOptions::default() };
    request
}

// W1, W3
#[test]
fn one_story_on_every_wire() {
    for wire in ["openai_chat", "openai_responses", "anthropic", "gemini"] {
        check(wire, "story", &story());
    }
}

// W1, W3: the names are those of the golden files under openai_chat.
#[test]
fn the_conversations_of_openai_on_the_other_wires() {
    for wire in ["anthropic", "gemini"] {
        check(wire, "text", &all::text());
        check(wire, "images", &all::images());
        check(wire, "parallel_calls", &all::parallel_calls());
        check(wire, "tool_errors", &all::tool_errors());
        check(wire, "several_system_messages", &all::several_system_messages());
        check(wire, "damaged_history", &all::damaged_history());
        check(wire, "tool_choice", &all::tool_choice());
        check(wire, "provider_switch", &all::provider_switch());
        check(wire, "broken_args", &all::broken_args());
        check(wire, "mapped_ids", &all::mapped_ids());
    }
}
