//! What `#[tool]` says of input that makes no tool, and where it points.

use proc_macro2::TokenStream;

/// Each error's text and the source it points at.
fn errors(flags: &str, function: &str) -> Vec<(String, String)> {
    let parse = |text: &str| text.parse::<TokenStream>().unwrap();
    match super::tool(parse(flags), parse(function)) {
        Ok(expanded) => panic!("no error for #[tool({flags})] {function}: {expanded}"),
        Err(all) => {
            all.into_iter().map(|error| (error.to_string(), error.span().source_text().unwrap_or_default())).collect()
        }
    }
}

/// Asserts that there is one error, that it has these words, and that it points at this place.
fn refused(flags: &str, function: &str, words: &str, place: &str) {
    match errors(flags, function).as_slice() {
        [(message, at)] => {
            assert!(message.contains(words), "#[tool({flags})] {function}\nsaid   {message}\nwanted {words}");
            assert_eq!(at, place, "#[tool({flags})] {function}: {message}");
        }
        other => panic!("#[tool({flags})] {function}: {other:?}"),
    }
}

const FINE: &str = "/// Does it.\nasync fn f() {}";

#[test]
fn flags_that_nobody_knows_get_the_nearest_name() {
    refused("sensitve", FINE, "there is no flag `sensitve`: did you mean `sensitive`?", "sensitve");
    refused("readonly", FINE, "did you mean `read_only`?", "readonly");
    refused("Timeout = \"5s\"", FINE, "did you mean `timeout`?", "Timeout");
    refused("retries = 3", FINE, "there is no flag `retries` (known are sensitive, read_only, ", "retries");
}

#[test]
fn values_of_flags() {
    let duration = "write a duration such as \"5s\"";
    for bad in ["\"5\"", "\"s\"", "\"5 seconds\"", "5", "5.0", "-1", "\"-1s\"", "\"1.5s\"", "\"\"", "true"] {
        refused(&format!("timeout = {bad}"), FINE, duration, bad);
    }
    refused("timeout", FINE, duration, "timeout");
    refused("timeout = \"99999999999999999999h\"", FINE, duration, "\"99999999999999999999h\"");
    refused("timeout = \"0s\"", FINE, "leave the timeout out", "\"0s\"");
    refused("tags = \"web\"", FINE, "write a list of texts: tags = [\"a\", \"b\"]", "\"web\"");
    refused("tags = [\"web\", 5]", FINE, "write a list of texts", "5");
    refused("tags = [\" \"]", FINE, "write a list of texts", "\" \"");
    refused("sensitive = 1", FINE, "`sensitive` is a flag: write it without a value", "1");
    refused("sensitive, sensitive", FINE, "`sensitive` is set twice", "sensitive");
    refused("name = get", FINE, "write a text: name = \"…\"", "get");
    refused("name = \"\"", FINE, "write a text: name = \"…\"", "\"\"");
    refused("name = \"get weather\"", FINE, "providers refuse the name `get weather`", "\"get weather\"");
    refused(&format!("name = \"{}\"", "a".repeat(65)), FINE, "at most 64", &format!("\"{}\"", "a".repeat(65)));
    refused("description = 5", FINE, "write a text: description = \"…\"", "5");
    refused("crate = 5", FINE, "write a path: crate = cepa_core", "5");
}

#[test]
fn the_name_and_the_description_must_be_there() {
    refused("", "async fn f() {}", "write a doc comment (///) above the function", "f");
    refused("", "/// \n/// \nasync fn f() {}", "write a doc comment", "f");
    let words =
        "providers refuse the name `天气`: use at most 64 letters (a-z, A-Z), digits, `_` and `-`; set one with";
    refused("", "/// 天气\nasync fn 天气() {}", words, "天气");
}

#[test]
fn functions_that_are_no_tools() {
    refused("", "/// D\nasync fn f(&self) {}", "a tool has no `self`", "&self");
    refused("", "/// D\nasync fn f<T: Read>(t: T) {}", "a tool has no generic parameters", "T: Read");
    refused("", "/// D\nasync fn f<'a>() {}", "a tool has no generic parameters", "'a");
    refused("", "/// D\nasync unsafe fn f() {}", "write a safe function", "unsafe");
    refused("", "/// D\nconst fn f() {}", "leave `const` out", "const");
    refused("", "/// D\nextern \"C\" fn f() {}", "leave `extern` out", "extern \"C\"");
    let (message, _) = errors("", "struct S;").remove(0);
    assert!(message.starts_with("`#[tool]` stands on a function with a body"), "{message}");
}

#[test]
fn parameters_that_no_model_can_write() {
    let function = |parameter: &str| format!("/// D\nasync fn f({parameter}) {{}}");
    let cases = [
        ("(a, b): (i32, i32)", "give this parameter a name", "(a, b)"),
        ("_: i32", "give this parameter a name", "_"),
        ("ref a: i32", "write only a name here", "ref a"),
        ("a: &mut String", "without `mut`", "mut"),
        ("a: &'static str", "leave the lifetime out", "'static"),
        ("a: Option<&str>", "write `String` instead of `&str`", "&"),
        ("a: Vec<(u8, &str)>", "write `String` instead of `&str`", "&"),
        ("a: impl Read", "write that type", "impl Read"),
        ("#[cfg(unix)] a: i32", "put the `cfg` on the function", "#[cfg(unix)]"),
        ("#[param(descripton = \"x\")] a: i32", "did you mean `description`?", "descripton"),
        ("#[param(default)] a: i32", "write a value: default = 5", "default"),
        ("#[param(default = 5)] a: Option<i32>", "write the type without `Option`", "Option<i32>"),
        ("#[param(name = \"\")] a: i32", "write a text: name = \"…\"", "\"\""),
        ("#[param(name = \"b\")] a: i32, b: i32", "two parameters are named `b`", "b"),
        ("#[param(description = \"x\")] c: &ToolContext", "the model is not told of the context", "description"),
        ("a: &ToolContext, b: ToolContext", "one parameter for the context is enough", "b: ToolContext"),
        ("#[args] a: A, b: i32", "holds all arguments: put this one into it", "b: i32"),
        ("#[args] a: A, #[args] b: B", "one struct holds all arguments", "b: B"),
        ("#[args] #[param(default = 1)] a: A", "describe the members in the struct itself", "default"),
    ];
    for (parameter, words, place) in cases {
        refused("", &function(parameter), words, place);
    }
}

#[test]
fn all_errors_are_shown_at_once() {
    let found = errors("sensitve, timeout = \"5\"", "async fn f(&self, _: i32, a: &mut u8) {}");
    let places: Vec<&str> = found.iter().map(|(_, place)| place.as_str()).collect();
    assert_eq!(places, ["sensitve", "\"5\"", "f", "&self", "_", "mut"], "{found:?}");
}

#[test]
fn what_belongs_to_the_body_stays_with_it() {
    let function = "/// D\n#[cfg(unix)] #[allow(dead_code)] #[deprecated] pub(crate) async fn f(mut a: u8) -> u8 { a }";
    let expanded = super::tool(TokenStream::new(), function.parse().unwrap()).unwrap().to_string();
    let (outside, inside) = expanded.split_once("-> :: cepa :: Tool {").unwrap();
    assert_eq!(outside.trim(), "# [doc = \" D\"] # [cfg (unix)] # [deprecated] pub (crate) fn f ()");
    assert!(inside.contains("# [allow (dead_code)] async fn f (mut a : u8) -> u8 { a }"), "{inside}");
}
