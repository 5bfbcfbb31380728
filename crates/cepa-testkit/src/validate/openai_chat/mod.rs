//! Judge of Chat Completions requests.
//!
//! Sources: OpenAI's own description of the interface, <https://github.com/openai/openai-openapi> (schema
//! `CreateChatCompletionRequest` and what it refers to), its reference
//! <https://platform.openai.com/docs/api-reference/chat/create>, and the messages of the 400s that the server answers where
//! the schema is silent. A rule without a link of its own is the schema's.

mod endpoint;
pub(super) mod members;
pub mod rules;

use serde_json::{Map, Value};

use super::{
    Report, Violation,
    shape::{Member, Rules, brief, first_repeated, is_word, list, text, text_of},
};
pub use endpoint::{CallIds, Endpoint};
use members::{
    ASSISTANT, AUDIO_PART, BODY, CALL, CALL_FUNCTION, FILE, FILE_PART, FUNCTION, FUNCTION_TOOL, IMAGE_PART, IMAGE_URL,
    INPUT_AUDIO, REFUSAL_PART, SYSTEM, TEXT_PART, TOOL, USER, data_url,
};

const RULES: Rules = Rules { shape: rules::SHAPE, unknown_member: rules::UNKNOWN_MEMBER };

/// The longest id of a call that no server refuses: OpenAI has answered "string too long. Expected a string with maximum
/// length 40".
const ID_CHARS: usize = 40;

/// At most 128 functions (`tools`).
const MOST_TOOLS: usize = 128;

/// What is wrong with a request that OpenAI and the servers that follow it closely shall take.
///
/// ```
/// use cepa_testkit::validate::openai_chat::validate;
/// let body = serde_json::json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": []});
/// let rules: Vec<&str> = validate(&body).iter().map(|violation| violation.rule).collect();
/// assert_eq!(rules, ["oa.no_empty_arrays"]);
/// ```
pub fn validate(body: &Value) -> Vec<Violation> {
    validate_for(body, Endpoint::default())
}

/// What is wrong with a request to an endpoint that takes more than OpenAI does.
pub fn validate_for(body: &Value, endpoint: Endpoint) -> Vec<Violation> {
    let mut judge = Judge { report: Report::default(), endpoint };
    if let Some(body) = RULES.check(&mut judge.report, body, "body", BODY, endpoint.body_members) {
        judge.tools(body);
        judge.messages(list(body, "messages"));
        judge.settings(body);
    }
    judge.report.0
}

struct Judge {
    report: Report,
    endpoint: Endpoint,
}

impl Judge {
    fn settings(&mut self, body: &Map<String, Value>) {
        for name in self.endpoint.refused_members.iter().filter(|name| body.contains_key(**name)) {
            self.report.add(rules::REFUSED_MEMBER, format!("body.{name}"), "this server does not know it");
        }
        // "Only set this when you set `stream: true`."
        if body.get("stream_options").is_some_and(Value::is_object) && body.get("stream") != Some(&Value::Bool(true)) {
            self.report.add(rules::STREAM_OPTIONS, "body.stream_options", "stands without `stream: true`");
        }
        // "max_tokens is deprecated in favor of max_completion_tokens": setting both is a 400.
        if body.contains_key("max_tokens") && body.contains_key("max_completion_tokens") {
            self.report.add(rules::ONE_LIMIT, "body", "max_tokens and max_completion_tokens are both set");
        }
    }

