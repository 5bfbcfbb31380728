//! Tool names on the wire: `^[a-zA-Z0-9_-]{1,64}$`
//! (<https://github.com/openai/openai-openapi>, `FunctionObject.name`), and back.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use cepa_core::{AssistantMessage, ChatEvent, Error, ErrorKind, EventSink, ToolSet};

use super::hash;

const MAX_LEN: usize = 64;
/// `_` and eight hexadecimal digits.
const SUFFIX_LEN: usize = 9;

/// The name under which a tool is known on the wire: its own if that is legal, else a legal one that keeps what it can
/// and ends in a hash of the whole. It depends on the name alone, so it is the same in every request.
///
/// ```
/// use cepa_providers::wire::names::wire_name;
/// assert_eq!(wire_name("get_weather"), "get_weather");
/// assert!(wire_name("files.read").starts_with("files_read_"));
/// ```
pub fn wire_name(name: &str) -> Cow<'_, str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_LEN).contains(&name.len()) && name.chars().all(legal) {
        return name.into();
    }
    let kept: String = name.chars().take(MAX_LEN - SUFFIX_LEN).map(|c| if legal(c) { c } else { '_' }).collect();
    format!("{kept}_{:08x}", hash::stable(name, 0) >> 32).into()
}

/// The tools of one request whose names differ on the wire.
#[derive(Clone, Debug, Default)]
pub struct ToolNames(Arc<[(String, String)]>);

impl ToolNames {
    /// The names of these tools.
    ///
    /// # Errors
    /// `invalid_tool` if two tools have one name on the wire.
    pub fn of(tools: &ToolSet) -> Result<Self, Error> {
        let changed: Vec<(String, String)> = tools
            .iter()
            .filter_map(|tool| match wire_name(tool.name()) {
                Cow::Borrowed(_) => None,
                Cow::Owned(wire) => Some((wire, tool.name().to_owned())),
            })
            .collect();
        if changed.is_empty() {
            return Ok(Self::default());
        }
        let mut seen = HashSet::new();
        for (wire, name) in &changed {
            if tools.get(wire).is_some() || !seen.insert(wire) {
                let message =
                    format!("the tool `{name}` is called `{wire}` on the wire, as another tool is: rename it");
                return Err(Error::new(ErrorKind::InvalidTool, message));
            }
        }
        Ok(Self(changed.into()))
    }

    /// The name of the tool that this name on the wire means.
    pub fn original<'a>(&'a self, wire: &'a str) -> &'a str {
        self.0.iter().find(|(known, _)| known == wire).map_or(wire, |(_, name)| name)
    }

    /// Gives the calls of a decoded reply their tools' own names.
    pub fn restore(&self, message: &mut AssistantMessage) {
        if self.0.is_empty() {
            return;
        }
        for call in &mut message.tool_calls {
            call.name = self.original(&call.name).to_owned();
        }
    }

    /// A sink before this one that gives the calls in events their tools' own names.
    pub fn restoring(&self, inner: EventSink) -> EventSink {
        if self.0.is_empty() || !inner.is_wanted() {
            return inner;
        }
        let names = self.clone();
        EventSink::new(move |event| {
            inner.emit(match event {
                ChatEvent::CallBegun { index, id, name } => {
                    ChatEvent::CallBegun { index, id, name: names.original(&name).to_owned() }
                }
                ChatEvent::CallReady { index, mut call } => {
                    call.name = names.original(&call.name).to_owned();
                    ChatEvent::CallReady { index, call }
                }
                other => other,
            });
        })
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
