//! Options as the members of a request's body; what this API does not take is refused (W3).
//!
//! <https://ai.google.dev/api/generate-content#generationconfig>

use cepa_core::{ChatOptions, ChatRequest, Error, ErrorKind, Thinking, ToolChoice};
use serde_json::{Map, Value, json};

use super::{Generation, names};

const MOST_STOPS: usize = 5;

/// `generationConfig`; empty if nothing is asked for. What the caller passes through under that name adds to it, and counts
/// where both say something.
pub(super) fn generation_config(options: &ChatOptions, generation: Generation) -> Result<Map<String, Value>, Error> {
    let mut config = Map::new();
    let mut put = |name: &str, value: Value| drop(config.insert(name.to_owned(), value));
    match options.max_tokens {
        Some(0) => return Err(invalid("max_tokens must be at least 1")),
        Some(most) => put("maxOutputTokens", json!(most)),
        None => {}
    }
    for (name, value, most) in [("temperature", options.temperature, 2.0), ("topP", options.top_p, 1.0)] {
        let Some(value) = value else { continue };
        if !(0.0..=most).contains(&value) {
            return Err(invalid(&format!("{name} must be from 0 to {most}, not {value}")));
        }
        put(name, json!(value));
    }
    if options.stop.len() > MOST_STOPS {
        return Err(invalid(&format!("there can be at most {MOST_STOPS} stop texts, not {}", options.stop.len())));
    }
    if options.stop.iter().any(String::is_empty) {
        return Err(invalid("a stop text must not be empty"));
    }
    if !options.stop.is_empty() {
        put("stopSequences", json!(options.stop));
    }
    if let Some(wanted) = &options.thinking {
        put("thinkingConfig", thinking(wanted, generation)?);
    }
    if let Some(Value::Object(more)) = options.extra.get("generationConfig") {
        config.extend(more.clone());
    }
    Ok(config)
}

/// Levels from Gemini 3 on, budgets before; a budget is taken by both, and 0 is off.
/// <https://ai.google.dev/gemini-api/docs/thinking>
fn thinking(wanted: &Thinking, generation: Generation) -> Result<Value, Error> {
    let word = match wanted {
        Thinking::Budget(tokens) => return Ok(json!({"includeThoughts": true, "thinkingBudget": tokens})),
        Thinking::Off => "none",
        Thinking::Effort(word) => word,
    };
    match (generation, word) {
        // "You cannot disable thinking"; this is the least.
        (Generation::From3, "none") => Ok(json!({"thinkingLevel": "minimal"})),
        (Generation::From3, word) => Ok(json!({"includeThoughts": true, "thinkingLevel": word})),
        (Generation::Before3, "none") => Ok(json!({"thinkingBudget": 0})),
        (Generation::Before3, word) => {
            // By the table that Google gives: <https://ai.google.dev/gemini-api/docs/openai#thinking>
            let budget = match word {
                "minimal" | "low" => 1024,
                "medium" => 8192,
                "high" => 24_576,
                _ => return Err(invalid(&format!("this model knows no thinking effort `{word}`: give a budget"))),
            };
            Ok(json!({"includeThoughts": true, "thinkingBudget": budget}))
        }
    }
}

/// `toolConfig`. <https://ai.google.dev/api/caching#FunctionCallingConfig>
pub(super) fn tool_config(request: &ChatRequest) -> Result<Option<Value>, Error> {
    if let Some(ToolChoice::Tool(name)) = &request.tool_choice
        && request.tools.get(name).is_none()
    {
        let message = format!("the tool choice names `{name}`, which is no tool of this request");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    if request.tools.is_empty() {
        return Ok(None);
    }
    let mode = match &request.tool_choice {
        None => return Ok(None),
        Some(ToolChoice::Auto) => json!({"mode": "AUTO"}),
        Some(ToolChoice::None) => json!({"mode": "NONE"}),
        Some(ToolChoice::Required) => json!({"mode": "ANY"}),
        Some(ToolChoice::Tool(name)) => json!({"mode": "ANY", "allowedFunctionNames": [names::sent(name)]}),
    };
    Ok(Some(json!({"functionCallingConfig": mode})))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidConfig, format!("for Gemini {what}"))
}
