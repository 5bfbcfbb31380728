//! The shape of a JSON object as a table: which members it must have, which it may have, and what may stand in them.

use serde_json::{Map, Value};

use super::{Report, Rule};

/// What may stand in a member.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    what: &'static str,
    fits: fn(&Value) -> bool,
}

impl Kind {
    pub(super) const fn new(what: &'static str, fits: fn(&Value) -> bool) -> Self {
        Self { what, fits }
    }
}

pub(super) const TEXT: Kind = Kind::new("a text", Value::is_string);
pub(super) const FULL_TEXT: Kind =
    Kind::new("a text that is not blank", |v| v.as_str().is_some_and(|t| !t.trim().is_empty()));
pub(super) const OPT_TEXT: Kind = Kind::new("a text or null", |v| v.is_string() || v.is_null());
pub(super) const BOOL: Kind = Kind::new("true or false", Value::is_boolean);
pub(super) const OBJECT: Kind = Kind::new("an object", Value::is_object);
pub(super) const OPT_OBJECT: Kind = Kind::new("an object or null", |v| v.is_object() || v.is_null());
pub(super) const LIST: Kind =
    Kind::new("a list that is not empty", |v| v.as_array().is_some_and(|list| !list.is_empty()));
pub(super) const POSITIVE: Kind = Kind::new("a positive integer", |v| v.as_u64().is_some_and(|n| n > 0));
pub(super) const ANYTHING: Kind = Kind::new("anything", |_| true);

/// A row of the table.
pub(super) struct Member {
    name: &'static str,
    kind: Kind,
    required: bool,
    rule: Option<&'static Rule>,
}

impl Member {
    /// Wrong here is not only the shape: a rule of its own speaks of this member.
    pub(super) const fn by(self, rule: &'static Rule) -> Self {
        Self { rule: Some(rule), ..self }
    }
}

/// A member that must be there.
pub(super) const fn need(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: true, rule: None }
}

/// A member that may be there.
pub(super) const fn may(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: false, rule: None }
}

/// Under which rules a dialect reports what is wrong with a shape.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) shape: &'static Rule,
    pub(super) unknown_member: &'static Rule,
}

impl Rules {
    /// Compares an object with its table; `extra` are members that this endpoint takes beyond it.
    /// `None` if it is no object at all.
    pub(super) fn check<'v>(
        self,
        report: &mut Report,
        value: &'v Value,
        at: &str,
        table: &[Member],
        extra: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let Some(object) = value.as_object() else {
            report.add(self.shape, at, format!("{} is not an object", brief(value)));
            return None;
        };
        for Member { name, kind, required, rule } in table {
            let rule = rule.unwrap_or(self.shape);
            match object.get(*name) {
                None if *required => report.add(rule, at, format!("`{name}` is missing: {}", kind.what)),
                Some(value) if !(kind.fits)(value) => {
                    report.add(rule, format!("{at}.{name}"), format!("{} is not {}", brief(value), kind.what));
                }
                None | Some(_) => {}
            }
        }
        for name in object.keys() {
            if !table.iter().any(|member| member.name == name) && !extra.contains(&name.as_str()) {
                report.add(self.unknown_member, format!("{at}.{name}"), "the provider knows no such member");
            }
        }
        Some(object)
    }
}

/// A value, cut to what a person reads.
pub(super) fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// The list in a member; empty if there is none.
pub(super) fn list<'v>(object: &'v Map<String, Value>, name: &str) -> &'v [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text in a member; empty if there is none.
pub(super) fn text<'v>(object: &'v Map<String, Value>, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The text in a member of a value; empty if there is none.
pub(super) fn text_of<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a text consists of 1 to `most` letters, digits, underscores and dashes.
pub(super) fn is_word(text: &str, most: usize) -> bool {
    !text.is_empty()
        && text.len() <= most
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Whether a text is base64 with padding.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

/// The first text that stands twice in the list.
pub(super) fn first_repeated<'t>(texts: &[&'t str]) -> Option<&'t str> {
    let mut seen = std::collections::HashSet::new();
    texts.iter().copied().find(|text| !seen.insert(*text))
}
