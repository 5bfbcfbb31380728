//! Errors: their words, what they carry, and what they never show.

use std::{collections::HashSet, error::Error as _, time::Duration};

use crate::{Error, ErrorKind, ToolFailure};

/// All kinds, and whether the same request may succeed later.
const KINDS: &[(ErrorKind, &str, bool)] = &[
    (ErrorKind::RateLimit, "rate_limit", true),
    (ErrorKind::Quota, "quota", false),
    (ErrorKind::Overloaded, "overloaded", true),
    (ErrorKind::Server, "server", true),
    (ErrorKind::Auth, "auth", false),
    (ErrorKind::InvalidRequest, "invalid_request", false),
    (ErrorKind::ContextLength, "context_length", false),
    (ErrorKind::Truncated, "truncated", true),
    (ErrorKind::Decode, "decode", false),
    (ErrorKind::Network, "network", true),
    (ErrorKind::Timeout, "timeout", true),
    (ErrorKind::Cancelled, "cancelled", false),
    (ErrorKind::Provider, "provider", false),
    (ErrorKind::NotPaused, "not_paused", false),
    (ErrorKind::AlreadyDecided, "already_decided", false),
    (ErrorKind::Expired, "expired", false),
    (ErrorKind::Busy, "busy", true),
    (ErrorKind::Conflict, "conflict", false),
    (ErrorKind::Corrupt, "corrupt", false),
    (ErrorKind::Store, "store", false),
    (ErrorKind::InvalidInput, "invalid_input", false),
    (ErrorKind::InvalidTool, "invalid_tool", false),
    (ErrorKind::InvalidConfig, "invalid_config", false),
    (ErrorKind::Tool, "tool", false),
];

#[test]
fn every_kind_has_its_word_and_says_whether_to_try_again() {
    // W4
    for (kind, word, retryable) in KINDS {
        let error = Error::new(*kind, "why");
        assert_eq!(
            (kind.as_str(), error.is_retryable(), error.to_string()),
            (*word, *retryable, format!("{word}: why"))
        );
        assert_eq!(kind.to_string(), *word);
    }
    assert_eq!(KINDS.iter().map(|(_, word, _)| word).collect::<HashSet<_>>().len(), KINDS.len());
}

#[test]
fn an_error_carries_what_is_known() {
    // W4
    let error = Error::new(ErrorKind::RateLimit, "slow down")
        .with_status(429)
        .with_provider("openai")
        .with_code("rate_limit_exceeded")
        .with_request_id("req_1")
        .with_retry_after(Duration::from_secs(5))
        .with_partial_text("so far")
        .with_source(std::io::Error::other("reset"));
    assert_eq!(
        error.to_string(),
        "rate_limit: slow down (provider openai, status 429, code rate_limit_exceeded, request req_1)"
    );
    assert_eq!((error.kind(), error.message(), error.status()), (ErrorKind::RateLimit, "slow down", Some(429)));
    assert_eq!(
        (error.provider(), error.code(), error.request_id()),
        (Some("openai"), Some("rate_limit_exceeded"), Some("req_1"))
    );
    assert_eq!((error.retry_after(), error.partial_text()), (Some(Duration::from_secs(5)), Some("so far")));
    assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("reset"));
    // What a model had written is not part of a log line.
    assert!(!format!("{error:?} {error}").contains("so far"));
    // A clone and a new text keep the rest.
    let told = error.clone().with_message("wait").with_retryable(false);
    assert_eq!(
        (told.message(), told.status(), told.is_retryable(), error.is_retryable()),
        ("wait", Some(429), false, true)
    );
}

#[test]
fn a_tools_failure_has_a_class() {
    // L10
    for (failure, word, retryable) in [
        (ToolFailure::Semantic, "semantic", false),
        (ToolFailure::Transient, "transient", true),
        (ToolFailure::Environment, "environment", false),
    ] {
        let error = Error::tool(failure, "no");
        assert_eq!((error.kind(), error.tool_failure(), failure.as_str()), (ErrorKind::Tool, Some(failure), word));
        assert_eq!(error.is_retryable(), retryable);
    }
    assert_eq!(Error::new(ErrorKind::Tool, "x").tool_failure(), None);
}
