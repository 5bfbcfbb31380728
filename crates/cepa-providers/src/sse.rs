//! Server-sent events, decoded piece by piece: bytes in, events out, no I/O.
//!
//! To the letter of <https://html.spec.whatwg.org/multipage/server-sent-events.html>, with three tolerances: a last event
//! may lack its blank line ([`SseDecoder::finish`]), lines that are no field are no event, but kept ([`SseDecoder::beside`]), and
//! a byte order mark before a field is passed over wherever it stands.

mod beside;

use std::borrow::Cow;

use beside::Beside;

use cepa_core::{Error, ErrorKind};
use memchr::memchr2;
use serde::de::IgnoredAny;

/// The size of one event past which a stream is refused, unless [`SseDecoder::with_max_event_bytes`] sets another.
pub const DEFAULT_MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The name from the `event:` line, if there was one.
    pub event: Option<String>,
    /// The `data:` lines, joined by a line feed.
    pub data: String,
}

impl SseEvent {
    /// The event, lent.
    pub fn lend(&self) -> LentEvent<'_> {
        LentEvent { event: self.event.as_deref(), data: &self.data }
    }
}

/// One event of a stream where it lies: in the piece of the body that ended it, or in the decoder.
///
/// ```
/// use cepa_providers::sse::SseDecoder;
///
/// let mut decoder = SseDecoder::new();
/// let mut body: &[u8] = b"data: {}\n\ndata: []\n\n";
/// while let Some(event) = decoder.next_event(&mut body)? {
///     println!("{}", event.data);
/// }
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LentEvent<'a> {
    /// The name from the `event:` line, if there was one.
    pub event: Option<&'a str>,
    /// The `data:` lines, joined by a line feed.
    pub data: &'a str,
}

impl LentEvent<'_> {
    fn to_owned(self) -> SseEvent {
        SseEvent { event: self.event.map(str::to_owned), data: self.data.to_owned() }
    }
}

