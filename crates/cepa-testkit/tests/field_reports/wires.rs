//! The dialects under test, by catalog name, each with its judge; and what a body says, whatever its dialect.

use std::sync::{Arc, Mutex};

use cepa_core::{
    ChatEvent, ChatRequest, ChatResponse, Error, EventSink, History, Message, Origin, Tool, ToolOutput, ToolSet,
    ToolSpec,
};
use cepa_providers::{
    catalog::Endpoint as Catalog,
    wire::{
        Dialect, anthropic::AnthropicMessages, gemini::GenerateContent, openai_chat::OpenAiChat,
        openai_responses::Responses, reply::ReplyDecoder,
    },
};
use cepa_testkit::validate::{
    self, Violation, anthropic, gemini,
    openai_chat::{self, Endpoint},
    openai_responses,
};
use serde_json::Value;

/// Every dialect, and of chat completions every kind of server.
pub(crate) const ALL: &[&str] =
    &["openai", "deepseek", "mistral", "ollama", "llama.cpp", "anthropic", "gemini", "openai-responses"];

type Streamed = (Result<ChatResponse, Error>, Vec<ChatEvent>);

type Judge = Box<dyn Fn(&Value) -> Vec<Violation>>;

/// Any dialect, without its type.
trait Spoken {
    fn bytes(&self, request: &ChatRequest) -> Result<Vec<u8>, Error>;
    fn whole(&self, body: &[u8]) -> Result<ChatResponse, Error>;
    fn stream(&self, body: &[u8]) -> Streamed;
}

impl<D: Dialect> Spoken for D {
    fn bytes(&self, request: &ChatRequest) -> Result<Vec<u8>, Error> {
        Ok(self.encode(request)?.concat())
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse, Error> {
        self.decode(body)
    }

    fn stream(&self, body: &[u8]) -> Streamed {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&heard);
        let sink = EventSink::new(move |event| events.lock().unwrap().push(event));
        let mut reply = ReplyDecoder::new(self, sink);
        let result = reply.push(body).and_then(|()| reply.finish());
        (result, std::mem::take(&mut *heard.lock().unwrap()))
    }
}

/// A dialect for one provider.
pub(crate) struct Wire {
    pub(crate) name: &'static str,
    dialect: Box<dyn Spoken>,
    judge: Judge,
}

pub(crate) fn all() -> impl Iterator<Item = Wire> {
    ALL.iter().map(|name| Wire::named(name))
}

impl Wire {
    pub(crate) fn named(name: &'static str) -> Self {
        match name {
            "anthropic" => Self::of(name, AnthropicMessages::new(origin(name)), anthropic::validate),
            "openai-responses" => {
                Self::of(name, Responses::new(origin(name), Default::default()), openai_responses::validate)
            }
            "gemini" => Self::of(name, GenerateContent::new(origin(name)), gemini::validate),
            _ => {
                let quirks = (Catalog::named(name).unwrap().quirks)();
                let endpoint = Endpoint {
                    call_members: if name == "gemini-openai" { &["extra_content"] } else { &[] },
                    ..Endpoint::of(&quirks)
                };
                let judge = move |body: &Value| openai_chat::validate_for(body, endpoint);
                Self::of(name, OpenAiChat::new(origin(name), quirks), judge)
            }
        }
    }

    fn of(name: &'static str, dialect: impl Dialect, judge: impl Fn(&Value) -> Vec<Violation> + 'static) -> Self {
        Self { name, dialect: Box::new(dialect), judge: Box::new(judge) }
    }

    /// The text of a body that the provider takes.
    pub(crate) fn text(&self, request: &ChatRequest) -> String {
        let body = self.dialect.bytes(request).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let text = String::from_utf8(body).unwrap();
        let problems = (self.judge)(&serde_json::from_str(&text).unwrap());
        assert!(problems.is_empty(), "{}:\n{}\n{text}", self.name, validate::list(&problems));
        text
    }

    /// A body that the provider takes.
    pub(crate) fn body(&self, request: &ChatRequest) -> Value {
        serde_json::from_str(&self.text(request)).unwrap()
    }

