//! The offline model: no language model, a small deterministic stand-in that turns a few plain orders into tool calls, so that
//! the loop, the gate, pauses and memory can be tried without a key and without a network. It says what it is.

use cepa::{
    Args, AssistantMessage, BoxFuture, ChatEvent, ChatModel, ChatRequest, ChatResponse, Content, Error, FinishReason,
    Message, Origin, ToolCall, ToolMessage, ToolStatus,
};

/// Its name, as `--model` takes it.
pub(crate) const OFFLINE: &str = "offline";

const HELP: &str = "I am cepa's offline model: no language model, only a stand-in that knows a few orders, so that the rest can be \
                    tried. Say for example:
  list files            read README.md         search for TEXT
  write hello to notes.txt                     replace hello with good day in notes.txt
  run ls                what time is it        what did I say
Several at once are separated by semicolons. For a real model set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or name one
with --model PROVIDER/NAME; `cepa doctor` says what is there.";

/// A long result is repeated only so far.
const SHOWN: usize = 4_000;

/// The stand-in.
#[derive(Debug)]
pub(crate) struct Offline {
    origin: Origin,
}

impl Offline {
    pub(crate) fn new() -> Self {
        Self { origin: Origin { provider: OFFLINE.into(), model: OFFLINE.into() } }
    }

    fn reply(&self, request: &ChatRequest) -> AssistantMessage {
        let messages: Vec<&Message> = request.messages.messages().collect();
        let results = results_at_end(&messages);
        let mut message = if results.is_empty() { answer(request, &messages) } else { report(&results) };
        message.origin = Some(self.origin.clone());
        message.finish_reason =
            Some(if message.tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls });
        message
    }
}

impl ChatModel for Offline {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(async move {
            let message = self.reply(&request);
            let text = message.content.as_ref().map(Content::text).unwrap_or_default();
            // In pieces, as a real one writes.
            for piece in text.split_inclusive(' ') {
                request.events.emit(ChatEvent::Text(piece.to_owned()));
            }
            for (index, call) in message.tool_calls.iter().enumerate() {
                request.events.emit(ChatEvent::CallBegun { index, id: call.id.clone(), name: call.name.clone() });
                request.events.emit(ChatEvent::CallArguments { index, delta: call.args.as_str().to_owned() });
            }
            let mut response = ChatResponse::new(message);
            response.offered = request.tools;
            response.context = request.context;
            Ok(response)
        })
    }
}

/// The results that nobody has answered yet.
fn results_at_end<'a>(messages: &[&'a Message]) -> Vec<&'a ToolMessage> {
    let mut results: Vec<&ToolMessage> = Vec::new();
    for message in messages.iter().rev() {
        let Message::Tool(result) = message else { break };
        results.push(result);
    }
    results.reverse();
    results
}

fn says(text: impl Into<String>) -> AssistantMessage {
    AssistantMessage { content: Some(Content::Text(text.into())), ..AssistantMessage::default() }
}

/// An answer from what the tools gave.
fn report(results: &[&ToolMessage]) -> AssistantMessage {
    let mut parts = Vec::new();
    for result in results {
        let (name, content) = (&result.name, result.content.text());
        let content = head(content.trim_end());
        parts.push(match result.status {
            ToolStatus::Ok => format!("{name} says:\n{content}"),
            ToolStatus::Error => format!("{name} failed: {content}"),
            ToolStatus::Rejected | ToolStatus::Cancelled | ToolStatus::Expired => {
                format!("{name} did not run. {content}")
            }
            ToolStatus::Unknown => format!("Nobody knows what became of {name}. {content}"),
        });
    }
    says(parts.join("\n\n"))
}

