//! The client against a server that answers by a script.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use cepa_core::{Content, ErrorKind, Message, Tool, ToolOutput, ToolSet, ToolSpec};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    http::{HttpSettings, Proxy},
    openai::OpenAi,
};

const KEY: &str = "sk-this-must-not-leak";

/// One answer: its bytes, and whether the connection then stays open in silence.
enum Answer {
    Whole(String),
    ThenClose(String),
    ThenSilence(String),
    /// In pieces with this time before each.
    Slowly(Duration, Vec<String>),
    /// And then this for ever, once a second.
    ThenTrickle(String, String),
}

fn whole(status: u16, kind: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Whole(format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"))
}

fn json_answer(status: u16, body: Value) -> Answer {
    whole(status, "application/json", &body.to_string())
}

fn reply(text: &str) -> Answer {
    json_answer(200, json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}))
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn stream(events: &[Value]) -> Answer {
    whole(200, "text/event-stream", &format!("{}data: [DONE]\n\n", sse(events)))
}

/// The head of a stream without end, and its first events.
fn open_stream(events: &[Value]) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n{}", sse(events))
}

fn text(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}}]})
}

fn end() -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
}

/// A server with a script; it remembers the requests (head and body).
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(serve(tcp, Arc::clone(&answers), Arc::clone(&seen)));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn model(&self) -> OpenAi {
        let policy = RetryPolicy { base: Duration::from_millis(1), ..RetryPolicy::default() };
        let mut http = HttpSettings::default();
        http.proxy = Proxy::None;
        OpenAi::builder("m").base_url(&self.url).api_key(KEY).retry(policy).http(http).build().unwrap()
    }
}

async fn serve(mut tcp: TcpStream, answers: Arc<Mutex<VecDeque<Answer>>>, seen: Arc<Mutex<Vec<(String, String)>>>) {
    // A kernel that holds small pieces back does so by the real clock, which a paused one runs ahead of.
    tcp.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut tcp).await {
        seen.lock().unwrap().push(request);
        let answer = answers.lock().unwrap().pop_front();
        match answer {
            Some(Answer::Whole(bytes)) => tcp.write_all(bytes.as_bytes()).await.unwrap(),
            Some(Answer::ThenClose(bytes)) => {
                tcp.write_all(bytes.as_bytes()).await.unwrap();
                return;
            }
            Some(Answer::Slowly(gap, pieces)) => {
                for piece in pieces {
                    tokio::time::sleep(gap).await;
                    if tcp.write_all(piece.as_bytes()).await.is_err() {
                        return;
                    }
                }
                return;
            }
            Some(Answer::ThenSilence(bytes)) => {
                tcp.write_all(bytes.as_bytes()).await.unwrap();
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            Some(Answer::ThenTrickle(bytes, again)) => {
                tcp.write_all(bytes.as_bytes()).await.unwrap();
                while tcp.write_all(again.as_bytes()).await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                return;
            }
            None => return,
        }
    }
}

