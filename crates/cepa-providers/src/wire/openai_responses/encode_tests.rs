//! Single rules of requests; whole ones are golden files (`tests/golden_responses.rs`).

use cepa_core::{
    Args, AssistantMessage, ChatOptions, ChatRequest, Content, Error, ErrorKind, Media, Message, Part, Thinking, Tool,
    ToolCall, ToolChoice, ToolOutput, ToolSet, ToolSpec, ToolStatus,
};
use serde_json::{Value, json};

use super::*;

fn dialect(model: &str) -> Responses {
    Responses::new(Origin { provider: "openai".into(), model: model.into() }, Quirks::default())
}

fn body(request: &ChatRequest) -> Result<Value, Error> {
    Ok(serde_json::from_slice(&dialect("gpt").encode(request)?.concat()).unwrap())
}

fn input(messages: Vec<Message>) -> Value {
    body(&ChatRequest::new(messages)).unwrap()["input"].clone()
}

/// A reply of this model, as it is decoded.
fn reply(model: &str, output: Value) -> Message {
    let body = json!({"status": "completed", "output": output}).to_string();
    Message::Assistant(dialect(model).decode(body.as_bytes()).unwrap().message)
}

fn reasoning(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAA+/="})
}

fn said(id: &str, text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    json!({"type": "message", "id": id, "role": "assistant", "content": [part], "status": "completed"})
}

fn call(id: &str, call_id: &str) -> Value {
    json!({"type": "function_call", "id": id, "call_id": call_id, "name": "look", "arguments": "{ \"a\" : 1 }"})
}

fn result(call_id: &str) -> Message {
    Message::tool(call_id, "look", ToolStatus::Ok, "seen")
}

fn output_of(call_id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call_id, "output": "seen"})
}

// W2, W3, W9: what one reply held goes back word for word and in its order, to its own model.
#[test]
fn a_reply_goes_back_as_it_came() {
    let output = [
        reasoning("rs_1"),
        said("msg_1", "I look."),
        call("fc_1", "call_1"),
        reasoning("rs_2"),
        call("fc_2", "call_2"),
    ];
    let own = vec![Message::user("x"), reply("gpt", json!(output)), result("call_1"), result("call_2")];
    let sent = input(own);
    let wanted: Vec<Value> = output.into_iter().chain([output_of("call_1"), output_of("call_2")]).collect();
    assert_eq!(sent.as_array().unwrap()[1..], wanted);
}

// W9
#[test]
fn another_models_reply_goes_as_text_and_calls() {
    let output = json!([reasoning("rs_1"), said("msg_1", "I look."), call("fc_1", "call_1")]);
    let sent = input(vec![Message::user("x"), reply("other", output), result("call_1")]);
    let wanted = json!([
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{ \"a\" : 1 }"},
        output_of("call_1"),
    ]);
    assert_eq!(sent.as_array().unwrap()[1..], wanted.as_array().unwrap()[..]);
}

/// Whether anything of an item's id or its reasoning is sent.
fn holds_ids(sent: &Value) -> bool {
    sent.as_array().unwrap().iter().any(|item| item.get("id").is_some() || item["type"] == "reasoning")
}

// W9: without a caller who wants it stored, only what holds itself goes back.
#[test]
fn ids_go_back_only_with_everything_that_belongs_to_them() {
    let unreadable = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}]});
    let messages = vec![reply("gpt", json!([unreadable, said("msg_1", "a")])), Message::user("x")];
    assert!(!holds_ids(&input(messages.clone())), "reasoning that nobody stored");
    let mut request = ChatRequest::new(messages);
    request.options.extra.insert("store".to_owned(), json!(true));
    assert!(holds_ids(&body(&request).unwrap()["input"]), "reasoning that the provider stored");

    let trailing = reply("gpt", json!([said("msg_1", "a"), reasoning("rs_1")]));
    let sent = input(vec![trailing, Message::user("x")]);
    assert_eq!(sent[0]["id"], "msg_1");
    assert_eq!(sent.as_array().unwrap().len(), 2, "reasoning that nothing follows");

    let open = json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "c", "name": "n", "input": "i"});
    let sent = input(vec![reply("gpt", json!([open, said("msg_1", "a")])), Message::user("x")]);
    assert!(!holds_ids(&sent) && !sent.to_string().contains("custom_tool_call"), "a call that nobody answers");
    let answered = json!({"type": "custom_tool_call_output", "id": "co_1", "call_id": "c", "output": "o"});
    let sent = input(vec![reply("gpt", json!([open, answered, said("msg_1", "a")])), Message::user("x")]);
    assert_eq!(sent[1]["type"], "custom_tool_call_output");
}

