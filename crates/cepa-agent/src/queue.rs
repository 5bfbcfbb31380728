//! Turns on one conversation wait for each other, in the order they came.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard};

#[derive(Default)]
struct Queues {
    by_conversation: HashMap<(String, String), Weak<FairMutex<()>>>,
    /// At how many of them those that nobody waits in are dropped.
    sweep_at: usize,
}

/// The queues of this process, by store and conversation: two agents over one store share them.
fn queues() -> &'static Mutex<Queues> {
    static QUEUES: OnceLock<Mutex<Queues>> = OnceLock::new();
    QUEUES.get_or_init(Mutex::default)
}

/// Waits until the conversation is free, and holds it until the guard is dropped.
pub(crate) async fn enter(store: &str, conversation: &str) -> OwnedMutexGuard<()> {
    queue(store, conversation).lock_owned().await
}

/// Holds the conversation if it is free.
pub(crate) fn try_enter(store: &str, conversation: &str) -> Option<OwnedMutexGuard<()>> {
    queue(store, conversation).try_lock_owned().ok()
}

/// So many queues are not worth a look.
const FEW: usize = 64;

fn queue(store: &str, conversation: &str) -> Arc<FairMutex<()>> {
    let mut queues = queues().lock().unwrap_or_else(PoisonError::into_inner);
    // Queues that nobody waits in are dropped now and then, not each time: when they may be half of all.
    if queues.by_conversation.len() >= queues.sweep_at {
        queues.by_conversation.retain(|_, queue| queue.strong_count() > 0);
        queues.sweep_at = FEW.max(2 * queues.by_conversation.len());
    }
    let slot = queues.by_conversation.entry((store.to_owned(), conversation.to_owned())).or_default();
    slot.upgrade().unwrap_or_else(|| {
        let queue = Arc::new(FairMutex::new(()));
        *slot = Arc::downgrade(&queue);
        queue
    })
}
