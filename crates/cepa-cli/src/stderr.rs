//! Standard error: notes for the person, and the warnings of the library.

use std::{
    fmt::{self, Write as _},
    io::Write as _,
    sync::atomic::{AtomicBool, Ordering},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::visible::one_line;

/// Whether the last thing on the terminal is a line without its end.
static MID_LINE: AtomicBool = AtomicBool::new(false);

/// Remembers whether a note must begin with a line break, because standard output stands in the middle of a line.
pub(crate) fn set_mid_line(is: bool) {
    MID_LINE.store(is, Ordering::Relaxed);
}

/// Prints a line. Where standard error is closed there is nobody to tell.
pub(crate) fn note(line: &str) {
    let lead = if MID_LINE.swap(false, Ordering::Relaxed) { "\n" } else { "" };
    let _ = writeln!(std::io::stderr().lock(), "{lead}{}", one_line(line, 4_000));
}

/// Shows the library's warnings from now on.
pub(crate) fn show_warnings() {
    // A second subscriber is refused; the first one serves.
    let _ = tracing::subscriber::set_global_default(Warnings);
}

struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line { message: String::new(), fields: String::new() };
        event.record(&mut line);
        let fields = if line.fields.is_empty() { String::new() } else { format!(" ({})", line.fields) };
        note(&format!("warning: {}{fields}", line.message));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        // A text of the library's own needs no quotes.
        self.record_debug(field, &format_args!("{value}"));
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let between = if self.fields.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "{between}{name} {value:?}"),
        };
    }
}
