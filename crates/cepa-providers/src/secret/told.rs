//! Errors without the key, whoever echoed it, in whichever part of them.

use std::{error::Error as StdError, fmt};

use cepa_core::Error;

use super::ApiKey;

/// The error with the key taken out of everything in it that a server may have written: message, code, request id, and what
/// caused it. Each error that leaves this crate and may hold a server's words goes through here. What the model said
/// ([`Error::partial_text`]) is not touched: a reply is not masked either.
pub(crate) fn without(key: Option<&ApiKey>, error: Error) -> Error {
    let Some(key) = key else { return error };
    let message = key.redact(error.message());
    let code = error.code().map(|code| key.redact(code));
    let request_id = error.request_id().map(|id| key.redact(id));
    let cause = error.source().and_then(|cause| clean(key, cause));
    let mut error = error.with_message(message);
    if let Some(code) = code {
        error = error.with_code(code);
    }
    if let Some(id) = request_id {
        error = error.with_request_id(id);
    }
    match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    }
}

/// The words of an error whose own held the key, and of what caused it.
struct Cause {
    words: String,
    source: Option<Box<Cause>>,
}

/// A chain of errors in words without the key; `None` if the key is not in it, so that it can stay what it is.
fn clean(key: &ApiKey, first: &(dyn StdError + 'static)) -> Option<Cause> {
    let chain: Vec<&(dyn StdError + 'static)> =
        std::iter::successors(Some(first), |&error: &&(dyn StdError + 'static)| error.source()).collect();
    let has_key = |text: String| key.redact(&text) != text;
    if !chain.iter().any(|error| has_key(error.to_string()) || has_key(format!("{error:?}"))) {
        return None;
    }
    chain
        .iter()
        .rev()
        .fold(None, |source, error| Some(Cause { words: key.redact(&error.to_string()), source: source.map(Box::new) }))
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.words, f)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|cause| cause as _)
    }
}
