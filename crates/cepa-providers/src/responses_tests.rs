//! Where a model of the Responses API sends, and with which key.

use cepa_core::{ErrorKind, Origin};

use super::*;

fn build(builder: OpenAiResponsesBuilder, env: &[(&str, &str)]) -> Result<OpenAiResponses, Error> {
    builder.build_with(|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn it_is_openai_unless_another_endpoint_is_set() {
    let model = build(OpenAiResponses::builder("m"), &[("OPENAI_API_KEY", "sk-env-12345678")]).unwrap();
    assert_eq!(model.target().url, "https://api.openai.com/v1/responses");
    assert_eq!(model.target().origin, Origin { provider: "openai".into(), model: "m".into() });
    assert_eq!(model.target().headers["authorization"], "Bearer sk-env-12345678");
    let azure = OpenAiResponses::builder("m").endpoint(Endpoint::named("azure-openai").unwrap()).api_key("az-12345678");
    let azure = build(azure.base_url("https://res.openai.azure.com/openai/v1/?api-version=preview"), &[]).unwrap();
    assert_eq!(azure.target().url, "https://res.openai.azure.com/openai/v1/responses?api-version=preview");
    assert_eq!(azure.target().headers["api-key"], "az-12345678");
    let whole = OpenAiResponses::builder("m").base_url("http://127.0.0.1:1/v1/responses");
    assert_eq!(build(whole, &[]).unwrap().target().url, "http://127.0.0.1:1/v1/responses");
}

#[test]
fn a_missing_key_says_which_variable_to_set() {
    let error = build(OpenAiResponses::builder("m"), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
}

#[test]
fn no_secret_is_in_debug() {
    let builder = OpenAiResponses::builder("m").api_key("sk-secret-1234").header("x-token", "hidden-5678");
    let builder = builder.base_url("http://x/v1?key=in-query");
    let shown = format!("{builder:?} {:?}", build(builder.clone(), &[]).unwrap());
    for secret in ["sk-secret-1234", "hidden-5678", "in-query"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