    fn tools(&mut self, body: &Map<String, Value>) {
        let Some(tools) = body.get("tools") else {
            // "'tool_choice' is only allowed when 'tools' are specified", likewise `parallel_tool_calls`.
            for name in ["tool_choice", "parallel_tool_calls"].into_iter().filter(|name| body.contains_key(*name)) {
                self.report.add(rules::WITHOUT_TOOLS, format!("body.{name}"), "stands without tools");
            }
            return;
        };
        let Some(tools) = tools.as_array() else {
            return self.report.add(rules::SHAPE, "body.tools", format!("{} is not a list", brief(tools)));
        };
        if tools.is_empty() {
            self.report.add(rules::TOOLS_EMPTY, "body.tools", "is []");
        }
        if tools.len() > MOST_TOOLS {
            self.report.add(rules::TOOL_COUNT, "body.tools", format!("{} tools of at most {MOST_TOOLS}", tools.len()));
        }
        let mut names = Vec::new();
        for (index, tool) in tools.iter().enumerate() {
            names.extend(self.tool(tool, &format!("body.tools[{index}]")));
        }
        if let Some(name) = first_repeated(&names) {
            self.report.add(rules::TOOL_NAMES_UNIQUE, "body.tools", format!("two tools are named `{name}`"));
        }
        if let Some(choice) = body.get("tool_choice") {
            self.tool_choice(choice, &names);
        }
    }

