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
    pub(crate) fn attach(options: TurnOptions) -> (TurnOptions, Self) {
        let events = Arc::new(Mutex::new(Events::default()));
        let told = events.clone();
        let options = options.on_event(move |event| {
            let mut events = told.lock().unwrap_or_else(PoisonError::into_inner);
            events.queue.push_back(event.clone());
            if let Some(waker) = events.waker.take() {
                waker.wake();
            }
        });
        (options, Self { turn: None, events })
    }

    pub(crate) fn with_turn(mut self, turn: BoxFuture<'static, Result<TurnResult, TurnError>>) -> Self {
        self.turn = Some(turn);
        self
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
        let next = |this: &Self| this.events.lock().unwrap_or_else(PoisonError::into_inner).queue.pop_front();
        if let Some(event) = next(&self) {
            return Poll::Ready(Some(Ok(event)));
        }
        let Some(turn) = self.turn.as_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(result) = turn.as_mut().poll(context) {
            self.turn = None;
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            let last = match result {
                Ok(result) => {
                    events.queue.push_back(AgentEvent::Done(Box::new(result)));
                    Ok(events.queue.pop_front())
                }
                Err(error) => Err(error),
            };
            // Events that came before the error are lost with it only if nobody reads on.
            return match last {
                Ok(event) => Poll::Ready(event.map(Ok)),
                Err(error) => {
                    drop(events);
                    self.turn = Some(Box::pin(std::future::ready(Err(error.clone()))));
                    match next(&self) {
                        Some(event) => Poll::Ready(Some(Ok(event))),
                        None => {
                            self.turn = None;
                            Poll::Ready(Some(Err(error)))
                        }
                    }
                }
            };
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        match events.queue.pop_front() {
            Some(event) => Poll::Ready(Some(Ok(event))),
            None => {
                events.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for TurnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnStream").field("over", &self.turn.is_none()).finish_non_exhaustive()
    }
}
