//! Kind `request`: the body that would be sent.

use std::{collections::BTreeMap, sync::Arc};

use cepa_agent::{ChatMemory, Version, load_whole};
use cepa_core::{
    ChatOptions, ChatRequest, Entry, Error, History, Message, RawJson, Thinking, Tool, ToolChoice, ToolOutput, ToolSet,
    ToolSpec, ToolStatus,
};
use cepa_providers::wire::names::ToolNames;
use cepa_store::Sqlite;
use serde::{Deserialize, Serialize};

use crate::{
    line::{Fail, Line, Observed, Refused, observed},
    wire::{Eof, QuirkWords, Wire},
};

#[derive(Deserialize)]
struct Input {
    model: String,
    messages: Vec<RawJson>,
    system_prompt: Option<String>,
    #[serde(default)]
    tools: Vec<ToolWords>,
    #[serde(default)]
    options: OptionWords,
    #[serde(default)]
    quirks: QuirkWords,
    via: Option<String>,
    repeat: Option<usize>,
}

/// A tool that is only told of.
#[derive(Deserialize)]
struct ToolWords {
    name: String,
    #[serde(default)]
    description: String,
    schema: Option<RawJson>,
}

#[derive(Default, Deserialize)]
struct OptionWords {
    max_tokens: Option<u32>,
    tool_choice: Option<String>,
    parallel_tool_calls: Option<bool>,
    thinking: Option<ThinkingWords>,
    #[serde(default)]
    stop: Vec<String>,
    cache: Option<bool>,
    #[serde(default)]
    continue_pause: bool,
}

#[derive(Deserialize)]
struct ThinkingWords {
    r#type: String,
    budget_tokens: Option<u32>,
    effort: Option<String>,
}

#[derive(Serialize)]
struct Bodies {
    bodies: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tool_names: BTreeMap<String, String>,
}

/// A message of another form: a reply to be decoded first.
#[derive(Deserialize)]
struct Decoded {
    #[serde(rename = "$from_response")]
    response: Option<From>,
    #[serde(rename = "$from_stream")]
    stream: Option<From>,
    #[serde(rename = "$result_of")]
    result: Option<ResultOf>,
}

/// The result of a call of the reply before it, whatever its id is.
#[derive(Deserialize)]
struct ResultOf {
    call: usize,
    content: String,
}

#[derive(Deserialize)]
struct From {
    provider: String,
    model: Option<String>,
    body: Option<RawJson>,
    sse: Option<String>,
}

/// Builds the request as often as asked and reports each body.
pub(crate) async fn run(line: &Line) -> Result<Observed, Fail> {
    let input: Input = line.input()?;
    let mut messages: Vec<Message> = Vec::new();
    for raw in &input.messages {
        messages.push(message(raw, &input.model, &messages)?);
    }
    let messages = match input.via.as_deref() {
        None => Ok(messages.into()),
        Some("sqlite-reopen") => through_a_file(messages).await?,
        Some(via) => return Err(Fail::Crash(format!("the way `{via}` is not known"))),
    };
    match messages.and_then(|messages| bodies(line, &input, messages)) {
        Ok(bodies) => observed(&bodies),
        Err(error) => observed(&Refused::from(&error)),
    }
}

/// The messages as they come back from a database that was closed and opened again.
async fn through_a_file(messages: Vec<Message>) -> Result<Result<History, Error>, Fail> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("case.db");
    let entries = messages.into_iter().map(|message| Arc::new(Entry::new(message))).collect();
    let trip = async {
        let store = Sqlite::open(&path)?;
        store.append("c", Version::default(), entries).await?;
        drop(store);
        Ok(load_whole(&Sqlite::open(&path)?, "c").await?.1)
    };
    Ok(trip.await)
}

