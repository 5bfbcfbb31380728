//! Patterns for paths: `*.rs`, `src/**/mod.rs`, `{a,b}.txt`, and the same for `.gitignore`.

use std::path::Path;

use cepa::ToolError;
use regex::bytes::{Regex, RegexBuilder};

use super::{root::refused, text::slashed};

/// A compiled pattern over the bytes of a path with `/` between its parts.
#[derive(Debug)]
pub(super) struct Glob {
    regex: Regex,
    /// A pattern without `/` speaks about the last part only.
    name_only: bool,
}

impl Glob {
    /// Compiles a pattern as a person writes it; `{a,b}` are alternatives.
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        Self::compile(pattern, pattern.contains('/')).ok_or_else(|| {
            refused(format!("`{pattern}` is not a usable glob pattern; examples: *.rs, src/**/*.md, *.{{js,ts}}"))
        })
    }

    /// Compiles one pattern; `anchored` if it speaks about the whole path.
    pub(super) fn compile(pattern: &str, anchored: bool) -> Option<Self> {
        let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
        let regex = RegexBuilder::new(&format!("^(?:{})$", translate(pattern)))
            .unicode(false)
            .dot_matches_new_line(true)
            .size_limit(1 << 20)
            .build()
            .ok()?;
        Some(Self { regex, name_only: !anchored })
    }

    /// Whether a path from the root matches, read from the root or from the folder `base`: a model may mean either.
    pub(super) fn matches_below(&self, base: &Path, path: &Path) -> bool {
        self.matches(&slashed(path)) || path.strip_prefix(base).is_ok_and(|below| self.matches(&slashed(below)))
    }

    /// Whether the path (relative, `/` between its parts) matches.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let subject = match memchr::memrchr(b'/', path) {
            Some(slash) if self.name_only => path.get(slash + 1..).unwrap_or_default(),
            _ => path,
        };
        self.regex.is_match(subject)
    }
}

fn translate(pattern: &str) -> String {
    let mut regex = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern;
    let mut open_braces = 0_u32;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = after;
        match c {
            '*' if rest.starts_with("*/") && at_part_start(&regex) => {
                regex.push_str("(?:.*/)?");
                rest = rest.get(2..).unwrap_or_default();
            }
            '*' if rest == "*" && at_part_start(&regex) => {
                regex.push_str(".+");
                rest = "";
            }
            '*' => {
                rest = rest.trim_start_matches('*');
                regex.push_str("[^/]*");
            }
            '?' => regex.push_str("[^/]"),
            '[' => match class(after) {
                Some((class, remaining)) => {
                    regex.push_str(&class);
                    rest = remaining;
                }
                None => regex.push_str("\\["),
            },
            '{' if rest.contains('}') => {
                open_braces += 1;
                regex.push_str("(?:");
            }
            '}' if open_braces > 0 => {
                open_braces -= 1;
                regex.push(')');
            }
            ',' if open_braces > 0 => regex.push('|'),
            '\\' => match rest.chars().next() {
                Some(escaped) => {
                    push_literal(&mut regex, escaped);
                    rest = rest.get(escaped.len_utf8()..).unwrap_or_default();
                }
                None => push_literal(&mut regex, c),
            },
            _ => push_literal(&mut regex, c),
        }
    }
    regex
}

fn at_part_start(regex: &str) -> bool {
    regex.is_empty() || regex.ends_with('/')
}

fn push_literal(regex: &mut String, c: char) {
    regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// `[a-z]`, `[!a-z]`: the class for the regex and what follows it.
fn class(after: &str) -> Option<(String, &str)> {
    let (negated, body) = match after.strip_prefix(['!', '^']) {
        Some(body) => (true, body),
        None => (false, after),
    };
    // A `]` that comes first is a member.
    let end = body.char_indices().skip(1).find(|(_, c)| *c == ']')?.0;
    let (members, remaining) = body.split_at(end);
    if !members.is_ascii() {
        return None;
    }
    let mut class = String::from(if negated { "[^/" } else { "[" });
    for c in members.chars() {
        if matches!(c, '\\' | '[' | ']' | '^' | '&' | '~') {
            class.push('\\');
        }
        class.push(c);
    }
    class.push(']');
    Some((class, remaining.get(1..).unwrap_or_default()))
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