async fn read_request(tcp: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse::<usize>().unwrap();
            if body.len() >= length {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        if tcp.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn hi() -> ChatRequest {
    ChatRequest::new(vec![Message::user("hi")])
}

/// A request that listens, and what it hears.
fn listening() -> (ChatRequest, Arc<Mutex<Vec<ChatEvent>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let request = ChatRequest { events: EventSink::new(move |event| keep.lock().unwrap().push(event)), ..hi() };
    (request, heard)
}

fn said(response: &ChatResponse) -> String {
    response.message.content.as_ref().map(Content::text).unwrap_or_default().into_owned()
}

fn texts(heard: &Mutex<Vec<ChatEvent>>) -> Vec<String> {
    let events = heard.lock().unwrap();
    let text = |event: &ChatEvent| match event {
        ChatEvent::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

#[tokio::test]
async fn a_request_is_what_the_dialect_encodes_with_the_key_in_its_header() {
    let server = Server::start([reply("hello")]).await;
    let model = server.model();
    assert_eq!(said(&model.chat(hi()).await.unwrap()), "hello");
    let [(head, body)] = server.requests().try_into().unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}")), "{head}");
    assert_eq!(body.as_bytes(), model.dialect().encode(&hi()).unwrap().concat());
}

#[tokio::test]
async fn a_streamed_reply_is_the_same_message_and_is_heard_as_it_comes() {
    let server = Server::start([stream(&[text("hel"), text("lo"), end()]), reply("hello")]).await;
    let model = server.model();
    let (request, heard) = listening();
    let streamed = model.chat(request).await.unwrap();
    let plain = model.chat(hi()).await.unwrap();
    assert_eq!(streamed.message, plain.message);
    assert_eq!(texts(&heard), ["hel", "lo"]);
    let asked: Value = serde_json::from_str(&server.requests()[0].1).unwrap();
    assert_eq!((&asked["stream"], &asked["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
}

// W5: what can only fail again is not repeated.
#[tokio::test]
async fn failures_are_repeated_if_that_can_help() {
    for (status, requests) in [(500, 2), (429, 2), (400, 1), (401, 1), (404, 1)] {
        let server = Server::start([json_answer(status, json!({"error": {"message": "no"}})), reply("ok")]).await;
        let result = server.model().chat(hi()).await;
        assert_eq!((result.is_ok(), server.requests().len()), (requests == 2, requests), "{status}");
    }
}

// W5: a stream is repeated only before its first delivered event; usage is none, because a later one replaces it.
#[tokio::test]
async fn a_stream_is_repeated_until_something_of_it_was_heard() {
    let overloaded = json!({"error": {"message": "overloaded", "code": 503}});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 0}});
    let server = Server::start([stream(&[usage, overloaded.clone()]), stream(&[text("ok"), end()])]).await;
    let (request, heard) = listening();
    assert_eq!(said(&server.model().chat(request).await.unwrap()), "ok");
    assert_eq!((texts(&heard), server.requests().len()), (vec!["ok".to_owned()], 2));

    let server = Server::start([stream(&[text("half"), overloaded]), stream(&[text("ok"), end()])]).await;
    let (request, heard) = listening();
    let error = server.model().chat(request).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable(), error.partial_text()), (ErrorKind::Server, true, Some("half")));
    assert_eq!((texts(&heard), server.requests().len()), (vec!["half".to_owned()], 1));
}

#[tokio::test]
async fn a_stream_that_breaks_is_an_error_with_its_text_unless_the_reply_was_there() {
    let server = Server::start([Answer::ThenClose(open_stream(&[text("half")]))]).await;
    let (request, _) = listening();
    let error = server.model().chat(request).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.partial_text(), error.provider()),
        (ErrorKind::Network, Some("half"), Some("openai"))
    );

    let server = Server::start([Answer::ThenClose(open_stream(&[text("all"), end()]))]).await;
    let (request, _) = listening();
    assert_eq!(said(&server.model().chat(request).await.unwrap()), "all");
}

