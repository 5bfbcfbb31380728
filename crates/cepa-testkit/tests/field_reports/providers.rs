//! One conversation, several providers: what each gets to see of what the others made.

use cepa_core::{ChatOptions, Message, Thinking, ToolStatus};
use serde_json::{Value, json};

use super::{
    story::stored,
    wires::{Seen, Wire, all, origin, request, tools},
};

/// What each provider may answer, with reasoning that it wants back: a call with the id `toolu_1`, `call_1` or `fc1`.
fn reply(name: &str) -> Value {
    match name {
        "anthropic" => claude(json!([
            {"type": "thinking", "thinking": "plan é\n\"A\"", "signature": "EqQB+/="},
            {"type": "redacted_thinking", "data": "Emw="},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"n": 1}},
        ])),
        "openai-responses" => json!({"status": "completed", "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENCR"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{\"n\":1}"},
        ]}),
        "gemini" => gemini(json!([
            {"text": "Let me look."},
            {"functionCall": {"id": "fc1", "name": "look", "args": {"n": 1}}, "thoughtSignature": "RkMx"},
            {"functionCall": {"id": "fc2", "name": "look", "args": {"n": 2}}, "thoughtSignature": "RkMy"},
        ])),
        _ => json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Let me look.", "reasoning_content": "plan B",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"n\":1}"}}],
        }}]}),
    }
}

fn claude(content: Value) -> Value {
    json!({
        "id": "msg", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
    })
}

fn gemini(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
}

/// A turn that this provider has answered with calls, and their results.
fn turn(wire: &Wire, reply: &Value) -> Vec<Message> {
    let message = wire.replied(reply);
    let results: Vec<Message> =
        message.tool_calls().iter().map(|call| Message::tool(&call.id, "look", ToolStatus::Ok, "seen")).collect();
    [vec![Message::user("go"), message], results].concat()
}

// FR-115, FR-163, FR-170, FR-218: signed thinking goes back verbatim, in its order, in front, to the very model that made it,
// also out of a store.
#[test]
fn a_model_gets_its_thinking_back_word_for_word() {
    let wire = Wire::named("anthropic");
    let messages = turn(&wire, &reply("anthropic"));
    for messages in [stored(&messages), messages] {
        assert_eq!(wire.sent(&messages)["messages"][1]["content"], reply("anthropic")["content"]);
    }
}

// FR-114: thinking without a signature, or with a blank one, is left out; nobody makes one up.
#[test]
fn unsigned_thinking_is_left_out() {
    let wire = Wire::named("anthropic");
    for signature in [json!(""), json!(" "), Value::Null] {
        let reply = claude(json!([
            {"type": "thinking", "thinking": "plan", "signature": signature},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
        ]));
        let messages = turn(&wire, &reply);
        assert_eq!(messages[1].content().unwrap().reasoning(), "plan");
        let sent = wire.sent(&messages);
        assert_eq!(sent["messages"][1]["content"].as_array().unwrap().len(), 1, "{sent}");
        assert!(!sent.to_string().contains("plan"), "{sent}");
    }
}

// FR-116, FR-163, FR-225: each signature goes back on the very part that it came with; two calls have two.
#[test]
fn signatures_stay_on_their_parts() {
    let wire = Wire::named("gemini");
    let messages = turn(&wire, &reply("gemini"));
    let sent = wire.sent(&messages);
    let signatures: Vec<&Value> =
        sent["contents"][1]["parts"].as_array().unwrap().iter().map(|part| &part["thoughtSignature"]).collect();
    assert_eq!(signatures, [&Value::Null, &json!("RkMx"), &json!("RkMy")], "{sent}");
    let wire = Wire::named("gemini-openai");
    let call = |n: usize| {
        json!({"id": format!("fc{n}"), "type": "function", "function": {"name": "look", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": format!("RkM{n}")}}})
    };
    let reply = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "tool_calls": [call(1), call(2)]}}]});
    let sent = wire.sent(&turn(&wire, &reply));
    for n in [1, 2] {
        assert_eq!(sent["messages"][1]["tool_calls"][n - 1]["extra_content"], call(n)["extra_content"], "{sent}");
    }
}