    /// The body of a request with these messages.
    pub(crate) fn sent(&self, messages: &[Message]) -> Value {
        self.body(&request(messages))
    }

    pub(crate) fn read(&self, body: &Value) -> Result<ChatResponse, Error> {
        self.dialect.whole(body.to_string().as_bytes())
    }

    /// A reply as it is kept in a conversation.
    pub(crate) fn replied(&self, body: &Value) -> Message {
        Message::Assistant(self.read(body).unwrap().message)
    }

    /// The outcome of a stream of these data, and the events that were heard.
    pub(crate) fn streamed<T: AsRef<str>>(&self, data: &[T]) -> Streamed {
        let events: String = data.iter().map(|data| format!("data: {}\n\n", data.as_ref())).collect();
        self.dialect.stream(events.as_bytes())
    }
}

pub(crate) fn origin(name: &str) -> Origin {
    let model = if name == "gemini" { "gemini-3-flash" } else { "m" };
    Origin { provider: name.into(), model: model.into() }
}

pub(crate) fn request(messages: &[Message]) -> ChatRequest {
    ChatRequest::new(History::from(messages.to_vec()))
}

/// A set of tools with these names and schemas.
pub(crate) fn tools(list: &[(&str, Option<&str>)]) -> ToolSet {
    let tool = |(name, schema): &(&str, Option<&str>)| {
        let spec = ToolSpec::new(name, "What it does.", *schema).unwrap();
        Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })
    };
    ToolSet::new(list.iter().map(tool)).unwrap()
}

/// What a body says of calls and results, in its order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Who speaks, turn by turn.
    pub(crate) roles: Vec<String>,
    /// Id and arguments of each call.
    pub(crate) calls: Vec<(String, Value)>,
    /// Id and text of each result.
    pub(crate) results: Vec<(String, String)>,
}

impl Seen {
    pub(crate) fn of(body: &Value) -> Self {
        let mut seen = Self::default();
        let turns = ["messages", "contents", "input"].iter().find_map(|name| body.get(*name)?.as_array());
        for turn in turns.unwrap() {
            seen.roles.push(match turn["type"].as_str() {
                Some("function_call") => "assistant".to_owned(),
                Some("function_call_output") => "tool".to_owned(),
                Some("reasoning") => continue,
                _ => word(&turn["role"]),
            });
            seen.item(turn);
            seen.chat(turn);
            for block in ["content", "parts"].iter().filter_map(|name| turn[name].as_array()).flatten() {
                seen.block(block);
            }
        }
        seen
    }

    fn chat(&mut self, message: &Value) {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let args = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            self.calls.push((word(&call["id"]), args));
        }
        if message["role"] == "tool" {
            self.results.push((word(&message["tool_call_id"]), word(&message["content"])));
        }
    }

    fn item(&mut self, item: &Value) {
        if item["type"] == "function_call" {
            let args = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
            self.calls.push((word(&item["call_id"]), args));
        }
        if item["type"] == "function_call_output" {
            self.results.push((word(&item["call_id"]), said(&item["output"])));
        }
    }

    fn block(&mut self, block: &Value) {
        if block["type"] == "tool_use" {
            self.calls.push((word(&block["id"]), block["input"].clone()));
        }
        if block["type"] == "tool_result" {
            self.results.push((word(&block["tool_use_id"]), said(&block["content"])));
        }
        if let Some(call) = block.get("functionCall") {
            self.calls.push((word(&call["id"]), call.get("args").cloned().unwrap_or_else(|| serde_json::json!({}))));
        }
        if let Some(response) = block.get("functionResponse") {
            let texts = response["response"].as_object().unwrap().values().map(said);
            self.results.push((word(&response["id"]), texts.collect()));
        }
    }

    /// The texts of the results.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.results.iter().map(|(_, text)| text.as_str()).collect()
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A text, or the texts of blocks.
fn said(value: &Value) -> String {
    match value {
        Value::Array(blocks) => blocks.iter().map(|block| word(&block["text"])).collect(),
        value => word(value),
    }
}
