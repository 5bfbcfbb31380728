//! Options as the members of a request's body; what this API does not take is refused (W3).

use cepa_core::{ChatOptions, ChatRequest, Error, ErrorKind, Thinking, ToolChoice};
use serde_json::{Map, Value, json};

use super::{AnthropicMessages, ApiVersion, DEFAULT_MAX_TOKENS};
use crate::wire::names::wire_name;

/// "Must be ≥1024 and less than `max_tokens`."
const LEAST_BUDGET: u32 = 1024;

/// The members that options become.
pub(super) struct Params {
    pub(super) max_tokens: u32,
    pub(super) others: Vec<(&'static str, Value)>,
}

/// The members for a request. `begun_without_thinking`: see [`super::turns::Conversation`].
pub(super) fn of(
    dialect: &AnthropicMessages,
    request: &ChatRequest,
    begun_without_thinking: bool,
) -> Result<Params, Error> {
    let options = &request.options;
    let mut others = Vec::new();
    if let Some(choice) = tool_choice(request)? {
        others.push(("tool_choice", choice));
    }
    let budget = thinking(options, begun_without_thinking, &mut others)?;
    sampling(dialect.version, options, &mut others)?;
    if !options.stop.is_empty() {
        if options.stop.iter().any(|text| text.trim().is_empty()) {
            return Err(invalid("a stop text must hold more than white space"));
        }
        others.push(("stop_sequences", json!(options.stop)));
    }
    Ok(Params { max_tokens: max_tokens(dialect, options, budget)?, others })
}

/// W7: the request's, else the catalog's, else 4096. One that nobody asked for makes room for the thinking.
fn max_tokens(dialect: &AnthropicMessages, options: &ChatOptions, budget: Option<u32>) -> Result<u32, Error> {
    let budget = budget.unwrap_or_default();
    match options.max_tokens {
        Some(0) => Err(invalid("max_tokens must be at least 1")),
        Some(most) if most <= budget => Err(invalid(&format!(
            "max_tokens is {most}, which leaves nothing beside {budget} tokens of thinking: raise it or think less"
        ))),
        Some(most) => Ok(most),
        None if dialect.default_max_tokens > budget => Ok(dialect.default_max_tokens),
        None => Ok(budget.saturating_add(DEFAULT_MAX_TOKENS)),
    }
}

fn tool_choice(request: &ChatRequest) -> Result<Option<Value>, Error> {
    // "tool_choice may only be specified while providing tools"
    if request.tools.is_empty() {
        return Ok(None);
    }
    let one_at_a_time = request.options.parallel_tool_calls == Some(false);
    let mut choice = Map::new();
    match &request.tool_choice {
        None | Some(ToolChoice::Auto) if !one_at_a_time && request.tool_choice.is_none() => return Ok(None),
        None | Some(ToolChoice::Auto) => choice.insert("type".to_owned(), "auto".into()),
        Some(ToolChoice::None) => return Ok(Some(json!({"type": "none"}))),
        Some(ToolChoice::Required) => choice.insert("type".to_owned(), "any".into()),
        Some(ToolChoice::Tool(name)) => {
            if request.tools.get(name).is_none() {
                let message = format!("the tool choice names `{name}`, which is no tool of this request");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            choice.insert("name".to_owned(), wire_name(name).into());
            choice.insert("type".to_owned(), "tool".into())
        }
    };
    if one_at_a_time {
        choice.insert("disable_parallel_tool_use".to_owned(), true.into());
    }
    Ok(Some(choice.into()))
}

/// Adds the members about thinking; returns the budget if there is one.
/// <https://platform.claude.com/docs/en/build-with-claude/thinking>
fn thinking(
    options: &ChatOptions,
    begun_without_thinking: bool,
    others: &mut Vec<(&'static str, Value)>,
) -> Result<Option<u32>, Error> {
    let forced = |others: &[(&str, Value)]| {
        let choice = others.iter().find(|(name, _)| *name == "tool_choice");
        choice.is_some_and(|(_, choice)| choice["type"] == "any" || choice["type"] == "tool")
    };
    let off = |others: &mut Vec<(&str, Value)>| {
        others.push(("thinking", json!({"type": "disabled"})));
        Ok(None)
    };
    match &options.thinking {
        None => Ok(None),
        Some(Thinking::Effort(word)) if word == "none" => off(others),
        Some(Thinking::Off) => off(others),
        Some(Thinking::Effort(word)) => {
            // The least that this API knows.
            let word = if word == "minimal" { "low" } else { word };
            others.push(("thinking", json!({"type": "adaptive"})));
            others.push(("output_config", json!({"effort": word})));
            Ok(None)
        }
        Some(Thinking::Budget(tokens)) if *tokens < LEAST_BUDGET => {
            Err(invalid(&format!("a thinking budget must be at least {LEAST_BUDGET} tokens, not {tokens}")))
        }
        Some(Thinking::Budget(_)) if forced(others) => {
            Err(invalid("with a thinking budget no tool can be forced: leave the tool choice to the model"))
        }
        Some(Thinking::Budget(_)) if options.temperature.is_some_and(|value| value != 1.0) => {
            Err(invalid("with a thinking budget the temperature cannot be changed: leave it out"))
        }
        // The reply goes on that another model, or this one without thinking, has begun; the API wants thinking from its start.
        Some(Thinking::Budget(_)) if begun_without_thinking => {
            tracing::debug!("no thinking in this request: the reply in progress was begun without it");
            Ok(None)
        }
        Some(Thinking::Budget(tokens)) => {
            others.push(("thinking", json!({"type": "enabled", "budget_tokens": tokens})));
            Ok(Some(*tokens))
        }
    }
}

fn sampling(version: ApiVersion, options: &ChatOptions, others: &mut Vec<(&'static str, Value)>) -> Result<(), Error> {
    for (name, value) in [("temperature", options.temperature), ("top_p", options.top_p)] {
        let Some(value) = value else { continue };
        if version == ApiVersion::V2026_10_21 {
            let version = version.as_str();
            return Err(invalid(&format!(
                "its API version {version} has no {name}: leave it out, or set an older version"
            )));
        }
        if !(0.0..=1.0).contains(&value) {
            return Err(invalid(&format!("{name} must be from 0 to 1, not {value}")));
        }
        others.push((name, json!(value)));
    }
    Ok(())
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidConfig, format!("for Anthropic {what}"))
}
