//! How much of a reply is taken, whatever the dialect: a server that sends without end must not fill the memory.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use cepa_core::{Args, AssistantMessage, ChatEvent, Error, ErrorKind, EventSink};

use crate::sse::DEFAULT_MAX_EVENT_BYTES;

/// What is deeper, `serde_json` does not read.
const MAX_DEPTH: usize = 127;

/// The items of a reply: what it says and calls, the parts of these, and the members that are kept beside them. Each takes more
/// memory than it has bytes, and time with each other, and no model writes as many.
const REPLY_ITEMS: usize = 4096;

/// # Errors
/// `decode` if a reply holds more items than any does.
pub(super) fn check_items(held: usize, what: &str) -> Result<(), Error> {
    if held > REPLY_ITEMS {
        let message = format!("the reply holds more than {REPLY_ITEMS} {what}: it is given up");
        return Err(Error::new(ErrorKind::Decode, message));
    }
    Ok(())
}

/// The bounds of one reply; past one of them it is given up with an error of kind `decode`.
///
/// A body that is not streamed has its bound in
/// [`HttpSettings::max_body_bytes`](crate::http::HttpSettings::max_body_bytes).
///
/// ```
/// use cepa_providers::{openai::OpenAi, wire::caps::Caps};
/// let caps = Caps { calls: 16, args_bytes: 64 * 1024, ..Caps::default() };
/// let model = OpenAi::builder("m").api_key("sk-12345678").caps(caps).build()?;
/// # let _ = model;
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// The bytes of one event of a stream. Default 16 MiB, enough for an image.
    pub event_bytes: usize,
    /// The bytes of a streamed reply, comments included. Default 64 MiB; more has no effect.
    pub reply_bytes: usize,
    /// The tool calls of a reply. Default 1024; more has no effect.
    pub calls: usize,
    /// The bytes of one call's arguments. Default 8 MiB.
    pub args_bytes: usize,
    /// How deep JSON may be nested: a reply, an event of a stream, the arguments of a call. Default 127, as deep as
    /// `serde_json` reads; more has no effect. (Deeper arguments that come as a text are broken ones already, and the model is
    /// told so.)
    pub json_depth: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            event_bytes: DEFAULT_MAX_EVENT_BYTES,
            reply_bytes: 64 * 1024 * 1024,
            calls: 1024,
            args_bytes: 8 * 1024 * 1024,
            json_depth: MAX_DEPTH,
        }
    }
}

impl Caps {
    /// Whether a reply is within these bounds.
    ///
    /// # Errors
    /// `decode` if it has too many calls, or too large or too deep ones.
    pub fn check(&self, message: &AssistantMessage) -> Result<(), Error> {
        if message.tool_calls.len() > self.calls {
            return Err(self.too_many_calls());
        }
        let too_large = message.tool_calls.iter().any(|call| call.args.as_str().len() > self.args_bytes);
        if too_large {
            return Err(self.args_too_large());
        }
        message.tool_calls.iter().try_for_each(|call| match &call.args {
            Args::Object(args) => self.check_depth(args.as_str().as_bytes()),
            Args::Invalid { .. } => Ok(()),
        })
    }

    /// Whether a body, or the data of an event, is within the depth. It is looked at before anything reads it: readers go down
    /// with it, or keep it as it is for somebody who would.
    ///
    /// # Errors
    /// `decode` if it is nested too deep.
    pub(super) fn check_depth(&self, json: &[u8]) -> Result<(), Error> {
        let most = self.json_depth.min(MAX_DEPTH);
        if is_deeper(json, most) {
            return Err(exceeded(format!("the reply is nested deeper than {most} times")));
        }
        Ok(())
    }

    pub(super) fn reply_too_large(&self) -> Error {
        exceeded(format!("the reply is larger than {} bytes", self.reply_bytes))
    }

    fn too_many_calls(&self) -> Error {
        exceeded(format!("the reply holds more than {} tool calls", self.calls))
    }

    fn args_too_large(&self) -> Error {
        exceeded(format!("the arguments of a tool call are larger than {} bytes", self.args_bytes))
    }
}

fn exceeded(what: String) -> Error {
    Error::new(ErrorKind::Decode, format!("{what}: it is given up (the bound is a setting, `caps`)"))
}

