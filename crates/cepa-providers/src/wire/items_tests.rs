//! Replies of very many items, and items under odd numbers: the same in all dialects that count them.

use cepa_core::{ChatResponse, Error, ErrorKind, EventSink, Origin};
use serde_json::{Value, json};

use super::{
    Dialect, anthropic::AnthropicMessages, gemini::GenerateContent, openai_responses::Responses, reply::ReplyDecoder,
};

fn origin() -> Origin {
    Origin { provider: "p".into(), model: "m".into() }
}

fn responses() -> Responses {
    Responses::new(origin(), super::openai_responses::Quirks::default())
}

fn anthropic() -> AnthropicMessages {
    AnthropicMessages::new(origin())
}

fn gemini() -> GenerateContent {
    GenerateContent::new(origin())
}

fn streamed(dialect: &impl Dialect, events: impl IntoIterator<Item = String>) -> Result<ChatResponse, Error> {
    let mut reply = ReplyDecoder::new(dialect, EventSink::none());
    for event in events {
        reply.push(format!("data: {event}\n\n").as_bytes())?;
    }
    reply.finish()
}

fn text(response: &ChatResponse) -> String {
    response.message.content.as_ref().map(|content| content.text().into_owned()).unwrap_or_default()
}

/// Indexes of two items, as one server or another may write them.
fn odd_indexes() -> [[Value; 2]; 7] {
    [
        [json!(0), json!(1)],
        [json!("0"), json!("1")],
        [json!(0.0), json!(1.0)],
        [json!(-1), json!(-2)],
        [json!(1.5), json!(2.5)],
        [json!(u64::MAX), json!(1e300)],
        [json!([0]), json!(true)],
    ]
}

// W1: an index is a key; what is written the same is the same.
#[test]
fn pieces_go_to_their_item_whatever_its_index_is() {
    let args = |response: &ChatResponse| {
        response.message.tool_calls.iter().map(|call| call.args.as_str().to_owned()).collect::<Vec<_>>()
    };
    let wanted = [r#"{"of":0}"#, r#"{"of":1}"#];
    for indexes in odd_indexes() {
        let begin = |n: usize| {
            json!({"type": "content_block_start", "index": indexes[n], "content_block": {"type": "tool_use", "id": format!("c{n}"), "name": "f", "input": {}}}).to_string()
        };
        let delta = |n: usize, part: &str| {
            json!({"type": "content_block_delta", "index": indexes[n], "delta": {"type": "input_json_delta", "partial_json": part}}).to_string()
        };
        let stop = |n: usize| json!({"type": "content_block_stop", "index": indexes[n]}).to_string();
        let end = [
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}).to_string(),
            json!({"type": "message_stop"}).to_string(),
        ];
        let events =
            [begin(0), begin(1), delta(1, "{\"of\":"), delta(0, "{\"of\":0}"), delta(1, "1}"), stop(0), stop(1)];
        assert_eq!(args(&streamed(&anthropic(), events.into_iter().chain(end)).unwrap()), wanted, "{indexes:?}");

        let begin = |n: usize| {
            json!({"type": "response.output_item.added", "output_index": indexes[n], "item": {"type": "function_call", "call_id": format!("c{n}"), "name": "f", "arguments": ""}}).to_string()
        };
        let delta = |n: usize, part: &str| {
            json!({"type": "response.function_call_arguments.delta", "output_index": indexes[n], "delta": part})
                .to_string()
        };
        let done = |n: usize| {
            json!({"type": "response.function_call_arguments.done", "output_index": indexes[n], "arguments": wanted[n]})
                .to_string()
        };
        let end = json!({"type": "response.completed", "response": {"status": "completed", "output": []}}).to_string();
        let events =
            [begin(0), begin(1), delta(1, "{\"of\":"), delta(0, "{\"of\":0}"), done(0), delta(1, "1}"), done(1)];
        assert_eq!(args(&streamed(&responses(), events.into_iter().chain([end])).unwrap()), wanted, "{indexes:?}");

        let chunk = |n: usize, text: &str, word: Value| {
            json!({"candidates": [{"index": indexes[n], "content": {"parts": [{"text": text}]}, "finishReason": word}]})
                .to_string()
        };
        let chunks = [chunk(0, "a", json!(null)), chunk(1, "no", json!(null)), chunk(0, "b", json!("STOP"))];
        assert_eq!(text(&streamed(&gemini(), chunks).unwrap()), "ab", "{indexes:?}");
    }
}

