//! Messages as JSON: what goes in comes out, and what cannot be read says where.

use proptest::prelude::*;

use crate::{
    Args, AssistantMessage, Content, FinishReason, Media, Message, Part, RawJson, ToolCall, ToolStatus, Usage, toys,
};

fn read(json: &str) -> Result<Message, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// The forms of the documentation, member by member.
#[test]
fn written_exactly_as_documented() {
    // M7: the text itself, not only its meaning.
    for json in [
        r#"{"role":"system","content":"…"}"#,
        r#"{"role":"user","content":"hi"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","media_type":"image/png","data":"iVBORw=="}]}"#,
        r#"{"role":"user","content":[{"type":"document","name":"a.pdf","url":"https://example.com/a.pdf"}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","name":"get_weather","args":{"city":"北京"}}]}"#,
        r#"{"role":"assistant","content":"x","tool_calls":[{"id":"","name":"t","args":null,"raw_args":"{\"a\":","why":"broken"}]}"#,
        r#"{"role":"assistant","content":[{"type":"reasoning","text":"hm"}],"origin":{"provider":"p","model":"m"},"finish_reason":"pause_turn","usage":{"input":3,"output":2,"cache_read":1},"replay":[{"format":"f","provider":"p","model":"m","data":{"signature": "s"}}]}"#,
        r#"{"role":"tool","tool_call_id":"c1","name":"get_weather","content":"晴 22°C"}"#,
        r#"{"role":"tool","tool_call_id":"c1","name":"t","content":"no","status":"rejected","writes":{"k":null},"executed_args":{"n":1.50}}"#,
    ] {
        let message = read(json).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), json);
    }
}

proptest! {
    // M7: every part, id, status and byte, unknown members included.
    #[test]
    fn what_goes_in_comes_out(message in toys::message()) {
        let json = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(&read(&json).unwrap(), &message);
        prop_assert_eq!(&serde_json::from_slice::<Message>(json.as_bytes()).unwrap(), &message);
        prop_assert_eq!(&serde_json::from_reader::<_, Message>(json.as_bytes()).unwrap(), &message);
        // Written twice is the same text: nothing is added or reordered on the way.
        prop_assert_eq!(serde_json::to_string(&read(&json).unwrap()).unwrap(), json);
    }

    // M7: a value in memory is read like its text.
    #[test]
    fn a_value_is_read_like_its_text(message in toys::message()) {
        let value = serde_json::to_value(&message);
        // Numbers that a `Value` cannot hold (1e999) have no value to read.
        prop_assume!(value.is_ok());
        let value = value.unwrap();
        prop_assert_eq!(serde_json::from_value::<Message>(value.clone()).unwrap(), read(&value.to_string()).unwrap());
    }

    // M7: conversations, as a store writes them.
    #[test]
    fn a_list_of_messages(messages in prop::collection::vec(toys::message(), 0..4)) {
        let json = serde_json::to_string_pretty(&messages).unwrap();
        let back: Vec<Message> = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(back.len(), messages.len());
        // Pretty printing leaves raw JSON as it is.
        prop_assert_eq!(back, messages);
    }
}

