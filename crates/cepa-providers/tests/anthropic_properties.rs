//! Any history becomes a request that Anthropic takes, the same each time, and a beginning of the next one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use cepa_core::{
    AssistantMessage, ChatOptions, ChatRequest, Error, ErrorKind, History, Message, Origin, Thinking, pairing,
};
use cepa_providers::wire::{Dialect, anthropic::AnthropicMessages};
use cepa_testkit::{
    arbitrary::{Plan, Rng, for_all},
    validate,
};
use serde_json::{Value, json};

const SEEDS: std::ops::Range<u64> = 0..400;

fn dialect() -> AnthropicMessages {
    AnthropicMessages::new(Origin { provider: "anthropic".into(), model: "m".into() })
}

fn encode(request: &ChatRequest) -> Result<String, Error> {
    Ok(String::from_utf8(dialect().encode(request)?.concat()).expect("a body is UTF-8"))
}

fn body(request: &ChatRequest) -> Result<String, String> {
    encode(request).map_err(|error| format!("refused: {error}"))
}

/// What became of the server's tools in own replies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerTools {
    /// Each call has its result.
    Whole,
    /// Calls or results are gone: cut replies, edited histories, windows.
    Halved,
}

/// Replaces some assistant messages by what a reply of this very model with the same calls becomes.
fn with_own_replies(messages: &[Message], tools: ServerTools, rng: &mut Rng) -> Vec<Message> {
    let mut own = |message: &Message| match message {
        Message::Assistant(assistant) if rng.chance(60) => Message::Assistant(own_reply(assistant, tools, rng)),
        other => other.clone(),
    };
    messages.iter().map(&mut own).collect()
}

fn own_reply(like: &AssistantMessage, tools: ServerTools, rng: &mut Rng) -> AssistantMessage {
    let mut blocks = Vec::new();
    let text = |rng: &mut Rng, blocks: &mut Vec<Value>| {
        let said = rng.pick(&["", " ", "So.", "晴\n"]).to_owned();
        let cited = json!([{"type": "char_location", "cited_text": "c", "document_index": 0}]);
        let citations = if rng.chance(20) { cited } else { Value::Null };
        blocks.push(json!({"type": "text", "text": said, "citations": citations}));
    };
    if rng.chance(60) {
        blocks.push(json!({"type": "thinking", "thinking": "plan", "signature": rng.pick(&["c2ln", "c2ln", ""])}));
    }
    if rng.chance(15) {
        blocks.push(json!({"type": "redacted_thinking", "data": "Emw="}));
    }
    if rng.chance(60) {
        text(rng, &mut blocks);
    }
    for _ in 0..rng.below(3) {
        let id = format!("srvtoolu_{}", rng.below(1000));
        if tools == ServerTools::Whole || rng.chance(85) {
            blocks.push(json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}}));
        }
        if tools == ServerTools::Whole || rng.chance(85) {
            blocks.push(json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}));
        }
    }
    for call in &like.tool_calls {
        // A reply's ids are there and differ; the odd ones are another provider's.
        let id = format!("toolu_{:x}", rng.next_u64());
        let input: Value = serde_json::from_str(call.args.as_object_str()).expect("an object");
        blocks.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}));
        if rng.chance(10) {
            text(rng, &mut blocks);
        }
    }
    let reason =
        if like.tool_calls.is_empty() { rng.pick(&["end_turn", "pause_turn", "max_tokens"]) } else { "tool_use" };
    let reply = json!({"type": "message", "content": blocks, "stop_reason": reason});
    let mut reply = dialect().decode(reply.to_string().as_bytes()).expect("a reply").message;
    // The results that follow are for these ids.
    for (call, known) in reply.tool_calls.iter_mut().zip(&like.tool_calls) {
        call.id.clone_from(&known.id);
    }
    reply
}

fn some_options(rng: &mut Rng) -> ChatOptions {
    ChatOptions {
        cache: rng.chance(50).then_some(true),
        thinking: rng.chance(40).then_some(Thinking::Budget(1024)),
        ..ChatOptions::default()
    }
}

fn judged(text: &str) -> Result<(), String> {
    let body: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    match validate::anthropic::validate(&body) {
        violations if violations.is_empty() => Ok(()),
        violations => Err(validate::list(&violations)),
    }
}

/// "unexpected `tool_use_id` found in `web_search_tool_result` blocks: each must have a corresponding `server_tool_use` block
/// before it", and the other way round unless the model still waits for the client.
fn server_tools(text: &str) -> Result<(), String> {
    let body: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let mut open: Vec<&Value> = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let blocks = || message["content"].as_array().into_iter().flatten();
        for block in blocks() {
            if block["type"] == "server_tool_use" {
                open.push(&block["id"]);
            } else if block["type"] == "web_search_tool_result" {
                let place = open.iter().position(|id| **id == block["tool_use_id"]);
                open.remove(place.ok_or_else(|| format!("{block} has no call"))?);
            }
        }
        let speaks = blocks().any(|block| block["type"] == "text" && block["text"] != "Continue.");
        if message["role"] == "user" && speaks && !open.is_empty() {
            return Err(format!("{open:?} have no results before {message}"));
        }
    }
    Ok(())
}

