//! The context of tools: what may be written, who sees it, and what belongs to the framework.

use serde_json::{Map, Value, json};

use crate::{CONVERSATION_ID, ErrorKind, ToolContext, Writes};

fn writes(value: Value) -> Writes {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn framework_keys_cannot_be_written() {
    for key in [CONVERSATION_ID, "cepa.turn", "cepa."] {
        let context = ToolContext::new().with_conversation("abc");
        let error = context.set(key, "mine").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.message(), format!("the context key `{key}` belongs to the framework: choose another"));
        assert!(context.remove(key).is_err() && context.clone().with_value(key, 1).is_err());
        // Nor by the way of a tool's result.
        let mut folded = context.clone();
        folded.apply(writes(json!({key: "mine", "user": "u1"})));
        assert_eq!((folded.conversation_id(), folded.get::<String>("user").as_deref()), (Some("abc"), Some("u1")));
    }
    // Names that only look alike are free.
    assert!(ToolContext::new().set("cepa", 1).is_ok() && ToolContext::new().set("conversation", 1).is_ok());
}

#[test]
fn a_blank_conversation_is_none() {
    for blank in ["", " ", "\n\t"] {
        assert_eq!(ToolContext::new().with_conversation("abc").with_conversation(blank).conversation_id(), None);
        let values = Map::from_iter([(CONVERSATION_ID.to_owned(), Value::from(blank))]);
        assert_eq!(ToolContext::from_values(values).conversation_id(), None);
    }
    let values = Map::from_iter([(CONVERSATION_ID.to_owned(), Value::from(5))]);
    assert_eq!(ToolContext::from_values(values).conversation_id(), None);
}

#[test]
fn a_call_sees_its_own_writes_first() {
    let context = ToolContext::new().with_value("n", 1).unwrap().with_value("gone", "x").unwrap();
    context.set("n", 2).unwrap();
    context.remove("gone").unwrap();
    assert_eq!((context.get::<i32>("n"), context.get::<String>("gone")), (Some(2), None));
    assert_eq!(context.get::<Value>("gone"), None);
    assert_eq!((context.get::<String>("n"), context.get::<i32>("nothing")), (None, None));
    // What was there is still there: the writes are the call's until they are folded.
    assert_eq!(context.values(), &writes(json!({"n": 1, "gone": "x"})));
    assert_eq!(context.take_writes(), writes(json!({"n": 2, "gone": null})));
    assert_eq!((context.take_writes().len(), context.get::<i32>("n")), (0, Some(1)));
}

#[test]
fn calls_do_not_see_each_other() {
    // L8: each call has its own writes; they meet when they are folded.
    let context = ToolContext::new().with_value("n", 1).unwrap();
    let (first, second) = (context.for_call("t/0/0"), context.for_call("t/0/1"));
    first.set("n", 2).unwrap();
    assert_eq!((second.get::<i32>("n"), context.get::<i32>("n")), (Some(1), Some(1)));
    assert_eq!((first.idempotency_key(), second.idempotency_key()), (Some("t/0/0"), Some("t/0/1")));
    assert_eq!(context.idempotency_key(), None);
    // A clone is the same call.
    let clone = first.clone();
    clone.set("m", 3).unwrap();
    assert_eq!(first.take_writes(), writes(json!({"n": 2, "m": 3})));
}

#[test]
fn writes_fold_in_order_and_null_deletes() {
    // L8
    let mut context = ToolContext::new().with_value("a", 1).unwrap().with_value("b", 1).unwrap();
    let earlier = context.clone();
    context.apply(writes(json!({"a": 2, "c": [1]})));
    context.apply(writes(json!({"a": 3, "b": null, "never": null})));
    assert_eq!(context.values(), &writes(json!({"a": 3, "c": [1]})));
    // Folding is not seen by those who hold an earlier state.
    assert_eq!(earlier.values(), &writes(json!({"a": 1, "b": 1})));
    context.apply(Writes::new());
    assert_eq!(context.values(), &writes(json!({"a": 3, "c": [1]})));
}

#[test]
fn what_is_not_json_is_refused() {
    let odd_keys = std::collections::HashMap::from([((1, 2), 3)]);
    assert_eq!(ToolContext::new().set("k", odd_keys).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn handles_travel_and_are_not_shown() {
    struct Pool(&'static str);
    let context = ToolContext::new().with_extension(Pool("secret")).with_value("user", "u1").unwrap();
    let call = context.for_call("k");
    assert_eq!(call.extension::<Pool>().map(|pool| pool.0), Some("secret"));
    assert!(call.extension::<String>().is_none());
    assert_eq!(format!("{context:?}"), r#"ToolContext { values: {"user": String("u1")}, .. }"#);
    assert_eq!(call.values(), &writes(json!({"user": "u1"})));
}

#[test]
fn cancelling_reaches_every_call() {
    // L11
    let cancel = crate::CancellationToken::new();
    let call = ToolContext::new().with_cancel(cancel.clone()).for_call("k");
    assert!(!call.cancel().is_cancelled());
    cancel.cancel();
    assert!(call.cancel().is_cancelled());
}
