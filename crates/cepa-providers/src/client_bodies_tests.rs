//! Replies that come otherwise than they should: ended in each chunk, whole in the place of a stream, or not at all. Every
//! dialect is spoken.

use super::{secret_tests::models, *};

fn quick() -> RetryPolicy {
    RetryPolicy { base: Duration::from_millis(1), ..RetryPolicy::default() }
}

/// A body that holds this reply, for each of the [`models`].
fn bodies(text: &str) -> [Value; 4] {
    [
        json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}),
        json!({"status": "completed", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        ]}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}),
        gemini(text, true),
    ]
}

fn gemini(text: &str, ends: bool) -> Value {
    let parts = if text.is_empty() { json!([]) } else { json!([{ "text": text }]) };
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if ends {
        candidate["finishReason"] = "STOP".into();
    }
    json!({ "candidates": [candidate] })
}

fn chat(text: &str, ends: bool) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": ends.then_some("stop")}]})
}

/// Chunks in the form of a dialect, and the place of that dialect among the [`models`].
type Chunks = (usize, fn(&str, bool) -> Value);
const ENDED_BY_A_WORD: [Chunks; 2] = [(0, chat), (3, gemini)];

/// A stream in these pieces, closed behind the last.
fn slowly(gap: u64, pieces: impl IntoIterator<Item = String>) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned();
    Answer::Slowly(Duration::from_millis(gap), std::iter::once(head).chain(pieces).collect())
}

async fn ask(answer: Answer, place: usize) -> (Result<ChatResponse, Error>, usize) {
    let server = Server::start([answer]).await;
    let (request, _) = listening();
    (models(&server.url, RetryPolicy::none())[place].chat(request).await, server.requests().len())
}

// W1: there are gateways that write a word for the end into every chunk.
#[tokio::test]
async fn a_reply_with_an_end_in_each_chunk_is_read_to_its_end() {
    for (place, chunk) in ENDED_BY_A_WORD {
        let pieces = (0..4).map(|i| sse(&[chunk(&format!("w{i} "), true)]));
        let (response, _) = ask(slowly(400, pieces), place).await;
        assert_eq!(said(&response.unwrap()), "w0 w1 w2 w3 ");
        // Once something came behind an end, ends mean nothing: longer gaps are none.
        let pieces = ["a", "b"].map(|word| sse(&[chunk(word, true)])).concat();
        let (response, _) = ask(slowly(1200, [pieces, sse(&[chunk("c", true)])]), place).await;
        assert_eq!(said(&response.unwrap()), "abc");
    }
}

// W1: and others that write one before anything is said.
#[tokio::test]
async fn an_end_before_the_reply_is_none() {
    for (place, chunk) in ENDED_BY_A_WORD {
        let (response, _) =
            ask(slowly(1200, [chunk("", true), chunk("the answer", true)].map(|c| sse(&[c]))), place).await;
        assert_eq!(said(&response.unwrap()), "the answer");
        // A stream that is closed then has said nothing; one that breaks has failed.
        let (response, _) = ask(slowly(0, [sse(&[chunk("", true)])]), place).await;
        assert_eq!(said(&response.unwrap()), "");
        let (broken, _) = ask(Answer::ThenClose(open_stream(&[chunk("", true)])), place).await;
        assert_eq!(broken.unwrap_err().kind(), ErrorKind::Network);
        let (broken, _) = ask(Answer::ThenClose(open_stream(&["a", "b"].map(|word| chunk(word, true)))), place).await;
        let error = broken.unwrap_err();
        assert_eq!((error.kind(), error.partial_text()), (ErrorKind::Network, Some("ab")));
    }
}

// W6: nothing takes a whole reply away.
#[tokio::test]
async fn what_cannot_be_read_behind_a_whole_reply_takes_nothing_away() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (place, chunk) in ENDED_BY_A_WORD {
        for garbage in
            ["<garbage>", "{\"choices\":", "[1]", "{\"candidates\": 7, \"choices\": 7}", &format!("{{\"a\":{deep}}}")]
        {
            let whole = format!("{}data: {garbage}\n\n", sse(&[chunk("all", true)]));
            let (response, _) = ask(slowly(0, [whole]), place).await;
            assert_eq!(said(&response.unwrap()), "all", "{garbage}");
            let open = format!("{}data: {garbage}\n\n", sse(&[chunk("half", false)]));
            let error = ask(slowly(0, [open]), place).await.0.unwrap_err();
            assert_eq!((error.kind(), error.partial_text()), (ErrorKind::Decode, Some("half")), "{garbage}");
        }
        // An error that is reported is one.
        let reported = json!({"error": {"message": "busy", "type": "overloaded_error", "status": "UNAVAILABLE"}});
        let error = ask(slowly(0, [sse(&[chunk("all", true), reported])]), place).await.0.unwrap_err();
        assert_eq!((error.kind(), error.partial_text()), (ErrorKind::Overloaded, Some("all")));
    }
}

/// Each model's answer to a request that listens, and how often it asked.
async fn each(answer: impl Fn(usize) -> String) -> Vec<(Result<ChatResponse, Error>, Vec<String>, usize)> {
    let mut results = Vec::new();
    for place in 0..4 {
        let server = Server::start((0..3).map(|_| Answer::ThenClose(answer(place)))).await;
        let (request, heard) = listening();
        let result = models(&server.url, quick())[place].chat(request).await;
        results.push((result, texts(&heard), server.requests().len()));
    }
    results
}

