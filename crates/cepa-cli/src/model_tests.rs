//! Which model answers.

use std::ffi::OsString;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// The variables, with both local servers at addresses where nothing is.
fn env(vars: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> + use<> {
    let vars: Vec<(String, OsString)> = vars.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
    move |name| {
        let set = vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        set.or_else(|| name.ends_with("_BASE_URL").then(|| "http://127.0.0.1:1/v1".into()))
    }
}

fn wish(model: &str) -> ModelWish {
    ModelWish { model: model.to_owned(), by: "--model".to_owned(), ..ModelWish::default() }
}

async fn refused(model: &str) -> String {
    match choose(Some(&wish(model)), &env(&[])).await {
        Ok(chosen) => panic!("{model} gave {}", chosen.name()),
        Err(error) => error.message().to_owned(),
    }
}

/// A server that gives this body to everyone; returns its address.
async fn server(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes()).await;
        }
    });
    format!("http://{address}/v1")
}

#[tokio::test]
async fn without_key_and_server_it_is_the_offline_model_and_says_so() {
    let began = std::time::Instant::now();
    let chosen = choose(None, &env(&[])).await.unwrap();
    assert!(chosen.is_offline());
    assert!(chosen.line().contains("stand-in") && chosen.line().contains("OPENAI_API_KEY"), "{}", chosen.line());
    assert!(began.elapsed() < std::time::Duration::from_secs(1));
    let chosen = choose(None, &env(&[("GROQ_API_KEY", "gsk-1234567890")])).await.unwrap();
    assert!(chosen.line().contains("--model groq/NAME"), "{}", chosen.line());
}

#[tokio::test]
async fn a_local_server_is_found_and_only_a_real_one_at_a_common_port() {
    let ollama =
        server(r#"{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"qwen3:4b","owned_by":"library"}]}"#).await;
    let chosen = choose(None, &env(&[("OLLAMA_BASE_URL", &ollama)])).await.unwrap();
    assert_eq!(chosen.name(), "ollama/qwen3:4b");

    let other = server(r#"{"data":[{"id":"something","owned_by":"somebody"}]}"#).await;
    assert!(choose(None, &env(&[("LLAMA_CPP_BASE_URL", &other)])).await.unwrap().is_offline());
    let llama = server(r#"{"data":[{"id":"smollm2","owned_by":"llamacpp"}]}"#).await;
    let chosen = choose(None, &env(&[("LLAMA_CPP_BASE_URL", &llama)])).await.unwrap();
    assert_eq!(chosen.name(), "llama.cpp/smollm2");
    let chosen = choose(Some(&wish("llamacpp")), &env(&[("LLAMA_CPP_BASE_URL", &llama)])).await.unwrap();
    assert_eq!(chosen.name(), "llama.cpp/smollm2");
}

#[tokio::test]
async fn a_server_that_never_answers_does_not_hold_up_the_start() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let began = std::time::Instant::now();
    assert!(choose(None, &env(&[("OLLAMA_BASE_URL", &url)])).await.unwrap().is_offline());
    assert!(began.elapsed() < probe::START_LIMIT * 3, "{:?}", began.elapsed());
}

#[tokio::test]
async fn names_that_cannot_be_meant_are_told_what_may_be() {
    for (model, expected) in [
        ("opnai/gpt-5", "do you mean openai/gpt-5?"),
        ("gpt-5.4", "do you mean openai/gpt-5.4?"),
        ("claude-sonnet-5", "do you mean anthropic/claude-sonnet-5?"),
        ("gemini-3.8-flash", "do you mean gemini/gemini-3.8-flash?"),
        ("gemini", "--model gemini/NAME"),
        ("nobody/x", "PROVIDER/NAME"),
        ("groq", "--model groq/NAME"),
        ("groq/", "--model groq/NAME"),
        ("offlin", "do you mean offline?"),
        ("", "PROVIDER/NAME"),
        ("ollama", "start it"),
    ] {
        let error = refused(model).await;
        assert!(error.contains(expected), "{model}: {error}");
    }
}

#[tokio::test]
async fn a_key_has_to_be_where_the_settings_say() {
    let named = ModelWish { api_key_env: Some("MY_KEY".into()), ..wish("anthropic/claude") };
    let error = choose(Some(&named), &env(&[])).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.message().contains("MY_KEY"));
    let chosen = choose(Some(&named), &env(&[("MY_KEY", "sk-ant-1234567890")])).await.unwrap();
    assert_eq!(chosen.list.unwrap().url, "https://api.anthropic.com/v1/models");
}

#[tokio::test]
async fn gemini_speaks_its_own_wire() {
    let named = ModelWish { api_key_env: Some("MY_KEY".into()), ..wish("gemini/gemini-3.8-flash") };
    let chosen = choose(Some(&named), &env(&[("MY_KEY", "AIza-1234567890")])).await.unwrap();
    assert_eq!(chosen.model.origin().provider.as_ref(), "gemini");
    let chosen = choose(None, &env(&[("GEMINI_API_KEY", "AIza-1234567890")])).await.unwrap();
    assert!(chosen.line().contains("--model gemini/NAME"), "{}", chosen.line());
    let chosen = choose(None, &env(&[("GOOGLE_API_KEY", "AIza-1234567890")])).await.unwrap();
    assert!(chosen.line().contains("GOOGLE_API_KEY is set") && chosen.is_offline(), "{}", chosen.line());
    assert!(chosen.line().contains("--model gemini/NAME"), "{}", chosen.line());
}

#[tokio::test]
async fn openai_has_two_wires() {
    let named = ModelWish { api_key_env: Some("MY_KEY".into()), ..wish("openai-responses/gpt-5.4") };
    let chosen = choose(Some(&named), &env(&[("MY_KEY", "sk-1234567890")])).await.unwrap();
    assert_eq!(chosen.model.origin().provider.as_ref(), "openai");
    assert_eq!(chosen.list.unwrap().url, "https://api.openai.com/v1/models");
    let error = choose(Some(&wish("openai-responses")), &env(&[])).await.err().unwrap();
    assert!(error.message().contains("--model openai-responses/NAME"), "{error}");
}

#[tokio::test]
async fn what_is_shown_of_an_address_has_no_secrets() {
    let model = ModelWish { base_url: Some("http://me:secret@127.0.0.1:1/v1?key=secret".into()), ..wish("openai/x") };
    match choose(Some(&model), &env(&[])).await {
        Ok(chosen) => assert!(!chosen.line().contains("secret"), "{}", chosen.line()),
        Err(error) => assert!(!error.message().contains("secret"), "{}", error.message()),
    }
}
