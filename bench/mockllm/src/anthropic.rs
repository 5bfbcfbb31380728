//! Answers in the form of Anthropic's messages.

use serde_json::{Value, json};

use crate::Answer;

fn blocks(answer: &Answer<'_>) -> Vec<Value> {
    if answer.ids.is_empty() {
        return vec![json!({"type": "text", "text": answer.script.text()})];
    }
    let call = |(n, id): (usize, &u64)| {
        let input = json!({"a": answer.round, "b": n});
        json!({"type": "tool_use", "id": format!("toolu_{id:08}"), "name": "add", "input": input})
    };
    answer.ids.iter().enumerate().map(call).collect()
}

fn stop(answer: &Answer<'_>) -> &'static str {
    if answer.ids.is_empty() { "end_turn" } else { "tool_use" }
}

fn message(answer: &Answer<'_>, content: Vec<Value>, stop: Value, written: u32) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": answer.model, "content": content,
        "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": answer.bytes_read / 4, "output_tokens": written},
    })
}

pub fn whole(answer: &Answer<'_>) -> String {
    message(answer, blocks(answer), json!(stop(answer)), 5).to_string()
}

pub fn stream(answer: &Answer<'_>) -> String {
    let mut text = String::new();
    let mut send = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        text.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    };
    send("message_start", json!({"message": message(answer, Vec::new(), Value::Null, 1)}));
    for (index, block) in blocks(answer).into_iter().enumerate() {
        let mut opening = block.clone();
        let deltas: Vec<Value> = if block["type"] == "text" {
            opening["text"] = json!("");
            answer.script.words().map(|word| json!({"type": "text_delta", "text": word})).collect()
        } else {
            opening["input"] = json!({});
            let input = block["input"].to_string();
            let (start, end) = input.split_at(input.len() / 2);
            ["", start, end].iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        };
        send("content_block_start", json!({"index": index, "content_block": opening}));
        deltas.into_iter().for_each(|delta| send("content_block_delta", json!({"index": index, "delta": delta})));
        send("content_block_stop", json!({"index": index}));
    }
    let end = json!({"delta": {"stop_reason": stop(answer), "stop_sequence": null}, "usage": {"output_tokens": 5}});
    send("message_delta", end);
    send("message_stop", json!({}));
    text
}
