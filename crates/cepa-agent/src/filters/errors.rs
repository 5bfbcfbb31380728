//! A failure of a tool's body as a result that the model can read.

use cepa_core::{
    BoxFuture, Error, ErrorKind, Filter, Next, Tool, ToolFailure, ToolOutput, ToolRequest, ToolResponse, ToolStatus,
    Writes,
};

use super::{Place, has_place};

/// Turns the failure of a body into a result with status `error`.
///
/// The loop tells the model of failures by itself; this is for those who call tools without it, and for filters further
/// out that want to see every call end with a result. A failure that somebody must repair
/// ([`ToolFailure::Environment`]) stays an error, because the loop asks a person then; [`Errors::all`] turns it into a
/// result too. What is not the body's failure (a filter's error, cancellation) always stays an error.
#[derive(Clone, Debug)]
pub struct Errors {
    place: Place,
    all: bool,
}

has_place!(Errors);

impl Default for Errors {
    fn default() -> Self {
        Self::new()
    }
}

impl Errors {
    /// All failures of bodies but those that somebody must repair.
    pub fn new() -> Self {
        Self { place: Place::named("errors"), all: false }
    }

    /// All failures of bodies.
    pub fn all() -> Self {
        Self { all: true, ..Self::new() }
    }

    fn is_result(&self, error: &Error) -> bool {
        let repairable = error.tool_failure() == Some(ToolFailure::Environment);
        error.kind() == ErrorKind::Tool && (self.all || !repairable)
    }
}

impl Filter<Tool> for Errors {
    fn around(&self, request: ToolRequest, next: Next<Tool>) -> BoxFuture<'_, Result<ToolResponse, Error>> {
        Box::pin(async move {
            match next.run(request).await {
                Err(error) if self.is_result(&error) => {
                    let content = error.message().to_owned().into();
                    let output = ToolOutput { content, status: ToolStatus::Error };
                    Ok(ToolResponse { output, writes: Writes::new() })
                }
                done => done,
            }
        })
    }
}
