//! A command in its own process group, which ends with it: nothing that a tool starts outlives the call.

use std::{
    io,
    process::{Child, Command},
    sync::mpsc,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::oneshot;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody can say: something else in this process collected it.
    Unknown,
}

/// A running process group. Dropping it kills what is left of it.
///
/// The leader is not collected while this lives, so its number cannot become somebody else's: killing is always safe.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    ended: oneshot::Receiver<Ended>,
    /// Dropped with the group: the sign for the waiting thread to collect the leader.
    _collect: mpsc::Sender<()>,
}

impl Group {
    /// Starts a command as the leader of a new group.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut child = command.process_group(0).spawn()?;
        let Some(leader) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            let _ = child.kill();
            return Err(io::Error::other("the process has no usable number"));
        };
        let (tell, ended) = oneshot::channel();
        let (collect, sign) = mpsc::channel::<()>();
        let group = Self { leader, ended, _collect: collect };
        // A thread of its own: a command may take minutes, and this must go on when the runtime is gone. If it cannot
        // be had, the group is dropped here, and with it the command.
        std::thread::Builder::new().name("cepa-shell".to_owned()).spawn(move || wait(child, leader, tell, &sign))?;
        Ok(group)
    }

    /// Waits until the leader has ended; others of the group may still run.
    pub(super) async fn ended(&mut self) -> Ended {
        (&mut self.ended).await.unwrap_or(Ended::Unknown)
    }

    /// Asks every process of the group to end.
    pub(super) fn terminate(&self) {
        let _ = kill_process_group(self.leader, Signal::TERM);
    }

    /// Ends every process of the group.
    pub(super) fn kill(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait(mut child: Child, leader: Pid, tell: oneshot::Sender<Ended>, sign: &mpsc::Receiver<()>) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let ended = loop {
        match waitid(WaitId::Pid(leader), options) {
            Ok(Some(status)) => {
                break match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Ended::Exit(code),
                    (None, Some(signal)) => Ended::Signal(signal),
                    (None, None) => Ended::Unknown,
                };
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break Ended::Unknown,
        }
    };
    let _ = tell.send(ended);
    // Nothing is ever sent: this returns when the group is dropped.
    let _ = sign.recv();
    let _ = child.wait();
}
