//! The key is in no part of any error, whichever dialect is spoken and wherever a server puts it.

use std::error::Error as StdError;

use cepa_core::ChatModel;

use super::*;
use crate::{anthropic::Anthropic, gemini::Gemini, responses::OpenAiResponses};

const SHORT: &str = "sk-7f3Kq9ZwX2b";

/// A model of each dialect at this address.
pub(super) fn models(url: &str, retry: RetryPolicy) -> Vec<Box<dyn ChatModel>> {
    let mut http = HttpSettings::default();
    http.proxy = Proxy::None;
    vec![
        Box::new(
            OpenAi::builder("m").base_url(url).api_key(SHORT).retry(retry.clone()).http(http.clone()).build().unwrap(),
        ),
        Box::new(
            OpenAiResponses::builder("m")
                .base_url(url)
                .api_key(SHORT)
                .retry(retry.clone())
                .http(http.clone())
                .build()
                .unwrap(),
        ),
        Box::new(
            Anthropic::builder("m")
                .base_url(url)
                .api_key(SHORT)
                .retry(retry.clone())
                .http(http.clone())
                .build()
                .unwrap(),
        ),
        Box::new(Gemini::builder("m").base_url(url).api_key(SHORT).retry(retry).http(http).build().unwrap()),
    ]
}

/// All that an error shows, and those that caused it.
fn shown(error: &Error) -> String {
    let chain = std::iter::successors(error.source(), |&error: &&(dyn StdError + 'static)| error.source());
    let causes: Vec<_> = chain.map(|error| format!("{error}\n{error:?}")).collect();
    format!("{error}\n{error:?}\n{error:#?}\n{:?}\n{}", error.code(), causes.join("\n"))
}

/// Each dialect's error for this answer, once asked for as a stream and once not.
async fn errors(answer: &str) -> Vec<Error> {
    let server = Server::start((0..8).map(|_| Answer::ThenClose(answer.to_owned()))).await;
    let mut errors = Vec::new();
    for model in models(&server.url, RetryPolicy::none()) {
        for request in [hi(), listening().0] {
            // What one dialect cannot read may be a reply in another.
            errors.extend(model.chat(request).await.err());
        }
    }
    errors
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

// W4: in the message, the code, the request's id, where a redirect leads, and what caused the error.
#[tokio::test]
async fn the_key_is_in_no_part_of_an_error() {
    let json = "200 OK\r\ncontent-type: application/json";
    let sse = "200 OK\r\ncontent-type: text/event-stream";
    let reported =
        json!({"type": "error", "error": {"message": SHORT, "type": SHORT, "code": SHORT}, "request_id": SHORT});
    let mut answers = vec![
        answer(json, &reported.to_string()),
        answer(sse, &format!("event: error\ndata: {reported}\n\n")),
        answer(sse, &format!("data: {reported}\n\n")),
        answer("500 X", &reported.to_string()),
        answer(&format!("403 X\r\nx-request-id: {SHORT}"), &"x".repeat(290)),
        answer(&format!("307 X\r\nlocation: http://127.0.0.1:9/{SHORT}?k={SHORT}"), ""),
        answer(&format!("{json}\r\ncontent-encoding: {SHORT}"), ""),
        answer(&format!("{json}\r\nrequest-id: {SHORT}"), "{"),
    ];
    // Where something else is expected.
    for name in ["choices", "candidates", "content", "output", "id", "object", "type", "error", "usage", "role"] {
        for value in [json!(SHORT), json!({ "k": SHORT }), json!([{ SHORT: SHORT }])] {
            let body = json!({ name: value });
            answers.push(answer(json, &body.to_string()));
            answers.push(answer(sse, &format!("data: {body}\n\n")));
        }
    }
    for answer in answers {
        let errors = errors(&answer).await;
        assert!(errors.len() >= 3, "{answer}: {errors:?}");
        for error in errors {
            let shown = shown(&error);
            assert!(!shown.contains("7f3K") && !shown.contains("q9ZwX2"), "{answer}: {shown}");
        }
    }
}

// W4: nor is a part of it, where a text is cut.
#[tokio::test]
async fn no_cut_leaves_a_part_of_the_key() {
    let json = "200 OK\r\ncontent-type: application/json";
    let sse = "200 OK\r\ncontent-type: text/event-stream";
    let escaped: String = SHORT.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    for key in [SHORT, &format!("'{escaped}'"), &SHORT.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()] {
        for before in [190, 195] {
            let body = format!("{} {key} tail", "x".repeat(before - 1));
            for answer in [answer(json, &body), answer(sse, &format!("data: {body}\n\n"))] {
                assert_no_part(&answer, key).await;
            }
        }
    }
    for before in [1988] {
        let body = json!({"error": {"message": format!("{}{SHORT} tail", "x".repeat(before)), "type": "x"}});
        assert_no_part(&answer(json, &body.to_string()), SHORT).await;
        assert_no_part(&answer(sse, &format!("event: error\ndata: {body}\n\n")), SHORT).await;
    }
    // What is read of an error body ends in the middle of it; or the connection does.
    assert_no_part(&answer("500 X", &format!("{}{SHORT}", " ".repeat(256 * 1024 - 10))), SHORT).await;
    let (half, _) = SHORT.split_at(10);
    assert_no_part(&format!("HTTP/1.1 500 X\r\ncontent-length: 999\r\n\r\nno such key: {half}"), SHORT).await;
}

async fn assert_no_part(answer: &str, key: &str) {
    let errors = errors(answer).await;
    assert_eq!(errors.len(), 8, "{answer}");
    for error in errors {
        let shown = shown(&error);
        for size in [7, 9] {
            let part = &key[..key.len().min(size * key.len() / SHORT.len())];
            assert!(!shown.contains(part), "{part} of {key} in {shown}");
        }
    }
}

#[tokio::test]
async fn a_response_shows_no_value_of_its_headers() {
    let server = Server::start([Answer::Whole(answer(&format!("200 OK\r\nx-echo: {SHORT}"), ""))]).await;
    let model = server.model();
    let request = crate::http::HttpRequest::post(&server.url, Vec::new()).unwrap();
    let response = model.target().http.send(request, &CancellationToken::new()).await.unwrap();
    let shown = format!("{response:?} {response:#?}");
    assert!(shown.contains("x-echo") && !shown.contains("7f3K"), "{shown}");
}