/// A neutral message as it stands, or the reply that is decoded first, or the result of one of its calls.
fn message(raw: &RawJson, model: &str, before: &[Message]) -> Result<Message, Fail> {
    let decoded: Decoded = raw.read()?;
    if let Some(ResultOf { call, content }) = decoded.result {
        let calls = before.iter().rev().map(Message::tool_calls).find(|calls| !calls.is_empty()).unwrap_or_default();
        let call = calls.get(call).ok_or_else(|| "a result of no call".to_owned())?;
        return Ok(Message::tool(&call.id, &call.name, ToolStatus::Ok, content));
    }
    let Some(from) = decoded.response.or(decoded.stream) else { return Ok(raw.read()?) };
    let wire = Wire::of(&from.provider, from.model.as_deref().unwrap_or(model))?;
    let response = match (&from.body, &from.sse) {
        (Some(body), _) => wire.decode(body.as_str().as_bytes())?,
        (None, Some(sse)) => wire.stream(std::iter::once(sse.as_bytes()), Eof::Clean).0?,
        (None, None) => return Err(Fail::Crash("a reply without body".to_owned())),
    };
    Ok(Message::Assistant(response.message))
}

fn bodies(line: &Line, input: &Input, messages: History) -> Result<Bodies, Error> {
    let wire = Wire::with_quirks(&line.provider, &input.model, &input.quirks)?;
    let tools = input.tools.iter().map(tool).collect::<Result<Vec<_>, Error>>()?;
    let request = ChatRequest {
        messages,
        system_prompt: input.system_prompt.as_deref().map(Into::into),
        tools: ToolSet::new(tools)?,
        tool_choice: input.options.tool_choice.as_deref().map(choice),
        options: options(&input.options),
        ..ChatRequest::default()
    };
    let bodies = (0..input.repeat.unwrap_or(2)).map(|_| wire.encode(&request)).collect::<Result<Vec<_>, Error>>()?;
    Ok(Bodies { tool_names: renamed(&request.tools, bodies.first())?, bodies })
}

fn tool(words: &ToolWords) -> Result<Tool, Error> {
    let spec = ToolSpec::new(&words.name, &words.description, words.schema.as_ref().map(RawJson::as_str))?;
    Ok(Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) }))
}

/// A tool choice in the protocol's words.
pub(crate) fn choice(word: &str) -> ToolChoice {
    match word {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        name => ToolChoice::Tool(name.to_owned()),
    }
}

fn options(words: &OptionWords) -> ChatOptions {
    let thinking = words.thinking.as_ref().map(|thinking| match (thinking.r#type.as_str(), thinking.budget_tokens) {
        ("enabled", Some(budget)) => Thinking::Budget(budget),
        ("enabled", None) => Thinking::Effort(thinking.effort.clone().unwrap_or_else(|| "medium".to_owned())),
        _ => Thinking::Off,
    });
    ChatOptions {
        max_tokens: words.max_tokens,
        parallel_tool_calls: words.parallel_tool_calls,
        thinking,
        stop: words.stop.clone(),
        cache: words.cache,
        continue_pause: words.continue_pause,
        ..ChatOptions::default()
    }
}

/// The names in the body under which a tool is known that has another name, and the tool that a call of it reaches.
fn renamed(tools: &ToolSet, body: Option<&String>) -> Result<BTreeMap<String, String>, Error> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        tools: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        name: Option<String>,
        function: Option<Box<Entry>>,
        /// Gemini's list of tools in a tool.
        #[serde(default, rename = "functionDeclarations")]
        functions: Vec<Entry>,
    }
    let names = ToolNames::of(tools)?;
    let body: Option<Body> = body.and_then(|body| serde_json::from_str(body).ok());
    let entries = body.into_iter().flat_map(|body| body.tools).flat_map(|mut entry| {
        let inner = std::mem::take(&mut entry.functions);
        std::iter::once(entry).chain(inner)
    });
    let sent = entries.filter_map(|entry| entry.name.or_else(|| entry.function?.name));
    Ok(sent
        .filter(|name| tools.get(name).is_none())
        .map(|name| (name.clone(), names.original(&name).to_owned()))
        .collect())
}