// FR-117, FR-162, FR-217: a reasoning item goes back encrypted, in front of its call, and is asked for in that form.
// FR-143, FR-216: an item has two ids, and the result names the call's.
#[test]
fn a_reasoning_item_stands_in_front_of_its_call() {
    let wire = Wire::named("openai-responses");
    let output = reply("openai-responses")["output"].clone();
    let streamed = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": output[0]}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": output[1]}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": output}}),
    ];
    let streamed = wire.streamed(&streamed.map(|event| event.to_string())).0.unwrap();
    let result = Message::tool("call_1", "look", ToolStatus::Ok, "seen");
    let streamed = vec![Message::user("go"), Message::Assistant(streamed.message), result];
    for messages in [turn(&wire, &reply("openai-responses")), streamed] {
        let sent = wire.sent(&stored(&messages));
        assert_eq!(sent["input"][1], output[0], "{sent}");
        assert_eq!(
            (&sent["input"][2]["id"], &sent["input"][2]["call_id"]),
            (&json!("fc_1"), &json!("call_1")),
            "{sent}"
        );
        assert_eq!(sent["input"][3]["call_id"], "call_1", "{sent}");
        assert_eq!((&sent["store"], &sent["include"][0]), (&json!(false), &json!("reasoning.encrypted_content")));
    }
}

// FR-118, FR-227: reasoning of a turn with calls goes back where the provider wants it, in every later request alike.
#[test]
fn reasoning_goes_back_alike_in_every_request() {
    let wire = Wire::named("deepseek");
    let mut messages = turn(&wire, &reply("deepseek"));
    let first = wire.sent(&messages)["messages"][1].clone();
    assert_eq!(first["reasoning_content"], "plan B");
    messages.extend([Message::assistant("done"), Message::user("next"), Message::assistant("ok"), Message::user("x")]);
    assert_eq!(wire.sent(&messages)["messages"][1], first);
    // Only where it is wanted: a server that does not know the member refuses it.
    for wire in all().filter(|wire| wire.name != "deepseek") {
        let messages = turn(&Wire::named("deepseek"), &reply("deepseek"));
        assert!(!wire.sent(&messages).to_string().contains("plan B"), "{}", wire.name);
    }
    // A turn with calls of somebody else has the member too, empty: the provider looks for it.
    let sent = wire.sent(&turn(&Wire::named("openai"), &reply("openai")));
    assert_eq!(sent["messages"][1]["reasoning_content"], "", "{sent}");
}

// FR-119: after a switch calls are calls, never text. FR-121: no foreign reasoning, ids or system places.
// FR-178: what another provider wrote is read without that provider.
#[test]
fn whoever_goes_on_gets_calls_and_nothing_of_the_others_own() {
    for first in all() {
        let mut messages = vec![Message::system("Be brief.")];
        messages.extend(turn(&first, &reply(first.name)));
        let made = messages[2].tool_calls().len();
        for next in all().filter(|next| next.name != first.name) {
            let mut request = request(&stored(&messages));
            request.tools = tools(&[("look", None)]);
            let body = next.body(&request);
            let seen = Seen::of(&body);
            assert_eq!((seen.calls.len(), seen.results.len()), (made, made), "{} to {}", first.name, next.name);
            assert_eq!(seen.calls[0].1, json!({"n": 1}), "{} to {}: {body}", first.name, next.name);
            for own in ["plan", "EqQB", "Emw=", "RkM", "ENCR", "rs_1", "fc_1"] {
                assert!(!body.to_string().contains(own), "{} to {}: {own}: {body}", first.name, next.name);
            }
        }
    }
}

// FR-120: each reply remembers who made it.
#[test]
fn a_reply_knows_its_provider_and_model() {
    for wire in all() {
        let Message::Assistant(message) = wire.replied(&reply(wire.name)) else { panic!("{}", wire.name) };
        assert_eq!(message.origin, Some(origin(wire.name)));
        let restored = stored(&[Message::Assistant(message)]);
        assert!(matches!(&restored[0], Message::Assistant(m) if m.origin == Some(origin(wire.name))));
    }
}

// FR-115: thinking is not asked for where a turn goes on that was begun without it; the next turn has it again.
#[test]
fn thinking_waits_for_the_next_turn_after_a_switch() {
    let wire = Wire::named("anthropic");
    let mut messages = turn(&Wire::named("openai"), &reply("openai"));
    let thinking = |messages: &[Message]| {
        let options =
            ChatOptions { max_tokens: Some(4096), thinking: Some(Thinking::Budget(1024)), ..ChatOptions::default() };
        wire.body(&cepa_core::ChatRequest { options, ..request(messages) }).get("thinking").is_some()
    };
    assert!(!thinking(&messages));
    messages.extend([Message::assistant("done"), Message::user("next")]);
    assert!(thinking(&messages));
}
