//! The scripted model: replies that reach the loop as a decoded provider's reply does.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use cepa_core::{ChatRequest, ChatResponse, Error, ErrorKind, FinishReason, Message, ToolChoice, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    input::{ReplyWords, Script},
    record::Record,
};
use crate::{line::Fail, neutral, neutral::Neutral, wire::Wire};

/// A request as it leaves.
#[derive(Serialize)]
pub(crate) struct Sent {
    messages: Vec<Neutral>,
    system: Option<String>,
    tools: Vec<String>,
    tool_choice: Option<String>,
}

impl Sent {
    /// What the model gets to see of a request. A wire repairs histories when it encodes: so is this one.
    pub(crate) fn of(request: &ChatRequest) -> Self {
        Self {
            messages: pairing::heal(&request.messages).messages().map(neutral::seen).collect(),
            system: request.system_prompt.as_deref().map(str::to_owned),
            tools: request.tools.iter().map(|tool| tool.name().to_owned()).collect(),
            tool_choice: request.tool_choice.as_ref().map(|choice| match choice {
                ToolChoice::Auto => "auto".to_owned(),
                ToolChoice::None => "none".to_owned(),
                ToolChoice::Required => "required".to_owned(),
                ToolChoice::Tool(name) => name.clone(),
            }),
        }
    }
}

/// A model that answers from the script and notes each call in the trace.
pub(crate) fn scripted(
    script: &Script,
    by_prompt: &BTreeMap<String, Vec<ReplyWords>>,
    record: &Arc<Record>,
) -> Result<ScriptedModel, Fail> {
    let model = match script {
        Script::Replies(replies) => ScriptedModel::new(replies.iter().map(reply).collect::<Result<Vec<_>, _>>()?),
        Script::ByPrompt => {
            let mut queues: HashMap<String, VecDeque<Reply>> = HashMap::new();
            for (prompt, replies) in by_prompt {
                queues.insert(prompt.clone(), replies.iter().map(reply).collect::<Result<_, _>>()?);
            }
            let queues = Mutex::new(queues);
            ScriptedModel::choosing(move |_, request| {
                let prompt = request.messages.messages().rev().find(|message| matches!(message, Message::User(_)));
                let prompt = prompt.map(|message| message.text().into_owned()).unwrap_or_default();
                let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
                let next = queues.get_mut(&prompt).and_then(VecDeque::pop_front);
                next.unwrap_or_else(|| Reply::error(Error::new(ErrorKind::Provider, "the script has no more replies")))
            })
        }
    };
    let record = record.clone();
    Ok(model.on_call(move |_, _| record.notes().trace.push("llm".to_owned())))
}

/// A reply of the script, decoded as a provider's.
pub(crate) fn reply(words: &ReplyWords) -> Result<Reply, Fail> {
    if let Some(error) = &words.error {
        let kind = kind(&error.class)?;
        let mut failure = Error::new(kind, format!("scripted failure {}", error.class));
        if let Some(status) = error.status {
            failure = failure.with_status(status);
        }
        return Ok(Reply::error(failure));
    }
    let calls: Vec<Value> = words
        .tool_calls
        .iter()
        .map(|call| {
            // The text of the arguments goes through as it is: digits and spaces stay.
            let arguments = call.args_raw.as_deref().or(call.args.as_ref().map(cepa_core::RawJson::as_str));
            json!({
                "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": arguments.unwrap_or("{}")},
            })
        })
        .collect();
    let default = if calls.is_empty() { "stop" } else { "tool_calls" };
    let finish = words.finish.as_deref().unwrap_or(default);
    let mut message = json!({"role": "assistant", "content": words.content});
    if let Some(members) = message.as_object_mut().filter(|_| !calls.is_empty()) {
        members.insert("tool_calls".to_owned(), calls.into());
    }
    let body = json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}]});
    let mut response: ChatResponse = Wire::of("openai-chat", "m")?.decode(body.to_string().as_bytes())?;
    // Chat completions have no word for these.
    let only_elsewhere = match finish {
        "pause" => Some(FinishReason::PauseTurn),
        "refusal" => Some(FinishReason::Refusal),
        _ => None,
    };
    if let Some(reason) = only_elsewhere {
        response.finish_reason = reason;
        response.message.finish_reason = Some(reason);
    }
    Ok(Reply::response(response))
}

/// The kind of an error of this class.
fn kind(class: &str) -> Result<ErrorKind, Fail> {
    const MODEL_KINDS: [ErrorKind; 13] = [
        ErrorKind::RateLimit,
        ErrorKind::Quota,
        ErrorKind::Overloaded,
        ErrorKind::Server,
        ErrorKind::Auth,
        ErrorKind::InvalidRequest,
        ErrorKind::ContextLength,
        ErrorKind::Truncated,
        ErrorKind::Decode,
        ErrorKind::Network,
        ErrorKind::Timeout,
        ErrorKind::Cancelled,
        ErrorKind::Provider,
    ];
    let found = MODEL_KINDS.into_iter().find(|kind| kind.as_str() == class);
    found.ok_or_else(|| Fail::Crash(format!("the class `{class}` is not known")))
}
