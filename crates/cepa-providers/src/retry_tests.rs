//! W5: what is tried again, when, and when no more.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "m")
}

/// Runs under a clock that jumps over waits. Gives the result, and when each try began.
async fn run(
    policy: &RetryPolicy,
    random: f64,
    outcome: impl Fn(u32) -> Result<&'static str, Failed>,
) -> (Result<&'static str, Error>, Vec<Duration>) {
    let start = Instant::now();
    let tries = RefCell::new(Vec::new());
    let cancel = CancellationToken::new();
    let result = retry_with(
        policy,
        &cancel,
        || random,
        |attempt| {
            tries.borrow_mut().push(start.elapsed());
            std::future::ready(outcome(attempt))
        },
    )
    .await;
    (result, tries.into_inner())
}

fn millis(times: &[Duration]) -> Vec<u128> {
    times.iter().map(Duration::as_millis).collect()
}

// W5
#[tokio::test(start_paused = true)]
async fn waits_double_up_to_the_longest() {
    let policy = RetryPolicy { max_attempts: 6, max_delay: 3 * SECOND, ..RetryPolicy::default() };
    let (result, tries) = run(&policy, 1.0, |_| Err(error(ErrorKind::Server).into())).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Server);
    assert_eq!(millis(&tries), [0, 500, 1_500, 3_500, 6_500, 9_500]);
}

// W5: jitter
#[tokio::test(start_paused = true)]
async fn a_wait_is_anything_from_nothing_to_its_bound() {
    let policy = RetryPolicy::default();
    let fails = |_| Err(error(ErrorKind::Overloaded).into());
    assert_eq!(millis(&run(&policy, 0.0, fails).await.1), [0, 0, 0]);
    assert_eq!(millis(&run(&policy, 0.5, fails).await.1), [0, 250, 750]);
    let spread: std::collections::BTreeSet<u64> = (0..100).map(|_| (random() * 1e9) as u64).collect();
    assert!(spread.len() > 95, "{spread:?}");
    assert!(spread.iter().any(|x| *x < 300_000_000) && spread.iter().any(|x| *x > 700_000_000), "{spread:?}");
}

#[tokio::test(start_paused = true)]
async fn success_ends_it() {
    let (result, tries) = run(&RetryPolicy::default(), 0.0, |attempt| match attempt {
        1 | 2 => Err(error(ErrorKind::RateLimit).into()),
        _ => Ok("done"),
    })
    .await;
    assert_eq!((result.unwrap(), tries.len()), ("done", 3));
}

// W5: only what is retryable; the error comes back as it was
#[tokio::test(start_paused = true)]
async fn only_what_is_retryable_is_tried_again() {
    use ErrorKind::*;
    for kind in [Quota, Auth, InvalidRequest, ContextLength, Decode, Cancelled, Provider] {
        let (result, tries) = run(&RetryPolicy::default(), 0.0, |_| Err(error(kind).into())).await;
        assert_eq!((result.unwrap_err().kind(), tries.len()), (kind, 1));
    }
    for kind in [RateLimit, Overloaded, Server, Network, Truncated] {
        let (result, tries) = run(&RetryPolicy::default(), 0.0, |_| Err(error(kind).into())).await;
        assert_eq!((result.unwrap_err().kind(), tries.len()), (kind, 3));
    }
    let spent = || error(RateLimit).with_status(429).with_code("c").with_retryable(false);
    let (result, tries) = run(&RetryPolicy::default(), 0.0, |_| Err(spent().into())).await;
    let result = result.unwrap_err();
    assert_eq!((result.status(), result.code(), result.message(), tries.len()), (Some(429), Some("c"), "m", 1));
}