// What belongs to no block may be what a call would run without.
#[test]
fn a_delta_of_no_block_is_an_error() {
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#;
    for (index, delta) in [
        ("\"0\"", r#"{"type":"input_json_delta","partial_json":"{\"a\":1}"}"#),
        ("1", r#"{"type":"text_delta","text":"lost"}"#),
    ] {
        let delta = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
        assert_eq!(streamed(&anthropic(), [begin.to_owned(), delta]).unwrap_err().kind(), ErrorKind::Decode);
    }
    let late = [
        begin,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
    ];
    assert_eq!(streamed(&anthropic(), late.map(str::to_owned)).unwrap_err().kind(), ErrorKind::Decode);
}

fn list(element: &str, many: usize) -> String {
    vec![element; many].join(",")
}

/// How many of a hundred thousand are taken before the reply is given up.
fn taken(dialect: &impl Dialect, event: impl Fn(usize) -> String) -> usize {
    let mut reply = ReplyDecoder::new(dialect, EventSink::none());
    for at in 0..100_000 {
        if let Err(error) = reply.push(format!("data: {}\n\n", event(at)).as_bytes()) {
            assert_eq!(error.kind(), ErrorKind::Decode);
            assert!(error.message().contains("holds more than 4096"), "{error}");
            return at;
        }
    }
    100_000
}

// W10: a reply of very many parts is given up, so that each of them can be looked for among the others.
#[test]
fn a_reply_holds_so_many_items_and_no_more() {
    let part = |at: usize| {
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": at, "delta": "a"}).to_string()
    };
    assert!(taken(&responses(), part) <= 4096);
    let thought = |at: usize| {
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": at % 2, "delta": "a"}).to_string()
    };
    assert!(taken(&responses(), thought) <= 4096);
    let begun = |at: usize| {
        json!({"type": "response.output_item.added", "output_index": at, "item": {"type": "message", "id": at.to_string()}}).to_string()
    };
    assert!(taken(&responses(), begun) <= 4096);
    let other = |at: usize| {
        json!({"type": "response.output_item.done", "output_index": at, "item": {"type": "new", "id": at.to_string()}})
            .to_string()
    };
    assert!(taken(&responses(), other) <= 4096);
    let block = |at: usize| {
        json!({"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": "a"}}).to_string()
    };
    assert!(taken(&anthropic(), block) <= 4096);
    let odd = |_: usize| r#"{"candidates":[{"content":{"parts":[{"text":"","x":1}]}}]}"#.to_owned();
    assert!(taken(&gemini(), odd) <= 4096);
    let turns =
        |_: usize| r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b","thought":true}]}}]}"#.to_owned();
    assert!(taken(&gemini(), turns) <= 4096);
    // However many events bring it, one text is one.
    let plain = |_: usize| r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#.to_owned();
    assert_eq!(taken(&gemini(), plain), 100_000);
    let plain =
        |_: usize| r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}"#.to_owned();
    assert_eq!(taken(&responses(), plain), 100_000);
}

// W10
#[test]
fn a_body_holds_so_many_items_and_no_more() {
    let many = |element: &str| list(element, 100_000);
    let message = many(r#"{"text":"a"}"#);
    let members = (0..100_000).map(|at| format!(r#""m{at}":0"#)).collect::<Vec<_>>().join(",");
    let whole = |output: &str| format!(r#"{{"status":"completed","output":[{output}]}}"#);
    for body in [
        whole(&format!(r#"{{"type":"message","content":[{message}]}}"#)),
        whole(&many(r#"{"type":"new"}"#)),
        whole(&list(&format!(r#"{{"type":"message","content":[{}]}}"#, list(r#"{"text":"a"}"#, 100)), 100)),
        whole(&format!(r#"{{"type":"function_call","name":"f","arguments":"",{members}}}"#)),
    ] {
        assert_eq!(responses().decode(body.as_bytes()).unwrap_err().kind(), ErrorKind::Decode);
    }
    for blocks in [many(r#"{"type":"new"}"#), format!(r#"{{"type":"tool_use","name":"f",{members}}}"#)] {
        let body = format!(r#"{{"content":[{blocks}],"stop_reason":"end_turn"}}"#);
        assert_eq!(anthropic().decode(body.as_bytes()).unwrap_err().kind(), ErrorKind::Decode);
    }
    for parts in [many(r#"{"text":"","x":1}"#), many(r#"{"new":{}}"#), format!("{{{members}}}")] {
        let body = format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"STOP"}}]}}"#);
        assert_eq!(gemini().decode(body.as_bytes()).unwrap_err().kind(), ErrorKind::Decode);
    }
    // What nobody keeps is no item.
    let body = whole(&format!(r#"{{"type":"message","content":[{},{{"text":"ok"}}]}}"#, many("0")));
    assert_eq!(text(&responses().decode(body.as_bytes()).unwrap()), "ok");
    let body = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{},{{"text":"ok"}}]}},"finishReason":"STOP"}}]}}"#,
        many("0")
    );
    assert_eq!(text(&gemini().decode(body.as_bytes()).unwrap()), "ok");
}
