//! Any history becomes a request that the Responses API takes, the same each time and a beginning of the next one; any bytes
//! are read without a panic, and however a stream is cut, it is one reply.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::{Arc, Mutex};

use cepa_core::{
    AssistantMessage, ChatEvent, ChatRequest, ChatResponse, Error, ErrorKind, EventSink, History, Message, Origin,
    ToolCall, pairing,
};
use cepa_providers::wire::{
    Dialect,
    openai_responses::{Quirks, Responses},
    reply::ReplyDecoder,
};
use cepa_testkit::{
    arbitrary::{Plan, Rng, for_all},
    validate,
};
use serde_json::{Value, json};

const SEEDS: std::ops::Range<u64> = 0..400;

fn dialect() -> Responses {
    Responses::new(Origin { provider: "openai".into(), model: "m".into() }, Quirks::default())
}

fn body(request: &ChatRequest) -> Result<String, String> {
    let pieces = dialect().encode(request).map_err(|error| format!("refused: {error}"))?;
    Ok(String::from_utf8(pieces.concat()).expect("a body is UTF-8"))
}

/// Replaces some assistant messages by what a reply of this very model with the same calls becomes.
fn with_own_replies(messages: &[Message], rng: &mut Rng) -> Vec<Message> {
    let mut own = |message: &Message| match message {
        Message::Assistant(assistant) if rng.chance(60) => Message::Assistant(own_reply(assistant, rng)),
        other => other.clone(),
    };
    messages.iter().map(&mut own).collect()
}

/// The items of a reply with these calls: thinking, texts and items of other tools between them.
fn output(like: &AssistantMessage, rng: &mut Rng) -> Vec<Value> {
    // Servers of one's own begin to count anew in each reply.
    let ids = if rng.chance(70) { rng.next_u64() } else { 1 };
    let mut items = Vec::new();
    let some = |rng: &mut Rng, items: &mut Vec<Value>| {
        let id = |kind: &str, items: &Vec<Value>| format!("{kind}_{ids:x}_{}", items.len());
        if rng.chance(50) {
            let encrypted = rng.pick(&["gAAA+/=", "gAAA+/=", ""]);
            let item =
                json!({"type": "reasoning", "id": id("rs", items), "summary": [], "encrypted_content": encrypted});
            items.push(item);
        }
        if rng.chance(10) {
            items.push(json!({"type": "web_search_call", "id": id("ws", items), "status": "completed", "action": {}}));
        }
        if rng.chance(10) {
            let call_id = rng.pick(&["x", "y"]);
            let kind = rng.pick(&["shell_call", "shell_call_output"]);
            items.push(json!({"type": kind, "id": id("sh", items), "call_id": call_id, "status": "completed"}));
        }
        if rng.chance(50) {
            let part = |rng: &mut Rng| match rng.below(5) {
                0 => json!({"type": "refusal", "refusal": "No."}),
                _ => {
                    json!({"type": "output_text", "text": rng.pick(&["", " ", "So.", "晴\n", " two words "]), "annotations": []})
                }
            };
            let parts: Vec<Value> = (0..rng.below(3)).map(|_| part(rng)).collect();
            let mut item = json!({"type": "message", "role": "assistant", "content": parts});
            let members = item.as_object_mut().expect("an object");
            if rng.chance(80) {
                members.insert("id".into(), id("msg", items).into());
                members.insert("status".into(), "completed".into());
            }
            if rng.chance(30) {
                members.insert("phase".into(), "commentary".into());
            }
            items.push(item);
        }
    };
    some(rng, &mut items);
    for call in &like.tool_calls {
        items.push(json!({
            "type": "function_call", "id": format!("fc_{ids:x}_{}", items.len()), "call_id": call.id, "name": call.name,
            "arguments": call.args.as_str(), "status": "completed",
        }));
        some(rng, &mut items);
    }
    items
}

