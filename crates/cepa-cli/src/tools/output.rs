//! What a command printed: its first and last part, however much it is.

use std::{iter::Peekable, str::Chars};

use super::text::{lossy, size, whole_at_start};

/// Keeps the start and the end of a stream of bytes and counts what is between.
#[derive(Debug)]
pub(super) struct Capped {
    each: usize,
    first: Vec<u8>,
    last: Vec<u8>,
    total: u64,
}

impl Capped {
    /// Keeps at most `limit` bytes, half of them from the end.
    pub(super) fn new(limit: usize) -> Self {
        Self { each: limit / 2, first: Vec::new(), last: Vec::new(), total: 0 }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.each - self.first.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.first.extend_from_slice(first);
        self.last.extend_from_slice(rest);
        // Twice the size before it is cut: each byte is moved at most once.
        if self.last.len() > self.each * 2 {
            self.last.drain(..self.last.len() - self.each);
        }
    }

    /// The text, with a line in the place of what is left out.
    pub(super) fn text(&self) -> String {
        let last = self.last.get(self.last.len().saturating_sub(self.each)..).unwrap_or(&self.last);
        if self.total == (self.first.len() + last.len()) as u64 {
            return plain(&[self.first.as_slice(), last].concat());
        }
        let (first, last) = (whole_at_end(&self.first), whole_at_start(last));
        let left_out = self.total - (first.len() + last.len()) as u64;
        format!("{}\n[… {} left out …]\n{}", plain(first), size(left_out), plain(last))
    }
}

/// The start of something longer, without the character that is cut at its end.
fn whole_at_end(first: &[u8]) -> &[u8] {
    match std::str::from_utf8(first) {
        Err(error) if error.error_len().is_none() => first.get(..error.valid_up_to()).unwrap_or(first),
        _ => first,
    }
}

/// Text without what colours and moves on a terminal; a line that was drawn over shows its last state.
fn plain(bytes: &[u8]) -> String {
    let (text, _) = lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut line = 0;
    let mut drawn_over = false;
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\r' => drawn_over = true,
            '\n' => {
                plain.push(c);
                line = plain.len();
                drawn_over = false;
            }
            _ if c.is_control() && c != '\t' => {}
            _ => {
                if std::mem::take(&mut drawn_over) {
                    plain.truncate(line);
                }
                plain.push(c);
            }
        }
    }
    plain
}

/// Passes over the rest of an escape sequence (ECMA-48): what follows the ESC.
fn skip_sequence(chars: &mut Peekable<Chars<'_>>) {
    match chars.next_if(|c| *c != '\n') {
        // A control sequence goes to its final character.
        Some('[') => {
            while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
            let _ = chars.next_if(|c| ('@'..='~').contains(c));
        }
        // A command to the terminal (a title, a link) goes to BEL or ESC \.
        Some(']') => {
            while chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
            if chars.next_if_eq(&'\u{7}').is_none() && chars.next_if_eq(&'\u{1b}').is_some() {
                let _ = chars.next_if_eq(&'\\');
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
