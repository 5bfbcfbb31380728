//! Turns on one conversation wait for each other, in the order they came.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard};

type Queues = Mutex<HashMap<(String, String), Weak<FairMutex<()>>>>;

/// The queues of this process, by store and conversation: two agents over one store share them.
fn queues() -> &'static Queues {
    static QUEUES: OnceLock<Queues> = OnceLock::new();
    QUEUES.get_or_init(Queues::default)
}

/// Waits until the conversation is free, and holds it until the guard is dropped.
pub(crate) async fn enter(store: &str, conversation: &str) -> OwnedMutexGuard<()> {
    queue(store, conversation).lock_owned().await
}

/// Holds the conversation if it is free.
pub(crate) fn try_enter(store: &str, conversation: &str) -> Option<OwnedMutexGuard<()>> {
    queue(store, conversation).try_lock_owned().ok()
}

fn queue(store: &str, conversation: &str) -> Arc<FairMutex<()>> {
    let mut queues = queues().lock().unwrap_or_else(PoisonError::into_inner);
    // Queues that nobody waits in are dropped now and then, not each time.
    if queues.len() >= 64 && queues.len().is_power_of_two() {
        queues.retain(|_, queue| queue.strong_count() > 0);
    }
    let slot = queues.entry((store.to_owned(), conversation.to_owned())).or_default();
    slot.upgrade().unwrap_or_else(|| {
        let queue = Arc::new(FairMutex::new(()));
        *slot = Arc::downgrade(&queue);
        queue
    })
}
