//! W4: what providers send when they fail, and what it means.

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

/// 2026-10-21T07:28:00Z
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_567_680)
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
}

fn failure(status: impl Into<Option<u16>>, pairs: &[(&'static str, &str)], body: &str) -> Error {
    let (headers, now) = (headers(pairs), now());
    classify(&Failure { provider: "acme", status: status.into(), headers: &headers, body, now, key: None })
}

/// Kind and whether to try again, of a body with this status.
fn class(status: impl Into<Option<u16>>, body: &str) -> (ErrorKind, bool) {
    let error = failure(status, &[], body);
    (error.kind(), error.is_retryable())
}

// W4
#[test]
fn the_status_decides_when_the_body_says_nothing() {
    for (status, kind, retryable) in [
        (301, ErrorKind::InvalidRequest, false),
        (400, ErrorKind::InvalidRequest, false),
        (401, ErrorKind::Auth, false),
        (402, ErrorKind::Quota, false),
        (403, ErrorKind::Auth, false),
        (404, ErrorKind::InvalidRequest, false),
        (405, ErrorKind::InvalidRequest, false),
        (408, ErrorKind::Timeout, true),
        (409, ErrorKind::Provider, true),
        (413, ErrorKind::InvalidRequest, false),
        (422, ErrorKind::InvalidRequest, false),
        (425, ErrorKind::Provider, true),
        (429, ErrorKind::RateLimit, true),
        (498, ErrorKind::Overloaded, true),
        (500, ErrorKind::Server, true),
        (501, ErrorKind::Server, false),
        (502, ErrorKind::Server, true),
        (503, ErrorKind::Server, true),
        (504, ErrorKind::Server, true),
        (524, ErrorKind::Server, true),
        (529, ErrorKind::Overloaded, true),
    ] {
        for body in
            ["", "{}", "null", "[]", "oops", "{\"error\": null}", "{\"error\":{\"message\":\"m\",\"code\":null}}"]
        {
            assert_eq!(class(status, body), (kind, retryable), "{status} {body}");
        }
        assert_eq!(failure(status, &[], "").status(), Some(status));
    }
}

// W4: a spent quota is told by its code or type
#[test]
fn quota_is_told_by_code_or_type_and_not_by_words() {
    let openai = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
    assert_eq!(class(429, openai), (ErrorKind::Quota, false));
    let type_only = r#"{"error":{"message":"m","type":"exceeded_current_quota_error"}}"#;
    assert_eq!(class(429, type_only), (ErrorKind::Quota, false));
    let anthropic = r#"{"type":"error","error":{"type":"billing_error","message":"m"}}"#;
    assert_eq!(class(403, anthropic), (ErrorKind::Quota, false));
    assert_eq!(class(429, r#"{"error":{"code":"1113","message":"余额不足"}}"#), (ErrorKind::Quota, false));
    let words =
        r#"{"error":{"message":"You exceeded your current quota, insufficient_quota","type":"requests","code":null}}"#;
    assert_eq!(class(429, words), (ErrorKind::RateLimit, true));
}

// W4
#[test]
fn codes_and_types_win_over_the_status() {
    for (status, error, expected) in [
        (
            400,
            r#"{"code":"context_length_exceeded","type":"invalid_request_error"}"#,
            (ErrorKind::ContextLength, false),
        ),
        (400, r#"{"type":"exceed_context_size_error","code":400}"#, (ErrorKind::ContextLength, false)),
        (401, r#"{"type":"invalid_request_error","code":null}"#, (ErrorKind::Auth, false)),
        (
            400,
            r#"{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}"#,
            (ErrorKind::Auth, false),
        ),
        (403, r#"{"type":"rate_limit_error"}"#, (ErrorKind::RateLimit, true)),
        (413, r#"{"type":"tokens","code":"rate_limit_exceeded"}"#, (ErrorKind::ContextLength, false)),
        (429, r#"{"type":"engine_overloaded_error"}"#, (ErrorKind::Overloaded, true)),
        (429, r#"{"code":429,"status":"RESOURCE_EXHAUSTED"}"#, (ErrorKind::RateLimit, true)),
        (429, r#"{"type":"requests","code":"rate_limit_exceeded"}"#, (ErrorKind::RateLimit, true)),
        (429, r#"{"type":"server_error"}"#, (ErrorKind::RateLimit, true)),
        (503, r#"{"code":"slow_down","type":"server_error"}"#, (ErrorKind::Overloaded, true)),
        (503, r#"{"type":"unavailable_error","code":503}"#, (ErrorKind::Server, true)),
        (500, r#"{"type":"overloaded_error"}"#, (ErrorKind::Overloaded, true)),
        (504, r#"{"type":"timeout_error"}"#, (ErrorKind::Timeout, true)),
        (400, r#"{"type":"BadRequestError","code":400}"#, (ErrorKind::InvalidRequest, false)),
    ] {
        assert_eq!(class(status, &format!(r#"{{"error":{error}}}"#)), expected, "{status} {error}");
    }
}

// W4
#[test]
fn errors_behind_a_200_and_inside_a_stream_are_told_by_their_code() {
    for (error, expected) in [
        (r#"{"message":"Provider returned error","code":429}"#, (ErrorKind::RateLimit, true)),
        (r#"{"message":"upstream overloaded","type":"server_error","code":503}"#, (ErrorKind::Server, true)),
        (r#"{"message":"m","code":"502"}"#, (ErrorKind::Server, true)),
        (r#"{"message":"m","code":401}"#, (ErrorKind::Auth, false)),
        (r#"{"message":"m","code":"insufficient_quota"}"#, (ErrorKind::Quota, false)),
        (r#"{"message":"m","type":"overloaded_error"}"#, (ErrorKind::Overloaded, true)),
        (r#"{"message":"m","type":"rate_limit_error"}"#, (ErrorKind::RateLimit, true)),
        (r#"{"message":"m","type":"api_error"}"#, (ErrorKind::Server, true)),
        (r#"{"message":"m","type":"InternalServerError"}"#, (ErrorKind::Server, true)),
        (r#"{"message":"m","type":"invalid_request_error"}"#, (ErrorKind::InvalidRequest, false)),
        (
            r#"{"message":"prompt is too long: 9 > 8","type":"invalid_request_error"}"#,
            (ErrorKind::ContextLength, false),
        ),
        (r#"{"message":"m","type":"novel_error"}"#, (ErrorKind::Provider, false)),
        (r#"{"message":"m","code":7}"#, (ErrorKind::Provider, false)),
        (r#""model is loading""#, (ErrorKind::Provider, false)),
    ] {
        let body = format!(r#"{{"type":"error","error":{error}}}"#);
        assert_eq!(class(200, &body), expected, "{error}");
        assert_eq!(class(None, &body), expected, "{error}");
        assert!(failure(None, &[], &body).status().is_none());
    }
}

// W4
#[test]
fn a_conversation_that_is_too_long_is_known_by_code_or_by_what_providers_say() {
    for message in [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "Range of input length should be [1, 30720]",
        "Please reduce the length of the messages or completion.",
    ] {
        let body = serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
        assert_eq!(class(400, &body), (ErrorKind::ContextLength, false), "{message}");
        assert_eq!(class(500, &body).0, ErrorKind::Server, "the words alone do not outweigh a 500");
    }
    for message in
        ["max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens", "Invalid 'messages'"]
    {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert_eq!(class(400, &body), (ErrorKind::InvalidRequest, false), "{message}");
    }
}

#[test]
fn the_providers_words_are_found_in_every_shape() {
    for (body, message, code) in [
        (r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#, "m", Some("c")),
        (r#"{"error":{"message":"m","type":"t","code":null}}"#, "m", Some("t")),
        (r#"{"error":{"message":"m","type":"t","code":400}}"#, "m", Some("t")),
        (r#"{"error":{"message":"m","code":400}}"#, "m", Some("400")),
        (r#"{"error":{"message":"m","code":7}}"#, "m", Some("7")),
        (r#"{"type":"error","error":{"type":"t","message":"m"},"request_id":"r"}"#, "m", Some("t")),
        (r#"[{"error":{"code":400,"message":"m","status":"FAILED_PRECONDITION"}}]"#, "m", Some("FAILED_PRECONDITION")),
        (r#"{"error":"model 'x' is broken"}"#, "model 'x' is broken", None),
        (r#"{"error":"invalid_grant","error_description":"m"}"#, "m", Some("invalid_grant")),
        (r#"{"error":"Bad Request","message":"m","statusCode":400}"#, "m", Some("Bad Request")),
        (
            r#"{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}"#,
            "m",
            Some("BadRequestError"),
        ),
        (
            r#"{"object":"error","message":{"detail":[{"loc":["body","n"],"msg":"field required"}]},"type":"t"}"#,
            "body.n: field required",
            Some("t"),
        ),
        (r#"{"detail":"m"}"#, "m", None),
        (r#"{"detail":[{"loc":["body","messages",0],"msg":"a"},{"msg":"b"}]}"#, "body.messages.0: a; b", None),
        (r#"{"errors":[{"code":7003,"message":"m"}]}"#, "m", Some("7003")),
        (r#"{"statusCode":400,"message":"m"}"#, "m", None),
        (r#""m""#, "m", None),
        (
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"too hot","provider_name":"p"}}}"#,
            "Provider returned error: too hot",
            Some("400"),
        ),
        (
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"too hot\"}}"}}}"#,
            "Provider returned error: too hot",
            None,
        ),
        (r#"{"error":{"type":"t"}}"#, r#"HTTP 400 Bad Request: {"error":{"type":"t"}}"#, Some("t")),
        (r#"{"error":17}"#, "17", None),
    ] {
        let error = failure(400, &[], body);
        assert_eq!((error.message(), error.code()), (message, code), "{body}");
        assert_eq!(error.provider(), Some("acme"));
    }
}

// W4: in a stream the status is a number in the error, and the word beside it says more.
#[test]
fn a_word_says_more_than_a_number_that_stands_for_the_status() {
    for (error, code) in [
        (r#"{"code":503,"message":"m","status":"UNAVAILABLE"}"#, Some("UNAVAILABLE")),
        (r#"{"code":"429","message":"m","type":"too_many_requests"}"#, Some("too_many_requests")),
        (r#"{"code":503,"message":"m"}"#, Some("503")),
        (r#"{"code":7,"message":"m","type":"t"}"#, Some("7")),
    ] {
        let body = format!(r#"{{"error":{error}}}"#);
        assert_eq!(failure(None, &[], &body).code(), code, "{error}");
        assert_eq!(failure(200, &[], &body).code(), code, "{error}");
    }
    let other = r#"{"error":{"code":429,"message":"m","type":"t"}}"#;
    assert_eq!(failure(400, &[], other).code(), Some("429"), "another status than the answer's");
}

#[test]
fn a_body_that_is_not_json_becomes_one_short_line() {
    for (status, body, message) in [
        (502, "<html><body>Bad Gateway</body></html>", "HTTP 502 Bad Gateway: Bad Gateway"),
        (
            503,
            "\u{feff}\n<!DOCTYPE html><HTML><HEAD><title>A &amp; B</title><STYLE>p{}</STYLE><script>if (a<b) {}</script><!-- <p>no</p> -->\r\n\
             <body>\n<p>down&nbsp;&lt;now&gt;",
            "HTTP 503 Service Unavailable: A & B down <now>",
        ),
        (500, "", "HTTP 500 Internal Server Error, without an explanation"),
        (599, "  \n", "HTTP 599, without an explanation"),
        (
            500,
            "upstream\u{0} \u{1b}[31mreset\r\n  by peer",
            "HTTP 500 Internal Server Error: upstream [31mreset by peer",
        ),
        (502, "<", "HTTP 502 Bad Gateway, without an explanation"),
        (502, "<script>", "HTTP 502 Bad Gateway, without an explanation"),
    ] {
        let error = failure(status, &[("content-type", "text/html")], body);
        assert_eq!(error.message(), message);
        assert_eq!(error.kind(), ErrorKind::Server);
    }
    assert_eq!(failure(None, &[], "?").message(), "an error in the stream: ?");
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "错".repeat(5_000);
    let body = serde_json::json!({"error": {"message": long}}).to_string();
    assert_eq!(failure(400, &[], &body).message(), format!("{}…", "错".repeat(2_000)));
    let short = "错".repeat(600);
    let body = serde_json::json!({"error": {"message": short}}).to_string();
    assert_eq!(failure(400, &[], &body).message(), short);
    assert_eq!(failure(500, &[], &long).message(), format!("HTTP 500 Internal Server Error: {}…", "错".repeat(300)));
}

#[test]
fn the_message_says_what_to_do() {
    assert!(
        failure(401, &[], r#"{"error":{"message":"No."}}"#)
            .message()
            .ends_with("No. (check the API key for acme and what it may be used for)")
    );
    assert!(failure(402, &[], "").message().contains("check plan and billing at acme"));
    assert!(failure(404, &[], "").message().contains("check the model's name and the base URL"));
    let moved = failure(308, &[("location", "https://new.example/v1?key=secret")], "");
    assert!(moved.message().contains("redirects to https://new.example/v1: "), "{moved}");
    assert!(!moved.message().contains("secret"));
}

// W5: Retry-After in seconds and as a date, and the vendors' own headers
#[test]
fn the_wait_is_read_from_the_headers() {
    let wait = |pairs: &[(&'static str, &str)]| failure(429, pairs, "").retry_after();
    let seconds = |seconds: f64| Some(Duration::from_secs_f64(seconds));
    assert_eq!(wait(&[]), None);
    assert_eq!(wait(&[("retry-after", "2")]), seconds(2.0));
    assert_eq!(wait(&[("retry-after", " 1.5 ")]), seconds(1.5));
    assert_eq!(wait(&[("retry-after", "0")]), seconds(0.0));
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")]), seconds(30.0));
    assert_eq!(wait(&[("retry-after", "Wednesday, 21-Oct-26 07:28:30 GMT")]), seconds(30.0));
    assert_eq!(wait(&[("retry-after", "Wed Oct 21 07:28:30 2026")]), seconds(30.0));
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), None);
    assert_eq!(wait(&[("retry-after", "Thu, 21 Oct 9999 07:28:00 GMT")]), seconds(3600.0));
    assert_eq!(
        wait(&[("retry-after-ms", "850"), ("retry-after", "1"), ("x-ratelimit-reset-requests", "6m0s")]),
        seconds(0.85)
    );
    assert_eq!(wait(&[("retry-after-ms", "soon"), ("retry-after", "1")]), seconds(1.0));
    // The vendors' own headers are asked last, and only for what is spent.
    let spent = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")];
    assert_eq!(wait(&spent), seconds(360.0));
    assert_eq!(wait(&[spent[0], spent[1], ("retry-after", "1")]), seconds(1.0));
    let anthropic = [
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", "2026-10-21T07:28:30Z"),
    ];
    assert_eq!(wait(&anthropic), seconds(30.0));
    for nonsense in ["", "-1", "inf", "NaN", "1e3", "soon", ".", "1.2.3"] {
        assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
    }
    // Joined by a gateway, with a unit, sent twice, and what is too long to be meant so: not retried at once.
    for (value, wait_of) in [
        ("2, 3", 3.0),
        ("3,2", 3.0),
        ("2s", 2.0),
        ("1m30s", 90.0),
        ("soon, 4", 4.0),
        ("99999999999999999999", 3600.0),
        ("9".repeat(400).as_str(), 3600.0),
        ("32000000", 3600.0),
    ] {
        assert_eq!(wait(&[("retry-after", value)]), seconds(wait_of), "{value}");
    }
    assert_eq!(wait(&[("retry-after", "1"), ("retry-after", "5")]), seconds(5.0));
    let gemini = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"a"},{"@type":"b","retryDelay":"34.5s"}]}}]"#;
    assert_eq!(failure(429, &[], gemini).retry_after(), seconds(34.5));
    assert_eq!(failure(429, &[("retry-after", "3")], gemini).retry_after(), seconds(3.0));
}

// W5: the vendors' own headers
#[test]
fn the_server_may_say_whether_to_try_again() {
    let retryable =
        |status: u16, said: &str, body: &str| failure(status, &[("x-should-retry", said)], body).is_retryable();
    assert!(!retryable(500, "false", ""));
    assert!(!retryable(429, "false", ""));
    assert!(retryable(400, "true", ""));
    assert!(retryable(500, "perhaps", ""));
    assert!(!retryable(429, "true", r#"{"error":{"code":"insufficient_quota"}}"#));
}

#[test]
fn the_request_id_is_kept() {
    assert_eq!(failure(500, &[("x-request-id", "a")], "").request_id(), Some("a"));
    assert_eq!(failure(500, &[("request-id", "b"), ("cf-ray", "c")], "").request_id(), Some("b"));
    assert_eq!(failure(500, &[], r#"{"type":"error","error":{},"request_id":"d"}"#).request_id(), Some("d"));
    assert_eq!(failure(500, &[], "").request_id(), None);
}

#[test]
fn an_echoed_key_does_not_come_back() {
    let secret = "sk-test-0123456789";
    let key = ApiKey::new(secret).unwrap();
    let headers = headers(&[("x-request-id", secret)]);
    let padded = format!("{}{secret}", "x ".repeat(146));
    for body in [
        format!(r#"{{"error":{{"message":"bad key {secret}","code":"{secret}"}}}}"#),
        format!("<p>bad key {secret}</p>"),
        format!("you sent {secret}"),
        padded,
        format!(r#"{{"error":{{"message":"{}{secret}"}}}}"#, "x".repeat(1_993)),
        r#"{"error":{"message":"bad key \u0073k-test-0123456789"}}"#.to_owned(),
    ] {
        let failure = Failure {
            provider: "acme",
            status: Some(401),
            headers: &headers,
            body: &body,
            now: now(),
            key: Some(&key),
        };
        let error = classify(&failure);
        // Not even the beginning of it, where a text was cut.
        assert!(!format!("{error} {error:?} {:?}", error.code()).contains("sk-t"), "{error:?}");
        assert!(!format!("{failure:?}").contains("sk-t"), "{failure:?}");
    }
}

proptest! {
    /// Nothing that a server sends makes this panic, and the message is never empty nor endless.
    #[test]
    fn any_body_gives_an_error(status in proptest::option::of(100_u16..1000), body in "\\PC{0,200}|[<>/!a-z&;\" -]{0,60}") {
        let error = failure(status, &[], &body);
        prop_assert!(!error.message().trim().is_empty());
        prop_assert!(error.message().chars().count() < 2_200);
    }
}
