//! Where an agent's time comes from: the system, or a caller's own clock.

use std::{fmt, sync::Arc};

use crate::ids;

/// A clock in milliseconds since 1970. Every time that an agent writes down or compares is one of its clock: when a
/// turn began, when a pause expires, until when a conversation is leased.
///
/// ```
/// use cepa_agent::Clock;
/// let noon = Clock::of(|| 1_767_268_800_000);
/// assert_eq!(noon.now_ms(), 1_767_268_800_000);
/// assert!(Clock::system().now_ms() > 1_700_000_000_000);
/// ```
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> i64 + Send + Sync>>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that asks this function: for tests, and where time is kept elsewhere.
    pub fn of(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// The time, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.0.as_ref().map_or_else(ids::now_ms, |now| now())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(own)" } else { "Clock(system)" })
    }
}
