//! What the golden requests do not show: refusals, edited replies, signatures that must not go elsewhere.

use cepa_core::{
    ChatOptions, Content, ErrorKind, History, Media, Message, Part, Thinking, Tool, ToolChoice, ToolOutput, ToolSet,
    ToolSpec, ToolStatus,
};
use serde_json::{Value, json};

use super::*;

fn dialect(model: &str) -> GenerateContent {
    GenerateContent::new(Origin { provider: "gemini".into(), model: model.into() })
}

fn body(dialect: &GenerateContent, request: &ChatRequest) -> Value {
    serde_json::from_slice(&dialect.encode(request).unwrap().concat()).unwrap()
}

fn error_kind(request: &ChatRequest) -> ErrorKind {
    dialect("gemini-3-flash").encode(request).unwrap_err().kind()
}

fn with(options: ChatOptions) -> ChatRequest {
    ChatRequest { options, ..ChatRequest::new(vec![Message::user("x")]) }
}

fn tools(name: &str) -> ToolSet {
    let spec = ToolSpec::new(name, "", None).unwrap();
    ToolSet::new([Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })]).unwrap()
}

// W3
#[test]
fn what_the_api_does_not_take_is_refused() {
    let options = ChatOptions::default();
    for (what, request) in [
        ("no tokens", with(ChatOptions { max_tokens: Some(0), ..options.clone() })),
        ("too warm", with(ChatOptions { temperature: Some(2.5), ..options.clone() })),
        ("no number", with(ChatOptions { top_p: Some(f64::NAN), ..options.clone() })),
        ("six stops", with(ChatOptions { stop: vec!["s".into(); 6], ..options.clone() })),
        ("an empty stop", with(ChatOptions { stop: vec![String::new()], ..options.clone() })),
    ] {
        assert_eq!(error_kind(&request), ErrorKind::InvalidConfig, "{what}");
    }
    let old = dialect("gemini-2.5-pro")
        .encode(&with(ChatOptions { thinking: Some(Thinking::Effort("vast".into())), ..options }));
    assert_eq!(old.unwrap_err().kind(), ErrorKind::InvalidConfig);
    for part in [
        Part::Image(Media::bytes("image/tiff", &b"II*"[..])),
        Part::Image(Media::bytes("image/png", &b""[..])),
        Part::Document(Media::bytes("application/msword", &b"doc"[..])),
        Part::Image(Media::url("file:///etc/passwd")),
        Part::Image(Media::url("data:image/png,abc")),
        Part::Other(cepa_core::RawJson::parse(r#"{"type":"hologram"}"#).unwrap()),
    ] {
        let request = ChatRequest::new(vec![Message::user(vec![part.clone()])]);
        assert_eq!(error_kind(&request), ErrorKind::InvalidInput, "{part:?}");
    }
    let mut request = with(ChatOptions::default());
    request.tools = tools("get_weather");
    request.tool_choice = Some(ToolChoice::Tool("gone".into()));
    assert_eq!(error_kind(&request), ErrorKind::InvalidInput);
    request.tool_choice = None;
    request.tools = tools(&"1".repeat(64));
    assert_eq!(error_kind(&request), ErrorKind::InvalidTool);
}

/// A reply with a signature on its text and on its first call.
fn signed(model: &str) -> Message {
    let reply = json!({"candidates": [{"content": {"parts": [
        {"text": "So. ", "thoughtSignature": "VFhU"},
        {"functionCall": {"id": "fc1", "name": "t", "args": {}}, "thoughtSignature": "RkMx"},
        {"functionCall": {"id": "fc2", "name": "t", "args": {}}},
    ]}, "finishReason": "STOP"}]});
    Message::Assistant(dialect(model).decode(reply.to_string().as_bytes()).unwrap().message)
}

fn conversation(reply: Message) -> ChatRequest {
    ChatRequest::new(History::from(vec![
        Message::user("x"),
        reply,
        Message::tool("fc1", "t", ToolStatus::Ok, "1"),
        Message::tool("fc2", "t", ToolStatus::Ok, "2"),
    ]))
}

// W3, W8: what one model signed is shown to no other.
#[test]
fn signatures_go_to_their_maker_only() {
    let request = conversation(signed("gemini-3-flash"));
    let own = body(&dialect("gemini-3-flash"), &request).to_string();
    assert!(own.contains("VFhU") && own.contains("RkMx"), "{own}");
    for other in ["gemini-3-pro", "gemini-2.5-flash"] {
        let sent = body(&dialect(other), &request).to_string();
        assert!(!sent.contains("VFhU") && !sent.contains("RkMx"), "{sent}");
    }
}

// W8: a filter that changes the words must not take the signature from the calls.
#[test]
fn an_edited_reply_keeps_the_signatures_of_its_calls() {
    let Message::Assistant(mut reply) = signed("gemini-3-flash") else { panic!("a reply") };
    reply.content = Some(Content::Text("Changed.".into()));
    let sent = body(&dialect("gemini-3-flash"), &conversation(Message::Assistant(reply.clone())));
    assert_eq!(
        sent["contents"][1]["parts"],
        json!([
            {"text": "Changed."},
            {"functionCall": {"id": "fc1", "name": "t", "args": {}}, "thoughtSignature": "RkMx"},
            {"functionCall": {"id": "fc2", "name": "t", "args": {}}},
        ])
    );
    // With a call gone nobody can say which signature is whose.
    reply.tool_calls.remove(0);
    let sent = body(&dialect("gemini-3-flash"), &conversation(Message::Assistant(reply)));
    assert_eq!(sent["contents"][1]["parts"][1]["thoughtSignature"], "skip_thought_signature_validator");
}

#[test]
fn a_result_is_named_as_its_call() {
    let mut request = conversation(signed("gemini-3-flash"));
    request.messages = request
        .messages
        .messages()
        .cloned()
        .map(|message| match message {
            Message::Tool(mut result) => {
                result.name = "another".into();
                Message::Tool(result)
            }
            other => other,
        })
        .collect();
    let sent = body(&dialect("gemini-3-flash"), &request);
    assert_eq!(sent["contents"][2]["parts"][0]["functionResponse"]["name"], "t");
}

#[test]
fn choices_and_efforts_in_gemini_s_words() {
    let mut request = with(ChatOptions::default());
    request.tools = tools("t");
    for (choice, mode) in [(ToolChoice::Auto, "AUTO"), (ToolChoice::None, "NONE"), (ToolChoice::Required, "ANY")] {
        request.tool_choice = Some(choice);
        let sent = body(&dialect("gemini-3-flash"), &request);
        assert_eq!(sent["toolConfig"], json!({"functionCallingConfig": {"mode": mode}}));
    }
    request.tools = ToolSet::default();
    assert!(body(&dialect("gemini-3-flash"), &request).get("toolConfig").is_none());
    let thinking = |model: &str, wanted: Thinking| {
        let request = with(ChatOptions { thinking: Some(wanted), ..ChatOptions::default() });
        body(&dialect(model), &request)["generationConfig"]["thinkingConfig"].clone()
    };
    let effort = |word: &str| Thinking::Effort(word.to_owned());
    assert_eq!(thinking("gemini-3-pro", effort("high")), json!({"includeThoughts": true, "thinkingLevel": "high"}));
    assert_eq!(thinking("gemini-3-pro", Thinking::Off), json!({"thinkingLevel": "minimal"}));
    assert_eq!(thinking("gemini-3-pro", Thinking::Budget(9)), json!({"includeThoughts": true, "thinkingBudget": 9}));
    assert_eq!(thinking("gemini-2.5-pro", effort("high")), json!({"includeThoughts": true, "thinkingBudget": 24576}));
    assert_eq!(thinking("gemini-2.5-pro", Thinking::Off), json!({"thinkingBudget": 0}));
}

#[test]
fn generations_by_name() {
    for (model, wanted) in [
        ("gemini-1.5-pro", Generation::Before3),
        ("gemini-2.5-flash-lite", Generation::Before3),
        ("gemini-3-pro-preview", Generation::From3),
        ("gemini-3.8-flash", Generation::From3),
        ("gemini-10-x", Generation::From3),
        ("gemini-flash-latest", Generation::From3),
        ("models/gemini-4-argon", Generation::From3),
        ("gemma-3-27b-it", Generation::Before3),
        ("", Generation::Before3),
    ] {
        assert_eq!(Generation::of(model), wanted, "{model}");
    }
}
