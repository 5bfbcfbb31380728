//! Ctrl-C, and being told to end.

use std::io;
#[cfg(unix)]
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

#[cfg(unix)]
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[cfg(unix)]
use crate::{exit::Exit, input::restore_terminal};

/// From now on a file that reaches the limit of this process (`ulimit -f`) is an error of the write, as a full disk is,
/// and does not end the process without a word.
#[cfg(unix)]
pub(crate) fn outlive_the_file_limit() {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays when its listener is dropped. Without it nothing is worse than it was.
    drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())));
}

#[cfg(not(unix))]
pub(crate) fn outlive_the_file_limit() {}

/// What was asked of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// To end: `kill`, or the terminal is gone.
    Terminate,
}

/// So soon behind another one a signal is a second one.
#[cfg(unix)]
const TOGETHER: Duration = Duration::from_secs(30);

/// How long a second signal waits for somebody who takes it.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(1);

/// The signals of this process from now on; without this they end it at once.
///
/// They are heard on a thread of their own. Whoever waits for them here may be held up: by a terminal that takes no more output,
/// or by anything else that the runtime's only thread is busy with. A second signal that nobody takes ends the process there.
pub(crate) struct Signals {
    #[cfg(unix)]
    heard: UnboundedReceiver<Signal>,
    /// How many were taken.
    #[cfg(unix)]
    taken: Arc<AtomicUsize>,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        let (tell, heard) = unbounded_channel();
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let (open, is_open) = mpsc::channel();
        thread::Builder::new().name("signals".to_owned()).spawn(move || hear(&tell, &counted, &open))?;
        is_open.recv().map_err(io::Error::other)??;
        Ok(Self { heard, taken })
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// The next signal. Dropping the future loses none.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Signal {
        match self.heard.recv().await {
            Some(signal) => {
                self.taken.fetch_add(1, Ordering::SeqCst);
                signal
            }
            None => std::future::pending().await,
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}

/// Where signals come from.
#[cfg(unix)]
struct Sources {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Sources {
    fn open() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.hangup.recv() => Signal::Terminate,
            else => std::future::pending().await,
        }
    }
}

/// Listens until the process ends; says whether it can.
#[cfg(unix)]
fn hear(tell: &UnboundedSender<Signal>, taken: &AtomicUsize, open: &mpsc::Sender<io::Result<()>>) {
    let heard = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        runtime.block_on(async {
            let sources = Sources::open()?;
            let _ = open.send(Ok(()));
            pass_on(sources, tell, taken).await;
            Ok(())
        })
    });
    let _ = open.send(heard);
}

/// Hands each signal over, and ends the process at a second one that is not taken.
#[cfg(unix)]
async fn pass_on(mut sources: Sources, tell: &UnboundedSender<Signal>, taken: &AtomicUsize) {
    let mut last: Option<Instant> = None;
    for count in 1.. {
        let signal = sources.next().await;
        let is_second = last.replace(Instant::now()).is_some_and(|last| last.elapsed() < TOGETHER);
        // Nobody is left who listens when the process is about to end anyway.
        let _ = tell.send(signal);
        let end = Instant::now() + PATIENCE;
        while is_second && taken.load(Ordering::SeqCst) < count {
            if Instant::now() >= end {
                restore_terminal();
                std::process::exit(Exit::Cancelled.code().into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