// W9
#[test]
fn a_reply_that_was_edited_goes_without_its_reasoning() {
    let mut message = reply("gpt", json!([reasoning("rs_1"), said("msg_1", "secret")]));
    if let Message::Assistant(message) = &mut message {
        message.content = Some("***".into());
    }
    let sent = input(vec![message, Message::user("x")]);
    assert_eq!(sent[0], json!({"type": "message", "role": "assistant", "content": "***"}));
}

#[test]
fn an_item_is_sent_once() {
    let one = reply("gpt", json!([reasoning("rs_1"), said("msg_1", "a")]));
    let messages = vec![one.clone(), Message::user("x"), one.clone(), Message::user("y")];
    let sent = input(messages);
    assert_eq!(sent.to_string().matches("rs_1").count(), 1);
    assert_eq!(sent[3], json!({"type": "message", "role": "assistant", "content": "a"}));
    let twice = reply("gpt", json!([reasoning("rs_1"), reasoning("rs_1"), said("msg_1", "a")]));
    assert!(!holds_ids(&input(vec![twice, Message::user("x")])));
}

#[test]
fn the_phase_of_a_message_is_kept_without_its_id_too() {
    let mut commentary = said("msg_1", "I look.");
    commentary["phase"] = json!("commentary");
    let unreadable = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let sent = input(vec![reply("gpt", json!([unreadable, commentary])), Message::user("x")]);
    assert_eq!(sent[0], json!({"type": "message", "role": "assistant", "content": "I look.", "phase": "commentary"}));
}

