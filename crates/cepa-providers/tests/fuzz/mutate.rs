//! Ways to break a body: by the byte, by the piece, and by what JSON and event streams are made of.

use crate::rng::Rng;

/// Longer than this an input only gets slower, not more interesting.
const LONGEST: usize = 64 * 1024;

/// Values that stand where others are expected.
const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "-1",
    "1e999",
    "1e-999",
    "18446744073709551616",
    "9223372036854775808",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "0.1",
    "\"\"",
    "\"x\"",
    "\" \"",
    "[]",
    "{}",
    "[null]",
    "{\"a\":null}",
    "[[]]",
    "\"\\ud83d\"",
    "\"\\udc00\\ud800\"",
    "\"\\u0000\"",
    "\"[DONE]\"",
    "\"{}\"",
    "\"{\\\"a\\\":1}\"",
];

/// Pieces that mean something to a reader of streams or of one of the wires.
const TOKENS: &[&str] = &[
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\r\r",
    "data: ",
    "data:",
    "event: error\n",
    "event: \n",
    ": ping\n\n",
    "id: 1\n",
    "retry: 0\n",
    "data: [DONE]\n\n",
    "\u{feff}",
    "\u{2028}",
    "\"",
    "\\",
    "\\\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\0",
    "😀",
    "\\ud83d",
    "\"index\":",
    "\"error\":",
    "\"error\":{\"message\":\"m\",\"code\":429},",
    "\"finish_reason\":\"length\",",
    "\"type\":\"tool_use\",",
    "\"tool_calls\":[{}],",
    "\"id\":null,",
    "\"thoughtSignature\":\"x\",",
    "\"type\":\"message_start\",",
    "\"choices\":[],",
];

/// Bytes that are no UTF-8, or only half of it.
const BYTES: &[&[u8]] =
    &[b"\xff", b"\xc3", b"\xe2\x80", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xef\xbb\xbf"];

/// One input, some of it from another.
pub(crate) fn mutate(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = rng.pick(corpus).clone();
    for _ in 0..=rng.below(6) {
        once(rng, &mut input, corpus);
        input.truncate(LONGEST);
    }
    input
}

fn once(rng: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let (from, to) = range(rng, input);
    match rng.below(13) {
        0 if !input.is_empty() => {
            let at = rng.below(input.len());
            input[at] ^= 1 << rng.below(8);
        }
        1 => {
            input.splice(from..from, std::iter::once(rng.next() as u8));
        }
        2 => {
            input.drain(from..to);
        }
        3 => input.truncate(from),
        // Again, once or often.
        4 => {
            let piece = input[from..to].repeat(1 + rng.below(4));
            input.splice(to..to, piece);
        }
        5 => {
            let other = rng.pick(corpus);
            let (start, end) = range(rng, other);
            input.splice(from..to, other[start..end].iter().copied());
        }
        6 => insert(rng, input, from, TOKENS),
        7 => {
            let bytes = *rng.pick(BYTES);
            input.splice(from..from, bytes.iter().copied());
        }
        8 => value(rng, input),
        9 => nest(rng, input),
        10 => lines(rng, input),
        11 => {
            let piece = input[from..to].to_vec();
            input.drain(from..to);
            let at = rng.below(input.len() + 1);
            input.splice(at..at, piece);
        }
        _ => insert(rng, input, from, VALUES),
    }
}

fn range(rng: &mut Rng, input: &[u8]) -> (usize, usize) {
    let from = rng.below(input.len() + 1);
    // Mostly short.
    let most = if rng.below(4) == 0 { input.len() } else { 40 };
    (from, (from + rng.below(most + 1)).min(input.len()))
}

fn insert(rng: &mut Rng, input: &mut Vec<u8>, at: usize, words: &[&str]) {
    let word = *rng.pick(words);
    input.splice(at..at, word.bytes());
}

/// Another value behind a colon.
fn value(rng: &mut Rng, input: &mut Vec<u8>) {
    let colons: Vec<usize> = (0..input.len()).filter(|at| input[*at] == b':').collect();
    if colons.is_empty() {
        return;
    }
    let start = rng.pick(&colons) + 1;
    let end = start + value_length(&input[start..]);
    let word = *rng.pick(VALUES);
    input.splice(start..end, word.bytes());
}

/// How long a JSON value is, nearly.
fn value_length(text: &[u8]) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' | b',' | b'\n' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// A value inside many others.
fn nest(rng: &mut Rng, input: &mut Vec<u8>) {
    let depth = *rng.pick(&[2, 100, 126, 127, 128, 129, 3_000]);
    let (open, close) = *rng.pick(&[("[", "]"), ("{\"a\":", "}")]);
    let (start, length) = match (0..input.len()).filter(|at| input[*at] == b':').nth(rng.below(20)) {
        Some(colon) => (colon + 1, value_length(&input[colon + 1..])),
        None => (0, input.len()),
    };
    let inner = input[start..start + length].to_vec();
    let whole = [open.repeat(depth).into_bytes(), inner, close.repeat(depth).into_bytes()].concat();
    input.splice(start..start + length, whole);
}

/// Lines in another order, or twice.
fn lines(rng: &mut Rng, input: &mut Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (rng.below(lines.len()), rng.below(lines.len()));
    if lines.is_empty() {
        return;
    }
    if rng.below(2) == 0 {
        lines.swap(one, other);
    } else {
        let line = lines[one].clone();
        lines.insert(other, line);
    }
    *input = lines.concat();
}
