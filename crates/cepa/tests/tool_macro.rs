//! `#[tool]` as its users write it: what the model is told, what the body gets, what comes back.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // the tools under test panic on purpose

use std::{collections::BTreeMap, time::Duration};

use cepa::{Kernel, RawJson, ToolFailure, ToolRequest, ToolResponse, ToolSet, prelude::*, schemars};
use cepa_testkit::scripted::ScriptedModel;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Calls a tool the way the loop does: prepare, then run.
async fn call_in(tool: &Tool, args: &str, context: ToolContext) -> Result<ToolResponse, Error> {
    let args = tool.prepare(&Args::decode(args)).map_err(ToolError::semantic)?;
    let call = cepa::ToolCall::new("c1", tool.name(), args);
    let kernel = Kernel::builder(ScriptedModel::new([])).tool(tool.clone()).build()?;
    kernel.invoke_tool(ToolRequest { tool: tool.clone(), call, context, decided: None }).await
}

async fn call(tool: &Tool, args: &str) -> Result<String, String> {
    match call_in(tool, args, ToolContext::new()).await {
        Ok(response) => Ok(response.output.content.text().into_owned()),
        Err(error) => Err(error.message().to_owned()),
    }
}

fn schema(tool: &Tool) -> Value {
    tool.spec().schema.as_ref().map(|schema| schema.read().unwrap()).unwrap()
}

/// Tells the weather of a city.
///
/// Ask for *one* city at a time.
#[tool]
async fn get_weather(
    /// The city's name,
    /// in any language.
    city: String,
    #[param(description = "celsius or fahrenheit", default = "celsius")] unit: String,
    #[param(name = "days ahead")] days: Option<u8>,
) -> String {
    format!("{city}: 22 {unit} {days:?}")
}

