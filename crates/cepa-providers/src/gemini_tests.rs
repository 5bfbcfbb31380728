//! The builder: addresses, keys, refusals.

use cepa_core::ErrorKind;
use http::header::AUTHORIZATION;

use super::*;

fn no_env(_: &str) -> Option<String> {
    None
}

fn url(base: &str, model: &str) -> String {
    let built = Gemini::builder(model).base_url(base).build_with(no_env);
    built.unwrap().target().url.clone()
}

#[test]
fn addresses() {
    let google = Gemini::builder("gemini-3.8-flash").api_key("k-12345678").build_with(no_env).unwrap();
    assert_eq!(google.target().url, "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash");
    assert_eq!(url("http://h", "m"), "http://h/v1beta/models/m");
    assert_eq!(url("http://h/v1beta/", "models/m"), "http://h/v1beta/models/m");
    assert_eq!(url("http://h/v1", "tunedModels/mine"), "http://h/v1/tunedModels/mine");
    assert_eq!(url("http://h/gemini/v1beta/models?x=y", "m"), "http://h/gemini/v1beta/models/m?x=y");
}

#[test]
fn the_address_may_be_in_the_environment() {
    let env = |variable: &str| match variable {
        "GOOGLE_GEMINI_BASE_URL" => Some("http://h".to_owned()),
        // The address of Gemini's chat completions is another one.
        "GEMINI_BASE_URL" => Some("http://h/v1beta/openai".to_owned()),
        _ => None,
    };
    let url = |builder: GeminiBuilder| builder.build_with(env).unwrap().target().url.clone();
    assert_eq!(url(Gemini::builder("m")), "http://h/v1beta/models/m");
    assert_eq!(url(Gemini::builder("m").base_url("http://own/v1")), "http://own/v1/models/m");
}

#[test]
fn a_name_that_changes_the_address_is_refused() {
    for model in ["", " ", "a b", "../x", "m?key=1", "m:generateContent", "a//b", "a/"] {
        let error = Gemini::builder(model).api_key("k-12345678").build_with(no_env).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{model}");
    }
}

#[test]
fn keys() {
    let env = |variable: &str| match variable {
        "GEMINI_API_KEY" => Some("gem-12345678".to_owned()),
        "GOOGLE_API_KEY" => Some("goo-12345678".to_owned()),
        _ => None,
    };
    let key = |model: Gemini| model.target().headers.get("x-goog-api-key").map(|key| key.to_str().unwrap().to_owned());
    assert_eq!(key(Gemini::builder("m").build_with(env).unwrap()).as_deref(), Some("gem-12345678"));
    assert_eq!(
        key(Gemini::builder("m").api_key("own-12345678").build_with(env).unwrap()).as_deref(),
        Some("own-12345678")
    );
    let google = |variable: &str| (variable == "GOOGLE_API_KEY").then(|| "goo-12345678".to_owned());
    assert_eq!(key(Gemini::builder("m").build_with(google).unwrap()).as_deref(), Some("goo-12345678"));
    assert_eq!(Gemini::builder("m").build_with(no_env).unwrap_err().kind(), ErrorKind::Auth);
    let bearer = Gemini::builder("m").header("authorization", "Bearer t-12345678").build_with(env).unwrap();
    assert!(bearer.target().headers.contains_key(AUTHORIZATION));
    assert_eq!(key(bearer), None);
    let shown = format!("{:?}", Gemini::builder("m").api_key("own-12345678"));
    assert!(!shown.contains("own-12345678"), "{shown}");
}