const TYPES: [&str; 5] = [
    "",
    "content-type: text/plain; charset=utf-8\r\n",
    "content-type: text/event-stream\r\n",
    "content-type: application/problem+json\r\n",
    "content-type: application/json\r\n",
];

// W6: whatever its type says.
#[tokio::test]
async fn a_whole_reply_in_the_place_of_a_stream_is_read() {
    for kind in TYPES {
        for before in ["", "\u{feff}", " \r\n\n", "\u{3000}"] {
            for pretty in [false, true] {
                let body = |place: usize| match pretty {
                    false => bodies("hello")[place].to_string(),
                    true => format!("{:#}", bodies("hello")[place]),
                };
                let results = each(|place| format!("HTTP/1.1 200 OK\r\n{kind}\r\n{before}{}", body(place))).await;
                for (place, (result, heard, asked)) in results.into_iter().enumerate() {
                    let what = format!("{place} {kind:?} {before:?} {pretty}");
                    assert_eq!(said(&result.expect(&what)), "hello", "{what}");
                    assert_eq!((heard, asked), (vec!["hello".to_owned()], 1), "{what}");
                }
            }
        }
    }
}

// W4, W5: its kind decides whether it is tried again, and its words are kept.
#[tokio::test]
async fn an_error_in_the_place_of_a_stream_is_what_it_says() {
    let spent = json!({"error": {"message": "Out of credit", "code": "insufficient_quota"}});
    for kind in TYPES {
        for body in [spent.to_string(), format!("{spent:#}"), format!("\u{feff}\n{spent}\n")] {
            for (result, heard, asked) in each(|_| format!("HTTP/1.1 200 OK\r\n{kind}\r\n{body}")).await {
                let error = result.unwrap_err();
                assert_eq!((error.kind(), error.code()), (ErrorKind::Quota, Some("insufficient_quota")), "{kind}");
                assert!(error.message().contains("Out of credit"), "{error}");
                assert_eq!((heard.len(), asked), (0, 1));
            }
        }
    }
    // One that is cut off is tried again, as a stream that is.
    for (result, _, asked) in
        each(|place| format!("HTTP/1.1 200 OK\r\n\r\n{}", &bodies("hello")[place].to_string()[..30])).await
    {
        assert_eq!((result.unwrap_err().kind(), asked), (ErrorKind::Truncated, 3));
    }
}

// W4: what holds no reply says so, and the next try would meet the same.
#[tokio::test]
async fn a_page_or_no_content_is_an_error_that_is_not_repeated() {
    for (answer, says) in [
        (
            "200 OK\r\n\r\n<html><head><script>x</script></head><body>Log in</body></html>",
            "a page for a browser and not with a reply (Log in)",
        ),
        ("200 OK\r\ncontent-type: text/html\r\n\r\n<!doctype html><p>Log in", "(Log in)"),
        ("200 OK\r\ncontent-type: text/event-stream\r\n\r\n\n<p>Log in", "(Log in)"),
        ("204 No Content\r\n\r\n", "HTTP 204"),
        ("205 Reset Content\r\ncontent-length: 0\r\n\r\n", "HTTP 205"),
    ] {
        for (result, _, asked) in each(|_| format!("HTTP/1.1 {answer}")).await {
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.is_retryable(), asked), (ErrorKind::Decode, false, 1), "{answer}: {error}");
            assert!(error.message().contains(says) && error.message().contains("check the base URL"), "{error}");
        }
    }
}

// W1: what is checked for its depth and what is read begin at the same place.
#[tokio::test]
async fn no_space_hides_how_deep_a_reply_is() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for before in ["", "\u{feff}", "\u{feff}\u{feff}", "\u{3000}", "\u{feff}\u{85}", "\u{2003}\u{feff} ", "\u{b}\u{c}"]
    {
        for head in ["content-type: text/event-stream\r\n\r\ndata: ", "content-type: application/json\r\n\r\n", "\r\n"]
        {
            let body = |place: usize| {
                let mut body = bodies("hello")[place].to_string();
                body.truncate(body.len() - 1);
                format!("{body},\"deep\":{deep}}}")
            };
            let results = each(|place| format!("HTTP/1.1 200 OK\r\n{head}{before}{}\n\n", body(place))).await;
            for (place, (result, _, _)) in results.into_iter().enumerate() {
                let error = result.unwrap_err();
                assert!(error.message().contains("nested deeper than 127"), "{place} {before:?} {head:?}: {error}");
            }
        }
    }
}

// W5: as behind a status that says it.
#[tokio::test]
async fn the_wait_of_an_error_behind_a_200_is_read_from_its_headers() {
    let slow = json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}});
    for head in ["content-type: application/json", "content-type: text/event-stream"] {
        for (result, _, asked) in each(|_| format!("HTTP/1.1 200 OK\r\nretry-after: 700\r\n{head}\r\n\r\n{slow}")).await
        {
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.retry_after()), (ErrorKind::RateLimit, Some(Duration::from_secs(700))));
            assert_eq!(asked, 1);
        }
    }
}
