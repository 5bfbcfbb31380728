//! Names are legal on the wire, differ where the tools differ, and come back.

use std::sync::{Arc, Mutex};

use cepa_core::{Args, Tool, ToolCall, ToolOutput, ToolSpec};
use proptest::prelude::*;

use super::*;

fn tool(name: &str) -> Tool {
    let spec = ToolSpec::new(name, "", None).unwrap();
    Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })
}

fn is_legal(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[test]
fn a_foreign_name_comes_back_in_replies_and_events() {
    let tools = ToolSet::new([tool("files.read"), tool("plain")]).unwrap();
    let names = ToolNames::of(&tools).unwrap();
    let wire = wire_name("files.read").into_owned();

    let tool_calls = vec![ToolCall::new("1", &wire, Args::empty()), ToolCall::new("2", "plain", Args::empty())];
    let mut message = AssistantMessage { tool_calls, ..AssistantMessage::default() };
    names.restore(&mut message);
    assert_eq!(message.tool_calls.iter().map(|call| &*call.name).collect::<Vec<_>>(), ["files.read", "plain"]);

    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = names.restoring(EventSink::new({
        let seen = Arc::clone(&seen);
        move |event| seen.lock().unwrap().push(event)
    }));
    sink.emit(ChatEvent::CallBegun { index: 0, id: "1".into(), name: wire.clone() });
    sink.emit(ChatEvent::CallReady { index: 0, call: ToolCall::new("1", wire, Args::empty()) });
    sink.emit(ChatEvent::Text("t".into()));
    assert_eq!(
        *seen.lock().unwrap(),
        [
            ChatEvent::CallBegun { index: 0, id: "1".into(), name: "files.read".into() },
            ChatEvent::CallReady { index: 0, call: ToolCall::new("1", "files.read", Args::empty()) },
            ChatEvent::Text("t".into()),
        ]
    );
}

#[test]
fn two_tools_with_one_name_on_the_wire_are_refused() {
    let wire = wire_name("files.read").into_owned();
    let tools = ToolSet::new([tool("files.read"), tool(&wire)]).unwrap();
    let error = ToolNames::of(&tools).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidTool);
    assert!(error.message().contains("files.read"), "{error}");
}

#[test]
fn names_that_differ_only_past_the_cut_or_in_foreign_characters_stay_different() {
    let long = "x".repeat(70);
    let names = [format!("{long}a"), format!("{long}b"), "a.b".into(), "a/b".into(), "é".into(), "è".into()];
    let wires: HashSet<_> = names.iter().map(|name| wire_name(name).into_owned()).collect();
    assert_eq!(wires.len(), names.len());
}

proptest! {
    #[test]
    fn every_name_becomes_a_legal_one_and_a_legal_one_stays(name in "([a-zA-Z0-9_-]{0,70}|.{0,90})") {
        let wire = wire_name(&name);
        prop_assert!(is_legal(&wire), "{wire}");
        prop_assert_eq!(is_legal(&name), wire == name);
        prop_assert_eq!(wire_name(&wire), wire.as_ref());
    }
}
