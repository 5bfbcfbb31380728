//! W5: one key's allowance, shared. The clock jumps over waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

async fn place(limiter: &Limiter) -> Permit {
    limiter.place(&CancellationToken::new(), None).await.unwrap()
}

/// W5: no more than this many at once, whoever asks, and all of them in the end.
/// FR-137: a limit that all who use the key share.
#[tokio::test(start_paused = true)]
async fn no_more_at_once_than_allowed() {
    let limiter = Limiter::new().concurrency(3);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let start = Instant::now();
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (limiter, running, most) = (limiter.clone(), Arc::clone(&running), Arc::clone(&most));
            tokio::spawn(async move {
                let _permit = place(&limiter).await;
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(SECOND).await;
                running.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(start.elapsed().as_secs(), 4);
}

/// W5: any sixty seconds hold no more than a minute may.
#[tokio::test(start_paused = true)]
async fn no_more_in_a_minute_than_allowed() {
    let limiter = Limiter::new().requests_per_minute(3);
    let start = Instant::now();
    let mut sent = Vec::new();
    for _ in 0..8 {
        drop(place(&limiter).await);
        sent.push(start.elapsed().as_secs());
        tokio::time::sleep(10 * SECOND).await;
    }
    assert_eq!(sent, [0, 10, 20, 60, 70, 80, 120, 130]);
}

/// W5: first come, first served, a newcomer too when a place is free just now.
#[tokio::test(start_paused = true)]
async fn the_queue_is_fair() {
    let limiter = Limiter::new().concurrency(1).requests_per_minute(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for name in 0..6 {
        let (limiter, order) = (limiter.clone(), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let _permit = place(&limiter).await;
            order.lock().unwrap().push(name);
        }));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
}

/// W5, L11: whoever gives up leaves the queue, and takes nothing along.
#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_and_frees_the_place() {
    let limiter = Limiter::new().concurrency(1);
    let first = place(&limiter).await;
    let cancel = CancellationToken::new();
    let waiting = tokio::spawn({
        let (limiter, cancel) = (limiter.clone(), cancel.clone());
        async move { limiter.place(&cancel, None).await }
    });
    let behind = tokio::spawn({
        let limiter = limiter.clone();
        async move { drop(place(&limiter).await) }
    });
    tokio::time::sleep(SECOND).await;
    cancel.cancel();
    assert_eq!(waiting.await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!behind.is_finished());
    drop(first);
    behind.await.unwrap();
    // Cancelled while the minute is full: it is not counted.
    let limiter = Limiter::new().requests_per_minute(1);
    drop(place(&limiter).await);
    let start = Instant::now();
    let cancelled = limiter.place(&cancel, None).await;
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    drop(place(&limiter).await);
    assert_eq!(start.elapsed().as_secs(), 60);
}

/// W5: under a total deadline.
#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_wait_and_is_known_beforehand() {
    let limiter = Limiter::new().concurrency(1);
    let held = place(&limiter).await;
    let start = Instant::now();
    let deadline = Some(start + 5 * SECOND);
    let late = limiter.place(&CancellationToken::new(), deadline).await.unwrap_err();
    assert_eq!((late.kind(), late.is_retryable(), start.elapsed()), (ErrorKind::RateLimit, true, 5 * SECOND));
    drop(held);
    // A minute that is full, and a provider that asked for longer: nobody waits for what cannot be.
    let limiter = Limiter::new().requests_per_minute(1);
    drop(place(&limiter).await);
    let start = Instant::now();
    let deadline = Some(start + 5 * SECOND);
    let late = limiter.place(&CancellationToken::new(), deadline).await.unwrap_err();
    assert_eq!((late.retry_after(), start.elapsed()), (Some(MINUTE), Duration::ZERO));
    let limiter = Limiter::new();
    limiter.hold(30 * SECOND);
    let late = limiter.place(&CancellationToken::new(), deadline).await.unwrap_err();
    assert_eq!((late.retry_after(), start.elapsed()), (Some(30 * SECOND), Duration::ZERO));
}

/// W5: what one is asked, all do.
#[tokio::test(start_paused = true)]
async fn holding_back_holds_everybody_back() {
    let limiter = Limiter::new();
    let start = Instant::now();
    limiter.hold(20 * SECOND);
    limiter.clone().hold(5 * SECOND);
    let other = limiter.clone();
    let more = tokio::spawn(async move {
        tokio::time::sleep(10 * SECOND).await;
        other.hold(15 * SECOND);
    });
    drop(place(&limiter).await);
    assert_eq!(start.elapsed().as_secs(), 25);
    more.await.unwrap();
    drop(place(&limiter).await);
    assert_eq!(start.elapsed().as_secs(), 25);
    // A mistake does not stop a process for a year.
    limiter.hold(Duration::from_secs(366 * 24 * 60 * 60));
    drop(place(&limiter).await);
    assert_eq!(start.elapsed(), 25 * SECOND + LONGEST);
}

#[test]
fn a_limit_of_nothing_is_refused() {
    for limiter in [Limiter::new().concurrency(0), Limiter::new().requests_per_minute(0)] {
        let error = limiter.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().contains("at least 1"), "{error}");
    }
    Limiter::new().concurrency(usize::MAX).requests_per_minute(usize::MAX).check().unwrap();
    assert_eq!(
        format!("{:?}", Limiter::new().concurrency(2)),
        "Limiter(Limits { concurrency: Some(2), requests_per_minute: None })"
    );
}
