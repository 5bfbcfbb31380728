//! Neutral messages are judged as the protocol of the cases says.

use serde_json::json;

use super::*;

fn rules(messages: Value) -> Vec<&'static str> {
    validate(messages.as_array().unwrap()).iter().map(|violation| violation.rule).collect()
}

#[test]
fn results_follow_at_once_in_call_order() {
    let user = json!({"role": "user", "content": "x"});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]});
    let a = json!({"role": "tool", "tool_call_id": "a"});
    let b = json!({"role": "tool", "tool_call_id": "b"});
    let system = json!({"role": "system", "content": "s"});
    assert_eq!(rules(json!([system, user, calls, a, b])), [""; 0]);
    assert_eq!(rules(json!([user, calls, a])), ["hist.paired"]);
    assert_eq!(rules(json!([user, calls, a, user, b])), ["hist.paired", "hist.paired"]);
    assert!(!rules(json!([user, calls, b, a])).is_empty());
    assert_eq!(rules(json!([user, a])), ["hist.paired"]);
    assert_eq!(rules(json!([user, calls, a, b, b])), ["hist.paired"]);
    assert_eq!(rules(json!([{"role": "assistant", "content": "hi"}, user])), ["hist.starts_user"]);
}
