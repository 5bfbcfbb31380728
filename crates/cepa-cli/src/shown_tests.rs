//! What a person sees of a call before it runs.

use cepa::{PauseState, RawJson, store::CallKey};

use super::*;

fn pause(tool: &str, args: &str) -> Pause {
    Pause {
        id: "t1.0.0".into(),
        kind: PauseKind::Approval,
        conversation: "talk".into(),
        turn: "t1".into(),
        key: CallKey { batch: 0, idx: 0 },
        call_id: "c1".into(),
        tool: tool.into(),
        args: RawJson::parse(args).unwrap(),
        args_hash: String::new(),
        schema_hash: String::new(),
        reason: None,
        created: 0,
        expires: None,
        state: PauseState::Pending,
        decision: None,
        actor: None,
        decided: None,
    }
}

fn shown(args: &str) -> String {
    call(&pause("write_file", args), Much::Beginning, Style::none())
}

#[test]
fn arguments_stand_in_their_own_order() {
    let text = shown(r#"{"path": "notes.txt", "content": "hello", "n": 1, "empty": ""}"#);
    assert_eq!(text, "write_file waits for your decision:\n  path: notes.txt\n  content: hello\n  n: 1\n  empty: \"\"");
}

#[test]
fn a_text_cannot_pass_for_another_argument() {
    let text = shown(r#"{"content": "a\n  path: safe.txt\n", "path": "evil.txt"}"#);
    assert_eq!(
        text,
        "write_file waits for your decision:\n  content:\n    | a\n    |   path: safe.txt\n  path: evil.txt"
    );
}

#[test]
fn doubled_and_hidden_things_are_seen() {
    let text = shown("{\"path\": \"a\", \"path\": \"b\u{202e}\u{200b} \"}");
    assert!(text.contains("path: a\n  path: \"b<U+202E><U+200B> \""), "{text}");
    assert!(shown(r#"{"command": "ls \u001b[2K\rrm"}"#).contains(r#"command: "ls \u001b[2K\rrm""#));
    assert!(shown(r#"{"command": "ls \u001b[2K"}"#).contains("command: ls ␛[2K"));
}

#[test]
fn what_is_long_is_cut_and_said_to_be() {
    let args = format!(r#"{{"content": "{}", "path": "{}"}}"#, "line\\n".repeat(100), "x".repeat(2_000));
    let text = shown(&args);
    assert!(text.contains("… 71 more lines: v shows them"), "{text}");
    // What comes behind a long argument is not pushed out of sight.
    assert!(text.contains("  path: xxx") && text.ends_with("more characters: v shows them"), "{text}");
    let whole = call(&pause("write_file", &args), Much::Everything, Style::none());
    assert_eq!(whole.matches("| line").count(), 100);
    assert!(whole.contains(&"x".repeat(2_000)));
}