#[test]
fn input_is_read_as_args() {
    let call = |json: &str| serde_json::from_str::<ToolCall>(json).unwrap();
    let wanted = ToolCall::new("c", "t", Args::decode(r#"{"a": 1}"#));
    assert_eq!(call(r#"{"id":"c","name":"t","input":{"a": 1}}"#), wanted);
    assert_eq!(call(r#"{"id":"c","name":"t","args":{"a": 1}}"#), wanted);
    // The newer word wins; what is not read is kept.
    let both = call(r#"{"id":"c","name":"t","args":{"a": 1},"input":2}"#);
    assert_eq!((both.args.as_str(), both.extra.len()), (r#"{"a": 1}"#, 1));
    let broken = call(r#"{"id":"c","name":"t","args":null,"raw_args":"{","why":"w","input":2}"#);
    assert_eq!((broken.args.as_str(), broken.args.is_invalid(), broken.extra.len()), ("{", true, 1));
}

#[test]
fn missing_and_null_args_are_the_empty_object() {
    for json in
        [r#"{"id":"c","name":"t"}"#, r#"{"id":"c","name":"t","args":null}"#, r#"{"id":"c","name":"t","args":""}"#]
    {
        assert_eq!(serde_json::from_str::<ToolCall>(json).unwrap().args, Args::empty(), "{json}");
    }
    let list = serde_json::from_str::<ToolCall>(r#"{"id":"c","name":"t","args":[1]}"#).unwrap();
    assert_eq!((list.args.as_str(), list.args.is_invalid()), ("[1]", true));
}

#[test]
fn a_row_that_cannot_be_read_says_what_is_wrong() {
    // M7: the error names the member.
    for (json, words) in [
        ("", "EOF while parsing"),
        ("[]", "invalid type: sequence"),
        ("{}", "missing field `role`"),
        (r#"{"role":1}"#, "role: invalid type: integer `1`, expected a string"),
        (r#"{"role":"robot","content":"x"}"#, "unknown role `robot`"),
        (r#"{"role":"user"}"#, "missing field `content`"),
        (r#"{"role":"user","content":null}"#, "missing field `content`"),
        (r#"{"role":"user","content":5}"#, "content: invalid type: integer `5`"),
        (r#"{"role":"user","content":{"type":"text"}}"#, "content: invalid type: map"),
        (r#"{"role":"user","content":[{"text":"x"}]}"#, "content: missing field `type`"),
        (r#"{"role":"user","content":[{"type":"text"}]}"#, "content: missing field `text`"),
        (r#"{"role":"user","content":[{"type":"image"}]}"#, "content: missing field `url`"),
        (r#"{"role":"user","content":[{"type":"image","data":"?"}]}"#, "content: data: Invalid symbol"),
        (r#"{"role":"user","content":"\ud800"}"#, "content: "),
        (r#"{"role":"assistant","finish_reason":"tired"}"#, "unknown finish_reason `tired`"),
        (r#"{"role":"assistant","tool_calls":[{"id":"c"}]}"#, "tool_calls: missing field `name`"),
        (r#"{"role":"assistant","tool_calls":{}}"#, "tool_calls: invalid type: map"),
        (r#"{"role":"assistant","usage":{"input":-1,"output":0}}"#, "usage: invalid value: integer `-1`"),
        (r#"{"role":"assistant","origin":{"provider":"p"}}"#, "origin: missing field `model`"),
        (r#"{"role":"assistant","replay":[{"format":"f"}]}"#, "replay: missing field `provider`"),
        (r#"{"role":"tool","content":"x"}"#, "missing field `tool_call_id`"),
        (r#"{"role":"tool","tool_call_id":"c","content":"x","status":"maybe"}"#, "unknown status `maybe`"),
        (r#"{"role":"user","content":"x"} tail"#, "trailing characters"),
    ] {
        let error = read(json).unwrap_err();
        assert!(error.contains(words), "{json}\nsaid   {error}\nwanted {words}");
    }
}

#[test]
fn members_of_later_versions_are_kept() {
    // M7: unknown members come back, and in the text they were in.
    let json = r#"{"role":"user","content":"x","cited":[ 1 ],"pinned":true}"#;
    assert_eq!(serde_json::to_string(&read(json).unwrap()).unwrap(), json);
    let json = r#"{"role":"user","content":[{"type":"hologram", "depth": 3}]}"#;
    let message = read(json).unwrap();
    assert_eq!(message.text(), "");
    assert_eq!(serde_json::to_string(&message).unwrap(), json);
}

#[test]
fn messages_made_the_same_way_are_equal() {
    assert_eq!(Message::user("a"), Message::user("a".to_owned()));
    assert_ne!(Message::user("a"), Message::system("a"));
    let result = |text: &str| Message::tool("c", "t", ToolStatus::Ok, text);
    assert_eq!(result("x"), result("x"));
    assert_ne!(result("x"), Message::tool("c", "t", ToolStatus::Error, "x"));
    // Arguments are compared as they were written: that is what somebody decided on.
    assert_ne!(Args::decode(r#"{"a":1}"#), Args::decode(r#"{"a": 1}"#));
}

#[test]
fn what_a_message_says() {
    let parts = vec![
        Part::Text("a".into()),
        Part::Reasoning("secret thought".into()),
        Part::Image(Media::bytes("image/png", &b"x"[..]).named("n")),
        Part::Text("b".into()),
    ];
    let message = Message::user(parts.clone());
    assert_eq!((message.text().as_ref(), message.role().as_str()), ("ab", "user"));
    assert_eq!(Content::Parts(parts).reasoning(), "secret thought");
    assert_eq!(Message::Assistant(AssistantMessage::default()).text(), "");
    assert_eq!(toys::calls(&["x", "y"]).tool_calls().len(), 2);
    assert!(Message::user("x").tool_calls().is_empty());
    for (content, blank) in [
        (Content::from(" \n\u{a0}"), true),
        (Content::from("x"), false),
        (Content::from(vec![]), true),
        (Content::from(vec![Part::Text(" ".into()), Part::Reasoning("hm".into())]), true),
        (Content::from(vec![Part::Audio(Media::url("u"))]), false),
    ] {
        assert_eq!(content.is_blank(), blank, "{content:?}");
    }
}

#[test]
fn every_word_is_read_as_itself() {
    for word in ["stop", "tool_calls", "length", "content_filter", "refusal", "pause_turn", "cancelled", "other"] {
        assert_eq!(FinishReason::from_word(word).map(FinishReason::as_str), Some(word));
    }
    for word in ["ok", "error", "rejected", "cancelled", "expired", "unknown"] {
        assert_eq!(ToolStatus::from_word(word).map(ToolStatus::as_str), Some(word));
    }
    assert_eq!(ToolStatus::from_word("OK"), None);
}

#[test]
fn usage_adds_up_without_overflow() {
    let mut sum = Usage { input: u64::MAX, output: 1, ..Usage::default() };
    sum += Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 5 };
    assert_eq!(sum, Usage { input: u64::MAX, output: 3, cache_read: 3, cache_write: 4, reasoning: 5 });
}

#[test]
fn raw_json_is_one_value_and_keeps_its_text() {
    assert_eq!(RawJson::parse(" [1 , 2] ").unwrap().as_str(), "[1 , 2]");
    for bad in ["", "1 2", "{", "nul"] {
        assert!(RawJson::parse(bad).is_err(), "{bad}");
    }
    assert!(RawJson::of(&f64::NAN).is_ok_and(|raw| raw.as_str() == "null"));
    assert!(RawJson::empty_object().is_object());
}
