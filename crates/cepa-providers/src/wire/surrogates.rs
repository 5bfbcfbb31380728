//! Replies with half a character: `\ud83d` without its other half, as a cut reply may end.
//!
//! JSON allows the escape, no Unicode text can hold it (<https://www.rfc-editor.org/rfc/rfc8259#section-8.2>), and a strict
//! parser refuses the whole reply for it.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeOwned};

/// A body as text; what is no UTF-8 becomes U+FFFD.
pub(super) fn text(body: &[u8]) -> Cow<'_, str> {
    // Nearly all are, and to find that out is cheaper than to look for where they are not.
    std::str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed)
}

/// Reads JSON; half characters in it become U+FFFD.
///
/// # Errors
/// What is wrong with the text besides.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| match whole(json) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(mended) => serde_json::from_str(&mended),
    })
}

/// As [`read`], for a type that borrows from the text; `mended` is where it is mended if need be.
///
/// # Errors
/// As [`read`].
pub(super) fn read_in<'a, T: Deserialize<'a>>(json: &'a str, mended: &'a mut String) -> Result<T, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| match whole(json) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(whole) => {
            *mended = whole;
            serde_json::from_str(mended)
        }
    })
}

/// The same JSON with U+FFFD in place of each escape of a surrogate that has no partner.
pub fn whole(json: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut rest = json;
    // Everything before this is copied already.
    let mut kept = 0;
    while let Some(at) = rest.find('\\') {
        let escape = rest.get(at..).unwrap_or_default();
        let start = json.len() - escape.len();
        let (length, lone) = match unit(escape) {
            Some(0xD800..=0xDBFF) => match unit(escape.get(6..).unwrap_or_default()) {
                Some(0xDC00..=0xDFFF) => (12, false),
                _ => (6, true),
            },
            Some(0xDC00..=0xDFFF) => (6, true),
            Some(_) => (6, false),
            // The character behind the backslash may be any, in JSON that is none.
            None => (1 + escape.chars().nth(1).map_or(0, char::len_utf8), false),
        };
        if lone {
            mended.push_str(json.get(kept..start).unwrap_or_default());
            mended.push('\u{fffd}');
            kept = start + length;
        }
        rest = escape.get(length..).unwrap_or_default();
    }
    if kept == 0 {
        return json.into();
    }
    mended.push_str(json.get(kept..).unwrap_or_default());
    mended.into()
}

/// Joins a text that comes in pieces, each a JSON text as it is written, with its quotes: half a character at the end of one
/// waits for its other half at the start of the next.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The escape of the half that waits.
    half: String,
}

impl Pieces {
    pub(super) fn is_waiting(&self) -> bool {
        !self.half.is_empty()
    }

    /// What is known of the text with this piece, behind what was known before.
    pub(super) fn piece(&mut self, json: &str) -> String {
        let Some(mut inner) = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) else {
            return String::new();
        };
        // Most pieces hold no escape, so no half of anything.
        if inner.is_empty() || (self.half.is_empty() && !inner.contains('\\')) {
            return inner.to_owned();
        }
        let waited = std::mem::take(&mut self.half);
        if let Some(at) = half_at_end(inner) {
            inner.get(at..).unwrap_or_default().clone_into(&mut self.half);
            inner = inner.get(..at).unwrap_or_default();
        }
        if waited.is_empty() && self.half.is_empty() {
            return read(json).unwrap_or_default();
        }
        read(&format!("\"{waited}{inner}\"")).unwrap_or_default()
    }

    /// What is left at the end of the text: U+FFFD for a half that waited in vain, else nothing.
    pub(super) fn rest(&mut self) -> String {
        if std::mem::take(&mut self.half).is_empty() { String::new() } else { '\u{fffd}'.to_string() }
    }
}

/// Whether a JSON text, with its quotes, ends in the first half of a character.
pub(super) fn ends_in_half(json: &str) -> bool {
    json.strip_suffix('"').and_then(half_at_end).is_some()
}

/// Where the escape of a leading surrogate at the end of a JSON text, without its quotes, begins.
fn half_at_end(inner: &str) -> Option<usize> {
    let at = inner.len().checked_sub(6)?;
    let (before, escape) = inner.split_at_checked(at)?;
    // A backslash may itself be escaped.
    let slashes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
    (matches!(unit(escape), Some(0xD800..=0xDBFF)) && slashes % 2 == 0).then_some(at)
}

/// The UTF-16 unit that an escape `\uXXXX` at the start of the text stands for.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
#[path = "surrogates_tests.rs"]
mod tests;
