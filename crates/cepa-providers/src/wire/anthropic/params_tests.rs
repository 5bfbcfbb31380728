//! What becomes of options and tools.

use cepa_core::{
    AssistantMessage, ChatOptions, ChatRequest, ErrorKind, Message, Thinking, Tool, ToolChoice, ToolOutput, ToolSet,
    ToolSpec, ToolStatus,
};
use serde_json::{Value, json};

use super::{
    ApiVersion,
    encode_tests::{body, body_of, calls, dialect, refusal, replay, thinking},
};
use crate::wire::Dialect;

fn with_options(options: ChatOptions) -> ChatRequest {
    ChatRequest { options, ..ChatRequest::new(vec![Message::user("x")]) }
}

fn tool(name: &str, schema: Option<&str>) -> Tool {
    let spec = ToolSpec::new(name, "", schema).expect("the spec is valid");
    Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })
}

fn with_tools(tools: impl IntoIterator<Item = Tool>) -> ChatRequest {
    let tools = ToolSet::new(tools).expect("the names differ");
    ChatRequest { tools, ..ChatRequest::new(vec![Message::user("x")]) }
}

// W7: the request's, else the catalog's, else 4096.
#[test]
fn max_tokens_is_always_there() {
    let asked = with_options(ChatOptions { max_tokens: Some(7), ..ChatOptions::default() });
    let open = with_options(ChatOptions::default());
    let known = dialect().with_default_max_tokens(64_000);
    assert_eq!(body_of(&known, &asked)["max_tokens"], 7);
    assert_eq!(body_of(&known, &open)["max_tokens"], 64_000);
    assert_eq!(body(&open)["max_tokens"], 4096);
    let none = with_options(ChatOptions { max_tokens: Some(0), ..ChatOptions::default() });
    assert_eq!(refusal(&none).0, ErrorKind::InvalidConfig);
}

