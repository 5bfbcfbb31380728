//! Colours, where somebody sees them.

use std::io::IsTerminal;

/// Whether to colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style(bool);

impl Style {
    /// Colours for standard output: on a terminal that knows them, unless NO_COLOR says not to. <https://no-color.org>
    pub(crate) fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|term| term == "dumb");
        Self(std::io::stdout().is_terminal() && set("NO_COLOR").is_none() && !dumb)
    }

    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        Self(false)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
    /// What is less important.
    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
    /// What matters.
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }
    /// What needs attention.
    pub(crate) fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }
}
