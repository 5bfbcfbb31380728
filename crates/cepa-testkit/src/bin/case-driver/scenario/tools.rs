//! The tools of a scenario: bodies that note that they ran, and then do what the input says.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cepa_agent::{Agent, TurnStatus};
use cepa_core::{Args, RawJson, Tool, ToolError, ToolFlags, ToolOutput, ToolSpec};
use cepa_testkit::scripted::ScriptedModel;

use super::{
    input::{InnerAgent, ToolWords},
    model,
    record::Record,
};
use crate::line::Fail;

/// A tool; `inner` are the tools that an agent inside a tool may have.
pub(crate) fn tool(
    words: &ToolWords,
    inner: &[ToolWords],
    record: &Arc<Record>,
    timeout_ms: Option<u64>,
) -> Result<Tool, cepa_core::Error> {
    let flags = ToolFlags {
        sensitive: words.sensitive,
        timeout: timeout_ms.map(Duration::from_millis),
        ..ToolFlags::default()
    };
    let schema = words.schema.as_ref().map(RawJson::as_str);
    let spec = ToolSpec::new(&words.name, &words.description, schema)?.with_flags(flags);
    let (words, inner, record) = (Arc::new(words.clone()), Arc::new(inner.to_vec()), record.clone());
    // An agent inside a tool goes on with its script when it is called again.
    let inner_model = Arc::new(Mutex::new(None));
    Ok(Tool::new(spec, move |args, _context| {
        let (words, inner, record) = (words.clone(), inner.clone(), record.clone());
        let inner_model = inner_model.clone();
        async move {
            // A tool that is an agent is known by what the agent's own tools note.
            if words.agent.is_none() {
                record.tool_started(&words.name, object(&args));
            }
            if let Some(ms) = words.sleep_ms {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            if words.hang {
                std::future::pending::<()>().await;
            }
            if let Some(text) = &words.raises {
                return Err(ToolError::semantic(text));
            }
            if let Some(agent) = &words.agent {
                return run_agent(agent, &inner, &record, &inner_model, &args).await;
            }
            if words.echo {
                return ToolOutput::of(&object(&args));
            }
            match &words.returns {
                Some(value) => ToolOutput::of(value),
                None => Ok(ToolOutput::new("")),
            }
        }
    }))
}

/// Arguments as the body got them.
fn object(args: &Args) -> RawJson {
    match args {
        Args::Object(raw) => raw.clone(),
        Args::Invalid { .. } => RawJson::empty_object(),
    }
}

/// An agent as the body of a tool, as a user would write it: its answer is the result; where it waits for a person, the
/// caller is told so.
async fn run_agent(
    words: &InnerAgent,
    tools: &[ToolWords],
    record: &Arc<Record>,
    kept: &Mutex<Option<ScriptedModel>>,
    args: &Args,
) -> Result<ToolOutput, ToolError> {
    let model = {
        let mut kept = kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*kept {
            Some(model) => model.clone(),
            None => {
                let replies: Result<Vec<_>, Fail> = words.model.iter().map(model::reply).collect();
                let replies = replies.map_err(|problem| ToolError::semantic(format!("{problem:?}")))?;
                let counting = record.clone();
                let model = ScriptedModel::new(replies).on_call(move |_, _| counting.notes().inner_model_calls += 1);
                kept.insert(model).clone()
            }
        }
    };
    let mut builder = Agent::builder(model);
    for inner in tools.iter().filter(|tool| words.tools.contains(&tool.name)) {
        builder = builder.tool(tool(inner, &[], record, None)?);
    }
    if words.on_pause {
        builder = builder.pausing(true);
    }
    let result = builder.build()?.chat(args.as_str()).await?;
    match result.status {
        TurnStatus::Completed => Ok(ToolOutput::new(result.text)),
        TurnStatus::Paused => {
            let waiting: Vec<&str> = result.pending.iter().map(|pause| pause.tool.as_str()).collect();
            Err(ToolError::semantic(format!("not done: {} would need a person's decision", waiting.join(", "))))
        }
        TurnStatus::Cancelled | TurnStatus::Exhausted => {
            Err(ToolError::semantic(format!("not done: {}", result.status.as_str())))
        }
    }
}