/// JSON from where it begins: without the marks and the space that wires pass over, in which order ever. What is checked and
/// what is read begin at the same place.
pub(crate) fn begin(json: &[u8]) -> &[u8] {
    let spaces = json.iter().take_while(|byte| matches!(byte, b'\t'..=b'\r' | b' ')).count();
    let json = json.get(spaces..).unwrap_or_default();
    if json.first().is_none_or(u8::is_ascii) {
        return json;
    }
    // A mark, or a space beyond ASCII. What is not UTF-8 is no space.
    let text = json.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let rest = text.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
    json.get(text.len() - rest.len()..).unwrap_or_default()
}

/// Whether brackets stand in each other more than so many times. What does not begin as JSON has no depth.
fn is_deeper(json: &[u8], most: usize) -> bool {
    let json = begin(json);
    // What has no more brackets than that, those in texts included, is not looked at byte by byte.
    if !matches!(json.first(), Some(b'{' | b'[')) || openings(json) <= most {
        return false;
    }
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return true;
        }
    }
    false
}

/// How many brackets open. In blocks whose count fits a byte, so that many bytes are looked at at once.
fn openings(json: &[u8]) -> usize {
    let in_block = |block: &[u8]| block.iter().fold(0_u8, |sum, byte| sum + u8::from(matches!(byte, b'{' | b'[')));
    json.chunks(usize::from(u8::MAX)).map(|block| usize::from(in_block(block))).sum()
}

/// Counts what a fold tells, and passes it on while it is within the bounds.
#[derive(Clone, Debug)]
pub(super) struct Counter(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    /// How often something of a reply was told.
    told: AtomicUsize,
    /// A bound was passed.
    is_over: AtomicBool,
    calls: Mutex<Calls>,
}

#[derive(Debug)]
struct Calls {
    caps: Caps,
    /// The bytes of each call's arguments.
    args: Vec<usize>,
    fault: Option<Error>,
}

impl Counter {
    pub(super) fn new(caps: Caps) -> Self {
        let calls = Mutex::new(Calls { caps, args: Vec::new(), fault: None });
        Self(Arc::new(Counted { told: AtomicUsize::new(0), is_over: AtomicBool::new(false), calls }))
    }

    pub(super) fn set(&self, caps: Caps) {
        self.0.calls().caps = caps;
    }

    /// A sink before this one.
    pub(super) fn before(&self, inner: EventSink) -> EventSink {
        let counted = Arc::clone(&self.0);
        EventSink::new(move |event| {
            if counted.take(&event) {
                inner.emit(event);
            }
        })
    }

    /// How often something of a reply was told: words, thoughts, pieces of a call.
    pub(super) fn told(&self) -> usize {
        self.0.told.load(Relaxed)
    }

    /// # Errors
    /// If a bound was passed.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.0.is_over.load(Relaxed) {
            return Ok(());
        }
        self.0.calls().fault.clone().map_or(Ok(()), Err)
    }
}

impl Counted {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, event: &ChatEvent) -> bool {
        if self.is_over.load(Relaxed) {
            return false;
        }
        if !matches!(event, ChatEvent::Usage(_) | ChatEvent::Reset) {
            self.told.fetch_add(1, Relaxed);
        }
        let within = match event {
            ChatEvent::CallBegun { index, .. } => self.calls().grows(*index, 0),
            ChatEvent::CallArguments { index, delta } => self.calls().grows(*index, delta.len()),
            ChatEvent::Reset => {
                self.calls().args.clear();
                true
            }
            _ => true,
        };
        self.is_over.fetch_or(!within, Relaxed);
        within
    }
}

impl Calls {
    /// Whether a call that grows by so many bytes is within the bounds.
    fn grows(&mut self, index: usize, more: usize) -> bool {
        if index >= self.caps.calls {
            self.fault = Some(self.caps.too_many_calls());
            return false;
        }
        if self.args.len() <= index {
            self.args.resize(index + 1, 0);
        }
        if let Some(bytes) = self.args.get_mut(index) {
            *bytes = bytes.saturating_add(more);
            if *bytes > self.caps.args_bytes {
                self.fault = Some(self.caps.args_too_large());
            }
        }
        self.fault.is_none()
    }
}

#[cfg(test)]
#[path = "caps_tests.rs"]
mod tests;
