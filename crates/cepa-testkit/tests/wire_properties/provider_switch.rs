//! One conversation that providers continue in turn, in the middle of a turn too: with tools, thinking and images.

use cepa_core::{
    ChatOptions, ChatRequest, History, Media, Message, Part, Thinking, Tool, ToolOutput, ToolSet, ToolSpec, ToolStatus,
};
use cepa_testkit::arbitrary::Rng;
use serde_json::{Value, json};

use super::wires::Wire;

fn wires() -> Vec<Wire> {
    vec![
        Wire::openai("gpt"),
        Wire::deepseek("reasoner"),
        Wire::named("mistral", "large"),
        Wire::named("ollama", "qwen"),
        Wire::anthropic("claude-a"),
        Wire::anthropic("claude-b"),
        Wire::gemini("gemini-3-a"),
        Wire::gemini("gemini-3-b"),
        Wire::gemini("gemini-2.5-a"),
        Wire::responses("gpt"),
        Wire::responses("gpt-b"),
    ]
}

fn tools() -> ToolSet {
    let spec = ToolSpec::new("get_weather", "Weather.", Some(r#"{"type":"object","properties":{}}"#)).expect("a spec");
    ToolSet::new([Tool::new(spec, |_, _| async { Ok(ToolOutput::new("sunny")) })]).expect("one tool")
}

/// What a provider answers: thinking that only it may see again, a text, perhaps calls. `mark` tells whose it is.
fn reply(wire: &Wire, rng: &mut Rng, mark: &str) -> Value {
    let calls = if rng.chance(60) { 1 + rng.below(2) } else { 0 };
    let thinks = rng.chance(70);
    let speaks = calls == 0 || rng.chance(50);
    // Ids that repeat and ids that another provider refuses.
    let id = |n: usize, rng: &mut Rng| match rng.below(3) {
        0 => format!("call_{n}"),
        1 => format!("functions.get_weather:{n}"),
        _ => format!("{}_{n}_{:x}", if wire.is_anthropic() { "toolu" } else { "call" }, rng.next_u64()),
    };
    if wire.is_anthropic() {
        let mut content = Vec::new();
        if thinks && rng.chance(80) {
            content.push(json!({"type": "thinking", "thinking": format!("thought {mark}"), "signature": mark}));
        } else if thinks {
            content.push(json!({"type": "redacted_thinking", "data": mark}));
        }
        if speaks {
            content.push(json!({"type": "text", "text": "Let me look."}));
        }
        for n in 0..calls {
            content.push(json!({"type": "tool_use", "id": id(n, rng), "name": "get_weather", "input": {"n": n}}));
        }
        let stop = if calls > 0 { "tool_use" } else { "end_turn" };
        return json!({
            "id": "msg", "type": "message", "role": "assistant", "model": &*wire.origin().model, "content": content,
            "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1},
        });
    }
    if wire.is_gemini() {
        // Base64, in which the mark can be found. It stands on the first call, else on an empty text at the end.
        let signature = format!("{mark:A<16}");
        let mut parts = Vec::new();
        if speaks {
            parts.push(json!({"text": "Let me look."}));
        }
        for n in 0..calls {
            let id = rng.chance(70).then(|| id(n, rng));
            parts.push(json!({"functionCall": {"id": id, "name": "get_weather", "args": {"n": n}}}));
        }
        if thinks && calls == 0 {
            parts.push(json!({"text": ""}));
        }
        let place = if calls == 0 { parts.len() - 1 } else { parts.len() - calls };
        if let Some(part) = parts.get_mut(place).filter(|_| thinks) {
            part["thoughtSignature"] = json!(signature);
        }
        return json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]});
    }
    if wire.is_responses() {
        // Ids that servers of one's own repeat in each reply.
        let item = if rng.chance(80) { mark } else { "1" };
        let mut output = Vec::new();
        for n in 0..calls.max(1) {
            if thinks && (n == 0 || rng.chance(30)) {
                let encrypted = rng.chance(80).then_some(mark);
                let summary = json!([{"type": "summary_text", "text": format!("thought {mark}")}]);
                output.push(json!({
                    "type": "reasoning", "id": format!("rs_{item}_{n}"), "summary": summary, "encrypted_content": encrypted,
                }));
            }
            if speaks && n == 0 {
                let part = json!({"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []});
                output.push(json!({
                    "type": "message", "id": format!("msg_{item}"), "role": "assistant", "status": "completed", "content": [part],
                }));
            }
            if n < calls {
                output.push(json!({
                    "type": "function_call", "id": format!("fc_{item}_{n}"), "call_id": id(n, rng), "name": "get_weather",
                    "arguments": format!("{{\"n\":{n}}}"), "status": "completed",
                }));
            }
        }
        return json!({"object": "response", "status": "completed", "output": output});
    }
    let mut message = json!({"role": "assistant", "content": if speaks { json!("Let me look.") } else { Value::Null }});
    let members = message.as_object_mut().expect("an object");
    if thinks {
        members.insert("reasoning_content".into(), json!(format!("thought {mark}")));
    }
    if calls > 0 {
        let all: Vec<Value> = (0..calls)
            .map(|n| {
                let function = json!({"name": "get_weather", "arguments": format!("{{\"n\":{n}}}")});
                json!({"id": id(n, rng), "type": "function", "function": function})
            })
            .collect();
        members.insert("tool_calls".into(), all.into());
    }
    let finish = if calls > 0 { "tool_calls" } else { "stop" };
    json!({"model": &*wire.origin().model, "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
}

fn user(rng: &mut Rng) -> Message {
    if rng.chance(70) {
        return Message::user("What is the weather?");
    }
    let picture = Part::Image(Media::bytes("image/png", &b"\x89PNG"[..]));
    Message::user(vec![Part::Text("And here?".to_owned()), picture])
}

/// As a store would give it back.
fn stored(message: &Message) -> Message {
    let json = serde_json::to_string(message).expect("a message is JSON");
    serde_json::from_str(&json).expect("a message comes back")
}

// W3: whoever continues the conversation gets a request that it takes, whoever wrote what came before.
#[test]
fn whoever_goes_on_gets_a_request_that_it_takes() {
    for seed in 0..800 {
        let mut rng = Rng::new(seed);
        let wires = wires();
        let mut history = History::new();
        // Whose thinking is in the conversation: (the mark, the wire's place).
        let mut marks: Vec<(String, usize)> = Vec::new();
        history.push(user(&mut rng));
        for step in 0..10 {
            let place = rng.below(wires.len());
            let wire = &wires[place];
            let mark = format!("SIG{step}OF{place}END");
            let thinking = rng.chance(60).then_some(Thinking::Budget(2048));
            let request = ChatRequest {
                tools: tools(),
                options: ChatOptions { max_tokens: Some(8192), thinking, ..ChatOptions::default() },
                ..ChatRequest::new(history.clone())
            };
            let body = wire.encode(&request).unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
            wire.judge(&body).unwrap_or_else(|problem| panic!("seed {seed}, step {step}: {problem}"));
            for (mark, of) in &marks {
                // What one model made for itself is shown to no other.
                assert!(
                    *of == place || !body.contains(mark.as_str()),
                    "seed {seed}, step {step}: {mark} leaks\n{body}"
                );
            }
            let response = wire.decode(&reply(wire, &mut rng, &mark)).expect("a reply that is whole");
            marks.push((mark, place));
            let calls = response.message.tool_calls.clone();
            let message = Message::Assistant(response.message);
            // Half of the time the conversation has been in a store meanwhile.
            history.push(if rng.chance(50) { stored(&message) } else { message });
            for call in &calls {
                history.push(Message::tool(&call.id, &call.name, ToolStatus::Ok, "sunny"));
            }
            if calls.is_empty() || rng.chance(10) {
                history.push(user(&mut rng));
            }
        }
    }
}

// W3: a model gets back the thinking that it signed, verbatim and in its place.
#[test]
fn a_model_gets_its_own_thinking_back() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let wire = Wire::anthropic("claude-a");
        let mut history = History::from(vec![Message::user("x")]);
        let reply = json!({
            "id": "msg", "type": "message", "role": "assistant", "model": "claude-a",
            "content": [
                {"type": "thinking", "thinking": "plan\n\"A\" é", "signature": "EqQB+/="},
                {"type": "redacted_thinking", "data": "Emw="},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"n": 1}},
            ],
            "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
        });
        let message = Message::Assistant(wire.decode(&reply).expect("a reply").message);
        history.push(if rng.chance(50) { stored(&message) } else { message });
        history.push(Message::tool("toolu_1", "get_weather", ToolStatus::Ok, "sunny"));
        let options = ChatOptions {
            max_tokens: Some(8192),
            thinking: Some(Thinking::Budget(2048)),
            cache: rng.chance(50).then_some(true),
            ..ChatOptions::default()
        };
        let request = ChatRequest { tools: tools(), options, ..ChatRequest::new(history) };
        let body: Value = serde_json::from_str(&wire.encode(&request).expect("a body")).expect("JSON");
        let content = body["messages"][1]["content"].as_array().expect("blocks");
        let sent: Vec<&Value> = content.iter().take(2).collect();
        let wanted: Vec<&Value> = reply["content"].as_array().expect("blocks").iter().take(2).collect();
        assert_eq!(sent, wanted, "seed {seed}");
    }
}

