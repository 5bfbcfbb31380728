//! A waiting call as a person sees it before deciding: exactly what would run, and nothing that could pass for something else.

use std::fmt;

use cepa::{Pause, PauseKind};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use crate::{
    style::Style,
    visible::{Care, one_line, visible},
};

/// Of a long argument this many lines are shown at first.
const LINES: usize = 30;
/// And of a long line this many characters.
const LINE: usize = 1_000;

/// How much to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Much {
    /// The beginning of what is long.
    Beginning,
    Everything,
}

/// What would run: the tool, then each argument. Whatever is cut, every argument is there.
pub(crate) fn call(pause: &Pause, much: Much, style: Style) -> String {
    let mut shown = format!("{} {}", style.warn(&style.bold(&one_line(&pause.tool, 100))), headline(pause));
    let mut push = |line: &str| {
        shown.push('\n');
        shown.push_str(line);
    };
    match pause.args.read::<Members>() {
        Ok(Members(members)) if members.is_empty() => push("  (no arguments)"),
        Ok(Members(members)) => {
            for (name, value) in &members {
                let mut lines = member(name, value);
                let left_out = if much == Much::Beginning { cut(&mut lines) } else { None };
                lines.iter().for_each(|line| push(line));
                if let Some(left_out) = left_out {
                    push(&style.warn(&left_out));
                }
            }
        }
        Err(_) => push(&format!("  {}", visible(pause.args.as_str(), Care::Deciding))),
    }
    // Of an unknown outcome the reason is a text for the model.
    if let Some(reason) = pause.reason.as_deref().filter(|_| pause.kind != PauseKind::Unknown) {
        push(&format!("  why: {}", one_line(reason, LINE)));
    }
    shown
}

fn headline(pause: &Pause) -> &'static str {
    match pause.kind {
        PauseKind::Approval => "waits for your decision:",
        PauseKind::Unknown => "was started and then interrupted; nobody knows whether it had its effect:",
        PauseKind::Environment => "could not run, and somebody may be able to repair that:",
    }
}

/// What may be answered.
pub(crate) fn choices(pause: &Pause) -> &'static str {
    match pause.kind {
        PauseKind::Approval => "[a]pprove  [e]dit  [r]eject  rep[l]y  [v]iew all  [d]ecide later",
        PauseKind::Unknown => {
            "[a] run it again  [e]dit and run  [r] leave it unknown  rep[l]y what happened  [v]iew  [d]ecide later"
        }
        PauseKind::Environment => {
            "[a] try again  [e]dit and try  [r] tell the model it failed  rep[l]y  [v]iew all  [d]ecide later"
        }
    }
}

/// A waiting call in one line.
pub(crate) fn summary(pause: &Pause) -> String {
    let kind = match pause.kind {
        PauseKind::Approval => "",
        PauseKind::Unknown => " (outcome unknown)",
        PauseKind::Environment => " (could not run)",
    };
    format!("{}{kind} {}", one_line(&pause.tool, 100), one_line(pause.args.as_str(), 200))
}

/// The lines of one argument.
fn member(name: &str, value: &Value) -> Vec<String> {
    let name = one_line(name, 100);
    match value {
        Value::String(text) if is_simple(text) => vec![format!("  {name}: {}", visible(text, Care::Deciding))],
        // Every line of a text has a mark of its own, so that none can pass for another argument.
        Value::String(text) if text.contains('\n') => {
            let text = text.strip_suffix('\n').unwrap_or(text);
            let lines = text.split('\n').map(|line| format!("    | {}", visible(line, Care::Deciding)));
            std::iter::once(format!("  {name}:")).chain(lines).collect()
        }
        other => vec![format!("  {name}: {}", visible(&other.to_string(), Care::Deciding))],
    }
}

/// Whether a text can stand without quotes.
fn is_simple(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\r', '\t']) && text.trim() == text
}

/// Cuts an argument that is long; says what was left out.
fn cut(lines: &mut Vec<String>) -> Option<String> {
    let mut left_out = Vec::new();
    let mut characters = 0;
    for line in lines.iter_mut() {
        if let Some((end, _)) = line.char_indices().nth(LINE) {
            characters += line.get(end..).unwrap_or_default().chars().count();
            line.truncate(end);
            line.push('…');
        }
    }
    if lines.len() > LINES {
        left_out.push(format!("{} more lines", lines.len() - LINES));
        lines.truncate(LINES);
    }
    if characters > 0 {
        left_out.push(format!("{characters} more characters"));
    }
    (!left_out.is_empty()).then(|| format!("  … {}: v shows them", left_out.join(", ")))
}

/// The members of an object in their order, doubled ones too.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
#[path = "shown_tests.rs"]
mod tests;
