//! How much of a reply is taken, whatever the dialect: a server that sends without end must not fill the memory.

use std::sync::{Arc, Mutex, PoisonError};

use cepa_core::{AssistantMessage, ChatEvent, Error, ErrorKind, EventSink};

use crate::sse::DEFAULT_MAX_EVENT_BYTES;

/// The bounds of one reply; past one of them it is given up with an error of kind `decode`.
///
/// A body that is not streamed has its bound in
/// [`HttpSettings::max_body_bytes`](crate::http::HttpSettings::max_body_bytes). The depth of JSON needs no setting: arguments
/// deeper than 127 are broken arguments, anything else as deep is an error.
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
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            event_bytes: DEFAULT_MAX_EVENT_BYTES,
            reply_bytes: 64 * 1024 * 1024,
            calls: 1024,
            args_bytes: 8 * 1024 * 1024,
        }
    }
}

impl Caps {
    /// Whether a reply is within these bounds.
    ///
    /// # Errors
    /// `decode` if it has too many calls, or too large ones.
    pub fn check(&self, message: &AssistantMessage) -> Result<(), Error> {
        if message.tool_calls.len() > self.calls {
            return Err(self.too_many_calls());
        }
        let too_large = message.tool_calls.iter().any(|call| call.args.as_str().len() > self.args_bytes);
        if too_large { Err(self.args_too_large()) } else { Ok(()) }
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

/// Counts what a fold tells, and passes it on while it is within the bounds.
#[derive(Clone, Debug)]
pub(super) struct Counter(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    caps: Caps,
    /// The bytes of each call's arguments.
    args: Vec<usize>,
    fault: Option<Error>,
}

impl Counter {
    pub(super) fn new(caps: Caps) -> Self {
        Self(Arc::new(Mutex::new(Counted { caps, args: Vec::new(), fault: None })))
    }

    pub(super) fn set(&self, caps: Caps) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).caps = caps;
    }

    /// A sink before this one.
    pub(super) fn before(&self, inner: EventSink) -> EventSink {
        let counted = Arc::clone(&self.0);
        EventSink::new(move |event| {
            let within = counted.lock().unwrap_or_else(PoisonError::into_inner).take(&event);
            if within {
                inner.emit(event);
            }
        })
    }

    /// # Errors
    /// If a bound was passed.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fault.clone().map_or(Ok(()), Err)
    }
}

impl Counted {
    fn take(&mut self, event: &ChatEvent) -> bool {
        if self.fault.is_some() {
            return false;
        }
        let (index, more) = match event {
            ChatEvent::CallBegun { index, .. } => (*index, 0),
            ChatEvent::CallArguments { index, delta } => (*index, delta.len()),
            ChatEvent::Reset => {
                self.args.clear();
                return true;
            }
            _ => return true,
        };
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
