//! What a request carries for its tools: values that they read and write, handles, cancellation.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{Error, ErrorKind};

/// The key under which a context carries the conversation's id.
pub const CONVERSATION_ID: &str = "conversation_id";

/// Keys that belong to the framework start with this.
const RESERVED_PREFIX: &str = "cepa.";

/// Values that are written by tools: what is null deletes.
pub type Writes = Map<String, Value>;

/// A flat map of request-level values, typed handles, cancellation and the call's idempotency key.
///
/// ```
/// use cepa_core::ToolContext;
/// let context = ToolContext::new().with_conversation("abc").with_value("user", "u1")?;
/// assert_eq!(context.get::<String>("user").as_deref(), Some("u1"));
/// assert_eq!(context.conversation_id(), Some("abc"));
/// assert!(context.set("conversation_id", "other").is_err());
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolContext {
    values: Arc<Map<String, Value>>,
    /// A few at most: searched one after another.
    extensions: Arc<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>,
    cancel: CancellationToken,
    idempotency_key: Option<Arc<str>>,
    writes: Arc<Mutex<Writes>>,
}

fn check_key(key: &str) -> Result<(), Error> {
    if key == CONVERSATION_ID || key.starts_with(RESERVED_PREFIX) {
        let message = format!("the context key `{key}` belongs to the framework: choose another");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(())
}

fn to_value(value: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))
}

impl ToolContext {
    /// An empty context.
    pub fn new() -> Self {
        Self::default()
    }

    /// A context with the values of an earlier one (from a stored pause).
    pub fn from_values(values: impl Into<Arc<Map<String, Value>>>) -> Self {
        Self { values: values.into(), ..Self::default() }
    }

    /// Replaces all values; handles and cancellation stay.
    pub fn with_values(mut self, values: impl Into<Arc<Map<String, Value>>>) -> Self {
        self.values = values.into();
        self
    }

    /// Sets the conversation's id; a blank one counts as none.
    pub fn with_conversation(mut self, id: &str) -> Self {
        let values = Arc::make_mut(&mut self.values);
        if id.trim().is_empty() {
            values.remove(CONVERSATION_ID);
        } else {
            values.insert(CONVERSATION_ID.to_owned(), id.into());
        }
        self
    }

    /// Adds a value.
    ///
    /// # Errors
    /// `invalid_input` if the key belongs to the framework or the value is not JSON.
    pub fn with_value(mut self, key: &str, value: impl Serialize) -> Result<Self, Error> {
        check_key(key)?;
        Arc::make_mut(&mut self.values).insert(key.to_owned(), to_value(value)?);
        Ok(self)
    }

    /// Adds a typed handle (a database pool, a client); handles are never stored.
    pub fn with_extension<T: Send + Sync + 'static>(self, handle: T) -> Self {
        self.with_shared(Arc::new(handle))
    }

    /// Adds a typed handle that others hold too.
    pub fn with_shared<T: Send + Sync + 'static>(mut self, handle: Arc<T>) -> Self {
        let of_type = TypeId::of::<T>();
        let mut extensions: Vec<_> = self.extensions.iter().filter(|(kind, _)| *kind != of_type).cloned().collect();
        extensions.push((of_type, handle));
        self.extensions = Arc::new(extensions);
        self
    }

    /// Replaces the cancellation token.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// The context of one call: sees the same values, has its own writes and key.
    pub fn for_call(&self, idempotency_key: impl Into<Arc<str>>) -> Self {
        Self { idempotency_key: Some(idempotency_key.into()), writes: Arc::default(), ..self.clone() }
    }

    /// The context of one run of a call's body: what it writes reaches the call only through [`Self::take_writes`].
    pub(crate) fn for_body(&self) -> Self {
        let writes = self.lock_writes().clone();
        Self { writes: Arc::new(Mutex::new(writes)), ..self.clone() }
    }

    /// The conversation's id; a blank one counts as none.
    pub fn conversation_id(&self) -> Option<&str> {
        self.values.get(CONVERSATION_ID)?.as_str().filter(|id| !id.trim().is_empty())
    }

    /// A value: what this call wrote, else what was there; `None` also for null and for a value of another type.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let written = self.lock_writes().get(key).cloned();
        let value = written.or_else(|| self.values.get(key).cloned()).filter(|value| !value.is_null())?;
        serde_json::from_value(value).ok()
    }

    /// Writes a value; null deletes it. Calls that come later see it, if this one succeeds.
    ///
    /// # Errors
    /// `invalid_input` if the key belongs to the framework or the value is not JSON.
    pub fn set(&self, key: &str, value: impl Serialize) -> Result<(), Error> {
        check_key(key)?;
        let value = to_value(value)?;
        self.lock_writes().insert(key.to_owned(), value);
        Ok(())
    }

    /// Deletes a value.
    ///
    /// # Errors
    /// `invalid_input` if the key belongs to the framework.
    pub fn remove(&self, key: &str) -> Result<(), Error> {
        self.set(key, Value::Null)
    }

    /// A typed handle.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, handle) = self.extensions.iter().find(|(kind, _)| *kind == TypeId::of::<T>())?;
        handle.clone().downcast().ok()
    }

    /// The token that is cancelled when the caller gives up.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The key that is the same for every run of one call: for services that take one.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// All values, without what this call wrote.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// All values, without what this call wrote, to be kept.
    pub fn shared_values(&self) -> Arc<Map<String, Value>> {
        self.values.clone()
    }

    /// Takes what this call wrote.
    pub fn take_writes(&self) -> Writes {
        std::mem::take(&mut self.lock_writes())
    }

    /// Folds writes into the values; what is null deletes. Framework keys are left alone.
    pub fn apply(&mut self, writes: Writes) {
        if writes.is_empty() {
            return;
        }
        let values = Arc::make_mut(&mut self.values);
        for (key, value) in writes.into_iter().filter(|(key, _)| check_key(key).is_ok()) {
            if value.is_null() {
                values.remove(&key);
            } else {
                values.insert(key, value);
            }
        }
    }

    fn lock_writes(&self) -> std::sync::MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("values", &self.values).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