#[test]
fn blank_texts() {
    let blank = Message::assistant("  ");
    let parts = Content::Parts(vec![Part::Text(" ".into()), Part::Text("a".into())]);
    let sent = input(vec![Message::user("\n"), blank, Message::user(parts), Message::user(Content::Parts(vec![]))]);
    let texts: Vec<&str> =
        sent.as_array().unwrap().iter().map(|item| item["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["(empty message)", "a", "(empty message)"]);
    assert_eq!(input(vec![Message::Assistant(AssistantMessage::default())])[0]["role"], "user");
    let error = body(&ChatRequest::new(vec![Message::system("only")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn system_messages_are_instructions_until_somebody_speaks() {
    let messages = vec![Message::system("two"), Message::user("x"), Message::system("later"), Message::user("y")];
    let request = ChatRequest { system_prompt: Some("one".into()), ..ChatRequest::new(messages) };
    let body = body(&request).unwrap();
    assert_eq!(body["instructions"], "one\n\ntwo");
    assert_eq!(
        body["input"][1],
        json!({"type": "message", "role": "system", "content": [{"type": "input_text", "text": "later"}]})
    );
}

#[test]
fn results_hold_media() {
    let image = Part::Image(Media::bytes("image/png", &b"\x89PNG"[..]));
    let sound = Part::Audio(Media::bytes("audio/wav", &b"RIFF"[..]));
    let calls = Message::Assistant(AssistantMessage {
        tool_calls: vec![ToolCall::new("a", "look", Args::empty()), ToolCall::new("b", "look", Args::empty())],
        ..AssistantMessage::default()
    });
    let seen = Content::Parts(vec![image, sound.clone()]);
    let heard = Content::Parts(vec![sound]);
    let sent = input(vec![
        calls,
        Message::tool("a", "look", ToolStatus::Error, seen),
        Message::tool("b", "look", ToolStatus::Ok, heard),
    ]);
    let left_out = "[audio (audio/wav): left out, it cannot be sent to this model]";
    let wanted = json!([
        {"type": "input_text", "text": "The call failed."},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="},
        {"type": "input_text", "text": left_out},
    ]);
    assert_eq!((&sent[2]["output"], &sent[3]["output"]), (&wanted, &json!(left_out)));
}

// W3
#[test]
fn what_the_api_cannot_take_is_refused() {
    let kind = |request: ChatRequest| body(&request).unwrap_err().kind();
    let hi = || ChatRequest::new(vec![Message::user("hi")]);
    let sound = Message::user(vec![Part::Audio(Media::bytes("audio/wav", &b"RIFF"[..]))]);
    assert_eq!(kind(ChatRequest::new(vec![sound])), ErrorKind::InvalidInput);
    let stop = ChatOptions { stop: vec!["END".into()], ..ChatOptions::default() };
    assert_eq!(kind(ChatRequest { options: stop, ..hi() }), ErrorKind::InvalidConfig);
    let short = ChatOptions { max_tokens: Some(15), ..ChatOptions::default() };
    assert_eq!(kind(ChatRequest { options: short, ..hi() }), ErrorKind::InvalidConfig);
    let heat = ChatOptions { temperature: Some(f64::NAN), ..ChatOptions::default() };
    assert_eq!(kind(ChatRequest { options: heat, ..hi() }), ErrorKind::InvalidConfig);
    assert_eq!(kind(ChatRequest { tool_choice: Some(ToolChoice::Tool("x".into())), ..hi() }), ErrorKind::InvalidInput);
}

fn tools(schema: &str) -> ToolSet {
    let spec = ToolSpec::new("t", "", Some(schema)).unwrap();
    ToolSet::new([Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })]).unwrap()
}

#[test]
fn each_tool_says_whether_it_is_strict() {
    let sent = |schema: &str, strict_tools| {
        let request = ChatRequest { tools: tools(schema), ..ChatRequest::new(vec![Message::user("hi")]) };
        let dialect = Responses::new(dialect("gpt").origin, Quirks { strict_tools, ..Quirks::default() });
        let body: Value = serde_json::from_slice(&dialect.encode(&request).unwrap().concat()).unwrap();
        (body["tools"][0]["strict"].clone(), body["tools"][0]["parameters"].clone())
    };
    let open = r#"{"type":"object","properties":{"a":{"type":["string","null"]}}}"#;
    let closed = r#"{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}"#;
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(sent(open, StrictTools::Fitting), (json!(false), value(open)));
    assert_eq!(sent(closed, StrictTools::Fitting), (json!(true), value(closed)));
    assert_eq!(sent(open, StrictTools::Narrowed), (json!(true), value(closed)));
    assert_eq!(sent(closed, StrictTools::Never), (json!(false), value(closed)));
    let map = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    assert_eq!(sent(map, StrictTools::Narrowed), (json!(false), value(map)));
}

// W9: nothing is stored there.
#[test]
fn options_have_their_names() {
    let mut options = ChatOptions {
        max_tokens: Some(90),
        temperature: Some(0.5),
        thinking: Some(Thinking::Budget(3000)),
        parallel_tool_calls: Some(false),
        ..ChatOptions::default()
    };
    options.extra.insert("include".to_owned(), json!([]));
    options.extra.insert("metadata".to_owned(), json!({"a": "b"}));
    let request = ChatRequest { options, ..ChatRequest::new(vec![Message::user("hi")]) };
    let quirks = Quirks { summary: Some(Summary::Auto), ..Quirks::default() };
    let dialect = Responses::new(dialect("gpt").origin, quirks);
    let mut body: Value = serde_json::from_slice(&dialect.encode(&request).unwrap().concat()).unwrap();
    body.as_object_mut().unwrap().remove("input");
    let wanted = json!({
        "model": "gpt", "max_output_tokens": 90, "temperature": 0.5, "reasoning": {"effort": "medium", "summary": "auto"},
        "store": false, "include": [], "metadata": {"a": "b"},
    });
    assert_eq!(body, wanted);
}
