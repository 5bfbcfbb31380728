//! A process that dies at its n-th write.

use std::time::Duration;

use cepa_core::{Error, ErrorKind};
use cepa_testkit::watched::{Watch, Write};

use crate::{
    say,
    task::{Kill, Said, When},
};

/// Kills the process on the chosen side of the chosen write (lease, begin, commit, append, decide, release, forget,
/// clear).
pub(crate) struct KillAt(pub(crate) Option<Kill>);

impl KillAt {
    fn dies(&self, write: Write, when: When) -> bool {
        self.0 == Some(Kill { write: write.number, when })
    }
}

impl Watch for KillAt {
    fn before(&self, write: Write) {
        if self.dies(write, When::Before) {
            die();
        }
    }

    fn after(&self, write: Write, done: Result<(), &Error>) {
        if done.is_err_and(|error| error.kind() == ErrorKind::Store) {
            say(&Said::WriteFailed { number: write.number, method: write.method.to_owned() });
        }
        if self.dies(write, When::After) {
            die();
        }
    }
}

/// Nothing of the process runs after this: no destructor, no other thread, no flush.
fn die() -> ! {
    #[cfg(unix)]
    if rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).is_ok() {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    std::process::abort()
}
