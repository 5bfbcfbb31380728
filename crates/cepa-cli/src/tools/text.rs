//! How the tools word things: names that cannot lie, sizes, counts, and text that no store or terminal chokes on.

use std::{borrow::Cow, fmt::Write as _, path::Path};

/// A file name or path as one line of text. Bytes that are not UTF-8 and control characters become `\xHH`,
/// so that a name can neither hide nor forge a line of a listing; [`super::root::Root`] takes that form back.
pub(super) fn show_path(path: &Path) -> String {
    let text = slashed(path);
    let mut shown = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                let mut bytes = [0; 4];
                push_escaped(&mut shown, c.encode_utf8(&mut bytes).as_bytes());
            } else {
                shown.push(c);
            }
        }
        push_escaped(&mut shown, chunk.invalid());
    }
    shown
}

/// The bytes of a path with `/` between its parts, on every system.
pub(super) fn slashed(path: &Path) -> Cow<'_, [u8]> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) {
        Cow::Owned(bytes.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect())
    } else {
        Cow::Borrowed(bytes)
    }
}

fn push_escaped(shown: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\\x{byte:02x}");
    }
}

/// The bytes behind a name written by [`show_path`], if it holds an escape at all.
pub(super) fn unescape(name: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    let mut found = false;
    while let Some(at) = rest.find("\\x") {
        let (before, from) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        match from.get(2..4).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                found = true;
                rest = from.get(4..).unwrap_or_default();
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                rest = from.get(2..).unwrap_or_default();
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    found.then_some(bytes)
}

/// `1 line`, `2 lines`, `12,345 lines`.
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", digits(n), if n == 1 { one } else { many })
}

/// A number with its thousands apart.
pub(super) fn digits(n: u64) -> String {
    let plain = n.to_string();
    let mut grouped = String::with_capacity(plain.len() + plain.len() / 3);
    for (i, digit) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A size for a person: exact below 10 kB, rounded above.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 10_000 {
        return count(bytes, "byte", "bytes");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// Bytes as text for a model: what is not UTF-8 becomes U+FFFD (the second value counts those places), and so does
/// NUL, which some stores and providers refuse.
pub(super) fn lossy(bytes: &[u8]) -> (String, u64) {
    let mut text = String::with_capacity(bytes.len());
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            replaced += 1;
            text.push('\u{FFFD}');
        }
    }
    if text.contains('\0') {
        text = text.replace('\0', "\u{FFFD}");
    }
    (text, replaced)
}

/// The longest start of `bytes` that is at most `max` long and does not end inside a UTF-8 character.
pub(super) fn head(bytes: &[u8], max: usize) -> &[u8] {
    let cut = bytes.get(..max).unwrap_or(bytes);
    if cut.len() == bytes.len() {
        return cut;
    }
    let mut end = cut.len();
    // A character has at most three continuation bytes after its first.
    for _ in 0..3 {
        match bytes.get(end) {
            Some(next) if is_continuation(*next) && end > 0 => end -= 1,
            _ => break,
        }
    }
    match bytes.get(end) {
        Some(next) if is_continuation(*next) => cut,
        _ => bytes.get(..end).unwrap_or(cut),
    }
}

/// The longest end of `bytes` that is at most `max` long and does not start inside a UTF-8 character.
pub(super) fn tail(bytes: &[u8], max: usize) -> &[u8] {
    let cut = bytes.get(bytes.len().saturating_sub(max)..).unwrap_or(bytes);
    if cut.len() == bytes.len() { cut } else { whole_at_start(cut) }
}

/// The end of something longer, without the character that is cut at its start.
pub(super) fn whole_at_start(end: &[u8]) -> &[u8] {
    // A character has at most three bytes after its first.
    let partial = end.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
    end.get(partial..).unwrap_or(end)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
