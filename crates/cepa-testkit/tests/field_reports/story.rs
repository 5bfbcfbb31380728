//! Conversations in a line of words.

use cepa_core::{Args, AssistantMessage, Message, ToolCall, ToolStatus};

/// The messages of a story: `s` system, `u` user, `a` assistant, `c:x,y` calls with these ids (`_` is an empty one), `r:x` the
/// result of a call, `e:x` one without words. Results say their number in the story.
pub(crate) fn story(words: &str) -> Vec<Message> {
    let mut results = 0;
    let id = |id: &str| if id == "_" { String::new() } else { id.to_owned() };
    words
        .split_whitespace()
        .map(|word| match word.split_once(':') {
            None if word == "s" => Message::system("Be brief."),
            None if word == "u" => Message::user("go on"),
            None => Message::assistant("well"),
            Some(("c", ids)) => calls(ids.split(',').map(|each| ToolCall::new(id(each), "look", Args::empty()))),
            Some(("e", of)) => Message::tool(id(of), "look", ToolStatus::Ok, ""),
            Some((_, of)) => {
                results += 1;
                Message::tool(id(of), "look", ToolStatus::Ok, results.to_string())
            }
        })
        .collect()
}

/// An assistant message that only calls.
pub(crate) fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Message {
    Message::Assistant(AssistantMessage { tool_calls: calls.into_iter().collect(), ..AssistantMessage::default() })
}

/// A call of `look`.
pub(crate) fn call(id: &str, args: &str) -> ToolCall {
    ToolCall::new(id, "look", Args::decode(args))
}

/// As a store would give them back.
pub(crate) fn stored(messages: &[Message]) -> Vec<Message> {
    let json = serde_json::to_string(messages).unwrap();
    serde_json::from_str(&json).unwrap()
}