#[tokio::test]
async fn the_model_is_told_name_description_and_parameters() {
    let tool = get_weather();
    assert_eq!(tool.name(), "get_weather");
    assert_eq!(tool.spec().description, "Tells the weather of a city.\n\nAsk for *one* city at a time.");
    let wanted = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city's name,\nin any language."},
            "unit": {"type": "string", "description": "celsius or fahrenheit", "default": "celsius"},
            "days ahead": {"type": "integer", "minimum": 0, "maximum": 255},
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    assert_eq!(schema(&tool), wanted);
    assert_eq!(call(&tool, r#"{"city":"北京","days ahead":3}"#).await.unwrap(), "北京: 22 celsius Some(3)");
    assert_eq!(call(&tool, r#"{"city":"","unit":"🌡","days ahead":null}"#).await.unwrap(), ": 22 🌡 None");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named_and_nothing_runs() {
    // L9: the text of the error is what the model reads.
    let tool = get_weather();
    for (args, wanted) in [
        ("", "`city` is required"),
        ("null", "`city` is required"),
        (r#"{"unit":"celsius"}"#, "`city` is required"),
        (r#"{"city":["Oslo"]}"#, "`city` must be of type string, not array"),
        (r#"{"city":null}"#, "`city` must be of type string, not null"),
        (r#"{"city":"Oslo","unit":null}"#, "`unit` must be of type string, not null"),
        (r#"{"city":"Oslo","days ahead":256}"#, "`days ahead` must be at most 255"),
        (r#"{"city":"Oslo","town":"Bergen"}"#, "`town` is not known; known are: city, days ahead, unit"),
        (r#"{"city":"Oslo","days":1}"#, "`days` is not known"),
        (r#"{"city":"Oslo","city":"Bergen"}"#, "duplicate field `city`"),
        (r#"{"city":"Oslo""#, "the arguments are not valid JSON: EOF"),
        (r#"["Oslo"]"#, "the arguments are not a JSON object"),
    ] {
        let said = call(&tool, args).await.unwrap_err();
        assert!(said.starts_with(wanted), "{args}\nsaid   {said}\nwanted {wanted}");
    }
}

/// Takes nothing.
#[tool]
async fn nothing() {}

#[tokio::test]
async fn a_tool_may_take_and_give_nothing() {
    let tool = nothing();
    assert_eq!(schema(&tool), json!({"type": "object", "properties": {}, "additionalProperties": false}));
    for args in ["", "{}", "null", " { } "] {
        assert_eq!(call(&tool, args).await.unwrap(), "done", "{args}");
    }
    assert_eq!(call(&tool, r#"{"x":1}"#).await.unwrap_err(), "`x` is not known; known are: none");
}

/// Has every flag.
#[tool(
    sensitive, read_only, concurrent, idempotent, return_direct,
    timeout = "1500ms", tags = ["files", "天气"], name = "every-flag", description = "Said instead.",
)]
fn flagged() {}

#[tool(description = "Off.", sensitive = false, timeout = "2m", tags = [])]
pub(crate) fn unflagged() {}

#[test]
fn flags() {
    let tool = flagged();
    assert_eq!((tool.name(), tool.spec().description.as_str()), ("every-flag", "Said instead."));
    let wanted = ToolFlags {
        sensitive: true,
        read_only: true,
        concurrent: true,
        idempotent: true,
        return_direct: true,
        timeout: Some(Duration::from_millis(1500)),
        tags: vec!["files".to_owned(), "天气".to_owned()],
    };
    assert_eq!(tool.flags(), &wanted);
    assert_eq!(unflagged().flags(), &ToolFlags { timeout: Some(Duration::from_secs(120)), ..ToolFlags::default() });
    assert_eq!(get_weather().flags(), &ToolFlags::default());
}

/// A place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Point {
    /// East.
    x: i64,
    #[serde(default)]
    y: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Celsius,
    KelvinOrSo,
}

/// Takes all kinds.
#[tool]
#[allow(clippy::too_many_arguments)]
async fn kinds(
    text: &str,
    points: &[Point],
    point: &Point,
    map: BTreeMap<String, f64>,
    tuple: (u8, bool),
    #[param(default = Unit::KelvinOrSo)] unit: Unit,
    #[param(default = vec![1, 2])] mut list: Vec<i32>,
    #[param(default = -1)] number: i8,
    r#type: Option<Value>,
) -> String {
    list.push(number.into());
    format!("{text} {points:?} {point:?} {map:?} {tuple:?} {unit:?} {list:?} {type:?}")
}

#[tokio::test]
async fn parameters_of_every_kind() {
    let tool = kinds();
    let point = json!({
        "type": "object",
        "description": "A place.",
        "properties": {"x": {"type": "integer", "description": "East."}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    });
    let shown = schema(&tool);
    let of = |name: &str| shown["properties"][name].clone();
    assert_eq!(of("text"), json!({"type": "string"}));
    assert_eq!((of("point"), of("points")), (point.clone(), json!({"type": "array", "items": point})));
    assert_eq!(of("unit"), json!({"type": "string", "enum": ["celsius", "kelvin_or_so"], "default": "kelvin_or_so"}));
    assert_eq!(of("list"), json!({"type": "array", "items": {"type": "integer"}, "default": [1, 2]}));
    assert_eq!(of("number"), json!({"type": "integer", "minimum": -128, "maximum": 127, "default": -1}));
    assert_eq!(of("type"), json!({}));
    assert_eq!(shown["required"], json!(["text", "points", "point", "map", "tuple"]));

    let args =
        json!({"text": "é", "points": [{"x": 1}], "point": {"x": 2, "y": 3}, "map": {"k": 0.5}, "tuple": [7, true]});
    let said = call(&tool, &args.to_string()).await.unwrap();
    let wanted = "é [Point { x: 1, y: 0 }] Point { x: 2, y: 3 } {\"k\": 0.5} (7, true) KelvinOrSo [1, 2, -1] None";
    assert_eq!(said, wanted);
    let said = call(&tool, r#"{"text":"","points":[{"y":1}],"point":{"x":0},"map":{},"tuple":[1,true]}"#).await;
    assert_eq!(said.unwrap_err(), "`points[0].x` is required");
}

#[test]
fn defaults_are_part_of_what_is_decided_on() {
    // L5
    let prepared = get_weather().prepare(&Args::decode(r#"{"city":"Oslo"}"#)).unwrap();
    assert_eq!(prepared.as_str(), r#"{"city":"Oslo", "unit": "celsius"}"#);
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Booking {
    /// How many come.
    people: u8,
    #[serde(default)]
    names: Vec<String>,
}

/// Books a table.
#[tool(sensitive)]
async fn book(#[args] booking: Booking, context: &ToolContext) -> Result<String, ToolError> {
    context.set("booked", booking.people)?;
    Ok(booking.names.join("+"))
}

/// Books a table, and keeps the struct.
#[tool]
fn book_by_reference(#[args] Booking { people, names }: &Booking) -> String {
    format!("{people} {names:?}")
}

#[tokio::test]
async fn all_arguments_as_one_struct() {
    let tool = book();
    let wanted = json!({
        "type": "object",
        "properties": {
            "people": {"type": "integer", "description": "How many come.", "minimum": 0, "maximum": 255},
            "names": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["people"],
    });
    assert_eq!(schema(&tool), wanted);
    let response = call_in(&tool, r#"{"people":2,"names":["Å","北"]}"#, ToolContext::new()).await.unwrap();
    assert_eq!((response.output.content.text().as_ref(), response.writes["booked"].clone()), ("Å+北", json!(2)));
    assert_eq!(call(&tool, "{}").await.unwrap_err(), "`people` is required");
    // The struct's own rules hold: serde ignores what it does not know.
    assert_eq!(call(&book_by_reference(), r#"{"people":1,"pets":2}"#).await.unwrap(), "1 []");
}

struct Stock(Vec<&'static str>);

/// Takes one from the stock.
#[tool]
async fn take(context: ToolContext, index: usize) -> Result<&'static str, ToolError> {
    let stock = context.extension::<Stock>().ok_or_else(|| ToolError::environment("the stock is closed"))?;
    let taken: Vec<String> = context.get("taken").unwrap_or_default();
    let item = *stock.0.get(index).ok_or_else(|| ToolError::semantic(format!("there is no item {index}")))?;
    let taken: Vec<&str> = taken.iter().map(String::as_str).chain([item]).collect();
    context.set("taken", &taken)?;
    Ok(item)
}

#[tokio::test]
async fn the_context_is_passed_and_not_shown() {
    let tool = take();
    assert_eq!(schema(&tool)["required"], json!(["index"]));
    assert_eq!(schema(&tool)["properties"]["context"], Value::Null);
    let context = ToolContext::new().with_extension(Stock(vec!["apple", "pear"])).with_value("taken", ["fig"]).unwrap();
    let response = call_in(&tool, r#"{"index":1}"#, context.clone()).await.unwrap();
    assert_eq!(response.output.content.text(), "pear");
    assert_eq!(Value::Object(response.writes), json!({"taken": ["fig", "pear"]}));
    // L10: the class of a failure is the body's.
    let missing = call_in(&tool, r#"{"index":9}"#, context).await.unwrap_err();
    assert_eq!((missing.message(), missing.tool_failure()), ("there is no item 9", Some(ToolFailure::Semantic)));
    let closed = call_in(&tool, r#"{"index":0}"#, ToolContext::new()).await.unwrap_err();
    assert_eq!(closed.tool_failure(), Some(ToolFailure::Environment));
}

/// Returns text.
#[tool]
fn text() -> &'static str {
    "晴 \"22\""
}
/// Returns a value.
#[tool]
async fn value() -> Point {
    Point { x: i64::MAX, y: 0 }
}
/// Returns raw JSON.
#[tool]
async fn raw() -> Result<RawJson, serde_json::Error> {
    RawJson::parse("{\"z\": 1.50}")
}
/// Returns a picture.
#[tool]
async fn picture() -> Result<Vec<Part>, ToolError> {
    Ok(vec![Part::Text("see".to_owned()), Part::Image(cepa::Media::bytes("image/png", &b"x"[..]))])
}
/// Returns an output.
#[tool]
async fn output() -> ToolOutput {
    ToolOutput { content: "half done".into(), status: cepa::ToolStatus::Error }
}
/// Fails or not.
#[tool]
async fn fails(how: String) -> Result<(), String> {
    match how.as_str() {
        "no" => Ok(()),
        _ => Err(format!("as told: {how}")),
    }
}
/// Fails with an error of ours.
#[tool]
async fn offline() -> cepa_result::Result<String> {
    Err(Error::new(ErrorKind::Network, "no route"))
}
mod cepa_result {
    /// A `Result` by another path is a result.
    pub(crate) type Result<T> = std::result::Result<T, cepa::Error>;
}
/// Fails with anything.
#[tool]
async fn boxed() -> Fallible {
    let n: u8 = "x".parse()?;
    Ok(n)
}
/// And by another name, too.
type Fallible = Result<u8, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::test]
async fn what_a_function_returns() {
    assert_eq!(call(&text(), "").await.unwrap(), "晴 \"22\"");
    assert_eq!(call(&value(), "").await.unwrap(), r#"{"x":9223372036854775807,"y":0}"#);
    assert_eq!(call(&raw(), "").await.unwrap(), "{\"z\": 1.50}");
    assert_eq!(call(&fails(), r#"{"how":"no"}"#).await.unwrap(), "done");
    assert_eq!(call(&fails(), r#"{"how":"loudly"}"#).await.unwrap_err(), "as told: loudly");
    assert_eq!(call(&offline(), "").await.unwrap_err(), "network: no route");
    assert_eq!(call(&boxed(), "").await.unwrap_err(), "invalid digit found in string");
    let response = call_in(&picture(), "", ToolContext::new()).await.unwrap();
    assert!(matches!(response.output.content, Content::Parts(parts) if parts.len() == 2));
    let response = call_in(&output(), "", ToolContext::new()).await.unwrap();
    assert_eq!((response.output.status.as_str(), response.output.content.text().as_ref()), ("error", "half done"));
    let error = call_in(&offline(), "", ToolContext::new()).await.unwrap_err();
    assert_eq!(error.tool_failure(), Some(ToolFailure::Transient));
}

/// Panics.
#[tool]
async fn panics(index: usize) -> u8 {
    tokio::task::yield_now().await;
    [1, 2, 3][index]
}
/// Panics at once.
#[tool]
fn panics_at_once() -> u8 {
    panic!("at once")
}

#[tokio::test]
async fn a_panic_is_told_like_an_error() {
    // L9
    let said = call(&panics(), r#"{"index":7}"#).await.unwrap_err();
    assert_eq!(said, "the tool panicked: index out of bounds: the len is 3 but the index is 7");
    assert_eq!(call(&panics_at_once(), "").await.unwrap_err(), "the tool panicked: at once");
    assert_eq!(call(&panics(), r#"{"index":2}"#).await.unwrap(), "3");
}

/// Counts down by calling itself: the name inside is the function, outside it is the tool.
#[tool]
fn count_down(n: u32) -> String {
    if n == 0 { "0".to_owned() } else { format!("{n} {}", count_down(n - 1)) }
}

mod elsewhere {
    /// A tool of another module, with types by path.
    #[cepa::tool(crate = ::cepa)]
    pub(super) async fn far(when: std::time::Duration, _context: &cepa::ToolContext) -> u64 {
        when.as_secs()
    }
    /// The arguments' type may have any name.
    #[cepa::tool]
    pub(super) fn shadow(arguments: u8, context: u8, tool: super::Unit) -> (u8, u8, super::Unit) {
        (arguments, context, tool)
    }
}

#[tokio::test]
async fn names_do_not_get_into_each_others_way() {
    assert_eq!(call(&count_down(), r#"{"n":3}"#).await.unwrap(), "3 2 1 0");
    assert_eq!(call(&elsewhere::far(), r#"{"when":{"secs":5,"nanos":0}}"#).await.unwrap(), "5");
    let said = call(&elsewhere::shadow(), r#"{"arguments":1,"context":2,"tool":"celsius"}"#).await;
    assert_eq!(said.unwrap(), r#"[1,2,"celsius"]"#);
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let error = ToolSet::new([text(), value(), text()]).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::InvalidTool, "two tools are named `text`: rename one of them")
    );
    let builder = Kernel::builder(ScriptedModel::new([])).tools([text(), text()]);
    assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::InvalidTool);
    assert!(ToolSet::new([text(), value(), kinds(), nothing()]).is_ok());
}

/// Takes a struct that is none.
#[tool]
fn not_an_object(#[args] words: Vec<String>) -> String {
    words.join(" ")
}

#[test]
fn arguments_that_are_no_object_are_refused_where_the_tool_is_registered() {
    let error = ToolSet::new([not_an_object()]).unwrap_err();
    assert_eq!(error.message(), "the schema of tool `not_an_object` must have the type object, not \"array\"");
}

#[tokio::test]
async fn a_tool_that_was_dropped_halfway_leaves_nothing() {
    /// Writes, then waits for ever.
    #[tool]
    async fn waits(context: &ToolContext) -> Result<(), ToolError> {
        context.set("halfway", true)?;
        std::future::pending().await
    }
    let context = ToolContext::new();
    let tool = waits();
    let running = call_in(&tool, "", context.clone());
    assert!(tokio::time::timeout(Duration::from_millis(20), running).await.is_err());
    assert_eq!(context.get::<bool>("halfway"), None);
}
