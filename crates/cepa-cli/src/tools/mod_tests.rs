//! The tools as the loop sees them: flags, schemas, and whole calls with raw arguments.

use std::time::{Duration, Instant};

use cepa::{Args, ToolContext, ToolStatus};
use serde_json::{Value, json};

use super::{
    testing::{Sandbox, make_pipe},
    *,
};

async fn call(tools: &[Tool], name: &str, args: Value) -> Result<String, String> {
    let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
    let args = tool.prepare(&Args::decode(&args.to_string()))?;
    let output = tool.body().run(args, ToolContext::new()).await.map_err(|error| error.message)?;
    assert_eq!(output.status, ToolStatus::Ok);
    Ok(output.content.text().into_owned())
}

#[test]
fn what_changes_something_asks_first() {
    let sandbox = Sandbox::new();
    let tools = ready_tools(&sandbox.work).unwrap();
    let told: Vec<_> = tools.iter().map(|tool| (tool.name(), tool.flags().read_only, tool.flags().sensitive)).collect();
    assert_eq!(
        told,
        [
            ("list_files", true, false),
            ("read_file", true, false),
            ("search_files", true, false),
            ("write_file", false, true),
            ("edit_file", false, true),
            ("current_time", true, false),
            ("run_shell", false, true),
        ]
    );
}

#[test]
fn schemas_say_what_there_is_and_nothing_else() {
    let sandbox = Sandbox::new();
    let tools = ready_tools(&sandbox.work).unwrap();
    let schema = |name: &str| -> Value {
        tools.iter().find(|tool| tool.name() == name).unwrap().spec().schema.as_ref().unwrap().read().unwrap()
    };
    assert_eq!(
        schema("run_shell"),
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line, as for `sh -c`."},
                "timeout_seconds": {
                    "type": "integer", "minimum": 1, "maximum": 600,
                    "description": "How long it may take, 1 to 600 seconds. Default 60.",
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        })
    );
    for tool in &tools {
        let schema = schema(tool.name());
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{} of {}", name, tool.name());
        }
        assert_eq!(schema["additionalProperties"], false);
    }
}

#[tokio::test]
async fn a_session_of_calls() {
    let sandbox = Sandbox::new();
    let tools = ready_tools(&sandbox.work).unwrap();
    let call = async |name, args| call(&tools, name, args).await;
    assert_eq!(call("list_files", json!({})).await.unwrap(), "nothing is in the working folder");
    let write = json!({"path": "notes/a.txt", "content": "hello\nworld\n"});
    assert_eq!(call("write_file", write).await.unwrap(), "created notes/a.txt (12 bytes)");
    let edit = json!({"path": "notes/a.txt", "old_text": "world", "new_text": "there"});
    assert_eq!(call("edit_file", edit).await.unwrap(), "edited notes/a.txt at line 2");
    let read = call("read_file", json!({"path": "notes/a.txt"})).await.unwrap();
    assert_eq!(read, "notes/a.txt: 2 lines, 12 bytes\n\nhello\nthere\n");
    let search = call("search_files", json!({"pattern": "there"})).await.unwrap();
    assert!(search.ends_with("notes/a.txt:2: there\n"));
    assert!(
        call("run_shell", json!({"command": "cat notes/a.txt"}))
            .await
            .unwrap()
            .starts_with("hello\nthere\n[exit code 0")
    );
    assert!(call("current_time", json!({})).await.unwrap().ends_with("(UTC)"));
    assert!(call("read_file", json!({"path": "../outside/secret.txt"})).await.unwrap_err().contains("is outside"));
}

#[tokio::test]
async fn arguments_are_checked_before_anything_runs() {
    let sandbox = Sandbox::new();
    let tools = ready_tools(&sandbox.work).unwrap();
    for (name, args) in [
        ("read_file", json!({})),
        ("read_file", json!({"path": 1})),
        ("read_file", json!({"path": "f", "start_line": -1})),
        ("read_file", json!({"file": "f"})),
        ("write_file", json!({"path": "f"})),
        ("run_shell", json!({"command": "touch f", "timeout_seconds": 601})),
        ("run_shell", json!({"command": "touch f", "cwd": "/"})),
    ] {
        let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
        assert!(tool.prepare(&Args::decode(&args.to_string())).is_err(), "{name} {args}");
    }
    assert!(sandbox.names(".").is_empty());
}

#[tokio::test]
async fn a_cancelled_search_returns_at_once() {
    let sandbox = Sandbox::new();
    make_pipe(&sandbox.work.join("pipe"));
    for n in 0..200 {
        sandbox.put(&format!("d{n}/f"), "x\n".repeat(20_000));
    }
    let tools = ready_tools(&sandbox.work).unwrap();
    let search = tools.iter().find(|tool| tool.name() == "search_files").unwrap();
    let cancel = CancellationToken::new();
    let context = ToolContext::new().with_cancel(cancel.clone());
    let running = search.body().run(Args::of(&json!({"pattern": "(x*)*y", "regex": true})), context);
    let started = Instant::now();
    let (result, ()) = tokio::join!(running, async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    });
    assert_eq!(result.unwrap_err().message, "cancelled");
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_root_that_is_missing_is_a_setting_to_repair() {
    let sandbox = Sandbox::new();
    let error = ready_tools(&sandbox.work.join("gone")).unwrap_err();
    assert_eq!(error.kind(), cepa::ErrorKind::InvalidConfig);
}
