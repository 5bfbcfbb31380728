//! Settings, headers, and a few calls over a real socket.

use std::sync::{Arc, Mutex};

use cepa_core::{ChatEvent, ChatModel, ChatRequest, ErrorKind, EventSink, Message};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

const KEY_ENV: &str = ANTHROPIC.key_env;
const BASE_URL_ENV: &str = ANTHROPIC.base_url_env;

const KEY: &str = "sk-ant-0123456789";

fn built(builder: AnthropicBuilder, env: &[(&str, &str)]) -> Result<Anthropic, Error> {
    let env: Vec<(String, String)> = env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    builder.build_with(|name| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
}

fn header<'a>(model: &'a Anthropic, name: &str) -> Option<&'a str> {
    model.target().headers.get(name).map(|value| value.to_str().expect("visible ASCII"))
}

#[test]
fn an_endpoint_of_the_catalog_brings_its_address_key_and_name() {
    let zai = AnthropicEndpoint::named("zai-anthropic").expect("known");
    let model = built(Anthropic::builder("glm-5.3").endpoint(zai), &[("ZAI_API_KEY", KEY)]).expect("built");
    assert_eq!(model.target().url, "https://api.z.ai/api/anthropic/v1/messages");
    assert_eq!(header(&model, "authorization"), Some("Bearer sk-ant-0123456789"));
    assert_eq!((header(&model, "x-api-key"), &*model.target().origin.provider), (None, "zai-anthropic"));
    let deepseek = AnthropicEndpoint::named("deepseek-anthropic").expect("known");
    let builder = || Anthropic::builder("m").endpoint(deepseek);
    let env = [("DEEPSEEK_API_KEY", KEY), ("DEEPSEEK_ANTHROPIC_BASE_URL", "http://127.0.0.1:1")];
    let model = built(builder().provider("ours"), &env).expect("built");
    assert_eq!(model.target().url, "http://127.0.0.1:1/v1/messages");
    assert_eq!((header(&model, "x-api-key"), &*model.target().origin.provider), (Some(KEY), "ours"));
    // Anthropic's key is not sent to somebody else.
    let error = built(builder(), &[(KEY_ENV, KEY)]).expect_err("no key");
    assert!(error.message().contains("DEEPSEEK_API_KEY"), "{error}");
    let error = AnthropicEndpoint::named("antropic").expect_err("unknown");
    assert!(error.message().contains("anthropic, deepseek-anthropic"), "{error}");
}

// W7: `2023-06-01` and `x-api-key` by default, the newer version and Bearer as settings.
#[test]
fn version_and_key_go_into_headers() {
    let plain = built(Anthropic::builder("m"), &[(KEY_ENV, KEY)]).expect("built");
    assert_eq!(plain.target().url, "https://api.anthropic.com/v1/messages");
    assert_eq!(header(&plain, "anthropic-version"), Some("2023-06-01"));
    assert_eq!((header(&plain, "x-api-key"), header(&plain, "authorization")), (Some(KEY), None));

    let newer = built(Anthropic::builder("m").api_key(KEY).version(ApiVersion::V2026_10_21), &[]).expect("built");
    assert_eq!(header(&newer, "anthropic-version"), Some("2026-10-21"));
    assert_eq!(header(&newer, "authorization"), Some("Bearer sk-ant-0123456789"));
    assert_eq!(header(&newer, "x-api-key"), None);

    let bearer = built(Anthropic::builder("m").api_key(KEY).auth(Auth::Bearer), &[]).expect("built");
    assert_eq!((header(&bearer, "x-api-key"), header(&bearer, "anthropic-version")), (None, Some("2023-06-01")));
    for model in [plain, newer, bearer] {
        assert!(!format!("{model:?}").contains(KEY));
    }
}

#[test]
fn betas_add_up_and_headers_win() {
    let builder = Anthropic::builder("m").api_key(KEY).beta("a-1").beta("b-2").header("x-api-key", "other-12345");
    let model = built(builder, &[]).expect("built");
    assert_eq!(header(&model, "anthropic-beta"), Some("a-1,b-2"));
    assert_eq!(header(&model, "x-api-key"), Some("other-12345"));
    assert!(!format!("{model:?}").contains("other-12345"));
}

#[test]
fn the_address_may_have_its_path_or_not() {
    for (base, url) in [
        ("https://e.org", "https://e.org/v1/messages"),
        ("https://e.org/", "https://e.org/v1/messages"),
        ("https://e.org/anthropic/v1", "https://e.org/anthropic/v1/messages"),
        ("https://e.org/v1/messages", "https://e.org/v1/messages"),
        ("https://e.org/v1?tenant=1", "https://e.org/v1/messages?tenant=1"),
    ] {
        let model =
            built(Anthropic::builder("m"), &[(BASE_URL_ENV, base)]).expect("a server of one's own needs no key");
        assert_eq!(model.target().url, url);
    }
}

