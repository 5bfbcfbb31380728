//! Lines as programs read them.

use cepa::{PauseKind, PauseState, pause::Decision, store::CallKey};
use serde_json::json;

use super::*;

fn pause(args: &str) -> Pause {
    Pause {
        id: "t1.0.0".into(),
        kind: PauseKind::Approval,
        conversation: "talk".into(),
        turn: "t1".into(),
        key: CallKey { batch: 0, idx: 0 },
        call_id: "c1".into(),
        tool: "write_file".into(),
        args: RawJson::parse(args).unwrap(),
        args_hash: String::new(),
        schema_hash: String::new(),
        reason: None,
        created: 1_700_000_000_123,
        expires: None,
        state: PauseState::Pending,
        decision: None::<Decision>,
        actor: None,
        decided: None,
    }
}

#[test]
fn a_waiting_call_shows_exactly_what_would_run() {
    let line = serde_json::to_string(&Pending::from(&pause(r#"{"n": 12345678901234567890123, "a":1}"#))).unwrap();
    let expected = concat!(
        r#"{"pause_id":"t1.0.0","kind":"approval","conversation":"talk","tool":"write_file","#,
        r#""args":{"n": 12345678901234567890123, "a":1},"reason":null,"created":"2023-11-14T22:13:20.123Z","expires":null}"#
    );
    assert_eq!(line, expected);
}

#[test]
fn calls_with_broken_arguments_tell_them_as_text() {
    let event = AgentEvent::ToolCallReady { id: "c1".into(), name: "shell".into(), args: Args::decode("{\"a\":") };
    let line = serde_json::to_value(Line::of(&event)).unwrap();
    assert_eq!(line, json!({"type": "tool_call", "id": "c1", "name": "shell", "args": null, "raw_args": "{\"a\":"}));
}

#[test]
fn a_failure_is_a_result_too() {
    let error = Error::new(cepa::ErrorKind::Auth, "no key").with_status(401);
    let line = serde_json::to_value(Line::failure(&error.into(), Exit::Failed, Some("talk"))).unwrap();
    assert_eq!(line["type"], "result");
    assert_eq!((&line["status"], &line["exit_code"]), (&json!("error"), &json!(1)));
    assert_eq!(line["error"]["kind"], "auth");
    assert_eq!(line["conversation"], "talk");
}
