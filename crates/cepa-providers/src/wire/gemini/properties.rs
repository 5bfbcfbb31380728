//! Any bytes at all: no reply and no stream makes the decoder panic, and both ways of answering agree.

use cepa_core::{EventSink, Message, Origin};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::reply::ReplyDecoder;

fn dialect() -> GenerateContent {
    GenerateContent::new(Origin { provider: "gemini".into(), model: "gemini-3-flash".into() })
}

/// A part as a reply may hold it, or something in its place.
fn part() -> impl Strategy<Value = Value> {
    let signature = prop_oneof![Just(Value::Null), Just(json!("c2ln")), Just(json!(7))];
    let data = prop_oneof![
        3 => "[a-z \u{e9}\u{6674}]{0,8}".prop_map(|text| json!({"text": text})),
        1 => "[a-z]{0,8}".prop_map(|text| json!({"text": text, "thought": true})),
        3 => ("[a-zA-Z0-9_-]{0,6}", prop_oneof![Just(json!({"a": 1})), Just(json!(null)), Just(json!("{}")), Just(json!([]))],
              prop::option::of("[a-z0-9]{0,3}"))
            .prop_map(|(name, args, id)| json!({"functionCall": {"id": id, "name": name, "args": args}})),
        1 => prop_oneof![Just("iVBORw=="), Just(""), Just("?")]
            .prop_map(|data| json!({"inlineData": {"mimeType": "image/png", "data": data}})),
        1 => Just(json!({"executableCode": {"code": "1"}})),
        1 => prop_oneof![Just(json!({})), Just(json!(null)), Just(json!(7)), Just(json!({"text": 7}))],
    ];
    (data, signature).prop_map(|(mut part, signature)| {
        if let (Some(members), false) = (part.as_object_mut(), signature.is_null()) {
            members.insert("thoughtSignature".into(), signature);
        }
        part
    })
}

fn chunk() -> impl Strategy<Value = Value> {
    let finish = prop_oneof![
        4 => Just(Value::Null),
        2 => Just(json!("STOP")),
        1 => Just(json!("MAX_TOKENS")),
        1 => Just(json!("MALFORMED_FUNCTION_CALL")),
        1 => Just(json!(5)),
    ];
    (prop::collection::vec(part(), 0..4), finish, 0..2_u8).prop_map(|(parts, finish, index)| {
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": finish, "index": index}],
            "usageMetadata": {"promptTokenCount": parts.len()}})
    })
}

/// A message without the ids that were made up for it.
fn told(message: cepa_core::AssistantMessage) -> Value {
    let mut json = serde_json::to_value(Message::Assistant(message)).unwrap();
    for call in json["tool_calls"].as_array_mut().into_iter().flatten() {
        if call["id"].as_str().is_some_and(|id| id.starts_with("call_")) {
            call["id"] = Value::Null;
        }
    }
    json
}

proptest! {
    // W1
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1..50_usize) {
        let _ = dialect().decode(&bytes);
        let mut reply = ReplyDecoder::new(&dialect(), EventSink::none());
        if bytes.chunks(size).try_for_each(|chunk| reply.push(chunk)).is_ok() {
            let _ = reply.finish();
        }
    }

    // W1: a stream however it is cut, and the same chunks as one list.
    #[test]
    fn both_ways_agree_and_what_is_kept_can_be_sent(chunks in prop::collection::vec(chunk(), 1..5), size in 1..80_usize) {
        let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        let mut reply = ReplyDecoder::new(&dialect(), EventSink::new(drop));
        for bytes in body.as_bytes().chunks(size) {
            reply.push(bytes).unwrap();
        }
        let streamed = reply.finish();
        let whole = dialect().decode(Value::from(chunks.clone()).to_string().as_bytes());
        match (streamed, whole) {
            (Ok(streamed), Ok(whole)) => {
                let message = streamed.message.clone();
                prop_assert_eq!(told(streamed.message), told(whole.message));
                // Stored, read back and sent: the same as sent at once, and JSON.
                let stored: Message =
                    serde_json::from_str(&serde_json::to_string(&Message::Assistant(message.clone())).unwrap()).unwrap();
                let send = |message| dialect().encode(&ChatRequest::new(vec![Message::user("x"), message])).unwrap().concat();
                let sent = send(Message::Assistant(message));
                prop_assert_eq!(&sent, &send(stored));
                prop_assert!(serde_json::from_slice::<Value>(&sent).is_ok());
            }
            (Err(streamed), Err(whole)) => prop_assert_eq!(streamed.kind(), whole.kind()),
            // A list has an end of its own; a stream that nobody ended was cut.
            (Err(cut), Ok(_)) => prop_assert_eq!(cut.kind(), cepa_core::ErrorKind::Truncated),
            (Ok(_), Err(error)) => prop_assert!(false, "{error}"),
        }
    }
}
