//! Trying a model call again: when, after how long, and when no more (W5).
//!
//! The decision is a pure function ([`RetryPolicy::after`]); waiting is done in one place ([`retry`]). Only here is a model
//! call repeated: the HTTP client below repeats nothing that a server may have read.

use std::{
    future::Future,
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use cepa_core::{Error, ErrorKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often and how patiently a model call is tried.
///
/// ```
/// use cepa_providers::retry::RetryPolicy;
/// let patient = RetryPolicy { max_attempts: 8, ..RetryPolicy::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of tries, the first one included. Default 3.
    pub max_attempts: u32,
    /// The upper bound of the first wait; each further one is twice as long. Default 500 ms.
    pub base: Duration,
    /// The upper bound of a wait that the provider did not ask for. Default 30 s.
    pub max_delay: Duration,
    /// The time since the start of the first try after which none is begun. A provider that asks to wait longer than what
    /// is left ends the call at once, with its wait in the error. Default 2 min. How long a try may take is not said here but
    /// by [`HttpSettings`](crate::http::HttpSettings), whose total timeout is also the most that this can be.
    pub deadline: Duration,
    /// Whether to repeat a request that was sent and not answered in time. The server may still be working on it (and
    /// charge for it), so the default is not to.
    pub retry_timeouts: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            base: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            deadline: Duration::from_secs(120),
            retry_timeouts: false,
        }
    }
}

/// What follows a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try again after this time.
    Wait(Duration),
    /// The error is the result.
    GiveUp,
}

impl RetryPolicy {
    /// One try and no more.
    pub fn none() -> Self {
        Self { max_attempts: 1, ..Self::default() }
    }

    /// What to do after the `attempts`-th try failed with this error, `elapsed` after the start of the first one.
    /// `random` is a number from 0 to 1.
    pub fn after(&self, error: &Error, attempts: u32, elapsed: Duration, random: f64) -> Next {
        if attempts >= self.max_attempts || !self.allows(error) {
            return Next::GiveUp;
        }
        let left = self.deadline.saturating_sub(elapsed);
        match error.retry_after() {
            Some(asked) if asked > left => Next::GiveUp,
            // Never earlier than asked, and not all callers in the same instant.
            Some(asked) => Next::Wait(asked.saturating_add(part(self.base, random)).min(left)),
            None => {
                let doublings = attempts.saturating_sub(1).min(31);
                let wait = part(self.base.saturating_mul(1 << doublings).min(self.max_delay), random);
                if wait > left { Next::GiveUp } else { Next::Wait(wait) }
            }
        }
    }

    fn allows(&self, error: &Error) -> bool {
        // A timeout that the provider reports is over on its side as well; it has a status or a code.
        let may_still_run = error.kind() == ErrorKind::Timeout && error.status().is_none() && error.code().is_none();
        error.is_retryable() && (self.retry_timeouts || !may_still_run)
    }
}

/// Why a try has failed, and whether another one would be noticed.
#[derive(Clone, Debug)]
pub enum Failed {
    /// Nothing of this try has reached the caller: it may be repeated if the error allows it.
    Unseen(Error),
    /// Something was delivered already (a stream's first event): it is not repeated.
    Delivered(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Unseen(error)
    }
}

/// Calls `attempt` (with 1, 2, …) until it succeeds or the policy gives up, and returns the last error unchanged.
///
/// Cancelling ends the wait between two tries at once. A running try is left alone: it watches the token itself, and alone
/// knows what of its result is worth keeping.
///
/// # Errors
/// The last try's error; or [`ErrorKind::Cancelled`] if the call was cancelled before or between tries.
pub async fn retry<T, F>(
    policy: &RetryPolicy,
    cancel: &CancellationToken,
    attempt: impl FnMut(u32) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Failed>>,
{
    retry_with(policy, cancel, random, attempt).await
}

/// [`retry`] with the caller's own random numbers, from 0 to 1.
///
/// # Errors
/// As [`retry`].
pub async fn retry_with<T, F>(
    policy: &RetryPolicy,
    cancel: &CancellationToken,
    mut random: impl FnMut() -> f64,
    mut attempt: impl FnMut(u32) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Failed>>,
{
    let start = Instant::now();
    let mut attempts = 0_u32;
    loop {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        attempts = attempts.saturating_add(1);
        let error = match attempt(attempts).await {
            Ok(value) => return Ok(value),
            Err(Failed::Delivered(error)) => return Err(error),
            Err(Failed::Unseen(error)) => error,
        };
        let Next::Wait(wait) = policy.after(&error, attempts, start.elapsed(), random()) else { return Err(error) };
        tracing::warn!(
            attempts,
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            kind = error.kind().as_str(),
            status = error.status(),
            provider = error.provider(),
            "the model call failed and is tried again"
        );
        if cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return Err(cancelled());
        }
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the model call was cancelled")
}

/// This share, from 0 to 1, of a time.
fn part(whole: Duration, share: f64) -> Duration {
    Duration::try_from_secs_f64(whole.as_secs_f64() * share.clamp(0.0, 1.0)).map_or(whole, |part| part.min(whole))
}

/// A number from 0 to 1 that differs between callers and calls. The standard library's hash keys are random enough to
/// spread retries, and save a dependency.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
