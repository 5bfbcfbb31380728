//! The decision before a tool call runs.

use std::{future::Future, sync::Arc};

use cepa_core::{Args, BoxFuture, Error, ToolContext, ToolFlags};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Proceed,
    /// A person decides.
    Pause {
        /// Why a person is asked, for the person.
        reason: Option<String>,
    },
    /// It does not run.
    Reject {
        /// Why, for the model.
        reason: Option<String>,
    },
    /// It does not run; this is its result.
    Reply {
        /// The result.
        content: String,
    },
}

impl Verdict {
    /// A person decides, without a reason.
    pub const fn pause() -> Self {
        Self::Pause { reason: None }
    }
    /// It does not run, without a reason.
    pub const fn reject() -> Self {
        Self::Reject { reason: None }
    }
}

/// A call that a gate decides on: known tool, valid arguments, as they would run.
#[derive(Clone, Debug)]
pub struct GateCall {
    /// The call's id in its message.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What the loop knows of the tool.
    pub flags: ToolFlags,
    /// The arguments as they would run.
    pub args: Args,
    /// The request's context.
    pub context: ToolContext,
}

/// Decides on calls, once each. A gate that fails or panics pauses the call.
pub trait Gate: Send + Sync + 'static {
    /// Decides on one call.
    fn decide<'a>(&'a self, call: &'a GateCall) -> BoxFuture<'a, Result<Verdict, Error>>;

    /// Whether it may ask for a person. A gate that may turns pausing on; one that may not rejects when it fails.
    fn can_pause(&self) -> bool {
        true
    }
}

struct FnGate<F>(F);

impl<F, Fut> Gate for FnGate<F>
where
    F: Fn(GateCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Verdict, Error>> + Send + 'static,
{
    fn decide<'a>(&'a self, call: &'a GateCall) -> BoxFuture<'a, Result<Verdict, Error>> {
        Box::pin(self.0(call.clone()))
    }
}

/// A gate made of an async closure.
///
/// ```
/// use cepa_agent::{Verdict, gate_fn};
/// let gate = gate_fn(|call| async move {
///     Ok(if call.tool == "pay" { Verdict::pause() } else { Verdict::Proceed })
/// });
/// # let _ = gate;
/// ```
pub fn gate_fn<F, Fut>(decide: F) -> Arc<dyn Gate>
where
    F: Fn(GateCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Verdict, Error>> + Send + 'static,
{
    Arc::new(FnGate(decide))
}