// W5: a stream only before its first delivered event
#[tokio::test(start_paused = true)]
async fn what_was_delivered_is_not_repeated() {
    let fails = |_| Err(Failed::Delivered(error(ErrorKind::Overloaded)));
    let (result, tries) = run(&RetryPolicy::default(), 0.0, fails).await;
    assert_eq!((result.unwrap_err().kind(), tries.len()), (ErrorKind::Overloaded, 1));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_after_sending_is_repeated_only_if_asked_for() {
    let careful = RetryPolicy::default();
    let bold = RetryPolicy { retry_timeouts: true, ..RetryPolicy::default() };
    let timeout = || error(ErrorKind::Timeout);
    assert_eq!(run(&careful, 0.0, |_| Err(timeout().into())).await.1.len(), 1);
    assert_eq!(run(&bold, 0.0, |_| Err(timeout().into())).await.1.len(), 3);
    // The provider's own word that it has stopped.
    assert_eq!(run(&careful, 0.0, |_| Err(timeout().with_status(408).into())).await.1.len(), 3);
    assert_eq!(run(&careful, 0.0, |_| Err(timeout().with_code("timeout_error").into())).await.1.len(), 3);
}

// W5: Retry-After
#[tokio::test(start_paused = true)]
async fn the_wait_that_is_asked_for_is_kept() {
    let limited = |_| Err(error(ErrorKind::RateLimit).with_retry_after(60 * SECOND).into());
    let policy = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    assert_eq!(millis(&run(&policy, 0.0, limited).await.1), [0, 60_000], "longer than the longest own wait");
    assert_eq!(millis(&run(&policy, 1.0, limited).await.1), [0, 60_500]);
    let at_once = |_| Err(error(ErrorKind::RateLimit).with_retry_after(Duration::ZERO).into());
    assert_eq!(millis(&run(&policy, 0.0, at_once).await.1), [0, 0]);
}

// W5: a total deadline
#[tokio::test(start_paused = true)]
async fn a_wait_past_the_deadline_gives_up_at_once_and_keeps_the_wait() {
    let policy = RetryPolicy { max_attempts: 10, deadline: 90 * SECOND, ..RetryPolicy::default() };
    let start = Instant::now();
    let (result, tries) =
        run(&policy, 0.0, |_| Err(error(ErrorKind::RateLimit).with_retry_after(60 * SECOND).into())).await;
    assert_eq!(result.unwrap_err().retry_after(), Some(60 * SECOND));
    assert_eq!(millis(&tries), [0, 60_000]);
    assert_eq!(start.elapsed(), 60 * SECOND, "the second wait was not begun");

    let policy = RetryPolicy { max_attempts: 1_000, deadline: 10 * SECOND, ..RetryPolicy::default() };
    let (_, tries) = run(&policy, 1.0, |_| Err(error(ErrorKind::Server).into())).await;
    assert_eq!(millis(&tries), [0, 500, 1_500, 3_500, 7_500]);
}

#[tokio::test(start_paused = true)]
async fn one_try_is_always_made() {
    for policy in
        [RetryPolicy::none(), RetryPolicy { max_attempts: 0, deadline: Duration::ZERO, ..RetryPolicy::default() }]
    {
        assert_eq!(run(&policy, 0.0, |_| Err(error(ErrorKind::Server).into())).await.1.len(), 1);
    }
}

// W5, L11
#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_at_once() {
    let cancel = CancellationToken::new();
    let start = Instant::now();
    let limited =
        |_| std::future::ready(Err::<(), _>(error(ErrorKind::RateLimit).with_retry_after(60 * SECOND).into()));
    let policy = RetryPolicy::default();
    let (result, ()) = tokio::join!(retry(&policy, &cancel, limited), async {
        tokio::time::sleep(SECOND).await;
        cancel.cancel();
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(start.elapsed(), SECOND);

    let tried = std::cell::Cell::new(false);
    let result = retry(&policy, &cancel, |_| {
        tried.set(true);
        std::future::ready(Ok::<_, Failed>(()))
    });
    assert_eq!(result.await.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!tried.get(), "nothing is begun after a cancel");
}

proptest! {
    // W5
    #[test]
    fn no_wait_breaks_its_bounds(
        attempts in 0_u32..200, max_attempts in 0_u32..200, base in prop_oneof![0_u64..10_000_000, any::<u64>()],
        max_delay in prop_oneof![0_u64..10_000_000, any::<u64>()], deadline in 0_u64..1_000_000, elapsed in 0_u64..1_000_000, asked in proptest::option::of(0_u64..u64::MAX),
        random in prop_oneof![-1.0..2.0_f64, Just(f64::NAN)],
    ) {
        let [base, max_delay, deadline, elapsed] = [base, max_delay, deadline, elapsed].map(Duration::from_millis);
        let policy = RetryPolicy { max_attempts, base, max_delay, deadline, retry_timeouts: false };
        let asked = asked.map(Duration::from_millis);
        let error = asked.map_or(error(ErrorKind::RateLimit), |asked| error(ErrorKind::RateLimit).with_retry_after(asked));
        if let Next::Wait(wait) = policy.after(&error, attempts, elapsed, random) {
            prop_assert!(attempts < max_attempts);
            prop_assert!(elapsed.min(deadline) + wait <= deadline);
            match asked {
                Some(asked) => prop_assert!(wait >= asked),
                None => prop_assert!(wait <= max_delay),
            }
        } else {
            let hopeless = asked.is_some_and(|asked| elapsed + asked > deadline);
            prop_assert!(attempts >= max_attempts || hopeless || asked.is_none());
        }
    }
}
