//! Replies that are none: errors that a provider reports in the place of a reply, and what nobody can read.

use std::{fmt::Display, time::SystemTime};

use cepa_core::{Error, ErrorKind, Origin};
use http::HeaderMap;
use serde_json::{Deserializer, Value};

use super::surrogates;
use crate::classify::{Failure, classify, line, reports};

/// The error that a body or an event reports, behind a status that said all was well.
pub(super) fn reported(origin: &Origin, json: &str) -> Error {
    classify(&Failure {
        provider: &origin.provider,
        status: None,
        headers: &HeaderMap::new(),
        body: json,
        // There are no headers, so no date to compare it with.
        now: SystemTime::UNIX_EPOCH,
        key: None,
    })
}

/// The error that stands in the place of an event, without being one: a JSON body among the lines that a stream holds
/// beside its events (decision 010). `None` if nothing there says that it is an error.
pub(super) fn reported_beside(origin: &Origin, lines: &[u8]) -> Option<Error> {
    let lines = String::from_utf8_lossy(lines);
    let lines = surrogates::whole(&lines);
    let mut rest = &*lines;
    while !rest.is_empty() {
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        let value = if rest.trim_start().starts_with(['{', '[']) { values.next() } else { None };
        let taken = match value {
            Some(Ok(value)) if reports(&value) => {
                return Some(reported(origin, rest.get(..values.byte_offset()).unwrap_or_default()));
            }
            // What is inside of something else is not a report.
            Some(Ok(_)) => values.byte_offset(),
            Some(Err(_)) | None => 0,
        };
        let behind = rest.get(taken..).unwrap_or_default();
        rest = behind.split_once('\n').map_or("", |(_, next)| next);
    }
    None
}

/// A body, or an event of a stream, that is not what was expected, and how it begins.
pub(super) fn unreadable(origin: &Origin, expected: &str, why: impl Display, text: &str) -> Error {
    let provider = &origin.provider;
    let mut message = format!("the reply of {provider} is no {expected}: {why}");
    let begin = line(text, 200);
    if !begin.is_empty() {
        message.push_str(": ");
        message.push_str(&begin);
    }
    Error::new(ErrorKind::Decode, message).with_provider(provider.clone())
}

/// A page for people, in the place of a reply.
pub(crate) fn page(origin: &Origin, page: &str) -> Error {
    let provider = &origin.provider;
    let says = line(page, 200);
    let message = format!(
        "{provider} answered with a page for a browser and not with a reply ({says}): check the base URL, and whether a proxy \
         or a login stands between"
    );
    Error::new(ErrorKind::Decode, message).with_provider(provider.clone())
}

/// A status that says that there is no reply.
pub(crate) fn no_content(origin: &Origin, status: u16) -> Error {
    let provider = &origin.provider;
    let message = format!(
        "{provider} answered with HTTP {status}, which has no content, and so with no reply: check the base URL and what \
         stands between"
    );
    Error::new(ErrorKind::Decode, message).with_provider(provider.clone()).with_status(status)
}

/// A stream that ended before the reply did.
pub(super) fn truncated(origin: &Origin, missing: &str) -> Error {
    let provider = &origin.provider;
    let message = format!("the stream of {provider} ended before the reply was complete (no {missing})");
    Error::new(ErrorKind::Truncated, message).with_provider(provider.clone())
}

#[cfg(test)]
#[path = "failed_tests.rs"]
mod tests;