#[tokio::test]
async fn a_server_that_does_not_close_behind_its_reply_is_not_waited_for() {
    let server = Server::start([Answer::ThenSilence(open_stream(&[text("all"), end()]))]).await;
    let (request, _) = listening();
    let start = Instant::now();
    assert_eq!(said(&server.model().chat(request).await.unwrap()), "all");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_heard_all_the_same() {
    let call = json!({"id": "c", "function": {"name": "f", "arguments": "{}"}});
    let body = json!({
        "choices": [{"message": {"content": "whole", "reasoning": "why", "tool_calls": [call]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}
    });
    let server = Server::start([json_answer(200, body)]).await;
    let (request, heard) = listening();
    let response = server.model().chat(request).await.unwrap();
    let call = response.message.tool_calls[0].clone();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            ChatEvent::Reasoning("why".into()),
            ChatEvent::Text("whole".into()),
            ChatEvent::CallBegun { index: 0, id: "c".into(), name: "f".into() },
            ChatEvent::CallArguments { index: 0, delta: "{}".into() },
            ChatEvent::CallReady { index: 0, call },
            ChatEvent::Usage(response.usage.unwrap()),
        ]
    );
}

#[tokio::test]
async fn a_page_is_no_reply_and_an_unasked_stream_is_one() {
    let server = Server::start([whole(200, "text/html", "<html>Sign in</html>"), stream(&[text("ok"), end()])]).await;
    let model = server.model();
    let (request, _) = listening();
    let error = model.chat(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.message().contains("Sign in"), "{error}");
    assert_eq!(said(&model.chat(hi()).await.unwrap()), "ok");
}

#[tokio::test]
async fn cancelling_ends_a_stream_at_once_and_keeps_its_text() {
    let server = Server::start([Answer::ThenSilence(open_stream(&[text("half")]))]).await;
    let cancel = CancellationToken::new();
    let (mut request, heard) = listening();
    request.context = request.context.with_cancel(cancel.clone());
    let inner = request.events.clone();
    request.events = EventSink::new(move |event| {
        inner.emit(event);
        cancel.cancel();
    });
    let start = Instant::now();
    let error = server.model().chat(request).await.unwrap_err();
    assert_eq!((error.kind(), error.partial_text()), (ErrorKind::Cancelled, Some("half")));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(texts(&heard), ["half"]);
}

/// A model whose calls may take so long.
fn within(server: &Server, total: Option<Duration>, retry: RetryPolicy) -> OpenAi {
    let mut http = HttpSettings::default();
    http.proxy = Proxy::None;
    http.total_timeout = total;
    OpenAi::builder("m").base_url(&server.url).api_key(KEY).retry(retry).http(http).build().unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

/// Whether a time is as long as this, but for a second.
fn about(time: Duration, wanted: Duration) -> bool {
    time >= wanted && time <= wanted + Duration::from_secs(2)
}

// W5, W11: a stream that neither ends nor is silent.
#[tokio::test(start_paused = true)]
async fn an_endless_trickle_ends_with_its_text() {
    let alive = ": still here\n\n";
    for (again, begin) in [(alive, &[text("half")][..]), (" ", &[text("half")][..]), (alive, &[])] {
        for total in [5 * MINUTE, HttpSettings::default().total_timeout.unwrap()] {
            let server = Server::start([Answer::ThenTrickle(open_stream(begin), again.to_owned())]).await;
            let (request, heard) = listening();
            let start = Instant::now();
            let error = within(&server, Some(total), RetryPolicy::default()).chat(request).await.unwrap_err();
            let wanted = (!begin.is_empty()).then_some("half");
            assert_eq!(
                (error.kind(), error.partial_text(), error.provider()),
                (ErrorKind::Timeout, wanted, Some("openai"))
            );
            assert!(error.message().contains("total timeout"), "{error}");
            assert!(about(start.elapsed(), total), "{:?}", start.elapsed());
            assert_eq!((texts(&heard).len(), server.requests().len()), (begin.len(), 1));
        }
    }
    // Without a limit it is read on.
    let server = Server::start([Answer::ThenTrickle(open_stream(&[text("half")]), alive.to_owned())]).await;
    let model = within(&server, None, RetryPolicy::default());
    let (request, _) = listening();
    assert!(tokio::time::timeout(100 * MINUTE, model.chat(request)).await.is_err());
}

// W5, W11: a body in one piece has the response timeout already; the shorter of both counts.
#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_ends_too() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999\r\n\r\n{";
    for (total, wanted) in [(Some(MINUTE), MINUTE), (None, 10 * MINUTE), (Some(60 * MINUTE), 10 * MINUTE)] {
        let server = Server::start([Answer::ThenTrickle(head.to_owned(), " ".to_owned())]).await;
        let start = Instant::now();
        let error = within(&server, total, RetryPolicy::default()).chat(hi()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(about(start.elapsed(), wanted), "{:?}", start.elapsed());
    }
}

// W5, W11: the total timeout bounds the tries together, and the retries' deadline when the last of them begins.
#[tokio::test(start_paused = true)]
async fn the_total_timeout_and_the_deadline_of_retries_go_together() {
    let trickle = || Answer::ThenTrickle(open_stream(&[]), ": still here\n\n".to_owned());
    let busy = || Answer::Whole("HTTP/1.1 429 X\r\nretry-after: 40\r\ncontent-length: 2\r\n\r\n{}".to_owned());
    let patient =
        RetryPolicy { max_attempts: 10, deadline: 10 * MINUTE, retry_timeouts: true, ..RetryPolicy::default() };

    // What is left after a wait is all that the next try has, and no other is begun.
    let server = Server::start([busy(), trickle(), trickle()]).await;
    let (request, _) = listening();
    let start = Instant::now();
    let error = within(&server, Some(MINUTE), patient.clone()).chat(request).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Timeout, 2));
    assert!(about(start.elapsed(), MINUTE), "{:?}", start.elapsed());

    // A wait that would pass it is not begun.
    let server = Server::start([busy(), busy(), trickle()]).await;
    let start = Instant::now();
    let error = within(&server, Some(MINUTE), patient.clone()).chat(hi()).await.unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (ErrorKind::RateLimit, Some(Duration::from_secs(40))));
    assert_eq!(server.requests().len(), 2);
    assert!(start.elapsed() < MINUTE, "{:?}", start.elapsed());

    // The deadline of retries ends no try that has begun.
    let hasty = RetryPolicy { deadline: MINUTE, ..patient };
    let server = Server::start([busy(), trickle(), trickle()]).await;
    let (request, _) = listening();
    let start = Instant::now();
    let error = within(&server, Some(5 * MINUTE), hasty).chat(request).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Timeout, 2));
    assert!(about(start.elapsed(), 5 * MINUTE), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_key_that_comes_back_is_not_passed_on() {
    let message = format!("bad key {KEY}");
    let error = json!({"error": {"message": message, "code": KEY}});
    for answer in [json_answer(401, error.clone()), json_answer(200, error.clone()), stream(&[error])] {
        let server = Server::start([answer]).await;
        let (request, _) = listening();
        let error = server.model().chat(request).await.unwrap_err();
        assert!(error.message().contains("bad key"), "{error}");
        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    }
}

#[tokio::test]
async fn a_key_that_comes_back_encoded_is_not_passed_on() {
    use base64::{Engine, engine::general_purpose::STANDARD};

    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for spelled in [STANDARD.encode(KEY), STANDARD.encode(format!("Bearer {KEY}")), hex, percent] {
        let error = json!({"error": {"message": format!("bad header: {spelled}"), "code": spelled}});
        for answer in [json_answer(401, error.clone()), json_answer(200, error.clone()), stream(&[error])] {
            let server = Server::start([answer]).await;
            let (request, _) = listening();
            let error = server.model().chat(request).await.unwrap_err();
            assert!(error.message().contains("bad header: [api key]"), "{error}");
            assert!(!format!("{error} {error:?}").contains(&spelled), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_tool_with_a_foreign_name_is_called_by_its_own() {
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "c", "function": {"name": crate::wire::names::wire_name("files.read"), "arguments": "{}"}}
    ]}, "finish_reason": "tool_calls"}]});
    let server = Server::start([stream(&[call])]).await;
    let (mut request, heard) = listening();
    let spec = ToolSpec::new("files.read", "", None).unwrap();
    request.tools = ToolSet::new([Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })]).unwrap();
    request.context = request.context.with_conversation("conv");
    let response = server.model().chat(request).await.unwrap();
    assert_eq!(response.message.tool_calls[0].name, "files.read");
    assert!(response.offered.get("files.read").is_some());
    assert_eq!(response.context.conversation_id(), Some("conv"));
    assert!(heard.lock().unwrap().contains(&ChatEvent::CallBegun {
        index: 0,
        id: "c".into(),
        name: "files.read".into()
    }));
}