#[test]
fn thinking_leaves_room_for_an_answer() {
    let thinking = |thinking, max_tokens| {
        with_options(ChatOptions { thinking: Some(thinking), max_tokens, ..ChatOptions::default() })
    };
    let asked = body(&thinking(Thinking::Budget(2048), Some(2049)));
    assert_eq!(asked["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!(body(&thinking(Thinking::Budget(8000), None))["max_tokens"], 12_096);
    assert!(refusal(&thinking(Thinking::Budget(2048), Some(2048))).1.contains("2048"));
    assert!(refusal(&thinking(Thinking::Budget(1023), None)).1.contains("1024"));
    assert_eq!(body(&thinking(Thinking::Off, None))["thinking"], json!({"type": "disabled"}));
    let effort = body(&thinking(Thinking::Effort("high".into()), None));
    assert_eq!((&effort["thinking"]["type"], &effort["output_config"]["effort"]), (&json!("adaptive"), &json!("high")));
    let least = body(&thinking(Thinking::Effort("minimal".into()), None));
    assert_eq!(least["output_config"]["effort"], "low");
}

#[test]
fn thinking_does_not_join_a_reply_that_was_begun_without_it() {
    let options = ChatOptions { thinking: Some(Thinking::Budget(1024)), ..ChatOptions::default() };
    let asked = |first: AssistantMessage, more: Vec<Message>| {
        let mut history = vec![Message::user("x"), Message::Assistant(first)];
        history.push(Message::tool("c1", "f", ToolStatus::Ok, "R"));
        history.extend(more);
        body(&ChatRequest { options: options.clone(), ..ChatRequest::new(history) }).get("thinking").is_some()
    };
    let mut thought = calls(&["c1"]);
    thought.replay = replay("m", &[thinking(), json!({"call": 0})]);
    let foreign = calls(&["c1"]);
    let second = [Message::Assistant(calls(&["c2"])), Message::tool("c2", "f", ToolStatus::Ok, "R")];
    assert!(asked(thought.clone(), vec![]));
    assert!(asked(thought, second.to_vec()));
    assert!(!asked(foreign.clone(), second.to_vec()));
    // Its turn is over.
    assert!(asked(foreign, vec![Message::assistant("Done."), Message::user("y")]));
}

#[test]
fn thinking_excludes_what_the_api_says_it_excludes() {
    let mut request = with_tools([tool("f", None)]);
    request.options.thinking = Some(Thinking::Budget(1024));
    request.options.temperature = Some(1.0);
    body(&request);
    request.options.temperature = Some(0.5);
    assert!(refusal(&request).1.contains("temperature"));
    request.options.temperature = None;
    request.tool_choice = Some(ToolChoice::Required);
    assert!(refusal(&request).1.contains("forced"));
}

// W7
#[test]
fn the_newer_api_version_has_no_sampling_parameters() {
    let newer = dialect().with_version(ApiVersion::V2026_10_21);
    let request = with_options(ChatOptions { top_p: Some(0.5), ..ChatOptions::default() });
    assert_eq!(body(&request)["top_p"], 0.5);
    let error = newer.encode(&request).expect_err("it is refused");
    assert!(error.message().contains("2026-10-21 has no top_p"), "{error}");
    assert!(refusal(&with_options(ChatOptions { temperature: Some(1.5), ..ChatOptions::default() })).1.contains("1.5"));
    assert_eq!(ApiVersion::from_text("2026-10-21").expect("it is known"), ApiVersion::V2026_10_21);
    assert_eq!(ApiVersion::from_text("2027-01-01").map_err(|e| e.kind()), Err(ErrorKind::InvalidConfig));
}

#[test]
fn the_tool_choice_is_said_in_the_apis_words() {
    let choice = |choice, parallel| {
        let mut request = with_tools([tool("files.read", None)]);
        request.tool_choice = choice;
        request.options.parallel_tool_calls = parallel;
        body(&request)["tool_choice"].take()
    };
    assert_eq!(choice(None, None), Value::Null);
    assert_eq!(choice(None, Some(false)), json!({"type": "auto", "disable_parallel_tool_use": true}));
    assert_eq!(choice(Some(ToolChoice::Auto), None), json!({"type": "auto"}));
    assert_eq!(choice(Some(ToolChoice::None), Some(false)), json!({"type": "none"}));
    let any = json!({"type": "any", "disable_parallel_tool_use": true});
    assert_eq!(choice(Some(ToolChoice::Required), Some(false)), any);
    let one = choice(Some(ToolChoice::Tool("files.read".into())), None);
    assert_eq!(one, json!({"type": "tool", "name": crate::wire::names::wire_name("files.read")}));
    let mut request = with_tools([tool("f", None)]);
    request.tool_choice = Some(ToolChoice::Tool("g".into()));
    assert_eq!(refusal(&request).0, ErrorKind::InvalidInput);
    request.tools = ToolSet::default();
    request.tool_choice = Some(ToolChoice::Required);
    assert_eq!(body(&request).get("tool_choice"), None);
}

#[test]
fn a_schema_keeps_its_bytes() {
    let schema = r#"{"type": "object",  "required":["b"], "properties":{"b":{"minimum":1.0},"a":{}}}"#;
    let pieces = dialect().encode(&with_tools([tool("f", Some(schema))])).expect("encoded").concat();
    assert!(String::from_utf8_lossy(&pieces).contains(schema));
    let of = |schema| body(&with_tools([tool("f", schema)]))["tools"][0]["input_schema"].take();
    assert_eq!(of(None), json!({"type": "object", "properties": {}}));
    assert_eq!(of(Some("{}")), json!({"type": "object", "properties": {}}));
    assert_eq!(of(Some(r#"{"title":"T"}"#)), json!({"type": "object", "title": "T"}));
    let (kind, message) = refusal(&with_tools([tool("f", Some(r#"{"type":"object","oneOf":[]}"#))]));
    assert_eq!(kind, ErrorKind::InvalidTool);
    assert!(message.contains("put the alternatives into a property"), "{message}");
}

#[test]
fn what_the_caller_puts_into_the_body_wins() {
    let mut request = with_tools([tool("f", None)]);
    request.system_prompt = Some("S".into());
    request.options.cache = Some(true);
    for (name, value) in [("max_tokens", json!(5)), ("top_k", json!(3)), ("tools", json!([])), ("system", json!("T"))] {
        request.options.extra.insert(name.to_owned(), value);
    }
    let text = String::from_utf8(dialect().encode(&request).expect("encoded").concat()).expect("UTF-8");
    assert_eq!(text.matches("\"max_tokens\":").count(), 1);
    let body: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(body["max_tokens"], 5);
    assert_eq!(body["top_k"], 3);
    assert_eq!(body["system"], "T");
    assert_eq!(body["tools"], json!([]));
}

#[test]
fn at_most_four_breakpoints_stand_behind_what_stays() {
    let mut request = with_tools([tool("f", None), tool("g", None)]);
    request.system_prompt = Some("S".into());
    request.options.cache = Some(true);
    let history = ["1", "2", "3", "4", "5"].iter().enumerate();
    let said = |(at, text): (usize, &&str)| if at % 2 == 0 { Message::user(*text) } else { Message::assistant(*text) };
    request.messages = history.map(said).collect();
    let body = body(&request);
    let mark = json!({"type": "ephemeral"});
    let marked = |block: &Value| block.get("cache_control") == Some(&mark);
    assert!(marked(&body["tools"][1]) && !marked(&body["tools"][0]));
    assert!(marked(&body["system"][0]));
    let blocks = |at: usize| &body["messages"][at]["content"][0];
    let places: Vec<usize> = (0..5).filter(|at| marked(blocks(*at))).collect();
    assert_eq!(places, [2, 4]);
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
}

#[test]
fn a_stop_text_must_hold_something() {
    let stop = |text: &str| with_options(ChatOptions { stop: vec![text.to_owned()], ..ChatOptions::default() });
    assert_eq!(body(&stop("END"))["stop_sequences"], json!(["END"]));
    assert_eq!(refusal(&stop("\n")).0, ErrorKind::InvalidConfig);
}
