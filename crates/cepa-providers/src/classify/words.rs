//! What the codes and types of providers mean.

use cepa_core::ErrorKind;

/// Words that decide, whatever the status is.
const SPECIFIC: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::Quota,
        &[
            "insufficient_quota",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "exceeded_current_quota_error",
            "insufficient_balance",
            "insufficient_credits",
            "insufficient_user_quota",
            "payment_required",
            "usage_limit_reached",
            "arrearage",
        ],
    ),
    (
        ErrorKind::ContextLength,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "model_context_window_exceeded",
            "exceed_context_size_error",
            "prompt_too_long",
        ],
    ),
    (
        ErrorKind::Overloaded,
        &[
            "overloaded",
            "overloaded_error",
            "engine_overloaded",
            "engine_overloaded_error",
            "model_overloaded",
            "server_overloaded",
            "service_tier_capacity_exceeded",
            "capacity_exceeded",
            "slow_down",
        ],
    ),
    (
        ErrorKind::RateLimit,
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limit_reached_error",
            "rate_limited",
            "too_many_requests",
            "resource_exhausted",
            "throttling",
            "throttling_exception",
            "throttling.rate_quota",
            "throttling.allocation_quota",
        ],
    ),
    (
        ErrorKind::Auth,
        &[
            "invalid_api_key",
            "api_key_invalid",
            "incorrect_api_key",
            "authentication_error",
            "invalid_authentication_error",
            "unauthenticated",
            "unauthorized",
            "permission_error",
            "permission_denied",
            "permission_denied_error",
            "access_denied",
            "account_deactivated",
        ],
    ),
    (ErrorKind::Timeout, &["timeout_error", "deadline_exceeded", "request_timeout", "gateway_timeout"]),
];

/// Words that say no more than a status does, for errors that come without one.
const GENERAL: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::Server,
        &[
            "server_error",
            "api_error",
            "internal",
            "internal_error",
            "internal_server_error",
            "unavailable",
            "unavailable_error",
            "service_unavailable",
            "service_unavailable_error",
            "bad_gateway",
        ],
    ),
    (
        ErrorKind::InvalidRequest,
        &[
            "invalid_request",
            "invalid_request_error",
            "bad_request",
            "bad_request_error",
            "invalid_argument",
            "invalid_prompt",
            "not_found",
            "not_found_error",
            "model_not_found",
            "request_too_large",
            "content_filter",
            "content_policy_violation",
            "unprocessable_entity",
            "unprocessable_entity_error",
            "failed_precondition",
        ],
    ),
    (ErrorKind::Timeout, &["timeout"]),
];

pub(super) fn specific(word: &str) -> Option<ErrorKind> {
    find(SPECIFIC, word)
}

pub(super) fn general(word: &str) -> Option<ErrorKind> {
    find(GENERAL, word)
}

fn find(table: &[(ErrorKind, &[&str])], word: &str) -> Option<ErrorKind> {
    table.iter().find(|(_, words)| words.iter().any(|known| same(known, word))).map(|(kind, _)| *kind)
}

/// `rate_limit_error`, `RateLimitError` and `RATE-LIMIT-ERROR` are one word.
fn same(known: &str, word: &str) -> bool {
    letters(known).eq(letters(word))
}

fn letters(word: &str) -> impl Iterator<Item = u8> {
    word.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
}

/// How providers say that the conversation is too long when they have no code for it.
pub(super) const CONTEXT_LENGTH: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "context length",
    "context window",
    "context limit",
    "context size",
    "exceeds the maximum number of tokens allowed",
    "range of input length should be",
    "reduce the length of the messages",
];
