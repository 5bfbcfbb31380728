//! The example of an approval that survives a restart, run as a person runs it: twice, in two processes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::PathBuf,
    process::Command,
    thread,
};

/// Answers model calls with these bodies, one after another, and returns the address.
fn model_server(replies: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for reply in replies {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                let read = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request).to_lowercase();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                    break;
                }
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
            write!(stream, "{head}{}\r\n\r\n{reply}", reply.len()).unwrap();
        }
    });
    address
}

fn reply(message: serde_json::Value, finish: &str) -> String {
    serde_json::json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    })
    .to_string()
}

#[test]
fn an_approval_survives_a_restart() {
    // D1, H1: the pause is durable, decided from another process, and what was shown runs once.
    let call = serde_json::json!({"id": "c1", "type": "function",
        "function": {"name": "pay", "arguments": "{\"to\":\"Anna\",\"amount\":40}"}});
    let server = model_server(vec![
        reply(serde_json::json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls"),
        reply(serde_json::json!({"role": "assistant", "content": "Anna has her money."}), "stop"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(example("approval"))
            .args(args)
            .current_dir(folder.path())
            .env("OPENAI_API_KEY", "sk-test")
            .env("OPENAI_BASE_URL", &server)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = run(&[]);
    assert!(first.contains("waits: pay") && first.contains("Paused"), "{first}");
    assert_eq!(run(&["approve"]), "Completed: Anna has her money.\n");
}

/// Cargo builds examples beside the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(std::path::Path::parent).unwrap();
    folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}