#[test]
fn what_cannot_work_is_said_when_it_is_built() {
    let kind = |builder: AnthropicBuilder| built(builder, &[]).map_err(|error| error.kind()).err();
    assert_eq!(kind(Anthropic::builder("m")), Some(ErrorKind::Auth));
    assert_eq!(kind(Anthropic::builder(" ").api_key(KEY)), Some(ErrorKind::InvalidConfig));
    assert_eq!(kind(Anthropic::builder("m").api_key("a b")), Some(ErrorKind::Auth));
    assert_eq!(kind(Anthropic::builder("m").api_key(KEY).header("a b", "")), Some(ErrorKind::InvalidConfig));
    assert_eq!(kind(Anthropic::builder("m").api_key(KEY).beta("a\nb")), Some(ErrorKind::InvalidConfig));
    assert_eq!(kind(Anthropic::builder("m").api_key(KEY).max_tokens(0)), Some(ErrorKind::InvalidConfig));
    let error = built(Anthropic::builder("m"), &[(KEY_ENV, "\"sk-quoted-123\"")]).expect_err("quotes");
    assert!(error.message().contains(KEY_ENV) && !error.message().contains("sk-quoted"), "{error}");
}

/// Answers one connection after another and remembers what was asked.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn answering(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                let mut request = Vec::new();
                while !is_whole(&request) {
                    socket.read_buf(&mut request).await.expect("a request");
                }
                seen.lock().expect("no panic before").push(String::from_utf8(request).expect("UTF-8"));
                socket.write_all(answer.as_bytes()).await.expect("it listens");
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic before").clone()
    }

    fn model(&self) -> Anthropic {
        let retry = RetryPolicy { base: std::time::Duration::from_millis(1), ..RetryPolicy::default() };
        Anthropic::builder("m").api_key(KEY).base_url(&self.address).retry(retry).build().expect("built")
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

const OVERLOADED: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
const REPLY: &str = r#"{"type":"message","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}"#;

// W5
#[tokio::test]
async fn an_overloaded_server_is_asked_again() {
    let answers = vec![answer("529 Busy", "application/json", OVERLOADED), answer("200 OK", "application/json", REPLY)];
    let server = Server::answering(answers).await;
    let response = server.model().chat(ChatRequest::new(vec![Message::user("hi")])).await.expect("the second time");
    assert_eq!(Message::Assistant(response.message).text(), "ok");
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", asked[0]);
    assert!(asked[0].contains("\r\nanthropic-version: 2023-06-01\r\n"));
    assert!(asked[0].ends_with(r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#));
}

fn stream(events: &[&str]) -> String {
    let events: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
    answer("200 OK", "text/event-stream", &events)
}

// W5: nothing but usage had been delivered.
#[tokio::test]
async fn a_stream_that_fails_before_its_first_word_is_begun_again() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}"#;
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let server = Server::answering(vec![stream(&[start, OVERLOADED]), stream(&[start, text, stop])]).await;
    let texts = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&texts);
    let mut request = ChatRequest::new(vec![Message::user("hi")]);
    request.events = EventSink::new(move |event| {
        if let ChatEvent::Text(text) = event {
            heard.lock().expect("no panic before").push(text);
        }
    });
    let response = server.model().chat(request).await.expect("the second time");
    assert_eq!(response.usage.map(|usage| (usage.input, usage.output)), Some((3, 1)));
    assert_eq!(*texts.lock().expect("no panic before"), ["ok"]);
    assert!(server.asked()[0].contains(r#""stream":true"#));
}

#[tokio::test]
async fn an_error_inside_a_stream_keeps_the_text_and_loses_the_key() {
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Half"}}"#;
    let failed = r#"{"type":"error","error":{"type":"api_error","message":"no such key: sk-ant-0123456789"}}"#;
    let server = Server::answering(vec![stream(&[text, failed])]).await;
    let mut request = ChatRequest::new(vec![Message::user("hi")]);
    request.events = EventSink::new(|_| {});
    let error = server.model().chat(request).await.expect_err("it failed");
    assert_eq!(
        (error.kind(), error.code(), error.partial_text()),
        (ErrorKind::Server, Some("api_error"), Some("Half"))
    );
    assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
    assert_eq!(error.provider(), Some("anthropic"));
}
