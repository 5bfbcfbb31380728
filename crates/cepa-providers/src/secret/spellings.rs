//! The forms in which a key may stand in a text, and how it is taken out of it.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

const MASK: &str = "[api key]";

/// What stands where a text was cut.
const CUT: &[u8] = "…".as_bytes();

/// So much of a key before a cut is taken for one. Less is what all keys of a vendor begin with, and no secret.
const LEAST: usize = 4;

/// What the end of a text is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    /// Where it was meant to end.
    Clean,
    /// Where it was cut, or broke off.
    Cut,
}

/// What a key looks like.
pub(super) struct Spellings {
    plain: Vec<u8>,
    hex: String,
    /// What is the same in each base64 text that holds the key, whatever stands before and behind it there.
    base64: Vec<Vec<u8>>,
}

impl Spellings {
    pub(super) fn of(key: &str) -> Self {
        let plain = key.as_bytes().to_vec();
        let hex = plain.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut base64 = Vec::new();
        for shift in 0..3 {
            let text = STANDARD_NO_PAD.encode([vec![0; shift], plain.clone()].concat());
            // A character is 6 bits: those that share some with a neighbour are not the key's alone.
            let (first, end) = ((shift * 8).div_ceil(6), (shift + plain.len()) * 8 / 6);
            let core = text.get(first..end).unwrap_or(&text);
            base64.push(core.as_bytes().to_vec());
            base64.push(core.replace('+', "-").replace('/', "_").into_bytes());
        }
        Self { plain, hex, base64 }
    }

    /// Where the key ends that begins here, and whether it may be a part of a longer word that holds it. Before a cut a
    /// part of the key is as good as all of it.
    fn length(&self, text: &[u8], end: End) -> Option<(usize, Reach)> {
        let plain = || spelled(text, &self.plain, end);
        let hex = || in_hex(text, &self.hex, end);
        let base64 = || self.base64.iter().find_map(|core| spelled(text, core, end));
        let exact = plain().or_else(hex).map(|length| (length, Reach::Exact));
        exact.or_else(|| base64().map(|length| (length, Reach::Word)))
    }
}

/// How much is taken out.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Exact,
    /// All characters of base64 around it: the next to it hold bits of the key too.
    Word,
}

/// The text with the key taken out.
pub(super) fn masked(text: &str, key: &Spellings, end: End) -> String {
    let bytes = text.as_bytes();
    let mut masked = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Some((length, reach)) = key.length(rest, end) else {
            at += 1;
            continue;
        };
        let is_inside = |byte: &&u8| reach == Reach::Word && (byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte));
        let before = bytes.get(kept..at).unwrap_or_default().iter().rev().take_while(is_inside).count();
        let behind = bytes.get(at + length..).unwrap_or_default().iter().take_while(is_inside).count();
        // Both ends stand beside ASCII, so they part no character.
        masked.push_str(text.get(kept..at - before).unwrap_or_default());
        masked.push_str(MASK);
        at += length + behind;
        kept = at;
    }
    masked.push_str(text.get(kept..).unwrap_or_default());
    masked
}

/// How long this word is at the start of the text, each of its characters plain or escaped as in an address (`%2F`), in JSON
/// (`\\u002f`, `\\/`) or in code (`\\x2f`).
fn spelled(text: &[u8], word: &[u8], end: End) -> Option<usize> {
    let mut rest = text;
    for (matched, byte) in word.iter().enumerate() {
        match character(rest, *byte) {
            Some(next) => rest = next,
            None => return before_cut(text, rest, matched, end),
        }
    }
    Some(text.len() - rest.len())
}

/// What stands behind this character at the start of the text.
fn character(text: &[u8], byte: u8) -> Option<&[u8]> {
    match text {
        [first, rest @ ..] if *first == byte => Some(rest),
        [b'%', rest @ ..] | [b'\\', b'x' | b'X', rest @ ..] | [b'\\', b'u', b'0', b'0', rest @ ..] => {
            let (digits, rest) = rest.split_at_checked(2)?;
            let digits = std::str::from_utf8(digits).ok()?;
            (u8::from_str_radix(digits, 16) == Ok(byte)).then_some(rest)
        }
        [b'\\', first, rest @ ..] if *first == byte => Some(rest),
        _ => None,
    }
}

/// How long the word in hex is at the start of the text.
fn in_hex(text: &[u8], word: &str, end: End) -> Option<usize> {
    let matched = text.iter().zip(word.as_bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    if matched == word.len() {
        return Some(matched);
    }
    before_cut(text, text.get(matched..)?, matched / 2, end)
}

/// How much of the text there is, if it was cut where a word stopped to match.
fn before_cut(text: &[u8], rest: &[u8], matched: usize, end: End) -> Option<usize> {
    if matched < LEAST {
        return None;
    }
    // The cut may also go through an escape.
    let begun = if matches!(rest.first(), Some(b'%' | b'\\')) { 5 } else { 0 };
    let is_cut = |rest: &[u8]| rest.starts_with(CUT) || (end == End::Cut && rest.is_empty());
    let begun = (0..=begun).find(|begun| rest.get(*begun..).is_some_and(is_cut))?;
    Some(text.len() - rest.len() + begun)
}
