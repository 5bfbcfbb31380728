//! A limit to what is sent with one key: how many requests at once, how many in a minute, and none while its provider asks
//! to wait.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cepa_core::{Error, ErrorKind};
use tokio::{
    sync::{Mutex as Queue, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

/// The longest time for which one answer holds back everybody. A provider that means longer says so again.
const LONGEST: Duration = Duration::from_secs(600);

/// Shares a key's allowance between all models that use it: give each of them a clone.
///
/// * Requests wait in one queue, first come, first served. Cancelling a call takes it out of the queue, and the time in it
///   counts against the call's deadline ([`RetryPolicy::deadline`](crate::retry::RetryPolicy::deadline)).
/// * A place is held from the request until its reply is read, and not while a call waits for its next try.
/// * When one call is refused for its rate and told how long to wait, none of the others is sent before that (for at most
///   ten minutes: then one is tried again).
///
/// It knows this process only. Without limits of its own it still does the last.
///
/// ```
/// use cepa_providers::{anthropic::Anthropic, limit::Limiter};
///
/// let limiter = Limiter::new().concurrency(4).requests_per_minute(50);
/// let large = Anthropic::builder("claude-opus-4-7").api_key("sk-12345678").limiter(limiter.clone()).build()?;
/// let small = Anthropic::builder("claude-haiku-4-5").api_key("sk-12345678").limiter(limiter).build()?;
/// # let _ = (large, small);
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Limiter(Arc<Shared>);

struct Shared {
    limits: Limits,
    /// Whoever holds it is the next to be sent. It is fair: it is given in the order in which it was asked for.
    queue: Queue<()>,
    places: Option<Arc<Semaphore>>,
    past: Mutex<Past>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    concurrency: Option<usize>,
    requests_per_minute: Option<usize>,
}

#[derive(Debug, Default)]
struct Past {
    /// When the newest requests were sent, as many as a minute may have.
    sent: VecDeque<Instant>,
    /// The provider asked to send nothing before this.
    not_before: Option<Instant>,
}

/// A place; dropping it gives it to the next.
#[derive(Debug)]
#[must_use = "the place is given back when this is dropped"]
pub(crate) struct Permit(#[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

impl Default for Limiter {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limiter").field(&self.0.limits).finish()
    }
}

impl Limiter {
    /// No limit but those that the provider asks for.
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    /// At most so many requests at once. Set it before cloning: it makes another limiter.
    pub fn concurrency(self, requests: usize) -> Self {
        Self::with(Limits { concurrency: Some(requests), ..self.0.limits })
    }

    /// At most so many requests in any 60 seconds, tries that failed included. Set it before cloning: it makes another
    /// limiter.
    pub fn requests_per_minute(self, requests: usize) -> Self {
        Self::with(Limits { requests_per_minute: Some(requests), ..self.0.limits })
    }

    fn with(limits: Limits) -> Self {
        let places = limits.concurrency.map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        Self(Arc::new(Shared { limits, queue: Queue::new(()), places, past: Mutex::new(Past::default()) }))
    }

    /// # Errors
    /// `invalid_config` if it would let nothing through.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Limits { concurrency, requests_per_minute } = self.0.limits;
        if concurrency == Some(0) || requests_per_minute == Some(0) {
            let message = "a limiter with a limit of 0 lets no request through: set at least 1, or leave the limit out";
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        }
        Ok(())
    }

    /// Waits for a place. Without a deadline it may wait for ever.
    ///
    /// # Errors
    /// `cancelled`; `rate_limit` if there is none before the deadline, at once where that is known.
    pub(crate) async fn place(&self, cancel: &CancellationToken, deadline: Option<Instant>) -> Result<Permit, Error> {
        let waiting = async {
            match deadline {
                Some(deadline) => timeout_at(deadline, self.next(Some(deadline))).await.unwrap_or_else(|_| Err(late())),
                None => self.next(None).await,
            }
        };
        let cancelled =
            || Err(Error::new(ErrorKind::Cancelled, "the model call was cancelled while it waited its turn"));
        cancel.run_until_cancelled(waiting).await.unwrap_or_else(cancelled)
    }

    async fn next(&self, deadline: Option<Instant>) -> Result<Permit, Error> {
        // What is over for all need not be queued for.
        self.0.may_be_in_time(deadline)?;
        let _turn = self.0.queue.lock().await;
        let permit = match &self.0.places {
            // It is never closed.
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        loop {
            let Some(ready) = self.0.send() else { return Ok(Permit(permit)) };
            self.0.may_be_in_time(deadline)?;
            // Meanwhile the provider may ask for more.
            sleep_until(ready).await;
        }
    }

    /// Holds everybody back for a time that the provider asked for.
    pub(crate) fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait.min(LONGEST);
        let mut past = self.0.past();
        if past.not_before.is_none_or(|before| before < until) {
            past.not_before = Some(until);
            tracing::warn!(
                wait_ms = wait.as_millis(),
                "all requests with this limiter wait: the provider asked for it"
            );
        }
    }
}

impl Shared {
    fn past(&self) -> std::sync::MutexGuard<'_, Past> {
        // What is in it is whole between any two statements.
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as sent now; if it must wait, nothing is counted and this is until when.
    fn send(&self) -> Option<Instant> {
        let (mut past, now) = (self.past(), Instant::now());
        if let Some(ready) = past.ready(self.limits).filter(|ready| *ready > now) {
            return Some(ready);
        }
        if let Some(most) = self.limits.requests_per_minute {
            past.sent.push_back(now);
            while past.sent.len() > most {
                past.sent.pop_front();
            }
        }
        None
    }

    fn may_be_in_time(&self, deadline: Option<Instant>) -> Result<(), Error> {
        let ready = self.past().ready(self.limits);
        match (ready, deadline) {
            (Some(ready), Some(deadline)) if ready > deadline => {
                Err(late().with_retry_after(ready.saturating_duration_since(Instant::now())))
            }
            _ => Ok(()),
        }
    }
}

impl Past {
    /// The first instant at which a request may be sent, if anything stands against now.
    fn ready(&self, limits: Limits) -> Option<Instant> {
        let full = limits.requests_per_minute.is_some_and(|most| self.sent.len() >= most);
        let minute_over = self.sent.front().filter(|_| full).map(|first| *first + MINUTE);
        minute_over.max(self.not_before)
    }
}

fn late() -> Error {
    let message = "the request was not sent: no place in the limiter before the call's deadline; raise its limits or the \
                   deadline, or send less";
    Error::new(ErrorKind::RateLimit, message)
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
