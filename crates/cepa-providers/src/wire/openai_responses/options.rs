//! Everything of a request's body but its input.

use cepa_core::{ChatRequest, Error, ErrorKind, ToolChoice};

use super::{Responses, quirks::EncryptedReasoning, tools};
use crate::wire::{json::Pieces, members::Members, names::wire_name, openai_chat::options::effort};

/// "integer below minimum value. Expected a value >= 16" (schema `CreateResponse`,
/// <https://github.com/openai/openai-openapi>).
const LEAST_TOKENS: u32 = 16;

/// Appends the members behind the input, each with a comma in front.
pub(super) fn write(dialect: &Responses, request: &ChatRequest, pieces: &mut Pieces) -> Result<(), Error> {
    let (options, quirks) = (&request.options, &dialect.quirks);
    if !options.stop.is_empty() {
        let message = "the Responses API has no stop sequences: leave `stop` out, or use chat completions";
        return Err(Error::new(ErrorKind::InvalidConfig, message));
    }
    let mut members = Members { pieces, options };
    write_tools(dialect, request, &mut members)?;
    if let Some(limit) = options.max_tokens {
        if limit < LEAST_TOKENS {
            let message = format!("the Responses API takes `max_tokens` from {LEAST_TOKENS} on, not {limit}: raise it");
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        }
        members.value("max_output_tokens", &limit)?;
    }
    for (name, value) in [("temperature", options.temperature), ("top_p", options.top_p)] {
        if let Some(value) = value {
            if !value.is_finite() {
                return Err(Error::new(ErrorKind::InvalidConfig, format!("`{name}` is not a number: {value}")));
            }
            members.value(name, &value)?;
        }
    }
    if options.thinking.is_some() || quirks.summary.is_some() {
        members.object("reasoning", |object| {
            if let Some(thinking) = &options.thinking {
                object.member("effort", effort(thinking))?;
            }
            quirks.summary.map_or(Ok(()), |summary| object.member("summary", summary.as_str()))
        })?;
    }
    members.value("store", &false)?;
    match quirks.encrypted_reasoning {
        EncryptedReasoning::Asked => members.value("include", &["reasoning.encrypted_content"])?,
        EncryptedReasoning::NotAsked => {}
    }
    if request.events.is_wanted() {
        members.value("stream", &true)?;
    }
    members.extra(&["model", "instructions", "input"])
}

/// Without tools there is nothing to choose and nothing to run in parallel.
fn write_tools(dialect: &Responses, request: &ChatRequest, members: &mut Members<'_>) -> Result<(), Error> {
    let tools = &request.tools;
    if let Some(ToolChoice::Tool(name)) = &request.tool_choice
        && tools.get(name).is_none()
    {
        let message = format!("the tool choice names `{name}`, which is not among the tools of the request");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    if tools.is_empty() {
        return Ok(());
    }
    let list = tools::list(tools, dialect.quirks.strict_tools)?;
    if members.open("tools").is_some() {
        members.pieces.share(list);
    }
    match &request.tool_choice {
        None => {}
        Some(ToolChoice::Auto) => members.value("tool_choice", "auto")?,
        Some(ToolChoice::None) => members.value("tool_choice", "none")?,
        Some(ToolChoice::Required) => members.value("tool_choice", "required")?,
        Some(ToolChoice::Tool(name)) => members.object("tool_choice", |object| {
            object.member("type", "function")?;
            object.member("name", &*wire_name(name))
        })?,
    }
    match request.options.parallel_tool_calls {
        None => Ok(()),
        Some(parallel) => members.value("parallel_tool_calls", &parallel),
    }
}
