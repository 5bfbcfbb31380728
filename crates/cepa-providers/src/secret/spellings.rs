//! The forms in which a key may stand in a text, and how it is taken out of it.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

const MASK: &str = "[api key]";

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

    /// Where the key ends that begins here, and whether it may be a part of a longer word that holds it.
    fn end(&self, text: &[u8]) -> Option<(usize, Reach)> {
        let hex = || text.get(..self.hex.len()).filter(|text| text.eq_ignore_ascii_case(self.hex.as_bytes()));
        let base64 = || self.base64.iter().find_map(|core| spelled(text, core));
        let exact = spelled(text, &self.plain).or_else(|| hex().map(<[u8]>::len));
        exact.map(|end| (end, Reach::Exact)).or_else(|| base64().map(|end| (end, Reach::Word)))
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
pub(super) fn masked(text: &str, key: &Spellings) -> String {
    let bytes = text.as_bytes();
    let mut masked = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Some((length, reach)) = key.end(rest) else {
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

/// Where this word ends at the start of the text, each of its characters plain or escaped as in an address (`%2F`), in JSON
/// (`\\u002f`, `\\/`) or in code (`\\x2f`).
fn spelled(text: &[u8], word: &[u8]) -> Option<usize> {
    let mut rest = text;
    for byte in word {
        rest = match rest {
            [first, rest @ ..] if first == byte => rest,
            [b'%', rest @ ..] | [b'\\', b'x' | b'X', rest @ ..] | [b'\\', b'u', b'0', b'0', rest @ ..] => {
                let (digits, rest) = rest.split_at_checked(2)?;
                let digits = std::str::from_utf8(digits).ok()?;
                (u8::from_str_radix(digits, 16) == Ok(*byte)).then_some(rest)?
            }
            [b'\\', first, rest @ ..] if first == byte => rest,
            _ => return None,
        };
    }
    Some(text.len() - rest.len())
}
