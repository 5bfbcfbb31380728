//! What a message holds: blank texts, nothing at all, errors, images in results, broken arguments.

use cepa_core::{Args, AssistantMessage, Content, Media, Message, Part, ToolCall, ToolStatus};
use serde_json::{Value, json};

use super::{
    story::{call, calls, story},
    wires::{Seen, Wire, all},
};

// FR-089, FR-092: what stands for the text of a message that only calls is each endpoint's own: null, "" or nothing.
#[test]
fn a_message_that_only_calls_has_the_content_that_the_endpoint_takes() {
    for (name, content) in [
        ("openai", Value::Null),
        ("deepseek", Value::Null),
        ("mistral", Value::Null),
        ("llama.cpp", Value::Null),
        ("ollama", json!("")),
    ] {
        let body = Wire::named(name).sent(&story("u c:a r:a u"));
        assert_eq!(body["messages"][1].get("content"), Some(&content), "{name}: {body}");
    }
    let body = Wire::named("anthropic").sent(&story("u c:a r:a u"));
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 1, "{body}");
}

// FR-091, FR-220: blank texts are left out; calls beside them stay; a placeholder stands only where nothing would.
#[test]
fn blank_texts_are_no_blocks() {
    let blank = |content: Content, ids: &[&str]| {
        let tool_calls = ids.iter().map(|id| call(id, "{}")).collect();
        Message::Assistant(AssistantMessage { content: Some(content), tool_calls, ..AssistantMessage::default() })
    };
    let parts = || Content::Parts(vec![Part::Text(String::new()), Part::Text(" \n".into())]);
    for content in ["".into(), " \n".into(), parts()] {
        let mut messages = vec![Message::user("go"), blank(content.clone(), &["a"])];
        messages.push(Message::tool("a", "look", ToolStatus::Ok, content.clone()));
        messages.extend([blank(content.clone(), &[]), Message::user(content), Message::user("go on")]);
        for wire in all() {
            let body = wire.sent(&messages);
            assert_eq!(Seen::of(&body).calls.len(), 1, "{}: {body}", wire.name);
        }
    }
    let body = Wire::named("anthropic").sent(&[Message::user(" ")]);
    assert_eq!(body["messages"][0]["content"][0]["text"], "(empty message)");
}

// FR-093: an error without id and words still says that it is one, on every wire.
#[test]
fn an_error_is_never_empty() {
    for status in [ToolStatus::Error, ToolStatus::Rejected, ToolStatus::Cancelled, ToolStatus::Unknown] {
        let messages = [
            Message::user("go"),
            calls([call("", "{}")]),
            Message::tool("", "look", status, ""),
            Message::user("and?"),
        ];
        for wire in all() {
            let seen = Seen::of(&wire.sent(&messages));
            assert!(!seen.results[0].1.trim().is_empty(), "{}: {status:?}: {seen:?}", wire.name);
        }
    }
}

// FR-057, FR-152: a call that a person refused, and one that was approved, are in the next request like any other.
#[test]
fn a_refusal_is_a_result_like_any_other() {
    let messages = [
        Message::user("go"),
        calls([call("a", "{}"), call("b", "{}")]),
        Message::tool("a", "look", ToolStatus::Rejected, "The user rejected this call: not now."),
        Message::tool("b", "look", ToolStatus::Ok, "done"),
    ];
    for wire in all() {
        let seen = Seen::of(&wire.sent(&messages));
        assert_eq!(seen.texts(), ["The user rejected this call: not now.", "done"], "{}", wire.name);
    }
}

// FR-105: arguments that were never an object go back in an envelope that the provider takes, and stay as they were in the
// conversation.
#[test]
fn broken_arguments_go_back_in_a_legal_envelope() {
    for broken in ["{\"city\":", "[1]", "\"text\"", "5", "{\"a\":1}{\"b\":2}"] {
        let args = Args::decode(broken);
        assert!(args.is_invalid(), "{broken}");
        let messages = [
            Message::user("go"),
            calls([ToolCall::new("a", "look", args.clone())]),
            Message::tool("a", "look", ToolStatus::Error, "the arguments are not valid JSON"),
        ];
        for wire in all() {
            let seen = Seen::of(&wire.sent(&messages));
            assert_eq!(seen.calls[0].1, json!({}), "{}: {broken}", wire.name);
            assert_eq!(messages[1].tool_calls()[0].args.as_str(), broken);
        }
    }
}