/// Turns the bytes of a `text/event-stream` body into events, however the network cuts them.
///
/// ```
/// use cepa_providers::sse::SseDecoder;
///
/// let mut decoder = SseDecoder::new();
/// let mut events = Vec::new();
/// decoder.push(b"event: ping\r\nda", &mut events)?;
/// decoder.push(b"ta: {}\r\n\r", &mut events)?;
/// assert_eq!(events[0].event.as_deref(), Some("ping"));
/// assert_eq!(events[0].data, "{}");
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    /// The line that has begun and not ended.
    line: Vec<u8>,
    data: String,
    has_data: bool,
    /// The name; empty for none.
    event: String,
    /// Data and name are those of an event that was handed out.
    is_given: bool,
    /// The last byte was a CR that ended a line: an LF that follows belongs to it.
    after_cr: bool,
    first_line: bool,
    max_event_bytes: usize,
    failed: bool,
    beside: Beside,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl SseDecoder {
    /// A decoder at the start of a body.
    pub fn new() -> Self {
        Self {
            line: Vec::new(),
            data: String::new(),
            has_data: false,
            event: String::new(),
            is_given: false,
            after_cr: false,
            first_line: true,
            max_event_bytes: DEFAULT_MAX_EVENT_BYTES,
            failed: false,
            beside: Beside::default(),
        }
    }

    /// Refuses events (and lines) larger than this.
    pub fn with_max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Takes the next piece of the body and appends the events that it completes.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] when an event passes the size limit. The events before it have been appended; the decoder
    /// stays failed.
    pub fn push(&mut self, mut chunk: &[u8], events: &mut Vec<SseEvent>) -> Result<(), Error> {
        while let Some(event) = self.next_event(&mut chunk)? {
            events.push(event.to_owned());
        }
        Ok(())
    }

    /// Takes as much of a piece as the next event needs; `None` if that is all of it and no event is complete. Whoever
    /// reads in this way sees nothing of what stands behind an event before it has dealt with it.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn next_event<'a, 'c: 'a>(&'a mut self, chunk: &mut &'c [u8]) -> Result<Option<LentEvent<'a>>, Error> {
        if self.failed {
            return Err(self.too_large());
        }
        self.forget_given();
        // The data so far, while it is one line of this piece, as it nearly always is: it stays where it lies.
        let mut lying: Option<&'c str> = None;
        while let Some((&first, tail)) = chunk.split_first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                *chunk = tail;
                continue;
            }
            let (part, rest) = chunk.split_at(memchr2(b'\n', b'\r', chunk).unwrap_or(chunk.len()));
            // Counted before the line is kept, and the same for a part of a line as for the whole, so that the outcome
            // does not depend on how the body was cut.
            let held = self.data.len() + lying.map_or(0, str::len) + self.line.len();
            if held + part.len() > self.max_event_bytes {
                self.failed = true;
                return Err(self.too_large());
            }
            let Some((&ending, rest)) = rest.split_first() else {
                self.line.extend_from_slice(part);
                *chunk = rest;
                break;
            };
            self.after_cr = ending == b'\r';
            *chunk = rest;
            if self.line.is_empty() {
                if let Some(data) = lying.take() {
                    if part.is_empty() {
                        self.is_given = true;
                        return Ok(Some(LentEvent { event: self.name(), data }));
                    }
                    self.add_data(data);
                } else if !self.has_data
                    && let Some(data) = data_alone(part)
                {
                    self.first_line = false;
                    lying = Some(data);
                    continue;
                }
            } else if let Some(data) = lying.take() {
                self.add_data(data);
            }
            if self.end_cut_line(part) {
                (self.has_data, self.is_given) = (false, true);
                return Ok(Some(LentEvent { event: self.name(), data: &self.data }));
            }
        }
        if let Some(data) = lying {
            self.add_data(data);
        }
        Ok(None)
    }

    /// Ends the body and returns a last event that has no blank line behind it, if its data is complete: a JSON object,
    /// a JSON array, or `[DONE]`. (The standard drops it; servers that end so exist, and nothing can be lost by taking it.)
    pub fn finish(&mut self) -> Option<SseEvent> {
        if self.failed {
            return None;
        }
        self.forget_given();
        let line = std::mem::take(&mut self.line);
        let line = self.without_mark(&line);
        // Of a cut line only data is used: whether another field is whole cannot be told.
        if let Some(value) = line.strip_prefix(b"data:") {
            self.data_line(value);
        } else if !line.is_empty() && !is_field(name_and_value(line).0) {
            self.beside.line(line);
        }
        if !self.has_data {
            return None;
        }
        self.has_data = false;
        let event = std::mem::take(&mut self.event);
        let event = SseEvent { event: (!event.is_empty()).then_some(event), data: std::mem::take(&mut self.data) };
        is_complete(&event.data).then_some(event)
    }

    /// What the body held so far beside its events: lines that are no field of the standard and no comment, the one that has
    /// only begun among them. The last 16 KiB are kept.
    ///
    /// ```
    /// use cepa_providers::sse::SseDecoder;
    ///
    /// let mut decoder = SseDecoder::new();
    /// let mut events = Vec::new();
    /// decoder.push(b"data: {}\n\n{\n  \"error\": \"overloaded\"\n}\n", &mut events)?;
    /// assert_eq!(events.len(), 1);
    /// assert_eq!(decoder.beside(), b"{\n  \"error\": \"overloaded\"\n}\n");
    /// # Ok::<(), cepa_core::Error>(())
    /// ```
    pub fn beside(&self) -> Vec<u8> {
        let mut lines = self.beside.lines().to_vec();
        // How much of a line is there when it becomes too large depends on how the body was cut.
        let line = if self.failed { &[][..] } else { &*self.line };
        let line = if self.first_line { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        if line.len() < beside::MOST && !is_field(name_and_value(line).0) {
            lines.extend_from_slice(line);
        }
        lines
    }

    /// Ends a line whose beginning may have come in earlier pieces; whether it ends an event.
    fn end_cut_line(&mut self, part: &[u8]) -> bool {
        if self.line.is_empty() {
            return self.end_line(part);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(part);
        let is_event = self.end_line(&line);
        // Its space is used again for the next line that is cut.
        line.clear();
        self.line = line;
        is_event
    }

    fn end_line(&mut self, line: &[u8]) -> bool {
        let line = self.without_mark(line);
        if line.is_empty() {
            if !self.has_data {
                self.event.clear();
            }
            return self.has_data;
        }
        match name_and_value(line) {
            (b"data", value) => self.data_line(value),
            (b"event", value) => {
                self.event.clear();
                self.event.push_str(&text(without_space(value)));
            }
            (name, _) if is_field(name) => {}
            _ => self.beside.line(line),
        }
        false
    }

    fn data_line(&mut self, value: &[u8]) {
        self.add_data(&text(without_space(value)));
    }

    fn add_data(&mut self, text: &str) {
        if self.has_data {
            self.data.push('\n');
        }
        self.has_data = true;
        self.data.push_str(text);
    }

    fn name(&self) -> Option<&str> {
        Some(&*self.event).filter(|name| !name.is_empty())
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.is_given) {
            self.data.clear();
            self.event.clear();
        }
    }

    /// The line without the byte order mark that may stand at the start of a body. Where a gateway has put bodies together, one
    /// stands before a later field too; the standard would pass over the field, and what it says would be lost without a word.
    fn without_mark<'a>(&mut self, line: &'a [u8]) -> &'a [u8] {
        let is_first = std::mem::take(&mut self.first_line);
        let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK) else { return line };
        if is_first || matches!(name_and_value(rest).0, b"data" | b"event") { rest } else { line }
    }

    fn too_large(&self) -> Error {
        let limit = self.max_event_bytes;
        Error::new(
            ErrorKind::Decode,
            format!("one event of the stream is larger than {limit} bytes: the stream is given up"),
        )
    }
}

fn name_and_value(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b':') {
        Some(colon) => {
            let (name, value) = line.split_at(colon);
            (name, value.get(1..).unwrap_or_default())
        }
        None => (line, b""),
    }
}

/// Whether the standard knows a field of this name. An empty one is a comment; `id` and `retry` serve reconnection, which a
/// model call never does.
fn is_field(name: &[u8]) -> bool {
    matches!(name, b"" | b"data" | b"event" | b"id" | b"retry")
}

fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

/// The value of a line that is nothing but data and can be read as it lies.
fn data_alone(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(without_space(line.strip_prefix(b"data:")?)).ok()
}

/// UTF-8 with invalid bytes replaced. A line is decoded as a whole: no UTF-8 sequence contains a line end, so this
/// gives what decoding the whole body would.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn is_complete(data: &str) -> bool {
    let data = data.trim();
    // Not numbers or words: a cut `12` still parses.
    data == "[DONE]" || (data.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(data).is_ok())
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