// W5: one key's models hold each other back, and a place is free again once a reply was read.
#[tokio::test]
async fn models_with_one_limiter_share_what_the_provider_asks_for() {
    let refused = "HTTP/1.1 429 X\r\nretry-after-ms: 300\r\ncontent-length: 2\r\n\r\n{}".to_owned();
    let server = Server::start([Answer::Whole(refused), reply("one"), stream(&[text("two"), end()])]).await;
    let limiter = Limiter::new().concurrency(1);
    let model = || server.model().with_limiter(Some(limiter.clone())).unwrap();
    let (first, second) = (model(), model());
    let start = Instant::now();
    let refused = first.chat(hi());
    let later = async {
        while server.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (request, heard) = listening();
        second.chat(request).await.map(|response| (said(&response), heard, start.elapsed()))
    };
    let (one, two) = tokio::join!(refused, later);
    let (two, _, at) = two.unwrap();
    let mut both = [said(&one.unwrap()), two];
    both.sort();
    assert_eq!((both, server.requests().len()), (["one".to_owned(), "two".to_owned()], 3));
    assert!(at >= Duration::from_millis(300), "{at:?}");
    assert!(OpenAi::builder("m").api_key(KEY).limiter(Limiter::new().concurrency(0)).build().is_err());
}

// W5: the time in the queue counts against the total deadline.
#[tokio::test]
async fn a_call_that_gets_no_place_before_its_deadline_is_not_sent() {
    let server = Server::start([Answer::ThenSilence(open_stream(&[text("half")]))]).await;
    let limiter = Limiter::new().concurrency(1);
    let mut target = server.model().target().clone();
    target.retry.deadline = Duration::from_millis(200);
    let model = Client::new(server.model().dialect().clone(), target).with_limiter(Some(limiter)).unwrap();
    let cancel = CancellationToken::new();
    let (mut request, _) = listening();
    request.context = request.context.with_cancel(cancel.clone());
    let waits = async {
        while server.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let error = model.chat(hi()).await.unwrap_err();
        cancel.cancel();
        error
    };
    let (first, error) = tokio::join!(model.chat(request), waits);
    assert_eq!(first.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!((error.kind(), error.provider(), server.requests().len()), (ErrorKind::RateLimit, Some("openai"), 1));
}

#[test]
fn the_type_of_a_body_tells_how_to_read_it() {
    for (kind, wanted, expected) in [
        ("text/event-stream; charset=utf-8", false, true),
        ("Text/Event-Stream", true, true),
        ("application/json", true, false),
        ("text/html; charset=utf-8", true, false),
        ("text/plain", true, true),
        ("text/plain", false, false),
        ("", true, true),
        ("", false, false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        assert_eq!(is_stream(&headers, wanted), expected, "{kind:?} {wanted}");
    }
}

#[path = "client_beside_tests.rs"]
mod beside;

#[path = "client_secret_tests.rs"]
mod secret_tests;

#[path = "client_bodies_tests.rs"]
mod bodies_tests;
