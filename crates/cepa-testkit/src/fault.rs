//! A model that fails on purpose, wrapped around one that works.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use cepa_core::{BoxFuture, ChatModel, ChatRequest, ChatResponse, Error, ErrorKind, EventSink, Origin};
use tokio::sync::Notify;

/// What goes wrong with a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It fails before the model is asked.
    Before(Error),
    /// The model answers and the answer is lost.
    After(Error),
    /// It fails once this many events have been streamed; a reply with fewer is lost at its end.
    Streaming {
        /// How many events pass.
        events: usize,
        /// The failure.
        error: Error,
    },
    /// It never comes back, unless the request is cancelled.
    Silence,
}

/// A [`ChatModel`] whose calls fail where it was told so; all others reach the model inside.
///
/// ```
/// use cepa_core::{ChatModel, ChatRequest, Error, ErrorKind};
/// use cepa_testkit::{fault::{Fault, FaultyModel}, scripted::{Reply, ScriptedModel}};
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let model = ScriptedModel::new([Reply::text("hello")]);
/// let faulty = FaultyModel::new(model.clone()).at(0, Fault::Before(Error::new(ErrorKind::Network, "no route")));
/// assert_eq!(faulty.chat(ChatRequest::default()).await.unwrap_err().kind(), ErrorKind::Network);
/// assert!(faulty.chat(ChatRequest::default()).await.is_ok());
/// assert_eq!(model.calls(), 1);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FaultyModel<M> {
    model: M,
    faults: BTreeMap<usize, Fault>,
    calls: AtomicUsize,
}

impl<M: ChatModel> FaultyModel<M> {
    /// A wrapper without faults.
    pub fn new(model: M) -> Self {
        Self { model, faults: BTreeMap::new(), calls: AtomicUsize::new(0) }
    }

    /// Lets the call with this number (from 0) fail.
    pub fn at(mut self, call: usize, fault: Fault) -> Self {
        self.faults.insert(call, fault);
        self
    }
}

impl<M: ChatModel> ChatModel for FaultyModel<M> {
    fn origin(&self) -> &Origin {
        self.model.origin()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        let fault = self.faults.get(&self.calls.fetch_add(1, Ordering::Relaxed)).cloned();
        Box::pin(async move {
            match fault {
                None => self.model.chat(request).await,
                Some(Fault::Before(error)) => Err(error),
                Some(Fault::After(error)) => self.model.chat(request).await.and(Err(error)),
                Some(Fault::Streaming { events, error }) => self.cut(request, events, error).await,
                Some(Fault::Silence) => {
                    request.context.cancel().cancelled().await;
                    Err(Error::new(ErrorKind::Cancelled, "cancelled"))
                }
            }
        })
    }
}

impl<M: ChatModel> FaultyModel<M> {
    async fn cut(&self, mut request: ChatRequest, events: usize, error: Error) -> Result<ChatResponse, Error> {
        let (cut, passed) = (Arc::new(Notify::new()), AtomicUsize::new(0));
        let (outer, signal) = (request.events.clone(), cut.clone());
        if outer.is_wanted() {
            request.events = EventSink::new(move |event| {
                let number = passed.fetch_add(1, Ordering::Relaxed);
                if number < events {
                    outer.emit(event);
                }
                if number + 1 >= events {
                    signal.notify_one();
                }
            });
        }
        tokio::select! {
            biased;
            reply = self.model.chat(request) => reply.and(Err(error)),
            () = cut.notified() => Err(error),
        }
    }
}

impl<M: fmt::Debug> fmt::Debug for FaultyModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyModel").field("model", &self.model).field("faults", &self.faults).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
