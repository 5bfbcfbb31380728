//! What becomes of single requests; the golden files show whole ones.

use cepa_core::{
    Args, AssistantMessage, ChatRequest, Content, ErrorKind, Extra, FinishReason, History, Media, Message, Origin,
    Part, RawJson, Replay, ToolCall, ToolStatus,
};
use serde_json::{Value, json};

use super::AnthropicMessages;
use crate::wire::Dialect;

pub(super) fn dialect() -> AnthropicMessages {
    AnthropicMessages::new(Origin { provider: "anthropic".into(), model: "m".into() })
}

pub(super) fn body(request: &ChatRequest) -> Value {
    body_of(&dialect(), request)
}

pub(super) fn body_of(dialect: &AnthropicMessages, request: &ChatRequest) -> Value {
    let pieces = dialect.encode(request).expect("the request is encoded");
    serde_json::from_slice(&pieces.concat()).expect("the body is JSON")
}

pub(super) fn refusal(request: &ChatRequest) -> (ErrorKind, String) {
    let error = dialect().encode(request).expect_err("the request is refused");
    (error.kind(), error.message().to_owned())
}

fn messages(history: Vec<Message>) -> Value {
    body(&ChatRequest::new(history))["messages"].take()
}

pub(super) fn calls(ids: &[&str]) -> AssistantMessage {
    let tool_calls = ids.iter().map(|id| ToolCall::new(*id, "f", Args::empty())).collect();
    AssistantMessage { tool_calls, ..AssistantMessage::default() }
}

pub(super) fn replay(model: &str, blocks: &[Value]) -> Vec<Replay> {
    let replay = |block: &Value| Replay {
        format: "anthropic".to_owned(),
        provider: "anthropic".to_owned(),
        model: model.to_owned(),
        data: RawJson::of(block).expect("a block is JSON"),
    };
    blocks.iter().map(replay).collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn left_out(what: &str) -> Value {
    text(&format!("[{what}: left out, it cannot be sent to this model]"))
}

pub(super) fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": "s=="})
}

#[test]
fn a_history_begins_and_ends_with_the_user() {
    assert_eq!(
        messages(vec![Message::assistant("Welcome!")]),
        json!([
            {"role": "user", "content": [text("(start of the conversation)")]},
            {"role": "assistant", "content": [text("Welcome!")]},
            {"role": "user", "content": [text("Continue.")]},
        ])
    );
    assert_eq!(messages(vec![]), json!([{"role": "user", "content": [text("(start of the conversation)")]}]));
}

// W2: the reply to a request that ended with "Continue." stands behind it in the next one.
#[test]
fn two_assistant_messages_in_a_row_keep_what_stood_between_them() {
    let history = vec![Message::user("x"), Message::assistant("A"), Message::assistant(" "), Message::assistant("B")];
    assert_eq!(
        messages(history),
        json!([
            {"role": "user", "content": [text("x")]},
            {"role": "assistant", "content": [text("A")]},
            {"role": "user", "content": [text("Continue.")]},
            {"role": "assistant", "content": [text("B")]},
            {"role": "user", "content": [text("Continue.")]},
        ])
    );
}

#[test]
fn a_system_message_in_the_middle_keeps_its_place() {
    let history = vec![
        Message::system("S1"),
        Message::system(" "),
        Message::system("S2"),
        Message::user("x"),
        Message::Assistant(calls(&["c1"])),
        Message::system("Be brief."),
        Message::tool("c1", "f", ToolStatus::Ok, "R"),
    ];
    let body = body(&ChatRequest { system_prompt: Some("P".into()), ..ChatRequest::new(history) });
    // W7
    assert_eq!(body["system"], json!([text("P"), text("S1"), text("S2")]));
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "c1", "content": "R"},
            text("<system>Be brief.</system>"),
        ])
    );
}

#[test]
fn a_failure_is_marked_and_never_empty() {
    let result = |status, content: Content| {
        let history =
            vec![Message::user("x"), Message::Assistant(calls(&["c1"])), Message::tool("c1", "f", status, content)];
        messages(history)[2]["content"][0].take()
    };
    let image = Part::Image(Media::bytes("image/png", &b"png"[..]));
    let png = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}});
    assert_eq!(result(ToolStatus::Ok, "  ".into()), json!({"type": "tool_result", "tool_use_id": "c1"}));
    assert_eq!(
        result(ToolStatus::Error, "".into()),
        json!({"type": "tool_result", "tool_use_id": "c1", "is_error": true,
            "content": "The call failed."})
    );
    assert_eq!(
        result(ToolStatus::Ok, vec![Part::Text("see".into()), image.clone()].into())["content"],
        json!([text("see"), png])
    );
    assert_eq!(
        result(ToolStatus::Error, vec![image].into()),
        json!({"type": "tool_result", "tool_use_id": "c1", "content": [text("The call failed."), png]})
    );
    let sound = Part::Audio(Media::bytes("audio/wav", &b"wav"[..]).named("a.wav"));
    assert_eq!(result(ToolStatus::Ok, vec![sound].into())["content"], json!([left_out("audio `a.wav`")]));
}

