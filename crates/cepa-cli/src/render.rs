//! A turn as a person reads it while it runs: the model's text, one line a tool call.

use std::io::{self, IsTerminal, Write};

use cepa::{AgentEvent, ToolStatus, TurnError, TurnResult};

use crate::{
    drive::View,
    exit::Exit,
    stderr,
    style::Style,
    visible::{Care, one_line, visible},
};

/// How much of a call or a result its line shows.
const LINE: usize = 100;

/// Shows a turn on a terminal. Everything that others wrote goes through [`visible`].
pub(crate) struct Terminal<W> {
    out: W,
    style: Style,
    /// The text of the reply that is being written, as it was shown.
    written: String,
    place: Place,
    /// A carriage return at the end of a piece: half a line break, or a character to show.
    held: bool,
}

/// Where the cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    LineStart,
    Text,
    Reasoning,
}

impl<W: Write> Terminal<W> {
    pub(crate) fn new(out: W, style: Style) -> Self {
        Self { out, style, written: String::new(), place: Place::LineStart, held: false }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// A line of ours, on a line of its own.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.line_start()?;
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// A question; the answer is typed behind it.
    pub(crate) fn ask(&mut self, text: &str) -> io::Result<()> {
        self.line_start()?;
        write!(self.out, "{text}")?;
        self.out.flush()
    }

    /// The output itself, at the start of a line.
    pub(crate) fn out(&mut self) -> io::Result<&mut W> {
        self.line_start()?;
        Ok(&mut self.out)
    }

    fn told(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::Text(text) => self.text(text),
            AgentEvent::Reasoning(text) => self.reasoning(text),
            AgentEvent::ToolCallReady { name, args, .. } => {
                self.written.clear();
                let line = format!("→ {} {}", one_line(name, LINE), one_line(args.as_str(), LINE));
                self.dim_line(&line)
            }
            AgentEvent::ToolFinished { name, status, content, .. } => {
                let line = format!("{} {} {}", mark(*status), one_line(name, LINE), one_line(content, LINE));
                self.dim_line(&line)
            }
            AgentEvent::Reset => {
                self.written.clear();
                self.dim_line("(the reply is written anew)")
            }
            _ => Ok(()),
        }
    }

    /// Shows what the events did not: an answer that was not streamed.
    fn end(&mut self, result: &TurnResult) -> io::Result<()> {
        if !result.text.is_empty() && result.text != self.written {
            self.line_start()?;
            self.text(&result.text)?;
        }
        self.written.clear();
        self.line_start()
    }

    fn dim_line(&mut self, text: &str) -> io::Result<()> {
        let text = self.style.dim(text);
        self.line(&text)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if self.place == Place::Reasoning {
            self.line_start()?;
        }
        self.written.push_str(text);
        self.put(text, Place::Text)
    }

    fn reasoning(&mut self, text: &str) -> io::Result<()> {
        if self.place == Place::Text {
            self.line_start()?;
        }
        self.put(text, Place::Reasoning)
    }

    fn put(&mut self, text: &str, place: Place) -> io::Result<()> {
        let whole = if std::mem::take(&mut self.held) { format!("\r{text}") } else { text.to_owned() };
        let now = match whole.strip_suffix('\r') {
            Some(before) => {
                self.held = true;
                before
            }
            None => &whole,
        };
        if now.is_empty() {
            return Ok(());
        }
        let shown = visible(now, Care::Reading);
        let shown = if place == Place::Reasoning { self.style.dim(&shown) } else { shown.into_owned() };
        write!(self.out, "{shown}")?;
        self.place = if now.ends_with('\n') { Place::LineStart } else { place };
        stderr::set_mid_line(self.place != Place::LineStart);
        self.out.flush()
    }

    fn line_start(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.held) {
            write!(self.out, "␍")?;
        }
        if self.place != Place::LineStart {
            writeln!(self.out)?;
            self.place = Place::LineStart;
            stderr::set_mid_line(false);
        }
        self.out.flush()
    }
}

impl<W: Write> View for Terminal<W> {
    fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        self.told(event)
    }
    fn result(&mut self, result: &TurnResult, _: &str) -> io::Result<()> {
        self.end(result)
    }
    fn failure(&mut self, _: &TurnError, _: Exit, _: Option<&str>) -> io::Result<()> {
        self.written.clear();
        self.line_start()
    }
}

/// Only the answer, as it is, when it is whole. What the tools do goes to standard error, if a person sees it.
pub(crate) struct Answer;

impl View for Answer {
    fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        if io::stderr().is_terminal() {
            match event {
                AgentEvent::ToolCallReady { name, args, .. } => {
                    stderr::note(&format!("→ {name} {}", one_line(args.as_str(), LINE)));
                }
                AgentEvent::ToolFinished { name, status, content, .. } => {
                    stderr::note(&format!("{} {name} {}", mark(*status), one_line(content, LINE)));
                }
                _ => {}
            }
        }
        Ok(())
    }
    fn result(&mut self, result: &TurnResult, _: &str) -> io::Result<()> {
        if result.text.is_empty() {
            return Ok(());
        }
        let end = if result.text.ends_with('\n') { "" } else { "\n" };
        let mut out = io::stdout().lock();
        write!(out, "{}{end}", result.text)?;
        out.flush()
    }
    fn failure(&mut self, _: &TurnError, _: Exit, _: Option<&str>) -> io::Result<()> {
        Ok(())
    }
}

fn mark(status: ToolStatus) -> &'static str {
    if status == ToolStatus::Ok { "✓" } else { "✗" }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
