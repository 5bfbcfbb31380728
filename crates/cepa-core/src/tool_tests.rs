//! Tools: how they are made, what is refused, how arguments are prepared and failures told.

use std::time::Duration;

use serde_json::json;

use super::{Tool, ToolBody, ToolError, ToolFlags, ToolOutput, ToolSpec};
use crate::{
    Args, BoxFuture, Content, Error, ErrorKind, Part, RawJson, ToolContext, ToolFailure, ToolSet, ToolStatus,
    toys::echo,
};

const WEATHER: &str = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;

#[test]
fn a_spec_needs_a_name_and_an_object_schema() {
    let spec = ToolSpec::new("weather", "Tells the weather.", Some(WEATHER)).unwrap();
    assert_eq!(spec.schema.as_ref().map(RawJson::as_str), Some(WEATHER));
    assert_eq!(ToolSpec::new("t", "", None).map(|spec| spec.schema).ok(), Some(None));
    assert!(ToolSpec::new("t", "", Some("{}")).is_ok());
    for (name, schema, words) in [
        ("", None, "a tool needs a name"),
        (" \t", None, "a tool needs a name"),
        ("t", Some("{"), "the schema of tool `t` is not JSON: EOF"),
        ("t", Some("[]"), "the schema of tool `t` is not a JSON object"),
        ("t", Some("true"), "the schema of tool `t` is not a JSON object"),
        ("t", Some(r#"{"type":"string"}"#), "the schema of tool `t` must have the type object, not \"string\""),
    ] {
        let error = ToolSpec::new(name, "", schema).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidTool);
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn flags_can_be_changed_by_others_than_the_author() {
    let tool = echo("t");
    assert_eq!(tool.flags(), &ToolFlags::default());
    let flags = ToolFlags { sensitive: true, timeout: Some(Duration::from_secs(5)), ..ToolFlags::default() };
    let stricter = tool.with_flags(flags.clone());
    assert_eq!((stricter.name(), stricter.flags()), ("t", &flags));
    assert_eq!(tool.flags(), &ToolFlags::default());
}

#[test]
fn arguments_are_checked_before_they_run() {
    // L5, L9: invalid JSON and a schema violation are refused with the place; the rest is not touched.
    let tool = Tool::with_body(ToolSpec::new("weather", "", Some(WEATHER)).unwrap(), Upper { checks: None });
    let prepare = |text: &str| tool.prepare(&Args::decode(text));
    assert_eq!(prepare("{}"), Err("`city` is required".to_owned()));
    assert_eq!(prepare(""), Err("`city` is required".to_owned()));
    assert_eq!(prepare(r#"{"city":5}"#), Err("`city` must be of type string, not number".to_owned()));
    assert!(prepare(r#"{"city":"#).unwrap_err().starts_with("the arguments are not valid JSON: EOF"));
    assert_eq!(prepare("[]"), Err("the arguments are not a JSON object".to_owned()));
}

/// A body with hooks: makes the city's name upper case.
struct Upper {
    /// What its own check says; `None` leaves the check to the schema.
    checks: Option<fn() -> Result<(), String>>,
}

impl ToolBody for Upper {
    fn run(&self, args: Args, _context: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::new(args.as_str())) })
    }
    fn check(&self, _args: &Args) -> Option<Result<(), String>> {
        self.checks.map(|check| check())
    }
    fn normalise(&self, args: Args) -> Result<Args, String> {
        match args.to_value()["city"].as_str() {
            Some("panic") => panic!("no such city"),
            Some(city) => Ok(Args::of(&json!({"city": city.to_uppercase()}))),
            None => Err("a city that is a text is needed".to_owned()),
        }
    }
}

#[test]
fn a_body_can_check_and_normalise() {
    // L5: check, then normalise; what is decided on is what runs.
    let tool = |checks| Tool::with_body(ToolSpec::new("weather", "", Some(WEATHER)).unwrap(), Upper { checks });
    let oslo = Args::decode(r#"{"city":"Oslo"}"#);
    assert_eq!(tool(None).prepare(&oslo).unwrap().as_str(), r#"{"city":"OSLO"}"#);
    assert_eq!(tool(Some(|| Err("closed".into()))).prepare(&oslo), Err("closed".to_owned()));
    // A check of its own replaces the schema's.
    assert_eq!(tool(Some(|| Ok(()))).prepare(&Args::empty()), Err("a city that is a text is needed".to_owned()));
    // L9: a panic in a hook is told like any other failure.
    let panics = Args::decode(r#"{"city":"panic"}"#);
    assert_eq!(tool(None).prepare(&panics), Err("the tool panicked: no such city".to_owned()));
}

#[test]
fn results_are_text_or_json() {
    let text = |value: Result<ToolOutput, ToolError>| value.unwrap().content.text().into_owned();
    assert_eq!(text(ToolOutput::of(&"晴 \"22\"")), "晴 \"22\"");
    assert_eq!(text(ToolOutput::of(&"")), "");
    assert_eq!(text(ToolOutput::of(&'x')), "x");
    assert_eq!(text(ToolOutput::of(&u128::MAX)), u128::MAX.to_string());
    assert_eq!(text(ToolOutput::of(&json!({"b": [1.5, null], "a": true}))), r#"{"a":true,"b":[1.5,null]}"#);
    assert_eq!(text(ToolOutput::of(&RawJson::parse("{\"z\": 1.50}").unwrap())), "{\"z\": 1.50}");
    let odd_keys = std::collections::HashMap::from([((1, 2), 3)]);
    assert_eq!(ToolOutput::of(&odd_keys).unwrap_err().message, "key must be a string");
    let parts = ToolOutput::from(vec![Part::Text("x".into())]);
    assert_eq!(parts, ToolOutput { content: Content::Parts(vec![Part::Text("x".into())]), status: ToolStatus::Ok });
}

#[test]
fn failures_keep_their_class() {
    // L10: whose fault it is decides who hears of it.
    fn io() -> Result<(), ToolError> {
        Err(std::io::Error::other("disk on fire"))?
    }
    assert_eq!(io(), Err(ToolError::semantic("disk on fire")));
    let from = |error: Error| ToolError::from(error);
    assert_eq!(from(Error::tool(ToolFailure::Environment, "no key")), ToolError::environment("no key"));
    let busy = from(Error::new(ErrorKind::RateLimit, "slow down"));
    assert_eq!(busy, ToolError::transient("rate_limit: slow down"));
    assert_eq!(from(Error::new(ErrorKind::Auth, "wrong key")).failure, ToolFailure::Environment);
    assert_eq!(from(Error::new(ErrorKind::InvalidInput, "no")).failure, ToolFailure::Semantic);
    // And on the way back to an error.
    let error = Error::from(ToolError::transient("later"));
    assert_eq!(
        (error.kind(), error.tool_failure(), error.is_retryable()),
        (ErrorKind::Tool, Some(ToolFailure::Transient), true)
    );
    assert!(!Error::from(ToolError::semantic("no")).is_retryable());
    // An error that says nothing is named.
    #[derive(Debug)]
    struct Silent;
    impl std::fmt::Display for Silent {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
    }
    impl std::error::Error for Silent {}
    assert!(ToolError::from(Silent).message.ends_with("Silent"));
}

#[test]
fn a_set_keeps_order_and_refuses_what_cannot_be_sent() {
    let set = ToolSet::new([echo("b"), echo("a")]).unwrap();
    assert_eq!((set.len(), set.is_empty(), format!("{set:?}").as_str()), (2, false, r#"["b", "a"]"#));
    assert!(set.get("a").is_some() && set.get("A").is_none());
    let error = ToolSet::new([echo("a"), echo("b"), echo("a")]).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::InvalidTool, "two tools are named `a`: rename one of them")
    );
    assert!(set.with(echo("b")).is_err());
    assert_eq!(format!("{:?}", set.with(echo("c")).unwrap()), r#"["b", "a", "c"]"#);
    // A spec that was put together by hand is checked here.
    let spec = ToolSpec { schema: RawJson::parse("[]").ok(), ..echo("hand").spec().clone() };
    let by_hand = Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) });
    assert_eq!(ToolSet::new([by_hand]).unwrap_err().message(), "the schema of tool `hand` is not a JSON object");
}

#[test]
fn a_filtered_set_is_another_set_only_if_something_is_gone() {
    use crate::WireKey;
    let set = ToolSet::new([echo("a"), echo("b")]).unwrap();
    let key = WireKey::new("wire");
    set.encoded().set(&key, "specs".into());
    assert_eq!(set.filter(|_| true).encoded().get(&key), Some("specs".into()));
    let fewer = set.filter(|tool| tool.name() == "b");
    assert_eq!((fewer.len(), fewer.encoded().get(&key)), (1, None));
    assert!(fewer.get("a").is_none() && fewer.get("b").is_some());
}
