//! A turn as a stream of events. The stream polls the turn itself: nothing is spawned, dropping it drops the turn.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use cepa_core::BoxFuture;
use futures_core::Stream;

use crate::{
    event::AgentEvent,
    options::TurnOptions,
    result::{TurnError, TurnResult},
};

/// The events of a turn; the last one is [`AgentEvent::Done`] or an error.
pub struct TurnStream {
    turn: Option<BoxFuture<'static, Result<TurnResult, TurnError>>>,
    /// What was told and is not read yet; the turn is gone on with when nothing is left of it.
    ready: VecDeque<AgentEvent>,
    events: Arc<Mutex<Events>>,
}

#[derive(Default)]
struct Events {
    queue: VecDeque<AgentEvent>,
    /// A tool may tell of something from a task of its own.
    waker: Option<Waker>,
}

impl TurnStream {
    /// Options that hand their events to a new stream, and the stream without its turn.
    pub(crate) fn attach(mut options: TurnOptions) -> (TurnOptions, Self) {
        let events = Arc::new(Mutex::new(Events::default()));
        let told = events.clone();
        options.stream = true;
        options.listeners.push_keeper(move |event| {
            let mut events = told.lock().unwrap_or_else(PoisonError::into_inner);
            events.queue.push_back(event);
            if let Some(waker) = events.waker.take() {
                waker.wake();
            }
        });
        (options, Self { turn: None, ready: VecDeque::new(), events })
    }

    pub(crate) fn with_turn(mut self, turn: BoxFuture<'static, Result<TurnResult, TurnError>>) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Takes what was told since, all at once; if it is nothing, this waker is called for the next. Whether it was anything.
    fn take_told(&mut self, waker: Option<&Waker>) -> bool {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut self.ready, &mut events.queue);
        if self.ready.is_empty()
            && let Some(waker) = waker
        {
            events.waker = Some(waker.clone());
        }
        !self.ready.is_empty()
    }

    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<AgentEvent, TurnError>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Waits for the end and returns the result.
    ///
    /// # Errors
    /// What the turn failed with.
    pub async fn finish(mut self) -> Result<TurnResult, TurnError> {
        loop {
            match self.next().await {
                Some(Ok(AgentEvent::Done(result))) => return Ok(*result),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => {
                    let over = cepa_core::Error::new(cepa_core::ErrorKind::InvalidInput, "the stream is over");
                    return Err(over.into());
                }
            }
        }
    }
}

impl Stream for TurnStream {
    type Item = Result<AgentEvent, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(event) = this.ready.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        // What a tool told from a task of its own does not wait for the turn.
        if this.take_told(None) {
            return Poll::Ready(this.ready.pop_front().map(Ok));
        }
        let Some(turn) = this.turn.as_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(result) = turn.as_mut().poll(context) {
            this.turn = None;
            this.take_told(None);
            match result {
                Ok(result) => this.ready.push_back(AgentEvent::Done(Box::new(result))),
                Err(error) if this.ready.is_empty() => return Poll::Ready(Some(Err(error))),
                // Events that came before the error are read before it.
                Err(error) => this.turn = Some(Box::pin(std::future::ready(Err(error)))),
            }
            return Poll::Ready(this.ready.pop_front().map(Ok));
        }
        if this.take_told(Some(context.waker())) {
            return Poll::Ready(this.ready.pop_front().map(Ok));
        }
        Poll::Pending
    }
}

impl fmt::Debug for TurnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnStream").field("over", &self.turn.is_none()).finish_non_exhaustive()
    }
}
