//! The innermost chat filter: ends the model call when the turn is cancelled, and nothing that stands around it.
//!
//! A filter that stores what the model said must not be dropped half-way; so it is the model call that is given up, and
//! the filters see an error.

use cepa_core::{BoxFuture, Chat, ChatRequest, ChatResponse, Error, ErrorKind, Filter, FilterInfo, Next};

#[derive(Debug)]
pub(crate) struct StopFilter;

impl FilterInfo for StopFilter {
    fn name(&self) -> &str {
        "cepa.stop"
    }
    fn order(&self) -> i32 {
        i32::MAX
    }
}

impl Filter<Chat> for StopFilter {
    fn around(&self, request: ChatRequest, next: Next<Chat>) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        let cancel = request.context.cancel().clone();
        Box::pin(async move {
            tokio::select! {
                biased;
                replied = next.run(request) => replied,
                () = cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the turn was cancelled")),
            }
        })
    }
}
