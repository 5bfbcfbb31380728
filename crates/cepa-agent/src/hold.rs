//! The right to work on a conversation: one holder at a time, in this process and among processes.

use std::time::Duration;

use cepa_core::{CancellationToken, Error, ErrorKind};

use crate::{agent::Agent, queue, store::Lease};

/// Whether the conversation is to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// It is not, or not any more.
    Nothing,
    /// It was asked for, and the answer has not come.
    Asked,
    /// It is.
    Given,
}

/// The right to work on a conversation: first in this process, then among processes.
pub(crate) struct Hold {
    agent: Agent,
    pub(crate) conversation: String,
    pub(crate) token: u64,
    right: Right,
    /// The place in this process's queue; always there until the conversation is given back.
    queue: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl Hold {
    /// Takes it if nobody has it.
    pub(crate) async fn try_enter(agent: &Agent, conversation: &str) -> Result<Option<Self>, Error> {
        let core = &agent.core;
        let Some(queue) = queue::try_enter(&core.queue, conversation) else { return Ok(None) };
        let mut held = Self::new(agent, conversation, queue);
        match held.ask(async || Ok((core.keeper.lease(conversation).await?, ()))).await {
            Ok(()) => Ok(Some(held)),
            Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn new(agent: &Agent, conversation: &str, queue: tokio::sync::OwnedMutexGuard<()>) -> Self {
        let (agent, conversation) = (agent.clone(), conversation.to_owned());
        Self { agent, conversation, token: 0, right: Right::Nothing, queue: Some(queue) }
    }

    /// Takes the lease in some way. If nobody waits for the answer any more, it may have been given all the same.
    async fn ask<T>(&mut self, take: impl AsyncFnOnce() -> Result<(Lease, T), Error>) -> Result<T, Error> {
        self.right = Right::Asked;
        let answer = take().await;
        self.right = Right::Nothing;
        let (lease, taken) = answer?;
        (self.token, self.right) = (lease.token, Right::Given);
        Ok(taken)
    }

    /// Waits for it, until it is the caller's or `cancel` ends the wait.
    pub(crate) async fn enter(agent: &Agent, conversation: &str, cancel: &CancellationToken) -> Result<Self, Error> {
        let take = || async { Ok((agent.core.keeper.lease(conversation).await?, ())) };
        Self::take(agent, conversation, take, cancel).await.map(|(held, ())| held)
    }

    /// As [`Hold::enter`], by another way of taking the lease.
    pub(crate) async fn take<T, F: Future<Output = Result<(Lease, T), Error>>>(
        agent: &Agent,
        conversation: &str,
        take: impl Fn() -> F,
        cancel: &CancellationToken,
    ) -> Result<(Self, T), Error> {
        let core = &agent.core;
        let queue = tokio::select! {
            biased;
            queue = queue::enter(&core.queue, conversation) => queue,
            () = cancel.cancelled() => return Err(cancelled_waiting("the conversation's turn before")),
        };
        let mut held = Self::new(agent, conversation, queue);
        // Without an end where the time is too long to be told.
        let until = tokio::time::Instant::now().checked_add(core.lease_wait);
        let mut told = false;
        loop {
            match held.ask(async || take().await).await {
                Ok(taken) => return Ok((held, taken)),
                Err(error)
                    if error.kind() == ErrorKind::Busy
                        && until.is_none_or(|until| tokio::time::Instant::now() < until) =>
                {
                    // A wait of seconds looks like a fault to whoever does not know of it.
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(conversation, "another process works on this conversation; waiting for it");
                    }
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(50)) => {}
                        () = cancel.cancelled() => return Err(cancelled_waiting("another process")),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the conversation back, unless the turn's last step did.
    pub(crate) async fn leave_unless(mut self, released: bool) {
        if released {
            self.right = Right::Nothing;
        } else {
            self.leave().await;
        }
    }

    /// Gives the conversation back.
    pub(crate) async fn leave(mut self) {
        self.right = Right::Nothing;
        if let Err(error) = self.agent.core.store.release(&self.conversation, self.token).await {
            tracing::warn!(%error, "a conversation could not be given back; its lease runs out by itself");
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let right = std::mem::replace(&mut self.right, Right::Nothing);
        if right == Right::Nothing {
            return;
        }
        // The future of a turn was dropped, perhaps with a write under way. Giving the conversation back is a write
        // too, and writes keep their order: whoever comes next in this process waits until all of them are done.
        // Outside a runtime the lease runs out by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (core, conversation, token) =
                (self.agent.core.clone(), std::mem::take(&mut self.conversation), self.token);
            let queue = self.queue.take();
            runtime.spawn(async move {
                let token = match right {
                    // Whoever has it already is told his token.
                    Right::Asked => core.keeper.lease(&conversation).await?.token,
                    Right::Nothing | Right::Given => token,
                };
                let released = core.store.release(&conversation, token).await;
                drop(queue);
                released
            });
        }
    }
}

/// The error of a wait that its caller gave up.
pub(crate) fn cancelled_waiting(what: &str) -> Error {
    Error::new(ErrorKind::Cancelled, format!("cancelled while waiting for {what}"))
}
