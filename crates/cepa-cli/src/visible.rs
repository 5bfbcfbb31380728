//! Text of others made safe to print: what would move the cursor, hide or reorder characters is shown instead of obeyed.

use std::{borrow::Cow, fmt::Write as _};

/// Whose text it is, and so how much of it must be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Text to read: joiners stay, because emoji and several scripts need them.
    Reading,
    /// Text to decide on: every character that does not show is made to.
    Deciding,
}

/// The text with everything that is not plain text made visible. Line breaks and tabs stay.
pub(crate) fn visible(text: &str, care: Care) -> Cow<'_, str> {
    if text.chars().all(|c| is_plain(c, care)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_plain(c, care) => shown.push(c),
            c => push_shown(&mut shown, c),
        }
    }
    Cow::Owned(shown)
}

/// The text as one line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words = text.split(['\n', '\r', '\t']).map(str::trim).filter(|line| !line.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    let line = visible(&line, Care::Deciding);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.into_owned(),
    }
}

fn is_plain(c: char, care: Care) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{20}'..='\u{7e}' => true,
        // C0, DEL and C1: escape sequences begin here.
        c if c.is_control() => false,
        // Zero-width joiners and variation selectors: letters of several scripts, and emoji.
        '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => care == Care::Reading,
        // Soft hyphen, joiners, fillers, directions, invisible operators, line and paragraph separators, byte order mark.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => false,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => false,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => false,
        // Musical controls, tags.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => false,
        // Spaces that look like the ordinary one.
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => care == Care::Reading,
        _ => true,
    }
}

/// A control character by its picture, anything else by its number.
fn push_shown(shown: &mut String, c: char) {
    let code = u32::from(c);
    let picture = match code {
        0..0x20 => char::from_u32(0x2400 + code),
        0x7f => Some('␡'),
        _ => None,
    };
    // Writing to a string cannot fail.
    let _ = match picture {
        Some(picture) => write!(shown, "{picture}"),
        None => write!(shown, "<U+{code:04X}>"),
    };
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
