//! Everything of a request's body but its messages.

use cepa_core::{ChatRequest, Error, ErrorKind, Thinking, ToolChoice};

use super::{MaxTokensName, OpenAiChat, StreamUsage, ThinkingName, tools};
use crate::wire::{
    json::{Object, Pieces},
    members::Members,
    names::wire_name,
};

/// Appends the members behind the messages, each with a comma in front.
pub(super) fn write(dialect: &OpenAiChat, request: &ChatRequest, pieces: &mut Pieces) -> Result<(), Error> {
    let options = &request.options;
    let mut members = Members { pieces, options };
    write_tools(request, &mut members)?;
    if let Some(limit) = options.max_tokens {
        match dialect.quirks.max_tokens {
            MaxTokensName::MaxCompletionTokens => members.value("max_completion_tokens", &limit)?,
            MaxTokensName::MaxTokens => members.value("max_tokens", &limit)?,
        }
    }
    for (name, value) in [("temperature", options.temperature), ("top_p", options.top_p)] {
        if let Some(value) = value {
            if !value.is_finite() {
                return Err(Error::new(ErrorKind::InvalidConfig, format!("`{name}` is not a number: {value}")));
            }
            members.value(name, &value)?;
        }
    }
    if !options.stop.is_empty() {
        members.value("stop", &options.stop)?;
    }
    if let Some(thinking) = &options.thinking {
        write_thinking(dialect, thinking, &mut members)?;
    }
    if request.events.is_wanted() {
        members.value("stream", &true)?;
        match dialect.quirks.stream_usage {
            StreamUsage::Asked => members.object("stream_options", |object| object.member("include_usage", &true))?,
            StreamUsage::Told => {}
        }
    }
    members.extra(&["model", "messages"])
}

/// Without tools there is nothing to choose and nothing to run in parallel: both are refused by the API then, and left out.
fn write_tools(request: &ChatRequest, members: &mut Members<'_>) -> Result<(), Error> {
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
    let list = tools::list(tools)?;
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
            let mut function = Object::start(object.key("function"));
            function.member("name", &*wire_name(name))?;
            function.end();
            Ok(())
        })?,
    }
    match request.options.parallel_tool_calls {
        None => Ok(()),
        Some(parallel) => members.value("parallel_tool_calls", &parallel),
    }
}

fn write_thinking(dialect: &OpenAiChat, thinking: &Thinking, members: &mut Members<'_>) -> Result<(), Error> {
    match dialect.quirks.thinking {
        ThinkingName::ReasoningEffort => members.value("reasoning_effort", effort(thinking)),
        ThinkingName::ReasoningObject => members.object("reasoning", |object| match thinking {
            Thinking::Off => object.member("effort", "none"),
            Thinking::Budget(tokens) => object.member("max_tokens", tokens),
            Thinking::Effort(word) => object.member("effort", word),
        }),
        ThinkingName::ThinkingSwitch => {
            let (switch, effort) = match thinking {
                Thinking::Off => ("disabled", None),
                Thinking::Budget(_) | Thinking::Effort(_) => ("enabled", Some(effort(thinking))),
            };
            members.object("thinking", |object| object.member("type", switch))?;
            effort.map_or(Ok(()), |effort| members.value("reasoning_effort", effort))
        }
        ThinkingName::EnableThinking => {
            members.value("enable_thinking", &(*thinking != Thinking::Off))?;
            budget(thinking)?.map_or(Ok(()), |tokens| members.value("thinking_budget", &tokens))
        }
    }
}

/// The budget for a word, by the table of [`effort`].
fn budget(thinking: &Thinking) -> Result<Option<u32>, Error> {
    Ok(match thinking {
        Thinking::Off => None,
        Thinking::Budget(tokens) => Some(*tokens),
        Thinking::Effort(word) => match word.as_str() {
            "low" => Some(1024),
            "medium" => Some(8192),
            "high" => Some(24_576),
            word => {
                let message = format!("this provider knows no effort `{word}`: give low, medium, high or a budget");
                return Err(Error::new(ErrorKind::InvalidConfig, message));
            }
        },
    })
}

/// The word for a budget, by the table that Google gives (<https://ai.google.dev/gemini-api/docs/openai#thinking>): `low` is
/// 1,024 tokens, `medium` 8,192, `high` 24,576.
pub(in crate::wire) fn effort(thinking: &Thinking) -> &str {
    match thinking {
        Thinking::Off => "none",
        Thinking::Budget(..=1024) => "low",
        Thinking::Budget(..=8192) => "medium",
        Thinking::Budget(_) => "high",
        Thinking::Effort(word) => word,
    }
}
