//! The readers below the dialects: events, arguments, error bodies.

use std::time::SystemTime;

use cepa_core::Args;
use cepa_providers::{
    classify::{Failure, classify},
    sse::SseDecoder,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    rng::Rng,
    run::{corpus, fuzz},
};

type Events = Vec<(Option<String>, String)>;

fn events<'a>(most: usize, pieces: impl Iterator<Item = &'a [u8]>) -> (Events, bool) {
    let mut decoder = SseDecoder::new().with_max_event_bytes(most);
    let mut events = Vec::new();
    let failed = pieces.into_iter().any(|piece| decoder.push(piece, &mut events).is_err());
    events.extend(decoder.finish());
    (events.into_iter().map(|event| (event.event, event.data)).collect(), failed)
}

// W6
#[test]
fn sse() {
    let all = corpus(&["openai_chat", "openai_responses", "anthropic", "gemini"], ".sse");
    fuzz("sse", &all, |body, rng| {
        let most = *rng.pick(&[10, 100, 1_000, 100_000]);
        let at_once = events(most, std::iter::once(body));
        let size = 1 + rng.below(30);
        assert_eq!(at_once, events(most, body.chunks(size)), "in pieces of {size}");
        // What is invalid becomes U+FFFD, which is three bytes.
        let bytes: usize = at_once.0.iter().map(|(name, data)| name.as_ref().map_or(0, String::len) + data.len()).sum();
        assert!(bytes <= 3 * body.len());
        assert!(at_once.0.iter().all(|(_, data)| data.len() <= 3 * most));
    });
}

#[test]
fn args() {
    let texts: &[&str] = &[
        "{}",
        " { } ",
        "",
        "null",
        "[1]",
        "\"{\\\"a\\\":1}\"",
        "{\"a\":",
        "{\"n\": 12345678901234567890123, \"s\": \"晴\\ud83d\\ude00\"}",
        "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"a\":2}",
        "{\"path\":\"C:\\\\x\",\"t\":\"\\u0000\"}",
        "{'a': True}",
        "```json\n{}\n```",
    ];
    let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    fuzz("args", &texts, |text, _| {
        let text = String::from_utf8_lossy(text);
        let args = Args::decode(&text);
        match &args {
            Args::Object(raw) => {
                // What may run is an object that anybody can read, and reading it again changes nothing.
                assert!(args.to_value().is_object(), "{raw}");
                assert_eq!(Args::decode(raw.as_str()), args);
            }
            Args::Invalid { raw, why } => {
                assert_eq!((raw.as_str(), why.is_empty()), (&*text, false));
                assert_eq!(args.as_object_str(), "{}");
            }
        }
    });
}

/// Headers that are read when a request failed.
const HEADERS: &[&str] = &[
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-request-id",
    "location",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
];
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "1.5",
    "1e9",
    "6m0s",
    "120ms",
    "99999999999999h",
    "2026-10-21T07:28:30Z",
    "9999-12-31T23:59:60-23:59",
    "0000-00-00T00:00:00Z",
    "Wed, 21 Oct 2026 07:28:30 GMT",
    "true",
    "false",
    "https://x/?k",
    "",
    "\u{e9}",
    "....",
    "s",
];

fn headers(rng: &mut Rng) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for _ in 0..rng.below(5) {
        let mut value = rng.pick(VALUES).as_bytes().to_vec();
        if rng.below(3) == 0 && !value.is_empty() {
            let at = rng.below(value.len());
            value[at] = b' ' + rng.below(95) as u8;
        }
        let name = HEADERS[rng.below(HEADERS.len())];
        headers.insert(HeaderName::from_static(name), HeaderValue::from_bytes(&value).unwrap());
    }
    headers
}

// W4
#[test]
fn error_bodies() {
    let all = corpus(&["errors"], "");
    fuzz("error_bodies", &all, |body, rng| {
        let (headers, body) = (headers(rng), String::from_utf8_lossy(body));
        let status = [None, Some(200), Some(400), Some(429), Some(503), Some(999)][rng.below(6)];
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_792_567_680);
        let error = classify(&Failure { provider: "p", status, headers: &headers, body: &body, now, key: None });
        assert!(!error.message().trim().is_empty());
        assert!(error.message().chars().count() < 2_500, "{error}");
        assert!(error.code().is_none_or(|code| code.chars().count() <= 201));
        let year = std::time::Duration::from_secs(366 * 24 * 60 * 60);
        assert!(error.retry_after().is_none_or(|wait| wait <= year), "{:?}", error.retry_after());
    });
}
