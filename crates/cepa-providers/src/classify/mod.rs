//! What a provider's failure means: the one place where a status, headers and an error body become an [`Error`] (W4).
//!
//! It serves refused requests (HTTP 4xx and 5xx), error bodies behind a 200, and error objects inside a stream alike. Kinds
//! are decided by codes and types first, then by the status, never by the words of the text; the one exception is the
//! context window, for which most providers have no code.

mod resets;
mod snippet;
mod told;
mod wait;
mod words;

use std::{
    borrow::Cow,
    fmt,
    time::{Duration, SystemTime},
};

use cepa_core::{Error, ErrorKind};
use http::{HeaderMap, StatusCode};

use crate::secret::{self, ApiKey};
pub(crate) use snippet::line;
use told::Told;
pub(crate) use told::reports;

/// What came instead of a reply.
#[derive(Clone, Copy)]
pub struct Failure<'a> {
    /// The catalog name of the provider.
    pub provider: &'a str,
    /// The HTTP status; none for an error inside a stream, whose status said that all was well.
    pub status: Option<u16>,
    /// The response's headers.
    pub headers: &'a HeaderMap,
    /// The body, or the data of the stream's event: JSON, HTML, anything.
    pub body: &'a str,
    /// The clock, for headers that name a date.
    pub now: SystemTime,
    /// The key that was sent, which must not come back in a message.
    pub key: Option<&'a ApiKey>,
}

impl fmt::Debug for Failure<'_> {
    /// Without headers and body, which may echo the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("provider", &self.provider)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The error that a failed answer means: kind, whether to try again, the provider's own words, code, request id and wait.
///
/// ```
/// use cepa_core::ErrorKind;
/// use cepa_providers::classify::{Failure, classify};
///
/// let headers = http::HeaderMap::new();
/// let body = r#"{"error": {"message": "Out of credit", "code": "insufficient_quota"}}"#;
/// let now = std::time::SystemTime::UNIX_EPOCH;
/// let error = classify(&Failure { provider: "openai", status: Some(429), headers: &headers, body, now, key: None });
/// assert_eq!(error.kind(), ErrorKind::Quota);
/// assert!(!error.is_retryable());
/// ```
pub fn classify(failure: &Failure<'_>) -> Error {
    // Before anything is cut from it: half a key would not be found.
    let body = failure.key.map_or(Cow::Borrowed(failure.body), |key| key.redact(failure.body).into());
    let failure = &Failure { body: &body, ..*failure };
    let told = told::read(&body);
    let kind = kind(failure, &told);
    let mut error = Error::new(kind, message(failure, &told, kind))
        .with_provider(failure.provider)
        .with_retryable(retryable(failure, kind));
    if let Some(status) = failure.status {
        error = error.with_status(status);
    }
    if let Some(code) = told.code(failure.status) {
        error = error.with_code(snippet::cut(&code, 200));
    }
    if let Some(id) = request_id(failure.headers).map(str::to_owned).or(told.request_id) {
        error = error.with_request_id(snippet::cut(&id, 200));
    }
    let asked = wait::asked(failure.headers, failure.now).or(told.retry_after);
    // How long to wait is more exact than when all is as at the beginning.
    if let Some(wait) = asked.or_else(|| resets::wait(failure.headers, failure.now)) {
        error = error.with_retry_after(wait);
    }
    // Once more for what was escaped in the body, or stood in a header.
    secret::without(failure.key, error)
}

fn kind(failure: &Failure<'_>, told: &Told) -> ErrorKind {
    // A body behind a 200 and an event of a stream bring their status along as a code.
    let status = failure.status.filter(|status| *status >= 300).or_else(|| told.status_in_code());
    if let Some(kind) = told.words().find_map(words::specific) {
        // One request over the limit of a minute is too large, however long one waits.
        return if status == Some(413) && kind == ErrorKind::RateLimit { ErrorKind::ContextLength } else { kind };
    }
    let kind = match status {
        Some(status) => by_status(status),
        None => told.words().find_map(words::general).unwrap_or(ErrorKind::Provider),
    };
    match kind {
        ErrorKind::InvalidRequest | ErrorKind::Provider if told.speaks_of_context_length() => ErrorKind::ContextLength,
        // Zhipu says "no balance" with a 429 and a number.
        ErrorKind::RateLimit if told.code.as_deref() == Some("1113") => ErrorKind::Quota,
        kind => kind,
    }
}

fn by_status(status: u16) -> ErrorKind {
    match status {
        401 | 403 => ErrorKind::Auth,
        402 => ErrorKind::Quota,
        408 => ErrorKind::Timeout,
        409 | 425 => ErrorKind::Provider,
        429 => ErrorKind::RateLimit,
        // Groq's "flex tier" and Anthropic's own number.
        498 | 529 => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        _ => ErrorKind::InvalidRequest,
    }
}

fn retryable(failure: &Failure<'_>, kind: ErrorKind) -> bool {
    let said = failure.headers.get("x-should-retry").and_then(|value| value.to_str().ok());
    match (said, failure.status) {
        (Some("false"), _) => false,
        // A spent quota stays spent.
        (Some("true"), _) => kind != ErrorKind::Quota,
        // Another writer was faster; too early: both pass. Not implemented, HTTP version: neither does.
        (_, Some(409 | 425)) if kind == ErrorKind::Provider => true,
        (_, Some(501 | 505)) if kind == ErrorKind::Server => false,
        _ => kind.is_retryable(),
    }
}

/// The provider's words, and what to do about them where we know it.
fn message(failure: &Failure<'_>, told: &Told, kind: ErrorKind) -> String {
    let words = match &told.message {
        Some(message) => snippet::cut(message, 2_000),
        None => unexplained(failure),
    };
    let provider = failure.provider;
    let hint: Cow<'_, str> = match (kind, failure.status) {
        (ErrorKind::Auth, _) => format!("check the API key for {provider} and what it may be used for").into(),
        (ErrorKind::Quota, _) => format!("check plan and billing at {provider}").into(),
        (_, Some(404 | 405)) => "check the model's name and the base URL".into(),
        (_, Some(300..400)) => match location(failure.headers) {
            Some(target) => {
                format!("the server redirects to {target}: if that is right, set it as the base URL").into()
            }
            None => "the server redirects: check the base URL".into(),
        },
        _ => return words,
    };
    format!("{words} ({hint})")
}

/// What can be said about a body that holds no message: its status, and its beginning as one line.
fn unexplained(failure: &Failure<'_>) -> String {
    let status = match failure.status {
        Some(code) => match StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason()) {
            Some(reason) => format!("HTTP {code} {reason}"),
            None => format!("HTTP {code}"),
        },
        None => "an error in the stream".to_owned(),
    };
    match snippet::line(failure.body, 300) {
        line if line.is_empty() => format!("{status}, without an explanation"),
        line => format!("{status}: {line}"),
    }
}

/// How long headers ask to wait.
pub(crate) fn wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    // How long to wait is more exact than when all is as at the beginning.
    wait::asked(headers, now).or_else(|| resets::wait(headers, now))
}

/// The provider's id of the request, from the headers that providers use for it.
pub fn request_id(headers: &HeaderMap) -> Option<&str> {
    ["request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "cf-ray"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok().filter(|id| !id.is_empty()))
}

/// Where a redirect leads, without its query.
fn location(headers: &HeaderMap) -> Option<&str> {
    let target = headers.get(http::header::LOCATION)?.to_str().ok()?;
    target.split(['?', '#']).next().filter(|target| !target.is_empty())
}

#[cfg(test)]
#[path = "../classify_tests.rs"]
mod tests;
