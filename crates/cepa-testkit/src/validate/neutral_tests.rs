//! Neutral messages are judged as the protocol of the cases says.

use serde_json::json;

use super::{
    super::trial::{Trials, insert, remove, swap},
    *,
};

fn good() -> Value {
    json!([
        {"role": "system", "content": "s"},
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]},
        {"role": "tool", "tool_call_id": "a"},
        {"role": "tool", "tool_call_id": "b"},
        {"role": "assistant", "content": "hi"},
    ])
}

#[test]
fn every_rule_refuses_what_it_is_for() {
    let mut trials = Trials::new(good(), |messages| validate(messages.as_array().unwrap()));
    trials.refuse("HI-01", |m| remove(m, "/4"));
    trials.refuse("HI-01", |m| m.as_array_mut().unwrap().truncate(3));
    trials.refuse("HI-02", |m| insert(m, "/5", json!({"role": "tool", "tool_call_id": "b"})));
    trials.refuse("HI-02", |m| insert(m, "/2", json!({"role": "tool", "tool_call_id": "a"})));
    trials.refuse("HI-03", |m| remove(m, "/1"));
    trials.complete(rules::ALL);
}

#[test]
fn results_out_of_order_are_refused() {
    let mut messages = good();
    swap(&mut messages, "/3");
    let found: Vec<&str> = validate(messages.as_array().unwrap()).iter().map(|violation| violation.id).collect();
    assert!(found.contains(&"HI-01"), "{found:?}");
}