// W3: each signature goes back on the very part that it came with, whether the conversation was stored or not.
#[test]
fn a_signature_stays_on_its_part() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let wire = Wire::gemini("gemini-3-a");
        let mut history = History::from(vec![Message::user("x")]);
        let mut replies = Vec::new();
        for step in 0..4 {
            let reply = reply(&wire, &mut rng, &format!("SIG{step}END"));
            let message = wire.decode(&reply).expect("a reply").message;
            let calls = message.tool_calls.clone();
            let message = Message::Assistant(message);
            history.push(if rng.chance(50) { stored(&message) } else { message });
            for call in &calls {
                history.push(Message::tool(&call.id, &call.name, ToolStatus::Ok, "sunny"));
            }
            if calls.is_empty() {
                history.push(user(&mut rng));
            }
            replies.push(reply);
        }
        let body = wire.encode(&ChatRequest { tools: tools(), ..ChatRequest::new(history) }).expect("a body");
        wire.judge(&body).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let sent = body["contents"].as_array().expect("contents").iter().filter(|content| content["role"] == "model");
        for (sent, reply) in sent.zip(&replies) {
            let signatures = |parts: &Value| -> Vec<Value> {
                let parts = parts.as_array().expect("parts").iter();
                let own = |part: &&Value| part["thoughtSignature"] != "skip_thought_signature_validator";
                parts.map(|part| if own(&part) { part["thoughtSignature"].clone() } else { Value::Null }).collect()
            };
            let came = &reply["candidates"][0]["content"]["parts"];
            assert_eq!(signatures(&sent["parts"]), signatures(came), "seed {seed}: {came} went as {sent}");
        }
    }
}

