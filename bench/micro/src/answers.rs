//! Bodies of answers, in each provider's form: a text and one call of a tool.

fn text(words: usize) -> String {
    (0..words).map(|word| format!("word{word} ")).collect()
}

/// Chat completions.
pub fn openai_chat(words: usize) -> String {
    let (text, call) = (text(words), r#"{"name":"add","arguments":"{\"a\":1,\"b\":2}"}"#);
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","tool_calls":[{{"id":"call_1","type":"function","function":{call}}}]}},"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}}}"#
    )
}

/// Responses.
pub fn openai_responses(words: usize) -> String {
    let text = text(words);
    format!(
        r#"{{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"{text}","annotations":[]}}]}},{{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"add","arguments":"{{\"a\":1,\"b\":2}}"}}],"usage":{{"input_tokens":9,"output_tokens":9,"total_tokens":18}}}}"#
    )
}

/// Anthropic's messages.
pub fn anthropic(words: usize) -> String {
    let text = text(words);
    format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"toolu_1","name":"add","input":{{"a":1,"b":2}}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":9,"output_tokens":9}}}}"#
    )
}

/// Gemini.
pub fn gemini(words: usize) -> String {
    let text = text(words);
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{text}"}},{{"functionCall":{{"name":"add","args":{{"a":1,"b":2}}}}}}]}},"finishReason":"STOP","index":0}}],"usageMetadata":{{"promptTokenCount":9,"candidatesTokenCount":9,"totalTokenCount":18}},"modelVersion":"m"}}"#
    )
}

/// The body of a chat completion that is streamed, one event a word.
pub fn openai_chat_stream(words: usize) -> String {
    let chunk = |choice: String| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{choice}]}}\n\n"
        )
    };
    let delta = |word| format!(r#"{{"index":0,"delta":{{"content":"word{word} "}},"finish_reason":null}}"#);
    let mut body: String = (0..words).map(delta).map(chunk).collect();
    body += &chunk(r#"{"index":0,"delta":{},"finish_reason":"stop"}"#.to_owned());
    body + "data: [DONE]\n\n"
}
