//! Conversations as they come up: a question, a call of a tool, its result, an answer, and again.

use std::sync::Arc;

use cepa::{AssistantMessage, ChatRequest, Entry, Error, History, Message, ToolCall, ToolSet, ToolStatus, prelude::*};
use meter::{ADD_SCHEMA, SYSTEM, tool_name};

fn message(index: usize) -> Message {
    let call = || format!("call_{:08}", index - index % 4);
    match index % 4 {
        0 => Message::user(format!("What do {index} and 2 make? Look it up, please.")),
        1 => Message::Assistant(AssistantMessage {
            tool_calls: vec![ToolCall::new(
                format!("call_{:08}", index - 1),
                "add",
                Args::decode(&format!(r#"{{"a":{index},"b":2}}"#)),
            )],
            ..AssistantMessage::default()
        }),
        2 => Message::tool(call(), "add", ToolStatus::Ok, (index + 2).to_string()),
        _ => Message::assistant(format!("They make {index}. Is there anything else that I can add up for you?")),
    }
}

/// So many entries, each with an id.
pub fn entries(messages: usize) -> Vec<Arc<Entry>> {
    (0..messages).map(|index| Arc::new(Entry::with_id(format!("m{index}"), 1, message(index)))).collect()
}

/// A conversation of about so many messages that nobody has looked at: it ends with an answer.
pub fn history(messages: usize) -> History {
    entries(messages.next_multiple_of(4)).into_iter().collect()
}

/// The same without the results of every tenth call.
pub fn broken(messages: usize) -> History {
    let kept = entries(messages.next_multiple_of(4)).into_iter().enumerate();
    kept.filter(|(index, _)| index % 40 != 2).map(|(_, entry)| entry).collect()
}

/// A tool that gives back nothing.
pub fn idle_tool(index: usize) -> Result<Tool, Error> {
    let spec = ToolSpec::new(&tool_name(index), "Adds two integers.", Some(ADD_SCHEMA))?;
    Ok(Tool::new(spec, |_, _| async move { Ok(ToolOutput::new("")) }))
}

/// A request with a conversation of so many messages and five tools.
pub fn request(messages: usize) -> Result<ChatRequest, Error> {
    let mut request = ChatRequest::new(history(messages));
    request.system_prompt = Some(SYSTEM.into());
    request.tools = ToolSet::new((0..5).map(idle_tool).collect::<Result<Vec<_>, _>>()?)?;
    Ok(request)
}
