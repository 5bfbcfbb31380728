//! Where a model sends, and with which key.

use cepa_core::{ErrorKind, Origin};

use super::*;

fn build(builder: OpenAiBuilder, env: &[(&str, &str)]) -> Result<OpenAi, Error> {
    builder.build_with(|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

fn at(name: &str) -> OpenAiBuilder {
    OpenAi::builder("m").endpoint(Endpoint::named(name).unwrap())
}

fn header<'a>(model: &'a OpenAi, name: &str) -> Option<&'a str> {
    model.target().headers.get(name)?.to_str().ok()
}

#[test]
fn the_key_comes_from_the_argument_else_from_the_environment() {
    let env = [("OPENAI_API_KEY", "sk-env-12345678")];
    let from_env = build(OpenAi::builder("m"), &env).unwrap();
    assert_eq!(header(&from_env, "authorization"), Some("Bearer sk-env-12345678"));
    let from_argument = build(OpenAi::builder("m").api_key("sk-arg-12345678"), &env).unwrap();
    assert_eq!(header(&from_argument, "authorization"), Some("Bearer sk-arg-12345678"));
    let azure = build(
        at("azure-openai"),
        &[
            ("AZURE_OPENAI_API_KEY", "azure-12345678"),
            ("AZURE_OPENAI_BASE_URL", "https://res.openai.azure.com/openai/v1/"),
        ],
    );
    let azure = azure.unwrap();
    assert_eq!((header(&azure, "api-key"), header(&azure, "authorization")), (Some("azure-12345678"), None));
    assert_eq!(azure.target().url, "https://res.openai.azure.com/openai/v1/chat/completions");
}

#[test]
fn a_missing_key_says_which_variable_to_set() {
    let error = build(at("groq"), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.message().contains("GROQ_API_KEY"), "{error}");
    let error = build(at("groq"), &[("GROQ_API_KEY", "two words")]).unwrap_err();
    assert!(error.message().contains("GROQ_API_KEY") && !error.message().contains("two words"), "{error}");
}

#[test]
fn servers_of_ones_own_need_no_key() {
    for model in [
        build(at("ollama"), &[]),
        build(OpenAi::builder("m").base_url("http://127.0.0.1:1/v1"), &[]),
        build(OpenAi::builder("m").header("authorization", "Basic abc"), &[]),
    ] {
        assert!(model.unwrap().target().key.is_none());
    }
    let own = build(OpenAi::builder("m").header("authorization", "Basic abc").api_key("sk-12345678"), &[]).unwrap();
    assert_eq!(header(&own, "authorization"), Some("Basic abc"));
}

#[test]
fn the_address_comes_from_the_argument_else_the_environment_else_the_catalog() {
    let url = |builder: OpenAiBuilder, env: &[(&str, &str)]| {
        build(builder.api_key("sk-12345678"), env).unwrap().target().url.clone()
    };
    let env = [("DEEPSEEK_BASE_URL", "http://proxy/ds/")];
    assert_eq!(url(at("deepseek"), &[]), "https://api.deepseek.com/chat/completions");
    assert_eq!(url(at("deepseek"), &env), "http://proxy/ds/chat/completions");
    assert_eq!(url(at("deepseek").base_url("http://x/v1/chat/completions"), &env), "http://x/v1/chat/completions");
    assert_eq!(
        url(at("deepseek").base_url("http://x/d?api-version=1"), &[]),
        "http://x/d/chat/completions?api-version=1"
    );
    let error = build(at("openai-compatible"), &[]).unwrap_err();
    assert!(error.message().contains("OPENAI_COMPATIBLE_BASE_URL"), "{error}");
}

#[test]
fn the_origin_is_the_endpoint_or_the_name_it_was_given() {
    let origin = |builder: OpenAiBuilder| build(builder, &[]).unwrap().target().origin.clone();
    assert_eq!(origin(at("ollama")), Origin { provider: "ollama".into(), model: "m".into() });
    assert_eq!(origin(at("ollama").provider("gpu-box")), Origin { provider: "gpu-box".into(), model: "m".into() });
}

#[test]
fn unusable_settings_are_told_when_the_model_is_built() {
    let kind = |builder: OpenAiBuilder| build(builder, &[]).unwrap_err().kind();
    assert_eq!(kind(at("ollama").header("a b", "x")), ErrorKind::InvalidConfig);
    assert_eq!(kind(at("ollama").header("a", "x\ny")), ErrorKind::InvalidConfig);
    assert_eq!(kind(at("ollama").base_url("localhost:11434/v1")), ErrorKind::InvalidConfig);
    assert_eq!(kind(at("ollama").api_key("")), ErrorKind::Auth);
    assert_eq!(kind(OpenAi::builder(" ").endpoint(Endpoint::named("ollama").unwrap())), ErrorKind::InvalidConfig);
}

#[test]
fn no_secret_is_in_debug() {
    let builder =
        at("openai").api_key("sk-secret-1234").header("x-token", "hidden-5678").base_url("http://x/v1?key=in-query");
    let shown = format!("{builder:?} {:?}", build(builder.clone(), &[]).unwrap());
    for secret in ["sk-secret-1234", "hidden-5678", "in-query"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