// W3
#[test]
fn what_the_api_does_not_take_from_a_user_is_refused() {
    let refused = |part: Part| {
        let (kind, message) = refusal(&ChatRequest::new(vec![Message::user(vec![part])]));
        assert_eq!(kind, ErrorKind::InvalidInput, "{message}");
        message
    };
    let bytes = |media_type: &str| Media::bytes(media_type, &b"x"[..]);
    assert!(refused(Part::Audio(bytes("audio/wav"))).contains("no sound"));
    assert!(refused(Part::Image(bytes("image/tiff"))).contains("image/tiff"));
    assert!(refused(Part::Image(bytes("image/*"))).contains("image/*"));
    assert!(refused(Part::Image(Media::url("file:///etc/passwd"))).contains("http"));
    assert!(refused(Part::Document(bytes("application/msword"))).contains("application/msword"));
    assert!(refused(Part::Document(Media::bytes("text/plain", &b"\xff"[..]))).contains("UTF-8"));
    assert!(refused(Part::Image(Media::bytes("image/png", &b""[..]))).contains("without bytes"));
    refused(Part::Other(RawJson::parse(r#"{"type":"hologram"}"#).expect("JSON")));
}

#[test]
fn images_and_documents_are_blocks_of_their_own() {
    let parts = vec![
        Part::Image(Media::bytes("IMAGE/JPG; q=1", &b"jpg"[..])),
        Part::Image(Media::url("https://e.org/a.png")),
        Part::Image(Media::url("data:image/gif;base64,Z2lm")),
        Part::Document(Media::bytes("application/pdf", &b"pdf"[..]).named("a.pdf")),
        Part::Document(Media::url("https://e.org/a.pdf")),
        Part::Document(Media::bytes("text/markdown", &b"# hi"[..])),
        Part::Document(Media::bytes("application/json", &b" "[..])),
    ];
    assert_eq!(
        messages(vec![Message::user(parts)])[0]["content"],
        json!([
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "anBn"}},
            {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "Z2lm"}},
            {"type": "document", "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "cGRm"}},
            {"type": "document", "source": {"type": "url", "url": "https://e.org/a.pdf"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "# hi"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "(empty document)"}},
        ])
    );
}

#[test]
fn media_of_another_assistant_are_named() {
    let parts = vec![Part::Text("Here:".into()), Part::Image(Media::bytes("image/png", &b"x"[..]))];
    let history = vec![Message::user("draw"), Message::assistant(parts), Message::user("thanks")];
    assert_eq!(messages(history)[1]["content"], json!([text("Here:"), left_out("image (image/png)")]));
}

#[test]
fn kept_blocks_stand_where_they_stood_and_say_what_the_message_says_now() {
    let mut reply = calls(&["c1"]);
    reply.content = Some("AB".into());
    let citations = json!([{"type": "char_location"}]);
    let kept = [
        thinking(),
        json!({"text": 1}),
        json!({"call": 0, "extra": {"caller": {"type": "code_execution_20250825", "tool_id": "srv_1"}}}),
        json!({"text": 1, "citations": citations}),
    ];
    reply.replay = replay("m", &kept);
    let sent = |reply: &AssistantMessage| {
        let result = Message::tool("c1", "f", ToolStatus::Ok, "R");
        messages(vec![Message::user("x"), Message::Assistant(reply.clone()), result])[1]["content"].take()
    };
    let call = json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}});
    let mut with_caller = call.clone();
    with_caller["caller"] = json!({"type": "code_execution_20250825", "tool_id": "srv_1"});
    let cited = json!({"type": "text", "text": "B", "citations": citations});
    assert_eq!(sent(&reply), json!([thinking(), text("A"), with_caller, cited]));

    // A filter took the text out: it does not come back.
    reply.content = Some("[removed]".into());
    assert_eq!(sent(&reply), json!([thinking(), text("[removed]"), call]));

    // Another model's signature is worth nothing.
    reply.replay = replay("m2", &kept);
    assert_eq!(sent(&reply), json!([text("[removed]"), call]));
}

#[test]
fn a_reply_never_ends_with_thinking() {
    let only_thinking = AssistantMessage { replay: replay("m", &[thinking()]), ..AssistantMessage::default() };
    let history = vec![Message::user("x"), Message::Assistant(only_thinking), Message::user("y")];
    assert_eq!(messages(history), json!([{"role": "user", "content": [text("x"), text("y")]}]));
}

