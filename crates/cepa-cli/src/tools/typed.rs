//! From a function over files to a [`Tool`]: the work goes to a thread, and stops when nobody wants it.

use std::sync::Arc;

use cepa::{Error, Tool, ToolError, ToolFlags};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Stop, root::Root};

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: it runs unasked, also beside others.
    ReadOnly,
    /// Something that a person should see first.
    Sensitive,
}

impl Effect {
    /// The flags of such a tool.
    pub(super) fn flags(self, tag: &str) -> ToolFlags {
        ToolFlags {
            sensitive: self == Self::Sensitive,
            read_only: self == Self::ReadOnly,
            tags: vec![tag.to_owned()],
            ..ToolFlags::default()
        }
    }
}

/// A tool that works on files.
pub(super) fn file_tool<A>(
    name: &str,
    description: &str,
    effect: Effect,
    root: &Arc<Root>,
    work: fn(&Root, &A, &Stop) -> Result<String, ToolError>,
) -> Result<Tool, Error>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
{
    let root = root.clone();
    let tool = Tool::typed(name, description, move |args: A, context| {
        let root = root.clone();
        async move {
            let token = context.cancel().child_token();
            // A call that is dropped stops at its next step.
            let _stop = token.clone().drop_guard();
            let stop = Stop(token);
            let done = tokio::task::spawn_blocking(move || work(&root, &args, &stop));
            let done = match effect {
                // What it would say no longer matters, and a dead network drive may never answer.
                Effect::ReadOnly => tokio::select! {
                    done = done => done,
                    () = context.cancel().cancelled() => return Err(ToolError::semantic("cancelled")),
                },
                // Whether it was written matters.
                Effect::Sensitive => done.await,
            };
            match done {
                Ok(result) => result,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => Err(ToolError::semantic("cancelled")),
            }
        }
    })?;
    Ok(tool.with_flags(effect.flags("files")))
}

#[cfg(test)]
#[path = "typed_tests.rs"]
mod tests;