fn holds(result: Result<(), String>) {
    if let Err(why) = result {
        panic!("{why}");
    }
}

// W2, W3: damaged, foreign and own messages in any mixture.
#[test]
fn any_history_is_legal_and_the_same_each_time() {
    let plan = Plan { odd_media: false, ..Plan::WILD };
    holds(for_all(SEEDS, plan, |messages, rng| {
        let messages = with_own_replies(messages, ServerTools::Halved, rng);
        let mut request = ChatRequest::new(messages.clone());
        request.options = some_options(rng);
        request.system_prompt = rng.chance(30).then(|| rng.pick(&["Be brief.", " "]).into());
        let text = body(&request)?;
        judged(&text)?;
        server_tools(&text)?;
        // Once more with what was kept, from fresh messages, and after healing.
        let fresh = ChatRequest { messages: messages.into(), ..request.clone() };
        let healed = ChatRequest { messages: pairing::heal(&request.messages), ..request.clone() };
        for (what, again) in [("again", &request), ("fresh", &fresh), ("healed", &healed)] {
            if body(again)? != text {
                return Err(format!("{what}, the body is another"));
            }
        }
        Ok(())
    }));
}

// W3: refused with an error that says so, or legal; nothing in between.
#[test]
fn odd_media_are_refused_or_converted() {
    holds(for_all(SEEDS, Plan::WILD, |messages, _| match encode(&ChatRequest::new(messages.to_vec())) {
        Ok(text) => judged(&text),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        Err(error) => Err(format!("refused as {}", error.kind())),
    }));
}

/// The text of the messages array without its end.
fn messages_of(body: &str) -> &str {
    let (_, messages) = body.split_once(r#","messages":["#).expect("messages come last");
    messages.strip_suffix("]}").expect("the end of the body")
}

// W2
#[test]
fn each_request_is_a_beginning_of_the_next() {
    const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
    holds(for_all(SEEDS, Plan { odd_media: false, ..Plan::WILD }, |messages, rng| {
        let history = pairing::heal(&History::from(with_own_replies(messages, ServerTools::Whole, rng)));
        let cache = rng.chance(50).then_some(true);
        let sent = |len: usize| {
            let mut request = ChatRequest::new(history.iter().take(len).cloned().collect::<History>());
            request.options.cache = cache;
            Ok::<_, String>(body(&request)?.replace(MARK, ""))
        };
        // What was asked before each reply.
        let replies: Vec<usize> = history
            .messages()
            .enumerate()
            .filter(|(index, message)| *index > 0 && matches!(message, Message::Assistant(_)))
            .map(|(index, _)| index)
            .collect();
        for asked in replies.windows(2) {
            let (before, after) = (sent(asked[0])?, sent(asked[1])?);
            let begun = messages_of(&before).strip_suffix("]}").expect("the end of the last message");
            if !messages_of(&after).starts_with(begun) {
                return Err(format!("{} messages sent\n{begun}\nthen\n{after}", asked[0]));
            }
        }
        Ok(())
    }));
}

// What was said and called arrives.
#[test]
fn nothing_that_was_said_is_lost() {
    holds(for_all(SEEDS, Plan { odd_media: false, ..Plan::WILD }, |messages, rng| {
        let request = ChatRequest::new(with_own_replies(messages, ServerTools::Halved, rng));
        let sent = body(&request)?;
        let text = said_in(&serde_json::from_str(&sent).expect("JSON"));
        for message in pairing::heal(&request.messages).messages() {
            if !text.contains(&without_space(&message.text())) {
                return Err(format!("{:?} is lost", message.text()));
            }
            if message.tool_calls().iter().any(|call| !sent.contains(call.args.as_object_str())) {
                return Err("arguments are lost".to_owned());
            }
        }
        Ok(())
    }));
}

/// The texts of a body one after another, without white space (blank texts are not sent) and without arguments.
fn said_in(value: &Value) -> String {
    match value {
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
        Value::Array(items) => items.iter().map(said_in).collect(),
        Value::Object(members) => {
            let own = ["text", "content"].iter().filter_map(|name| members.get(*name)?.as_str()).map(without_space);
            let inside = members.iter().filter(|(name, _)| *name != "input").map(|(_, inside)| said_in(inside));
            own.chain(inside).collect()
        }
    }
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}
