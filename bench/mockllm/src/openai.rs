//! Answers in the form of OpenAI's chat completions.

use serde_json::{Value, json};

use crate::Answer;

fn usage(answer: &Answer<'_>) -> Value {
    let read = answer.bytes_read / 4;
    json!({"prompt_tokens": read, "completion_tokens": 5, "total_tokens": read + 5})
}

fn finish(answer: &Answer<'_>) -> &'static str {
    if answer.ids.is_empty() { "stop" } else { "tool_calls" }
}

/// The calls: id and arguments.
fn calls(answer: &Answer<'_>) -> impl Iterator<Item = (String, String)> {
    let numbered = answer.ids.iter().enumerate();
    numbered.map(|(n, id)| (format!("call_{id:08}"), format!("{{\"a\":{},\"b\":{n}}}", answer.round)))
}

pub fn whole(answer: &Answer<'_>) -> String {
    let calls: Vec<Value> = calls(answer)
        .map(|(id, args)| json!({"id": id, "type": "function", "function": {"name": "add", "arguments": args}}))
        .collect();
    let message = if calls.is_empty() {
        json!({"role": "assistant", "content": answer.script.text()})
    } else {
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    };
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(answer), "logprobs": null});
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": answer.model,
        "choices": [choice], "usage": usage(answer),
    })
    .to_string()
}

pub fn stream(answer: &Answer<'_>) -> String {
    let mut text = String::new();
    let mut send = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": answer.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        text.push_str(&format!("data: {chunk}\n\n"));
    };
    let delta = |delta: Value| json!([{"index": 0, "delta": delta, "finish_reason": null}]);
    let opening = if answer.ids.is_empty() { json!("") } else { Value::Null };
    send(delta(json!({"role": "assistant", "content": opening})), None);
    if answer.ids.is_empty() {
        answer.script.words().for_each(|word| send(delta(json!({"content": word})), None));
    }
    for (index, (id, args)) in calls(answer).enumerate() {
        let begun = json!({"index": index, "id": id, "type": "function", "function": {"name": "add", "arguments": ""}});
        send(delta(json!({"tool_calls": [begun]})), None);
        let (start, end) = args.split_at(args.len() / 2);
        for piece in [start, end] {
            send(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})), None);
        }
    }
    send(json!([{"index": 0, "delta": {}, "finish_reason": finish(answer)}]), None);
    send(json!([]), Some(usage(answer)));
    text + "data: [DONE]\n\n"
}
