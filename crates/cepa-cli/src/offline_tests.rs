//! What the offline model understands, and what it makes of results.

use cepa::{ChatRequest, Tool, ToolSet, ToolSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn request(messages: Vec<Message>) -> ChatRequest {
    let names = ["list_files", "read_file", "search_files", "write_file", "edit_file", "current_time", "run_shell"];
    let tools = names.map(|name| {
        Tool::new(ToolSpec::new(name, "", None).unwrap(), |_, _| async { Ok::<_, cepa::ToolError>("".into()) })
    });
    ChatRequest { tools: ToolSet::new(tools).unwrap(), ..ChatRequest::new(messages) }
}

fn calls(said: &str) -> Vec<(String, Value)> {
    let reply = Offline::new().reply(&request(vec![Message::user(said)]));
    reply.tool_calls.into_iter().map(|call| (call.name, call.args.to_value())).collect()
}

#[test]
fn orders_become_calls() {
    for (said, tool, args) in [
        ("list files", "list_files", json!({})),
        ("List files in src.", "list_files", json!({"path": "src"})),
        ("read README.md", "read_file", json!({"path": "README.md"})),
        ("Read the file README.md.", "read_file", json!({"path": "README.md"})),
        ("write hello to notes.txt", "write_file", json!({"path": "notes.txt", "content": "hello"})),
        ("write \"go to bed\" to the file a b.txt", "write_file", json!({"path": "a b.txt", "content": "go to bed"})),
        ("run ls", "run_shell", json!({"command": "ls"})),
        ("run echo a; echo b.", "run_shell", json!({"command": "echo a; echo b."})),
        ("what time is it?", "current_time", json!({})),
        ("search for 洋葱", "search_files", json!({"pattern": "洋葱"})),
        (
            "replace hello with good day in notes.txt",
            "edit_file",
            json!({"path": "notes.txt", "old_text": "hello", "new_text": "good day"}),
        ),
    ] {
        assert_eq!(calls(said), [(tool.to_owned(), args)], "{said}");
    }
}

#[test]
fn several_orders_are_several_calls() {
    let found = calls("write a to a.txt; what time is it; write b to b.txt");
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["write_file", "current_time", "write_file"]);
}

#[test]
fn anything_else_gets_an_honest_answer() {
    for said in ["hello", "write", "run", "who are you?", "", "write hello", "read it to me; or not"] {
        let reply = Offline::new().reply(&request(vec![Message::user(said)]));
        if reply.tool_calls.is_empty() {
            assert!(reply.content.unwrap().text().contains("offline model"), "{said}");
        }
    }
    assert!(calls("hello").is_empty());
}

#[test]
fn a_tool_that_is_not_offered_is_not_called() {
    let mut request = request(vec![Message::user("run ls")]);
    request.tools = ToolSet::default();
    let reply = Offline::new().reply(&request);
    assert_eq!(reply.content.unwrap().text(), "I would call run_shell for that, but it is not offered here.");
}

#[test]
fn results_are_answered_from() {
    let mut messages = vec![Message::user("read a; read b")];
    messages.push(Message::Assistant(Offline::new().reply(&request(messages.clone()))));
    messages.push(Message::tool("c1", "read_file", ToolStatus::Ok, "one"));
    messages.push(Message::tool("c2", "read_file", ToolStatus::Rejected, "Rejected: not on a Sunday"));
    let reply = Offline::new().reply(&request(messages));
    let text = reply.content.unwrap().text().into_owned();
    assert_eq!(text, "read_file says:\none\n\nread_file did not run. Rejected: not on a Sunday");
    assert_eq!(reply.finish_reason, Some(FinishReason::Stop));
}

#[test]
fn it_remembers_what_was_said() {
    let messages = vec![Message::user("my onion is red"), Message::assistant("…"), Message::user("What did I say?")];
    assert_eq!(Offline::new().reply(&request(messages)).content.unwrap().text(), "You said:\n  my onion is red");
}

#[tokio::test]
async fn what_is_streamed_is_what_is_answered() {
    let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let told = heard.clone();
    let mut request = request(vec![Message::user("hello")]);
    request.events = cepa::EventSink::new(move |event| {
        if let ChatEvent::Text(text) = event {
            told.lock().unwrap().push_str(&text);
        }
    });
    let response = Offline::new().chat(request).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), response.message.content.unwrap().text());
}

proptest! {
    #[test]
    fn any_text_gets_calls_with_objects_or_words(said in "(read|write|run|replace|list|; | to | in | with |\\PC){0,12}") {
        let reply = Offline::new().reply(&request(vec![Message::user(said)]));
        prop_assert!(!reply.tool_calls.is_empty() || reply.content.is_some());
        prop_assert!(reply.tool_calls.iter().all(|call| !call.args.is_invalid()));
    }
}