#[test]
fn a_paused_reply_is_continued_and_joined_with_its_continuation() {
    let search = json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []});
    let paused = Message::Assistant(AssistantMessage {
        content: Some("Let me see.".into()),
        finish_reason: Some(FinishReason::PauseTurn),
        replay: replay("m", &[json!({"text": 11}), search.clone()]),
        ..AssistantMessage::default()
    });
    let rest = Message::Assistant(AssistantMessage {
        content: Some("Done.".into()),
        replay: replay("m", &[found.clone(), json!({"text": 5})]),
        ..AssistantMessage::default()
    });
    let first = json!({"role": "user", "content": [text("x")]});
    let open = json!({"role": "assistant", "content": [text("Let me see."), search]});
    let history: History = vec![Message::user("x"), paused.clone()].into();
    let mut request = ChatRequest::new(history.clone());
    request.options.continue_pause = true;
    assert_eq!(body(&request)["messages"], json!([first, open]));
    // W2: also when nobody says so, and when the reply went on.
    assert_eq!(messages(vec![Message::user("x"), paused.clone()]), json!([first, open]));
    let joined = json!({"role": "assistant", "content": [text("Let me see."), search, found, text("Done.")]});
    let thanks = json!({"role": "user", "content": [text("thanks")]});
    assert_eq!(
        messages(vec![Message::user("x"), paused.clone(), rest, Message::user("thanks")]),
        json!([first, joined, thanks])
    );
    // Given up: a search without a result is refused by the API.
    let said = json!({"role": "assistant", "content": [text("Let me see.")]});
    assert_eq!(messages(vec![Message::user("x"), paused, Message::user("thanks")]), json!([first, said, thanks]));
}

#[test]
fn what_lost_its_other_half_is_left_out() {
    let search = json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []});
    let reply = |model: &str, words: &str, block: &Value| {
        Message::Assistant(AssistantMessage {
            content: Some(words.into()),
            finish_reason: Some(FinishReason::PauseTurn),
            replay: replay(model, &[json!({"text": words.len()}), block.clone()]),
            ..AssistantMessage::default()
        })
    };
    let sent = |first: Message, second: Message| {
        messages(vec![Message::user("x"), first, second, Message::user("y")])[1]["content"].take()
    };
    assert_eq!(sent(reply("m", "A", &search), reply("m", "B", &found)), json!([text("A"), search, text("B"), found]));
    // Another model took over.
    assert_eq!(sent(reply("m", "A", &search), reply("m2", "B", &found)), json!([text("A"), text("B")]));
    let taken_over = messages(vec![Message::user("x"), reply("m2", "A", &search), reply("m", "B", &found)]);
    assert_eq!(taken_over[3]["content"], json!([text("B")]));
}

#[test]
fn the_assistant_stays_last_only_where_it_is_asked_for() {
    let mut request = ChatRequest::new(vec![Message::user("x"), Message::assistant("Searching.")]);
    request.options.continue_pause = true;
    assert_eq!(body(&request)["messages"][1], json!({"role": "assistant", "content": [text("Searching.")]}));
    assert_eq!(body(&request)["messages"].as_array().map(Vec::len), Some(2));
}

// W2: what was encoded once is not encoded again, whoever asks; what depends on the place is not kept.
#[test]
fn the_bytes_of_a_message_are_kept_beside_it() {
    let history: History = vec![
        Message::user("x"),
        Message::Assistant(calls(&["c1"])),
        Message::tool("c1", "f", ToolStatus::Ok, "R"),
        Message::Assistant(calls(&["c1"])),
        Message::tool("c1", "f", ToolStatus::Ok, "S"),
    ]
    .into();
    let request = ChatRequest::new(history.clone());
    let key = &dialect().key;
    let first = dialect().encode(&request).expect("encoded").concat();
    let kept: Vec<bool> = history.iter().map(|entry| entry.encoded.get(key).is_some()).collect();
    assert_eq!(kept, [true, true, true, false, false]);
    let again = dialect().encode(&request).expect("encoded").concat();
    assert_eq!(first, again);
    // A window that begins later sees the id for the first time.
    let window: History = history.iter().skip(3).cloned().collect();
    let sent = messages_of(window);
    assert_eq!(sent[1]["content"][0]["id"], "c1");
    assert_eq!(sent[2]["content"][0]["tool_use_id"], "c1");
}

fn messages_of(history: History) -> Value {
    body(&ChatRequest::new(history))["messages"].take()
}

#[test]
fn arguments_that_are_no_object_leave_as_an_empty_one() {
    let mut reply = calls(&["c1", "c2"]);
    reply.tool_calls[0].args = Args::decode("{\"a\":");
    reply.tool_calls[1].args = Args::Object(RawJson::parse("[1]").expect("JSON"));
    let sent = messages(vec![Message::user("x"), Message::Assistant(reply)]);
    assert_eq!(sent[1]["content"][0]["input"], json!({}));
    assert_eq!(sent[1]["content"][1]["input"], json!({}));
}

#[test]
fn what_a_provider_of_another_wire_keeps_is_not_sent() {
    let mut reply = calls(&["c1"]);
    let mut kept = replay("m", &[json!({"type": "reasoning", "id": "rs_1"})]);
    kept[0].format = "openai_responses".to_owned();
    reply.replay = kept;
    reply.tool_calls[0].extra =
        Extra::from([("extra_content".to_owned(), RawJson::parse(r#"{"google":{}}"#).expect("JSON"))]);
    reply.content = Some(vec![Part::Reasoning("musing".into()), Part::Text("Calling.".into())].into());
    let sent = messages(vec![Message::user("x"), Message::Assistant(reply)]);
    let call = json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}});
    assert_eq!(sent[1]["content"], json!([text("Calling."), call]));
}
