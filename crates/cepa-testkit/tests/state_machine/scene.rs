//! What all actors of a program share: the clock, the facts, the script of the model, and the trap that ends a step.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use cepa_agent::Clock;
use cepa_core::CancellationToken;
use tokio::sync::Notify;

use crate::{
    facts::Facts,
    program::{Ending, Reply, Who, Write},
};

/// When every program begins, in milliseconds since 1970.
const BEGIN: i64 = 1_600_000_000_000;

#[derive(Clone)]
pub(crate) struct Scene(Arc<Inside>);

struct Inside {
    path: PathBuf,
    jumped: AtomicI64,
    begun: tokio::time::Instant,
    facts: Mutex<Facts>,
    traps: [Mutex<Trap>; 2],
    /// Whether dying is meant in earnest.
    mortal: bool,
}

/// What waits for one actor in the present step.
#[derive(Clone, Default)]
struct Trap {
    /// It has sprung: the actor stands still.
    sprung: Arc<Notify>,
    /// The actor may go on.
    awake: Arc<Notify>,

    script: VecDeque<Reply>,
    ending: Option<Ending>,
    asleep_at: Option<u8>,
    cancel: CancellationToken,
    moments: u8,
    writes: u8,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to become of a write.
pub(crate) enum Fate {
    Happens,
    Fails,
    /// The process dies with it.
    Dies(Write),
}

impl Scene {
    pub(crate) fn new(path: &Path, facts: Facts, jumped: i64, mortal: bool) -> Self {
        let begun = tokio::time::Instant::now();
        let jumped = AtomicI64::new(jumped);
        let traps = <[Mutex<Trap>; 2]>::default();
        Self(Arc::new(Inside { path: path.to_owned(), jumped, begun, facts: Mutex::new(facts), traps, mortal }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        locked(&self.0.facts)
    }

    pub(crate) fn now(&self) -> i64 {
        let passed = i64::try_from(self.0.begun.elapsed().as_millis()).unwrap();
        BEGIN + self.0.jumped.load(Ordering::Relaxed) + passed
    }

    /// How far the clock is ahead of where it began.
    pub(crate) fn ahead(&self) -> i64 {
        self.now() - BEGIN
    }

    pub(crate) fn clock(&self) -> Clock {
        let scene = self.clone();
        Clock::of(move || scene.now())
    }

    pub(crate) fn jump(&self, seconds: i32) {
        self.0.jumped.fetch_add(i64::from(seconds) * 1000, Ordering::Relaxed);
    }

    fn trap(&self, who: Who) -> MutexGuard<'_, Trap> {
        let [a, b] = &self.0.traps;
        locked(match who {
            Who::A => a,
            Who::B => b,
        })
    }

    /// Prepares a step of an actor: what the model will say, and how it ends.
    pub(crate) fn set(
        &self,
        who: Who,
        replies: &[Reply],
        ending: Option<Ending>,
        asleep_at: Option<u8>,
    ) -> CancellationToken {
        let cancel = CancellationToken::new();
        let script = replies.iter().cloned().collect();
        *self.trap(who) = Trap { script, ending, asleep_at, cancel: cancel.clone(), ..Trap::default() };
        cancel
    }

    /// After this nothing happens to what is left of the step.
    pub(crate) fn disarm(&self, who: Who) {
        let mut trap = self.trap(who);
        (trap.ending, trap.asleep_at) = (None, None);
    }

    /// The next thing that the model says to this actor.
    pub(crate) fn next_reply(&self, who: Who) -> Reply {
        self.trap(who).script.pop_front().unwrap_or(Reply::Says)
    }

    /// Comes back when the actor stands still: its future is to be dropped, its process is dead, or it sleeps.
    pub(crate) async fn sprung(&self, who: Who) {
        let sprung = self.trap(who).sprung.clone();
        sprung.notified().await;
    }

    pub(crate) fn wake(&self, who: Who) {
        self.trap(who).awake.notify_one();
    }

    /// A moment at which a step may be cancelled or dropped.
    pub(crate) async fn moment(&self, who: Who) {
        let drops = {
            let mut trap = self.trap(who);
            let moment = trap.moments;
            trap.moments = moment.saturating_add(1);
            match trap.ending {
                Some(Ending::Cancelled(at)) if at == moment => {
                    trap.cancel.cancel();
                    false
                }
                Some(Ending::Dropped(at)) if at == moment => {
                    trap.sprung.notify_one();
                    true
                }
                _ => false,
            }
        };
        if drops {
            std::future::pending().await
        }
    }

    /// A write of the actor is about to happen.
    pub(crate) async fn write(&self, who: Who) -> Fate {
        let (write, trap) = {
            let mut trap = self.trap(who);
            let write = trap.writes;
            trap.writes = write.saturating_add(1);
            (write, trap.clone())
        };
        if trap.asleep_at == Some(write) {
            trap.sprung.notify_one();
            trap.awake.notified().await;
        }
        match trap.ending {
            Some(Ending::Dies(at, how)) if at == write => Fate::Dies(how),
            Some(Ending::WriteFails(at)) if at == write => Fate::Fails,
            _ => Fate::Happens,
        }
    }

    /// The actor's process dies here.
    pub(crate) async fn die(&self, who: Who) -> std::convert::Infallible {
        if self.0.mortal {
            #[cfg(unix)]
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            std::process::abort();
        }
        self.trap(who).sprung.notify_one();
        std::future::pending().await
    }
}
