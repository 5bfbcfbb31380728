//! A limit to how long everything further inside may take.

use std::time::Duration;

use cepa_core::{
    BoxFuture, CancellationToken, Chat, ChatRequest, ChatResponse, Error, ErrorKind, Filter, Next, Tool, ToolFailure,
    ToolRequest, ToolResponse,
};

use super::{Place, has_place};
use crate::texts::{Texts, fill};

/// Stops what is further inside once it has taken too long.
///
/// The inside is dropped, and its cancellation token is cancelled, so that work it left running elsewhere can end too.
/// The time counts everything inside, other filters with their waits included; a tool's own limit
/// ([`ToolFlags::timeout`](cepa_core::ToolFlags::timeout)) counts its body alone, and is the better place for most.
///
/// Around a tool the error is a [`ToolFailure::Transient`] failure, which the model is told; around a model call it is
/// of kind `timeout`.
#[derive(Clone, Debug)]
pub struct Timeout {
    place: Place,
    limit: Duration,
}

has_place!(Timeout);

impl Timeout {
    /// Stops the inside after this time.
    pub fn after(limit: Duration) -> Self {
        Self { place: Place::named("timeout"), limit }
    }

    /// What the inside returns, if it does in time.
    async fn limited<T>(&self, inside: impl Future<Output = T>, stop: CancellationToken) -> Option<T> {
        let done = tokio::time::timeout(self.limit, inside).await.ok();
        if done.is_none() {
            stop.cancel();
        }
        done
    }
}

impl Filter<Tool> for Timeout {
    fn around(&self, mut request: ToolRequest, next: Next<Tool>) -> BoxFuture<'_, Result<ToolResponse, Error>> {
        Box::pin(async move {
            let stop = request.context.cancel().child_token();
            request.context = request.context.with_cancel(stop.clone());
            let late = || {
                let text = fill(&Texts::default().timeout, &[("limit", &format!("{:?}", self.limit))]);
                Err(Error::tool(ToolFailure::Transient, text))
            };
            self.limited(next.run(request), stop).await.unwrap_or_else(late)
        })
    }
}

impl Filter<Chat> for Timeout {
    fn around(&self, mut request: ChatRequest, next: Next<Chat>) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(async move {
            let outer = request.context.cancel().clone();
            let stop = outer.child_token();
            request.context = request.context.with_cancel(stop.clone());
            let late = || {
                let text = format!("the model call took longer than {:?}: allow more, or ask for less", self.limit);
                Err(Error::new(ErrorKind::Timeout, text))
            };
            let mut response = self.limited(next.run(request), stop).await.unwrap_or_else(late)?;
            // What runs afterwards is cancelled by the caller alone.
            response.context = response.context.with_cancel(outer);
            Ok(response)
        })
    }
}
