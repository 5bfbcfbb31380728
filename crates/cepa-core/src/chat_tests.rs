//! Requests, responses and options as data.

use serde_json::json;

use crate::{
    Args, AssistantMessage, ChatOptions, ChatRequest, ChatResponse, FinishReason, Message, Thinking, ToolCall, Usage,
};

#[test]
fn a_request_begins_with_nothing_but_messages() {
    let request = ChatRequest::new(vec![Message::user("hi")]);
    assert_eq!((request.messages.len(), request.tools.len(), request.options), (1, 0, ChatOptions::default()));
    assert!(request.system_prompt.is_none() && request.tool_choice.is_none() && !request.events.is_wanted());
    assert_eq!(request.context.conversation_id(), None);
}

#[test]
fn a_response_takes_what_its_message_knows() {
    let usage = Some(Usage { input: 1, output: 2, ..Usage::default() });
    let text = AssistantMessage { content: Some("x".into()), usage, ..AssistantMessage::default() };
    let response = ChatResponse::new(text.clone());
    assert_eq!((response.finish_reason, response.usage), (FinishReason::Stop, usage));
    let calls = AssistantMessage { tool_calls: vec![ToolCall::new("c", "t", Args::empty())], ..text };
    assert_eq!(ChatResponse::new(calls.clone()).finish_reason, FinishReason::ToolCalls);
    let cut = AssistantMessage { finish_reason: Some(FinishReason::Length), ..calls };
    assert_eq!(ChatResponse::new(cut).finish_reason, FinishReason::Length);
}

#[test]
fn options_are_filled_from_defaults_one_by_one() {
    let full = |n: u32, word: &str| ChatOptions {
        max_tokens: Some(n),
        temperature: Some(n.into()),
        top_p: Some(n.into()),
        stop: vec![word.to_owned()],
        parallel_tool_calls: Some(n == 1),
        thinking: Some(Thinking::Budget(n)),
        cache: Some(n == 1),
        continue_pause: false,
        extra: json!({word: n, "both": n}).as_object().cloned().unwrap(),
    };
    assert_eq!(ChatOptions::default().or(&full(1, "a")), full(1, "a"));
    assert_eq!(full(1, "a").or(&ChatOptions::default()), full(1, "a"));
    let mut wanted = full(1, "a");
    wanted.extra.insert("b".to_owned(), json!(2));
    assert_eq!(full(1, "a").or(&full(2, "b")), wanted);
    // To go on with a paused reply is asked for once, never by default.
    let going_on = ChatOptions { continue_pause: true, ..ChatOptions::default() };
    assert!(
        !ChatOptions::default().or(&going_on).continue_pause && going_on.or(&ChatOptions::default()).continue_pause
    );
}
