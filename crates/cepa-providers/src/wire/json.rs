//! JSON written piece by piece, without a tree in between: what was encoded before goes in as it is.

use bytes::Bytes;
use cepa_core::{Error, ErrorKind};
use serde::Serialize;

/// Appends a value as JSON.
///
/// # Errors
/// `invalid_input` if the value has no JSON form.
pub fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), Error> {
    serde_json::to_writer(out, value)
        .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("the request cannot be written as JSON: {error}")))
}

/// Appends the members of one object, in the order in which they are given.
///
/// ```
/// use cepa_providers::wire::json::Object;
/// let mut out = Vec::new();
/// let mut object = Object::start(&mut out);
/// object.member("role", "user")?;
/// object.raw("content", "[1,  2]");
/// object.end();
/// assert_eq!(out, br#"{"role":"user","content":[1,  2]}"#);
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an object is only complete after `end`"]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    begun: bool,
}

impl<'a> Object<'a> {
    /// Opens the object.
    pub fn start(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, begun: false }
    }

    /// A member's name; the caller appends the value.
    pub fn key(&mut self, name: &'static str) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.begun, true) {
            self.out.push(b',');
        }
        // Names written here are ours and hold nothing to escape.
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A member with a value.
    ///
    /// # Errors
    /// As [`write`].
    pub fn member<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        write(self.key(name), value)
    }

    /// A member whose value is JSON already.
    pub fn raw(&mut self, name: &'static str, json: &str) {
        self.key(name).extend_from_slice(json.as_bytes());
    }

    /// A member with a name of somebody else's and a value that is JSON already.
    ///
    /// # Errors
    /// As [`write`].
    pub fn foreign(&mut self, name: &str, json: &str) -> Result<(), Error> {
        if std::mem::replace(&mut self.begun, true) {
            self.out.push(b',');
        }
        write(self.out, name)?;
        self.out.push(b':');
        self.out.extend_from_slice(json.as_bytes());
        Ok(())
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

/// Large pieces are shared, small ones copied together: a piece costs the sender a system call, a copy of this size does not.
pub(super) const SHARED_FROM: usize = 16 * 1024;

/// A body in pieces.
#[derive(Debug, Default)]
pub struct Pieces {
    done: Vec<Bytes>,
    open: Vec<u8>,
}

impl Pieces {
    /// No pieces.
    pub fn new() -> Self {
        Self::default()
    }

    /// The end of the body, to be appended to.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.open
    }

    /// Appends bytes that somebody else keeps too.
    pub fn share(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_FROM {
            self.open.extend_from_slice(&bytes);
            return;
        }
        self.seal();
        self.done.push(bytes);
    }

    /// Appends bytes that somebody else keeps too, piece by piece.
    pub fn share_all(&mut self, pieces: &[Bytes]) {
        for (place, piece) in pieces.iter().enumerate() {
            if self.open.capacity() - self.open.len() < piece.len() && piece.len() < SHARED_FROM {
                // All that is copied together, and about what comes behind the last of it.
                let copied = pieces.iter().skip(place).take_while(|piece| piece.len() < SHARED_FROM);
                self.open.reserve(copied.map(Bytes::len).sum::<usize>() + 512);
            }
            self.share(piece.clone());
        }
    }

    /// The number of bytes so far.
    pub fn size(&self) -> usize {
        self.done.iter().map(Bytes::len).sum::<usize>() + self.open.len()
    }

    /// The body.
    pub fn finish(mut self) -> Vec<Bytes> {
        self.seal();
        self.done
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open).into());
        }
    }
}
