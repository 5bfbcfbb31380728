//! Typed tools: the check, the words of its errors, defaults, results of every kind.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{IntoToolError, IntoToolOutput, Plain, Returned};
use crate::{
    Args, Content, Error, ErrorKind, Kernel, Media, Part, Tool, ToolContext, ToolError, ToolFailure, ToolOutput,
    ToolRequest, ToolSet, ToolSpec,
    toys::{model, request, says},
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Search {
    query: String,
    #[serde(default = "ten", alias = "max")]
    limit: u8,
    #[serde(default)]
    filters: Vec<Filter>,
    after: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    field: String,
    least: f64,
}

fn ten() -> u8 {
    10
}

/// A tool that says how it understood its arguments.
fn search() -> Tool {
    Tool::typed("search", "Searches.", |args: Search, _context| async move { Ok::<_, ToolError>(args) }).unwrap()
}

async fn run(tool: &Tool, args: &str) -> Result<String, Error> {
    let kernel = Kernel::builder(model(|_| says("ok"))).build()?;
    Ok(kernel.invoke_tool(request(tool, args)).await?.output.content.text().into_owned())
}

#[tokio::test]
async fn arguments_are_read_into_the_type() {
    let said = run(&search(), r#"{"query":"天气","limit":3,"filters":[{"field":"f","least":0.5}],"after":5}"#).await;
    assert_eq!(said.unwrap(), r#"{"query":"天气","limit":3,"filters":[{"field":"f","least":0.5}],"after":5}"#);
    let said = run(&search(), r#"{"query":"x","after":null}"#).await;
    assert_eq!(said.unwrap(), r#"{"query":"x","limit":10,"filters":[],"after":null}"#);
}

#[tokio::test]
async fn what_cannot_be_read_names_its_place() {
    // L9: the body does not run, and the model is told which argument is wrong.
    for (args, wanted) in [
        ("", "`query` is required"),
        ("{}", "`query` is required"),
        (r#"{"query":5}"#, "`query` must be of type string, not number"),
        (r#"{"query":null}"#, "`query` must be of type string, not null"),
        (r#"{"query":"x","limit":"3"}"#, "`limit` must be of type integer, not string"),
        (r#"{"query":"x","limit":300}"#, "`limit` must be at most 255"),
        (r#"{"query":"x","limit":-1}"#, "`limit` must be at least 0"),
        (r#"{"query":"x","limit":1.5}"#, "`limit` must be of type integer, not number"),
        (r#"{"query":"x","after":"now"}"#, "`after` must be of type integer or null, not string"),
        // An optional null is read, so it is not what is wrong here.
        (r#"{"query":"x","after":null,"limit":"3"}"#, "`limit` must be of type integer, not string"),
        (r#"{"query":"x","filters":[{"field":"f"}]}"#, "`filters[0].least` is required"),
        (
            r#"{"query":"x","filters":[{"field":"f","least":1},{"field":"f","least":1,"most":2}]}"#,
            "`filters[1].most` is not known; known are: field, least",
        ),
        (r#"{"query":"x","after":99999999999999999999}"#, "invalid type: floating point"),
        (r#"{"query":"x","query":"y"}"#, "duplicate field `query`"),
    ] {
        let said = search().prepare(&Args::decode(args)).unwrap_err();
        assert!(said.starts_with(wanted), "{args}\nsaid   {said}\nwanted {wanted}");
        assert!(!said.contains(" at line "), "{said}");
        // Whoever does not prepare gets the same words from the body.
        assert_eq!(run(&search(), args).await.unwrap_err().message(), said);
    }
}

#[test]
fn the_check_is_the_types_own() {
    // L5: a typed tool answers the check itself.
    let tool = search();
    assert_eq!(tool.body().check(&Args::decode(r#"{"query":"x"}"#)), Some(Ok(())));
    assert_eq!(tool.body().check(&Args::empty()), Some(Err("`query` is required".to_owned())));
    assert!(matches!(tool.prepare(&Args::decode("{")), Err(why) if why.contains("not valid JSON")));
}

#[test]
fn defaults_are_filled_in_before_anybody_decides() {
    // L5: what is shown to a person is what runs.
    let prepared = |args: &str| search().prepare(&Args::decode(args)).unwrap().as_str().to_owned();
    assert_eq!(prepared(r#"{"query":"x"}"#), r#"{"query":"x", "filters": [], "limit": 10}"#);
    // What the model wrote stays as it was written.
    assert_eq!(
        prepared("{ \"limit\" : 3 ,\"query\":\"\\u5929\" }"),
        "{ \"limit\" : 3 ,\"query\":\"\\u5929\", \"filters\": []}"
    );
    let whole = r#"{"query":"x","limit":3,"filters":[],"after":1}"#;
    assert_eq!(prepared(whole), whole);
    // Under its second name it is not missing; two of them would not be read.
    assert_eq!(prepared(r#"{"query":"x","max":3}"#), r#"{"query":"x","max":3}"#);
}

#[test]
fn defaults_of_an_empty_object() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(default)]
    struct Options {
        depth: u8,
    }
    impl Default for Options {
        fn default() -> Self {
            Self { depth: 2 }
        }
    }
    let tool = Tool::typed("t", "", |_: Options, _| async { Ok::<_, ToolError>(()) }).unwrap();
    for empty in ["", "{}", "{ }", "null"] {
        assert_eq!(tool.prepare(&Args::decode(empty)).unwrap().as_str(), r#"{"depth": 2}"#, "{empty}");
    }
}

fn output<T: IntoToolOutput>(value: T) -> ToolOutput {
    value.into_tool_output().unwrap()
}

#[test]
fn results_of_every_kind() {
    assert_eq!(output("晴"), ToolOutput::new("晴"));
    assert_eq!(output(String::new()), ToolOutput::new(""));
    assert_eq!(output(()), ToolOutput::new("done"));
    assert_eq!(output(5), ToolOutput::new("5"));
    assert_eq!(output(None::<u8>), ToolOutput::new("null"));
    assert_eq!(output(Some(())), ToolOutput::new("null"));
    assert_eq!(output(vec!["a", "b"]), ToolOutput::new(r#"["a","b"]"#));
    assert_eq!(output(json!({"b": 1, "a": [true]})), ToolOutput::new(r#"{"a":[true],"b":1}"#));
    let failed = ToolOutput { status: crate::ToolStatus::Error, ..ToolOutput::new("no") };
    assert_eq!(output(failed.clone()), failed);
    // Content is content, not the JSON of it.
    let image = Part::Image(Media::bytes("image/png", &b"x"[..]));
    assert_eq!(output(Content::Parts(vec![image.clone()])), ToolOutput::new(vec![image.clone()]));
    assert_eq!(output(image.clone()), ToolOutput::new(vec![image.clone()]));
    assert_eq!(output(vec![image.clone()]), ToolOutput::new(vec![image]));
    let odd_keys = std::collections::HashMap::from([((1, 2), 3)]);
    assert_eq!(odd_keys.into_tool_output().unwrap_err().message, "key must be a string");
}

#[test]
fn failures_of_every_kind() {
    // L10
    let semantic = |error: ToolError| (error.failure, error.message);
    assert_eq!(semantic("no such city".into_tool_error()), (ToolFailure::Semantic, "no such city".to_owned()));
    assert_eq!(semantic(String::from("no").into_tool_error()).1, "no");
    let boxed: Box<dyn std::error::Error + Send + Sync> = "boxed".into();
    assert_eq!(semantic(boxed.into_tool_error()).1, "boxed");
    assert_eq!(ToolError::environment("disk").into_tool_error(), ToolError::environment("disk"));
    let ours = Error::new(ErrorKind::Network, "gone").into_tool_error();
    assert_eq!(ours, ToolError::transient("network: gone"));
    assert_eq!("".into_tool_error().message, "&str");
}

#[test]
fn a_result_is_told_from_a_value() {
    // A `Result` of values that can be written as JSON is a result all the same.
    let fine: Result<u8, String> = Ok(5);
    assert_eq!(Returned(fine).output(), Ok(ToolOutput::new("5")));
    let failed: Result<u8, String> = Err("no".to_owned());
    assert_eq!(Returned(failed).output(), Err(ToolError::semantic("no")));
    let fine: Result<ToolOutput, ToolError> = Ok(ToolOutput::new("x"));
    assert_eq!(Returned(fine).output(), Ok(ToolOutput::new("x")));
    assert_eq!(Returned("x").output(), Ok(ToolOutput::new("x")));
    assert_eq!(Returned(ToolOutput::new("x")).output(), Ok(ToolOutput::new("x")));
}

#[tokio::test]
async fn a_body_may_hold_something_and_write_to_the_context() {
    let stock = Arc::new(vec!["apple", "pear"]);
    let tool = Tool::typed("take", "Takes one.", move |n: BTree, context: ToolContext| {
        let stock = stock.clone();
        async move {
            let item = stock.get(n.index).ok_or("nothing there")?;
            context.set("taken", item).map_err(|_| "unwritable")?;
            Ok::<_, &str>(*item)
        }
    })
    .unwrap();
    let kernel = Kernel::builder(model(|_| says("ok"))).build().unwrap();
    let response = kernel.invoke_tool(request(&tool, r#"{"index":1}"#)).await.unwrap();
    assert_eq!(response.output.content.text(), "pear");
    assert_eq!(serde_json::Value::Object(response.writes), json!({"taken": "pear"}));
    let error = kernel.invoke_tool(request(&tool, r#"{"index":9}"#)).await.unwrap_err();
    assert_eq!((error.message(), error.tool_failure()), ("nothing there", Some(ToolFailure::Semantic)));
}

#[derive(Deserialize, JsonSchema)]
struct BTree {
    index: usize,
}

#[test]
fn arguments_must_be_an_object() {
    let error = ToolSpec::typed::<Vec<String>>("t", "").unwrap_err();
    assert_eq!(error.message(), "the schema of tool `t` must have the type object, not \"array\"");
    assert!(ToolSpec::typed::<Search>(" ", "").is_err());
    // What `#[tool]` made is refused where it is registered.
    let body = |_: Vec<String>, _: ToolContext| async { Ok(ToolOutput::new("")) };
    let tool = super::tool("t", "", crate::ToolFlags::default(), body);
    assert_eq!(ToolSet::new([tool]).unwrap_err().kind(), ErrorKind::InvalidTool);
}

#[tokio::test]
async fn decided_arguments_are_the_prepared_ones() {
    // L5: prepared once, decided on, run.
    let tool = search();
    let args = tool.prepare(&Args::decode(r#"{"query":"x"}"#)).unwrap();
    let mut request: ToolRequest = request(&tool, args.as_str());
    request.decided = Some(args);
    let kernel = Kernel::builder(model(|_| says("ok"))).build().unwrap();
    let said = kernel.invoke_tool(request).await.unwrap().output.content;
    assert_eq!(said.text(), r#"{"query":"x","limit":10,"filters":[],"after":null}"#);
}
