//! The place in a text that is most like a text that is not in it: what a failed edit shows.

/// Where it is and what is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Near {
    /// The first line, counted from 1.
    pub(super) line: usize,
    /// The lines there.
    pub(super) text: String,
    /// Whether the lines are the same when white space at their ends is left out.
    pub(super) only_white_space: bool,
}

/// How many lines of the wanted text are compared, in a small file.
const MAX_WANTED: usize = 20;
/// How many lines of the file are compared.
const MAX_LINES: usize = 50_000;
/// How many pairs of lines are compared: in a large file fewer lines of the wanted text have to do.
const MAX_PAIRS: usize = 200_000;
/// How much of a line is compared.
const MAX_LINE: usize = 120;
/// Less alike than this is not worth showing.
const ALIKE: f64 = 0.5;
/// How much text is shown.
const MAX_SHOWN: usize = 2_000;

/// Finds the lines of `text` that are most like those of `wanted`.
pub(super) fn nearest(text: &[u8], wanted: &str) -> Option<Near> {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let wanted = wanted.trim_matches(['\n', '\r']);
    let compared = MAX_WANTED.min(MAX_PAIRS / lines.len().max(1));
    let looks: Vec<Look<'_>> = wanted.lines().take(compared).map(Look::of).collect();
    if looks.iter().all(|look| look.trimmed.is_empty()) {
        return None;
    }
    let here: Vec<Look<'_>> = lines.iter().map(|line| Look::of(line)).collect();
    let mut best: Option<(f64, usize)> = None;
    for start in 0..here.len() {
        let window = here.get(start..).unwrap_or_default();
        // Lines past the end are as unlike as lines can be.
        let sum: f64 = looks.iter().zip(window).map(|(wanted, line)| wanted.likeness(line)).sum();
        let score = sum / looks.len() as f64;
        if score >= ALIKE && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, start));
        }
    }
    let (score, start) = best?;
    let window = lines.get(start..(start + looks.len()).min(lines.len())).unwrap_or_default();
    let mut text = window.join("\n");
    if text.len() > MAX_SHOWN {
        let end = (0..=MAX_SHOWN).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    let same = (score - 1.0).abs() < f64::EPSILON;
    Some(Near { line: start + 1, text, only_white_space: same && wanted.lines().count() <= compared })
}

/// A line prepared for comparing: its pairs of neighbouring bytes, in order.
struct Look<'a> {
    trimmed: &'a str,
    pairs: Vec<[u8; 2]>,
}

impl<'a> Look<'a> {
    fn of(line: &'a str) -> Self {
        let trimmed = line.trim();
        let mut pairs: Vec<[u8; 2]> =
            trimmed.as_bytes().windows(2).take(MAX_LINE).filter_map(|pair| <[u8; 2]>::try_from(pair).ok()).collect();
        pairs.sort_unstable();
        Self { trimmed, pairs }
    }

    /// From 0 to 1: mostly how much of this line is in the other one, which may be longer (a part of a line may be
    /// wanted), a little how much they share in all.
    fn likeness(&self, other: &Look<'_>) -> f64 {
        if self.trimmed == other.trimmed {
            return 1.0;
        }
        if self.pairs.is_empty() || other.pairs.is_empty() {
            return 0.0;
        }
        let shared = shared(&self.pairs, &other.pairs) as f64;
        let found = shared / self.pairs.len() as f64;
        let both = 2.0 * shared / (self.pairs.len() + other.pairs.len()) as f64;
        // Never quite the same: that is what equality says.
        (0.8 * found + 0.2 * both).min(0.99)
    }
}

fn shared(mut left: &[[u8; 2]], mut right: &[[u8; 2]]) -> usize {
    let mut shared = 0;
    while let (Some((a, more_left)), Some((b, more_right))) = (left.split_first(), right.split_first()) {
        shared += usize::from(a == b);
        if a <= b {
            left = more_left;
        }
        if b <= a {
            right = more_right;
        }
    }
    shared
}

#[cfg(test)]
#[path = "nearest_tests.rs"]
mod tests;