    fn tool<'v>(&mut self, tool: &'v Value, at: &str) -> Option<&'v str> {
        let tool = RULES.check(&mut self.report, tool, at, FUNCTION_TOOL, &[])?;
        if text(tool, "type") != "function" {
            self.report.add(rules::FUNCTION, format!("{at}.type"), "is not `function`");
        }
        let at = format!("{at}.function");
        let function = RULES.check(&mut self.report, tool.get("function")?, &at, FUNCTION, &[])?;
        let name = text(function, "name");
        self.name(name, &at);
        // "Omitting parameters defines a function with an empty parameter list", but servers that compile the schema
        // into a grammar (vLLM, llama.cpp) want an object schema, and OpenAI refuses one without `properties`.
        let parameters = function.get("parameters").unwrap_or(&Value::Null);
        if text_of(parameters, "type") != "object" || !parameters.get("properties").is_some_and(Value::is_object) {
            let what = format!("{} is not an object schema with properties", brief(parameters));
            self.report.add(rules::TOOL_SCHEMA, format!("{at}.parameters"), what);
        }
        Some(name)
    }

    /// "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."
    fn name(&mut self, name: &str, at: &str) {
        if !is_word(name, 64) {
            self.report.add(
                rules::NAMES,
                format!("{at}.name"),
                format!("`{name}` is not a name of 1 to 64 word characters"),
            );
        }
    }

    fn tool_choice(&mut self, choice: &Value, names: &[&str]) {
        let named = match choice {
            Value::String(word) => matches!(word.as_str(), "none" | "auto" | "required").then_some(None),
            Value::Object(object) if text(object, "type") == "function" => {
                object.get("function").map(|function| Some(text_of(function, "name")))
            }
            Value::Object(object) if text(object, "type") == "allowed_tools" => Some(None),
            _ => None,
        };
        match named {
            Some(Some(name)) if !names.contains(&name) => {
                self.report.add(
                    rules::TOOL_CHOICE,
                    "body.tool_choice",
                    format!("names `{name}`, which is no tool of the request"),
                );
            }
            Some(_) => {}
            None => self.report.add(rules::TOOL_CHOICE, "body.tool_choice", format!("{} is no choice", brief(choice))),
        }
    }

    fn messages(&mut self, messages: &[Value]) {
        let mut ids = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let at = format!("body.messages[{index}]");
            self.message(message, &at, index);
            for call in message.as_object().map_or(&[][..], |m| list(m, "tool_calls")) {
                ids.push(text_of(call, "id"));
            }
        }
        if let Some(id) = first_repeated(&ids) {
            self.report.add(rules::IDS_UNIQUE, "body.messages", format!("two calls have the id `{id}`"));
        }
        self.pairing(messages);
        self.turns(messages);
    }

    /// "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."; calls and results
    /// belong to the assistant's turn, and behind results only it may speak: "Unexpected role 'user' after role 'tool'".
    fn turns(&mut self, messages: &[Value]) {
        let mut before = "";
        for (index, message) in messages.iter().enumerate() {
            let role = text_of(message, "role");
            let Endpoint { roles_in_turn, assistant_after_results, .. } = self.endpoint;
            let broken = match (before, role) {
                ("", "assistant") | ("user", "user") | ("assistant", "assistant") if roles_in_turn => {
                    Some(rules::ALTERNATE)
                }
                ("tool", "user") if assistant_after_results || roles_in_turn => Some(rules::ASSISTANT_AFTER_RESULTS),
                _ => None,
            };
            if let Some(rule) = broken {
                let before = if before.is_empty() { "nothing" } else { before };
                self.report.add(rule, format!("body.messages[{index}]"), format!("`{role}` behind {before}"));
            }
            if !matches!(role, "system" | "developer") {
                before = role;
            }
        }
    }

    fn message(&mut self, message: &Value, at: &str, index: usize) {
        let role = text_of(message, "role");
        let mut extra = Vec::new();
        let table = match role {
            "system" | "developer" => SYSTEM,
            "user" => USER,
            "assistant" => {
                extra.extend(self.endpoint.assistant_members.iter().copied().chain(self.endpoint.reasoning_back));
                ASSISTANT
            }
            "tool" => TOOL,
            _ => return self.report.add(rules::ROLE, at, format!("`{role}` is no role")),
        };
        let Some(message) = RULES.check(&mut self.report, message, at, table, &extra) else { return };
        // Templates of open models raise "System message must be at the beginning".
        if matches!(role, "system" | "developer") && index > 0 && !self.endpoint.system_anywhere {
            self.report.add(rules::SYSTEM_FIRST, at, "a system message behind the first message");
        }
        if role == "tool" && !message.get("content").is_some_and(Value::is_string) {
            // The schema takes text parts too; llama.cpp, Groq and Ollama take a text only.
            self.report.add(rules::RESULT_TEXT, format!("{at}.content"), "is not a text");
        }
        let allowed: &[&str] = match role {
            "user" => &["text", "image_url", "input_audio", "file"],
            "assistant" => &["text", "refusal"],
            _ => &["text"],
        };
        for (index, part) in list(message, "content").iter().enumerate() {
            self.part(part, &format!("{at}.content[{index}]"), allowed);
        }
        if role == "assistant" {
            self.assistant(message, at);
        }
    }

    fn assistant(&mut self, message: &Map<String, Value>, at: &str) {
        let given = |name: &str| message.get(name).is_some_and(|value| !value.is_null());
        // "Required unless tool_calls or function_call is specified."
        if !given("content") && !given("tool_calls") && !given("refusal") && !given("audio") {
            self.report.add(rules::SAYS_SOMETHING, at, "neither content nor calls");
        }
        let Some(calls) = message.get("tool_calls") else { return };
        if self.endpoint.no_null_content && !given("content") {
            self.report.add(rules::CONTENT_NULL, format!("{at}.content"), "is no text beside calls");
        }
        if let Some(name) =
            self.endpoint.reasoning_back.filter(|name| !message.get(*name).is_some_and(Value::is_string))
        {
            self.report.add(rules::REASONING_BACK, at, format!("calls without `{name}`"));
        }
        match calls.as_array() {
            Some(calls) if calls.is_empty() => {
                // "[] is too short - 'messages.1.tool_calls'"
                self.report.add(rules::CALLS_EMPTY, format!("{at}.tool_calls"), "is []");
            }
            Some(calls) => {
                for (index, call) in calls.iter().enumerate() {
                    self.call(call, &format!("{at}.tool_calls[{index}]"));
                }
            }
            None => self.report.add(rules::SHAPE, format!("{at}.tool_calls"), "is not a list"),
        }
    }

    fn call(&mut self, call: &Value, at: &str) -> Option<()> {
        let call = RULES.check(&mut self.report, call, at, CALL, self.endpoint.call_members)?;
        if text(call, "type") != "function" {
            self.report.add(rules::FUNCTION, format!("{at}.type"), "is not `function`");
        }
        let id = text(call, "id");
        let is_nine = id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        match self.endpoint.call_ids {
            CallIds::Forty if id.chars().count() > ID_CHARS => {
                let what = format!("{} characters of at most {ID_CHARS}", id.chars().count());
                self.report.add(rules::ID_LENGTH, format!("{at}.id"), what);
            }
            CallIds::Nine if !is_nine => {
                self.report.add(rules::NINE, format!("{at}.id"), format!("`{id}` is not nine letters and digits"));
            }
            CallIds::Forty | CallIds::Nine | CallIds::Any => {}
        }
        let at = format!("{at}.function");
        let function = RULES.check(&mut self.report, call.get("function")?, &at, CALL_FUNCTION, &[])?;
        self.name(text(function, "name"), &at);
        let arguments = function.get("arguments")?;
        let parsed = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if !parsed.is_some_and(|value| value.is_object()) {
            let what = format!("{} is not a text that holds a JSON object", brief(arguments));
            self.report.add(rules::ARGUMENTS, format!("{at}.arguments"), what);
        }
        Some(())
    }

    fn part(&mut self, part: &Value, at: &str, allowed: &[&str]) -> Option<()> {
        let kind = text_of(part, "type");
        if !allowed.contains(&kind) {
            self.report.add(rules::PART_TYPE, at, format!("a part of type `{kind}` may not stand here"));
            return None;
        }
        let (table, inside, inner): (&[Member], &str, &[Member]) = match kind {
            "text" => (TEXT_PART, "", &[]),
            "refusal" => (REFUSAL_PART, "", &[]),
            "image_url" => (IMAGE_PART, "image_url", IMAGE_URL),
            "input_audio" => (AUDIO_PART, "input_audio", INPUT_AUDIO),
            _ => (FILE_PART, "file", FILE),
        };
        let part = RULES.check(&mut self.report, part, at, table, &[])?;
        let inner_value = part.get(inside)?;
        let inner_at = format!("{at}.{inside}");
        let object = RULES.check(&mut self.report, inner_value, &inner_at, inner, &[])?;
        if kind == "file" {
            let data = object.get("file_data").and_then(Value::as_str);
            // "Invalid file data: … Expected a base64-encoded data URL"; with data a filename is required.
            if data.is_some_and(|data| data_url(data).is_none()) {
                self.report.add(rules::FILE_DATA, &inner_at, "file_data is no data URL in base64");
            }
            if data.is_some() && !object.contains_key("filename") {
                self.report.add(rules::FILE_DATA, &inner_at, "file_data without a filename");
            }
            if data.is_none() && !object.contains_key("file_id") {
                self.report.add(rules::FILE_SOURCE, &inner_at, "neither file_data nor file_id");
            }
        }
        Some(())
    }

    /// "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'";
    /// "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'".
    /// <https://platform.openai.com/docs/guides/function-calling>
    fn pairing(&mut self, messages: &[Value]) {
        let mut open: Vec<&str> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let at = format!("body.messages[{index}]");
            if text_of(message, "role") == "tool" {
                let id = text_of(message, "tool_call_id");
                match open.iter().position(|call| *call == id) {
                    Some(place) => drop(open.remove(place)),
                    None => self.report.add(rules::ANSWERS, at, format!("the result `{id}` answers no open call")),
                }
                continue;
            }
            self.unanswered(&open, &at);
            open = message
                .as_object()
                .map_or(&[][..], |m| list(m, "tool_calls"))
                .iter()
                .map(|c| text_of(c, "id"))
                .collect();
        }
        self.unanswered(&open, "the end of body.messages");
    }

    fn unanswered(&mut self, open: &[&str], at: &str) {
        if !open.is_empty() {
            self.report.add(rules::ANSWERED, at, format!("the calls {open:?} are not answered before it"));
        }
    }
}

#[cfg(test)]
#[path = "../openai_chat_tests.rs"]
mod tests;
