//! The innermost tool filter: journals that a body is entered, limits its time, runs an idempotent one again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cepa_core::{BoxFuture, Error, Filter, FilterInfo, Next, Tool, ToolFailure, ToolRequest, ToolResponse};

use crate::{
    entrance::Entrance,
    texts::{Texts, fill},
};

/// How often an idempotent body is entered for one call.
const MAX_ATTEMPTS: u32 = 3;
/// How long to wait before the second attempt; twice as long before each further one.
const BASE_DELAY: Duration = Duration::from_millis(200);

/// Travels with a call to the innermost filter.
#[derive(Debug)]
pub(crate) struct BodyGuard {
    pub(crate) idx: u32,
    pub(crate) entrance: Entrance,
    pub(crate) entered: AtomicU32,
}

impl BodyGuard {
    /// Notes that the body is entered, before it is.
    async fn enter(&self, tool: &Tool) -> Result<(), Error> {
        let flags = tool.flags();
        if self.entered.fetch_add(1, Ordering::Relaxed) > 0 && !flags.idempotent && !flags.read_only {
            let message = format!("`{}` already ran for this call and is not idempotent: not run again", tool.name());
            return Err(Error::tool(ToolFailure::Semantic, message));
        }
        self.entrance.enter(self.idx).await
    }
}

/// The filter; see the module.
#[derive(Debug)]
pub(crate) struct BodyFilter {
    pub(crate) texts: Arc<Texts>,
}

impl BodyFilter {
    async fn handle(&self, request: ToolRequest, next: Next<Tool>) -> Result<ToolResponse, Error> {
        let tool = request.tool.clone();
        let guard = request.context.extension::<BodyGuard>();
        if !tool.flags().idempotent {
            if let Some(guard) = &guard {
                guard.enter(&tool).await?;
            }
            return self.limited(&tool, next.run(request)).await;
        }
        let mut attempt = 1;
        loop {
            if let Some(guard) = &guard {
                guard.enter(&tool).await?;
            }
            let result = self.limited(&tool, next.clone().run(request.clone())).await;
            let again = attempt < MAX_ATTEMPTS
                && matches!(&result, Err(error) if error.tool_failure() == Some(ToolFailure::Transient));
            if !again {
                return result;
            }
            // What the failed attempt wrote is void.
            drop(request.context.take_writes());
            let delay = BASE_DELAY * 2u32.saturating_pow(attempt - 1);
            tokio::select! {
                () = tokio::time::sleep(delay) => attempt += 1,
                () = request.context.cancel().cancelled() => return result,
            }
        }
    }

    async fn limited(
        &self,
        tool: &Tool,
        body: impl Future<Output = Result<ToolResponse, Error>>,
    ) -> Result<ToolResponse, Error> {
        let Some(limit) = tool.flags().timeout else { return body.await };
        match tokio::time::timeout(limit, body).await {
            Ok(result) => result,
            Err(_) => {
                let text = fill(&self.texts.timeout, &[("limit", &format!("{limit:?}"))]);
                Err(Error::tool(ToolFailure::Transient, text))
            }
        }
    }
}

impl FilterInfo for BodyFilter {
    fn name(&self) -> &str {
        "cepa.body"
    }
    fn order(&self) -> i32 {
        i32::MAX
    }
}

impl Filter<Tool> for BodyFilter {
    fn around(&self, request: ToolRequest, next: Next<Tool>) -> BoxFuture<'_, Result<ToolResponse, Error>> {
        Box::pin(self.handle(request, next))
    }
}