// FR-149, FR-155: text beside calls, in one part or several, is sent with them.
#[test]
fn text_and_calls_go_together() {
    let text = |text: &str| Part::Text(text.to_owned());
    for content in [Content::from("first second"), vec![text("first "), text("second")].into()] {
        let message = AssistantMessage {
            content: Some(content),
            tool_calls: vec![call("a", "{}"), call("b", r#"{"n":2}"#)],
            ..AssistantMessage::default()
        };
        let mut messages = vec![Message::user("go"), Message::Assistant(message)];
        messages.extend(["a", "b"].map(|id| Message::tool(id, "look", ToolStatus::Ok, id)));
        for wire in all() {
            let body = wire.sent(&messages);
            let seen = Seen::of(&body);
            let said = body.to_string();
            assert!(said.contains("first ") && said.contains("second"), "{}: {body}", wire.name);
            assert_eq!((seen.calls.len(), seen.texts()), (2, vec!["a", "b"]), "{}: {body}", wire.name);
        }
    }
    // FR-220: text that we put together stands in front of the calls.
    let content = Some("look".into());
    let message = AssistantMessage { content, tool_calls: vec![call("a", "{}")], ..AssistantMessage::default() };
    let body = Wire::named("anthropic").sent(&[Message::user("go"), Message::Assistant(message)]);
    let kinds: Vec<&Value> =
        body["messages"][1]["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "tool_use"]);
}

// FR-113: an image in a result is the result's own where the wire knows that, and else stands behind the batch with a pointer.
#[test]
fn images_in_results_arrive() {
    let image = Part::Image(Media::bytes("image/png", &b"\x89PNG"[..]).named("map.png"));
    let messages = [
        Message::user("go"),
        calls([call("a", "{}"), call("b", "{}")]),
        Message::tool("a", "look", ToolStatus::Ok, vec![Part::Text("see".into()), image]),
        Message::tool("b", "look", ToolStatus::Ok, "fine"),
        Message::user("and?"),
    ];
    for wire in all() {
        let body = wire.sent(&messages);
        assert_eq!(body.to_string().matches("iVBORw").count(), 1, "{}: {body}", wire.name);
        let lists = ["messages", "contents", "input"];
        let messages = lists.iter().find_map(|list| body.get(*list)).unwrap();
        match wire.name {
            "anthropic" => assert_eq!(messages[2]["content"][0]["content"][1]["type"], "image", "{body}"),
            "openai-responses" => assert_eq!(messages[3]["output"][1]["type"], "input_image", "{body}"),
            "gemini" => assert!(messages[2]["parts"][0].to_string().contains("iVBO"), "{body}"),
            _ => {
                // Both results, then the picture: no result is parted from its batch.
                assert_eq!(messages[3]["role"], "tool", "{}: {body}", wire.name);
                assert!(messages[2]["content"].as_str().unwrap().contains("map.png"), "{}: {body}", wire.name);
                let behind = messages.as_array().unwrap().iter().skip(4).find(|message| message["role"] == "user");
                assert!(behind.unwrap().to_string().contains("iVBO"), "{}: {body}", wire.name);
            }
        }
    }
}

// FR-106, FR-107, FR-219, FR-223: all results of a batch are in one turn, in front of what the user says then.
#[test]
fn results_of_a_batch_are_one_turn() {
    let messages = story("u c:a,b,c r:c r:b r:a u u");
    let body = Wire::named("anthropic").sent(&messages);
    let content = body["messages"][2]["content"].as_array().unwrap();
    let kinds: Vec<&Value> = content.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "tool_result", "text", "text"], "{body}");
    assert_eq!(Seen::of(&body).texts(), ["3", "2", "1"]);
    let body = Wire::named("gemini").sent(&messages);
    let parts = body["contents"][2]["parts"].as_array().unwrap();
    let responses = parts.iter().take_while(|part| part.get("functionResponse").is_some()).count();
    assert_eq!((responses, parts.len()), (3, 5), "{body}");
}

// FR-109: a follow-up holds the results of every round, not only of the last one.
#[test]
fn every_round_is_sent() {
    for wire in all() {
        let seen = Seen::of(&wire.sent(&story("u c:a r:a c:b r:b c:c,d r:c r:d")));
        assert_eq!(seen.texts(), ["1", "2", "3", "4"], "{}", wire.name);
    }
}
