//! The filters of a scenario, registered in the order of the input.

use std::{collections::BTreeMap, sync::Arc};

use cepa_agent::AgentBuilder;
use cepa_core::{
    Args, AssistantMessage, Chat, ChatEvent, ChatRequest, ChatResponse, Content, Error, Message, Next, RawJson, Stage,
    StageResult, Tool, ToolRequest,
};

use super::{
    input::{FilterWords, ShortCircuit},
    record::Record,
    tools,
};
use crate::line::Fail;

/// Adds a filter to an agent.
pub(crate) fn add(builder: AgentBuilder, words: &FilterWords, record: &Arc<Record>) -> Result<AgentBuilder, Fail> {
    let (name, words, record) = (words.name.clone(), Arc::new(words.clone()), record.clone());
    let order = words.order;
    match words.phase.as_str() {
        "chat" => {
            let filter = Chat::around(name, move |request, next| chat(words.clone(), record.clone(), request, next));
            Ok(builder.chat_filter(filter.order(order)))
        }
        "tool" => {
            let filter = Tool::around(name, move |request, next| tool(words.clone(), record.clone(), request, next));
            Ok(builder.tool_filter(filter.order(order)))
        }
        phase => Err(Fail::Crash(format!("the phase `{phase}` is not known"))),
    }
}

async fn chat(
    words: Arc<FilterWords>,
    record: Arc<Record>,
    mut request: ChatRequest,
    next: Next<Chat>,
) -> Result<ChatResponse, Error> {
    if let Some(ShortCircuit { if_contains, reply }) = &words.short_circuit {
        let last = request.messages.messages().rev().find(|message| matches!(message, Message::User(_)));
        if last.is_some_and(|message| message.text().contains(if_contains.as_str())) {
            let content = Some(Content::from(reply.as_str()));
            return Ok(ChatResponse::new(AssistantMessage { content, ..AssistantMessage::default() }));
        }
    }
    if let Some(text) = &words.append_system {
        let prompt = request.system_prompt.as_deref().unwrap_or_default();
        request.system_prompt = Some(format!("{prompt}\n{text}").trim_start().into());
    }
    if let Some(extra) = &words.add_tool {
        request.tools = request.tools.with(tools::tool(extra, &[], &record, None)?)?;
    }
    let events = request.events.clone();
    run(&words, &record, request, next, || events.emit(ChatEvent::Reset)).await
}

async fn tool(
    words: Arc<FilterWords>,
    record: Arc<Record>,
    mut request: ToolRequest,
    next: Next<Tool>,
) -> StageResult<Tool> {
    if let Some(set) = &words.set_args {
        let mut members: BTreeMap<String, RawJson> = request.call.args.read().unwrap_or_default();
        members.extend(set.iter().map(|(name, value)| (name.clone(), value.clone())));
        request.call.args = Args::of(&members);
    }
    run(&words, &record, request, next, || {}).await
}

/// Runs the inside, again where the input says so, and notes it.
async fn run<S>(
    words: &FilterWords,
    record: &Record,
    request: S::Request,
    next: Next<S>,
    reset: impl Fn(),
) -> StageResult<S>
where
    S: Stage,
    S::Request: Clone,
{
    let note = |what: &str| {
        if words.trace {
            record.notes().trace.push(format!("{}:{what}", words.name));
        }
    };
    note("before");
    let mut result = next.clone().run(request.clone()).await;
    for _ in 0..words.retry.unwrap_or_default() {
        if result.is_ok() {
            break;
        }
        // What the failed call had streamed is void.
        reset();
        result = next.clone().run(request.clone()).await;
    }
    if result.is_ok() {
        note("after");
    }
    result
}