// W2, W3: what a reasoning model wrote goes back item by item, its reasoning in front of what it led to.
#[test]
fn a_response_goes_back_as_it_came() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let wire = Wire::responses("gpt");
        let mut history = History::from(vec![Message::user("x")]);
        let mut wanted = Vec::new();
        for step in 0..4 {
            let item = |kind: &str| format!("{kind}_{step}");
            let reasoning = json!({"type": "reasoning", "id": item("rs"), "summary": [], "encrypted_content": "é+/="});
            let call = json!({
                "type": "function_call", "id": item("fc"), "call_id": item("call"), "name": "get_weather", "arguments": "{ }",
            });
            let mut output = vec![reasoning, call];
            if rng.chance(50) {
                let part = json!({"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []});
                output.insert(1, json!({
                    "type": "message", "id": item("msg"), "role": "assistant", "status": "completed", "content": [part],
                }));
            }
            let reply = json!({"object": "response", "status": "completed", "output": output});
            let message = Message::Assistant(wire.decode(&reply).expect("a reply").message);
            history.push(if rng.chance(50) { stored(&message) } else { message });
            history.push(Message::tool(item("call"), "get_weather", ToolStatus::Ok, "sunny"));
            wanted.extend(output);
            wanted.push(json!({"type": "function_call_output", "call_id": item("call"), "output": "sunny"}));
        }
        let body = wire.encode(&ChatRequest { tools: tools(), ..ChatRequest::new(history) }).expect("a body");
        wire.judge(&body).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["input"].as_array().expect("items").get(1..), Some(&*wanted), "seed {seed}");
    }
}