fn head(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\n… (the rest is left out)", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An answer to what the person said: calls, or words.
fn answer(request: &ChatRequest, messages: &[&Message]) -> AssistantMessage {
    let Some(Message::User(said)) = messages.last() else { return says(HELP) };
    let said = said.content.text();
    if is_recall(&said) {
        return recall(messages);
    }
    let orders = orders(&said);
    if orders.is_empty() {
        return says(HELP);
    }
    if let Some(missing) = orders.iter().find(|order| request.tools.get(order.tool).is_none()) {
        return says(format!("I would call {} for that, but it is not offered here.", missing.tool));
    }
    let call = |(index, order): (usize, Order)| {
        let id = format!("offline_{}_{index}", messages.len());
        ToolCall::new(id, order.tool, order.args())
    };
    AssistantMessage { tool_calls: orders.into_iter().enumerate().map(call).collect(), ..AssistantMessage::default() }
}

fn is_recall(said: &str) -> bool {
    let said = said.trim().trim_end_matches(['?', '.', '!']).to_lowercase();
    matches!(said.as_str(), "what did i say" | "what have i said" | "what did i ask")
}

/// What the person said before: shows that the conversation is remembered.
fn recall(messages: &[&Message]) -> AssistantMessage {
    let said = |message: &&Message| match message {
        Message::User(user) => Some(format!("  {}", head(user.content.text().trim()))),
        Message::System(_) | Message::Assistant(_) | Message::Tool(_) => None,
    };
    let mut said: Vec<String> = messages.iter().filter_map(said).collect();
    said.pop();
    if said.is_empty() {
        return says("Nothing yet: this is the beginning of the conversation.");
    }
    says(format!("You said:\n{}", said.join("\n")))
}

/// One thing to do: a tool and its arguments, in the order in which a person reads them.
#[derive(Debug, PartialEq)]
struct Order {
    tool: &'static str,
    args: Vec<(&'static str, String)>,
}

impl Order {
    fn args(&self) -> Args {
        let members = self.args.iter().map(|(name, value)| {
            // A string is always JSON.
            format!("\"{name}\": {}", serde_json::to_string(value).unwrap_or_default())
        });
        Args::decode(&format!("{{{}}}", members.collect::<Vec<_>>().join(", ")))
    }
}

/// The orders in a message: one, or several with semicolons between. A part that is no order makes it a message.
fn orders(said: &str) -> Vec<Order> {
    let said = said.trim();
    // A command line may have semicolons of its own.
    if let Some(run) = order(said).filter(|order| order.tool == "run_shell") {
        return vec![run];
    }
    let parts = said.split("; ").map(str::trim).filter(|part| !part.is_empty());
    let orders: Option<Vec<Order>> = parts.map(order).collect();
    // Whatever is no list of orders may still be one, with a semicolon in its text.
    orders.unwrap_or_else(|| order(said).into_iter().collect())
}

fn order(said: &str) -> Option<Order> {
    let said = said.trim();
    let plain = said.trim_end_matches(['.', '!', '?']).trim_end();
    let make = |tool, args: &[(&'static str, &str)]| {
        Some(Order { tool, args: args.iter().map(|(name, value)| (*name, (*value).to_owned())).collect() })
    };
    match plain.to_lowercase().as_str() {
        "list files" | "list the files" | "list" | "ls" => return make("list_files", &[]),
        "what time is it" | "what is the time" | "time" | "what day is it" => return make("current_time", &[]),
        _ => {}
    }
    if let Some(path) = after(plain, &["list files in ", "list the files in ", "list "]) {
        return make("list_files", &[("path", name(path))]);
    }
    if let Some(command) = after(said, &["run ", "execute "]) {
        return make("run_shell", &[("command", command)]);
    }
    if let Some(rest) = after(said, &["write "]) {
        let (content, path) = last_split(rest, &[" to the file ", " into the file ", " to ", " into "])?;
        return make("write_file", &[("path", name(path)), ("content", unquoted(content))]);
    }
    if let Some(rest) = after(said, &["replace "]) {
        let (change, path) = last_split(rest, &[" in the file ", " in "])?;
        let (old, new) = change.split_once(" with ")?;
        let args = &[("path", name(path)), ("old_text", unquoted(old)), ("new_text", unquoted(new))];
        return make("edit_file", args);
    }
    if let Some(pattern) = after(plain, &["search for ", "find ", "grep "]) {
        return make("search_files", &[("pattern", unquoted(pattern))]);
    }
    if let Some(path) = after(plain, &["read the file ", "read ", "show ", "cat "]) {
        return make("read_file", &[("path", name(path))]);
    }
    None
}

/// What stands behind the first of these words, in capitals or not.
fn after<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    words.iter().find_map(|word| {
        let (start, rest) = text.split_at_checked(word.len())?;
        Some(rest.trim()).filter(|rest| start.eq_ignore_ascii_case(word) && !rest.is_empty())
    })
}

/// Both sides of the last of these words that is there.
fn last_split<'a>(text: &'a str, words: &[&str]) -> Option<(&'a str, &'a str)> {
    let (left, right) = words.iter().find_map(|word| text.rsplit_once(word))?;
    Some((left, right)).filter(|(left, right)| !left.trim().is_empty() && !right.trim().is_empty())
}

/// A file's name without quotes and without the full stop of the sentence.
fn name(text: &str) -> &str {
    unquoted(text.trim().trim_end_matches(['.', '!', '?']).trim_end())
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for quote in ['"', '\'', '`'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

#[cfg(test)]
#[path = "offline_tests.rs"]
mod tests;
