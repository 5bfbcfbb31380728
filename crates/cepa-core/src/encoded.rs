//! Places beside a message, and beside a stretch of a history, where a wire keeps what it made of them.

use std::{
    any::Any,
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

/// What a wire kept, whatever that is.
type Kept = Arc<dyn Any + Send + Sync>;

/// What the last two wires keep of a stretch of a history; empty until then. Two, because a conversation may be led with two
/// models in turn.
///
/// ```
/// use cepa_core::{KeptSlot, WireKey};
/// let (slot, key) = (KeptSlot::default(), WireKey::new("openai"));
/// slot.set(&key, std::sync::Arc::new(17));
/// assert_eq!(slot.get::<i32>(&key).as_deref(), Some(&17));
/// ```
#[derive(Default)]
pub struct KeptSlot(Mutex<[Option<(WireKey, Kept)>; 2]>);

impl KeptSlot {
    /// What was kept for this key.
    pub fn get<T: Any + Send + Sync>(&self, key: &WireKey) -> Option<Arc<T>> {
        let slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, kept) = slots.iter().flatten().find(|(made_for, _)| made_for == key)?;
        Arc::clone(kept).downcast().ok()
    }

    /// Keeps something for this key, in place of what was kept for it, else of the older of two.
    pub fn set<T: Any + Send + Sync>(&self, key: &WireKey, kept: Arc<T>) {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [newer, older] = &mut *slots;
        if newer.as_ref().is_some_and(|(made_for, _)| made_for != key) {
            std::mem::swap(newer, older);
        }
        *newer = Some((key.clone(), kept));
    }
}

impl fmt::Debug for KeptSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptSlot")
    }
}
