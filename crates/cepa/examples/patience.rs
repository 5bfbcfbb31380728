//! One question to a model by a program that would rather fail soon than wait long: time limits and retries of a client.
//!
//! ```text
//! OPENAI_API_KEY=… cargo run -p cepa --example patience openai/gpt-5.4-mini https://api.openai.com/v1 "Is an onion a root?"
//! ```
//!
//! With `whole` behind the question the answer comes in one piece, not as a stream.

use std::{process::ExitCode, sync::Arc, time::Duration};

use cepa::{
    prelude::*,
    providers::{http::HttpSettings, retry::RetryPolicy},
};

#[tokio::main]
async fn main() -> ExitCode {
    match ask().await {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {}", error.kind().as_str(), error.message());
            ExitCode::FAILURE
        }
    }
}

async fn ask() -> Result<String, Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (model, url, question, whole) = match words.as_slice() {
        [model, url, question] => (model, url, question, false),
        [model, url, question, _] => (model, url, question, true),
        _ => return Err(Error::new(ErrorKind::InvalidConfig, "say PROVIDER/MODEL, the base URL, and a question")),
    };
    let agent = Agent::builder_shared(client(model, url)?).build()?;
    if whole {
        return Ok(agent.chat(question.as_str()).await.map_err(|failed| failed.error)?.text);
    }
    let mut turn = agent.chat_stream(question.as_str());
    let mut text = String::new();
    while let Some(event) = turn.next().await {
        if let AgentEvent::Text(piece) = event.map_err(|failed| failed.error)? {
            text.push_str(&piece);
        }
    }
    Ok(text)
}

/// The same limits for every provider.
fn client(model: &str, url: &str) -> Result<Arc<dyn ChatModel>, Error> {
    let mut http = HttpSettings::default();
    http.connect_timeout = Duration::from_secs(2);
    http.response_timeout = Duration::from_secs(20);
    // A stream that was begun and then says nothing for this long is given up.
    http.idle_timeout = Duration::from_secs(1);
    // Three tries within half a minute. A provider that asks for more patience gets none.
    let retry = RetryPolicy { deadline: Duration::from_secs(30), ..RetryPolicy::default() };
    match model.split_once('/') {
        Some(("openai", name)) => Ok(Arc::new(OpenAi::builder(name).base_url(url).http(http).retry(retry).build()?)),
        Some(("openai-responses", name)) => {
            Ok(Arc::new(OpenAiResponses::builder(name).base_url(url).http(http).retry(retry).build()?))
        }
        Some(("anthropic", name)) => {
            Ok(Arc::new(Anthropic::builder(name).base_url(url).http(http).retry(retry).build()?))
        }
        Some(("gemini", name)) => Ok(Arc::new(Gemini::builder(name).base_url(url).http(http).retry(retry).build()?)),
        _ => {
            Err(Error::new(ErrorKind::InvalidConfig, format!("write {model:?} as PROVIDER/MODEL: openai/gpt-5.4-mini")))
        }
    }
}
