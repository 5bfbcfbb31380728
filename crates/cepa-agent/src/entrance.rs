//! Where a body waits until it is written down that it is entered.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use cepa_core::{Error, ErrorKind};

/// One request to enter a body: the call's place in its batch, and a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) idx: u32,
    ticket: u64,
}

/// Shared by the bodies of a group of calls and whoever writes their journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entrance(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    tickets: u64,
    asked: Vec<Asked>,
    answered: Vec<(u64, Result<(), Error>)>,
    waiting: Vec<(u64, Waker)>,
    writer: Option<Waker>,
    closed: bool,
}

/// The writer's end: once it is gone nobody enters any more.
#[derive(Debug)]
pub(crate) struct Writer(Entrance);

impl Entrance {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes back when it is written down that the body of this call is entered.
    ///
    /// # Errors
    /// `cancelled` if the turn is over; what the journal failed with.
    pub(crate) async fn enter(&self, idx: u32) -> Result<(), Error> {
        let mut ticket = None;
        poll_fn(|context| {
            let ticket = *ticket.get_or_insert_with(|| self.ask(idx, context));
            self.poll_answer(ticket, context)
        })
        .await
    }

    fn ask(&self, idx: u32, context: &mut Context<'_>) -> u64 {
        let mut state = self.state();
        state.tickets += 1;
        let ticket = state.tickets;
        state.asked.push(Asked { idx, ticket });
        state.waiting.push((ticket, context.waker().clone()));
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        ticket
    }

    fn poll_answer(&self, ticket: u64, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut state = self.state();
        if let Some(at) = state.answered.iter().position(|(answered, _)| *answered == ticket) {
            return Poll::Ready(state.answered.swap_remove(at).1);
        }
        if state.closed {
            return Poll::Ready(Err(Error::new(ErrorKind::Cancelled, "the turn is over")));
        }
        match state.waiting.iter_mut().find(|(waiting, _)| *waiting == ticket) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => state.waiting.push((ticket, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self(Entrance::default())
    }

    /// The bodies' end.
    pub(crate) fn entrance(&self) -> Entrance {
        self.0.clone()
    }

    /// The bodies that ask; none wakes the caller when the first one does.
    pub(crate) fn asked(&self, context: &mut Context<'_>) -> Vec<Asked> {
        let mut state = self.0.state();
        if state.asked.is_empty() {
            state.writer = Some(context.waker().clone());
        }
        std::mem::take(&mut state.asked)
    }

    /// Lets a body in, or tells it why not. The call may be gone by now; then nobody waits for the answer.
    pub(crate) fn answer(&self, asked: Asked, written: Result<(), Error>) {
        let mut state = self.0.state();
        let Some(at) = state.waiting.iter().position(|(waiting, _)| *waiting == asked.ticket) else { return };
        let (_, waker) = state.waiting.swap_remove(at);
        state.answered.push((asked.ticket, written));
        drop(state);
        waker.wake();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }
}
