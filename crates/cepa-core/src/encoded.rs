//! A place beside a message where a wire keeps the bytes it made of it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

/// For which wire bytes were made: dialect, quirks, API version, provider and model, in one text.
///
/// The core only compares keys; it does not know what they mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WireKey(Arc<str>);

impl WireKey {
    /// A key; equal texts are equal keys.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
}

/// The bytes that the last wire made; empty until then. Never part of a message's value.
#[derive(Default)]
pub struct EncodedSlot(Mutex<Option<(WireKey, Bytes)>>);

impl EncodedSlot {
    /// The bytes made for this key, if they are the last that were made.
    pub fn get(&self, key: &WireKey) -> Option<Bytes> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().filter(|(made_for, _)| made_for == key).map(|(_, bytes)| bytes.clone())
    }

    /// Keeps bytes for this key in place of what was kept.
    pub fn set(&self, key: &WireKey, bytes: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((key.clone(), bytes));
    }
}

impl fmt::Debug for EncodedSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncodedSlot")
    }
}