fn own_reply(like: &AssistantMessage, rng: &mut Rng) -> AssistantMessage {
    let reply = json!({"object": "response", "status": "completed", "output": output(like, rng)});
    let mut reply = dialect().decode(reply.to_string().as_bytes()).expect("a reply").message;
    // The results that follow are for these ids.
    for (call, known) in reply.tool_calls.iter_mut().zip(&like.tool_calls) {
        call.id.clone_from(&known.id);
    }
    match rng.below(20) {
        // A filter has been at it.
        0 => reply.content = Some("***".into()),
        1 => drop(reply.replay.pop()),
        2 => reply.replay.reverse(),
        _ => {}
    }
    reply
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
        let messages = with_own_replies(messages, rng);
        let request = ChatRequest::new(messages.clone());
        let only_system = pairing::heal(&request.messages).messages().all(|m| m.role() == cepa_core::Role::System);
        let text = match body(&request) {
            Err(_) if only_system => return Ok(()),
            other => other?,
        };
        let violations = validate::openai_responses::validate(&serde_json::from_str(&text).expect("JSON"));
        if !violations.is_empty() {
            return Err(format!("{}\n{text}", validate::list(&violations)));
        }
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

/// The text of the input without its end.
fn input_of(body: &str) -> String {
    let members: std::collections::BTreeMap<String, cepa_core::RawJson> = serde_json::from_str(body).expect("JSON");
    members["input"].as_str().strip_suffix(']').expect("a list").to_owned()
}

// W2
#[test]
fn each_request_is_a_beginning_of_the_next() {
    holds(for_all(SEEDS, Plan { odd_media: false, ..Plan::WILD }, |messages, rng| {
        let history = pairing::heal(&History::from(with_own_replies(messages, rng)));
        let sent = |len: usize| body(&ChatRequest::new(history.iter().take(len).cloned().collect::<History>()));
        // What was asked before each reply, once anybody had spoken.
        let spoken = history.messages().take_while(|message| message.role() != cepa_core::Role::User).count();
        let replies =
            history.messages().enumerate().filter(|(at, m)| *at > spoken && matches!(m, Message::Assistant(_)));
        let replies: Vec<usize> = replies.map(|(at, _)| at).collect();
        for asked in replies.windows(2) {
            let (before, after) = (input_of(&sent(asked[0])?), input_of(&sent(asked[1])?));
            if !after.starts_with(&before) {
                return Err(format!("{} messages sent\n{before}\nthen\n{after}", asked[0]));
            }
        }
        Ok(())
    }));
}

// W3: what was said and called arrives.
#[test]
fn nothing_that_was_said_is_lost() {
    holds(for_all(SEEDS, Plan { odd_media: false, ..Plan::VALID }, |messages, rng| {
        let request = ChatRequest::new(with_own_replies(messages, rng));
        let Ok(sent) = body(&request) else { return Ok(()) };
        let text = said_in(&serde_json::from_str(&sent).expect("JSON"));
        for message in request.messages.messages() {
            if !text.contains(&without_space(&message.text())) {
                return Err(format!("{:?} is lost in\n{sent}", message.text()));
            }
            for call in message.tool_calls() {
                let args = Value::from(call.args.as_object_str()).to_string();
                if !sent.contains(&args) {
                    return Err(format!("{args} are lost"));
                }
            }
        }
        Ok(())
    }));
}

/// The texts of a body one after another, without white space (blank texts are not sent).
fn said_in(value: &Value) -> String {
    match value {
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
        Value::Array(items) => items.iter().map(said_in).collect(),
        Value::Object(members) => {
            let names = ["instructions", "text", "content", "refusal", "output"];
            let own = names.iter().filter_map(|name| members.get(*name)?.as_str()).map(without_space);
            own.chain(members.values().map(said_in)).collect()
        }
    }
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The events of a reply with these items, as one server or another streams them.
fn events(items: &[Value], rng: &mut Rng) -> Vec<Value> {
    let (numbers, ids, parts, done) = (rng.chance(60), rng.chance(60), rng.chance(60), rng.chance(60));
    let mut events = vec![json!({"type": "response.created", "response": {"status": "in_progress"}})];
    for (at, item) in items.iter().enumerate() {
        let event = |kind: &str, members: Value| {
            let mut event = json!({"type": format!("response.{kind}")});
            let all = event.as_object_mut().expect("an object");
            all.extend(members.as_object().cloned().unwrap_or_default());
            if numbers {
                all.insert("output_index".into(), at.into());
            }
            if ids && !kind.starts_with("output_item") {
                all.insert("item_id".into(), item["id"].clone());
            }
            event
        };
        let mut begun = item.clone();
        begun["content"] = json!([]);
        begun["arguments"] = json!("");
        events.push(event("output_item.added", json!({"item": begun})));
        let kind = item["type"].as_str().unwrap_or_default();
        for (place, part) in item["content"].as_array().into_iter().flatten().enumerate() {
            let (name, text) = match part["type"].as_str() {
                Some("refusal") => ("refusal", part["refusal"].as_str()),
                _ => ("output_text", part["text"].as_str()),
            };
            if parts || !numbers {
                let empty = json!({"type": part["type"], "text": ""});
                events.push(event("content_part.added", json!({"content_index": place, "part": empty})));
            }
            for delta in pieces(text.unwrap_or_default(), rng) {
                events.push(event(&format!("{name}.delta"), json!({"content_index": place, "delta": delta})));
            }
        }
        for delta in pieces(item["arguments"].as_str().unwrap_or_default(), rng) {
            events.push(event("function_call_arguments.delta", json!({"delta": delta})));
        }
        // What has neither deltas nor is in the last event must be told when it is done.
        if done || !["message", "function_call"].contains(&kind) {
            events.push(event("output_item.done", json!({"item": item})));
        }
    }
    let told = if done && rng.chance(50) { json!([]) } else { json!(items) };
    events.push(json!({"type": "response.completed", "response": {"status": "completed", "output": told}}));
    events
}

/// A text cut at some characters.
fn pieces(text: &str, rng: &mut Rng) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in text.chars() {
        if rng.chance(30) {
            pieces.push(String::new());
        }
        pieces.last_mut().expect("one at least").push(c);
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The reply in a body that comes in pieces of this size, and the events on the way.
fn streamed(body: &[u8], size: usize) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let sink = EventSink::new(move |event| sink.lock().expect("nobody panics").push(event));
    let mut reply = ReplyDecoder::new(&dialect(), sink);
    let pushed = body.chunks(size.max(1)).try_for_each(|chunk| reply.push(chunk));
    let result = pushed.and_then(|()| reply.finish());
    let events = events.lock().expect("nobody panics").clone();
    (result, events)
}

fn sse(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type")))
        .collect()
}

// W1, W6: streamed or not, in whatever pieces: one reply, and the events add up to it.
#[test]
fn a_stream_is_the_reply_that_a_body_is() {
    holds(for_all(SEEDS, Plan { odd_ids: false, ..Plan::VALID }, |messages, rng| {
        for message in messages {
            let Message::Assistant(like) = message else { continue };
            let items = output(like, rng);
            let body = json!({"status": "completed", "output": items}).to_string();
            let whole = dialect().decode(body.as_bytes()).map_err(|error| error.to_string())?;
            let events = events(&items, rng);
            let text = sse(&events);
            let (response, seen) = streamed(text.as_bytes(), 1 + rng.below(64));
            let response = response.map_err(|error| format!("{error}\n{text}"))?;
            if response.message != whole.message {
                return Err(format!("{:?}\nis not\n{:?}\n{text}", response.message, whole.message));
            }
            if seen.contains(&ChatEvent::Reset) {
                return Err(format!("what was told is void, and nothing contradicts it\n{text}"));
            }
            let (said, calls) = told(&seen);
            let content = response.message.content.as_ref().map(|content| content.text().into_owned());
            if content.unwrap_or_default() != said
                || !calls.iter().map(|(_, call)| call).eq(&response.message.tool_calls)
            {
                return Err(format!("the events tell {said:?} and {calls:?}\n{text}"));
            }
            // Cut anywhere before its last event it is no reply.
            let end = text.rfind("event: response.completed").expect("the last event");
            let cut = text.char_indices().map(|(at, _)| at).filter(|at| *at <= end).nth(rng.below(end)).unwrap_or(0);
            let (result, _) = streamed(&text.as_bytes()[..cut], 7);
            if !matches!(&result, Err(error) if matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Decode)) {
                return Err(format!("cut at {cut}: {result:?}\n{text}"));
            }
        }
        Ok(())
    }));
}

/// What was said, and which calls are ready, since everything before was void.
fn told(events: &[ChatEvent]) -> (String, Vec<(usize, ToolCall)>) {
    let (mut said, mut calls) = (String::new(), Vec::new());
    for event in events {
        match event {
            ChatEvent::Text(text) => said.push_str(text),
            ChatEvent::CallReady { index, call } => calls.push((*index, call.clone())),
            ChatEvent::Reset => {
                said.clear();
                calls.clear();
            }
            _ => {}
        }
    }
    (said, calls)
}

// W1: events that are lost, repeated or say something else change nothing about a reply whose end came whole, and what was
// heard is what it says.
#[test]
fn the_whole_at_the_end_counts() {
    holds(for_all(SEEDS, Plan { odd_ids: false, ..Plan::VALID }, |messages, rng| {
        for message in messages {
            let Message::Assistant(like) = message else { continue };
            let items = output(like, rng);
            let body = json!({"status": "completed", "output": items});
            let whole = dialect().decode(body.to_string().as_bytes()).map_err(|error| error.to_string())?.message;
            let mut broken = Vec::new();
            for mut event in events(&items, rng) {
                for name in ["delta", "text", "arguments", "item_id", "output_index", "content_index"] {
                    if event.get(name).is_some() && rng.chance(10) {
                        event[name] = if name.ends_with("index") { json!(rng.below(3)) } else { json!("X") };
                    }
                }
                if event["type"] == "response.output_item.done" && rng.chance(20) {
                    event["item"] = rng.pick(&items).clone();
                }
                for _ in 0..rng.pick(&[0, 1, 1, 1, 1, 1, 1, 2]).to_owned() {
                    let place = if rng.chance(10) { rng.below(broken.len() + 1) } else { broken.len() };
                    broken.insert(place, event.clone());
                }
            }
            broken.retain(|event| event["type"] != "response.completed");
            broken.push(json!({"type": "response.completed", "response": body}));
            let text = sse(&broken);
            let (response, seen) = streamed(text.as_bytes(), 1 + rng.below(64));
            let response = response.map_err(|error| format!("{error}\n{text}"))?.message;
            let said = |message: &AssistantMessage| {
                message.content.as_ref().map(|content| content.text().into_owned()).unwrap_or_default()
            };
            // White space around what was streamed stands.
            if without_space(&said(&response)) != without_space(&said(&whole))
                || response.tool_calls != whole.tool_calls
            {
                return Err(format!("{response:?}\nis not\n{whole:?}\n{text}"));
            }
            let (heard, mut ready) = told(&seen);
            ready.sort_by_key(|(index, _)| *index);
            if heard != said(&response) || !ready.into_iter().eq(response.tool_calls.iter().cloned().enumerate()) {
                return Err(format!("{heard:?} was heard, and not {response:?}\n{text}"));
            }
        }
        Ok(())
    }));
}

/// A value like those that the wire knows, but wrong somewhere.
fn spoil(value: &mut Value, rng: &mut Rng) {
    let odd = |rng: &mut Rng| match rng.below(8) {
        0 => Value::Null,
        1 => json!(""),
        2 => json!(-1),
        3 => json!([]),
        4 => json!({}),
        5 => json!("\u{0}é"),
        6 => json!(1e300),
        _ => json!([{"type": "message"}]),
    };
    match value {
        _ if rng.chance(4) => *value = odd(rng),
        Value::Array(items) => {
            if !items.is_empty() && rng.chance(10) {
                let at = rng.below(items.len());
                items.push(items[at].clone());
            }
            items.iter_mut().for_each(|item| spoil(item, rng));
        }
        Value::Object(members) => {
            if rng.chance(6)
                && let Some(name) = members.keys().nth(rng.below(members.len())).cloned()
            {
                members.remove(&name);
            }
            members.values_mut().for_each(|member| spoil(member, rng));
        }
        _ => {}
    }
}

// W1: whatever comes, it is a reply or an error; a reply can be sent back.
#[test]
fn any_bytes_are_a_reply_or_an_error() {
    holds(for_all(0..1500, Plan { odd_ids: false, ..Plan::VALID }, |messages, rng| {
        let replies = messages.iter().filter_map(|message| match message {
            Message::Assistant(like) => Some(output(like, rng)),
            _ => None,
        });
        let items: Vec<Value> = replies.flatten().take(6).collect();
        let mut body =
            json!({"status": "completed", "output": items, "usage": {"input_tokens": 1, "output_tokens": 2}});
        let mut events = events(&items, rng);
        spoil(&mut body, rng);
        events.iter_mut().for_each(|event| spoil(event, rng));
        let mut order: Vec<Value> = Vec::new();
        for event in events {
            let place = if rng.chance(10) { rng.below(order.len() + 1) } else { order.len() };
            order.insert(place, event);
        }
        let mut bytes: Vec<u8> = order.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect();
        for _ in 0..rng.below(3) {
            let at = rng.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at).filter(|_| rng.chance(50)) {
                *byte = rng.pick(&[0, b'"', b'}', b'\n', 0xff, b'\\']);
            }
        }
        let (result, _) = streamed(&bytes, 1 + rng.below(200));
        for response in [dialect().decode(body.to_string().as_bytes()), result].into_iter().flatten() {
            let history = vec![Message::user("x"), Message::Assistant(response.message), Message::user("y")];
            let sent = dialect().encode(&ChatRequest::new(history)).map_err(|error| error.to_string())?.concat();
            serde_json::from_slice::<Value>(&sent).map_err(|error| format!("not JSON: {error}"))?;
        }
        Ok(())
    }));
}
