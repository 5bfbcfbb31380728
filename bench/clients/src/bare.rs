//! The practical floor: reqwest, typed serde structs, the whole history serialised for each call, no framework.
//! On a database it reads the conversation anew for each turn.

use std::sync::Arc;

use meter::{Client, Result, SYSTEM, Work, tools_json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::db::Db;

#[derive(Serialize, Deserialize, Clone)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Serialize, Deserialize, Clone)]
struct Call {
    id: String,
    r#type: String,
    function: Function,
}

#[derive(Serialize, Deserialize, Clone, Default)]
struct Message {
    role: String,
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: &'a [Message],
    tools: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[derive(Deserialize)]
struct Reply {
    choices: Vec<Choice>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<ChunkChoice>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

fn message(role: &str, content: impl Into<String>) -> Message {
    Message { role: role.into(), content: Some(content.into()), ..Message::default() }
}

/// The loop with what it needs.
#[derive(Clone)]
pub struct Bare(Arc<Parts>);

struct Parts {
    http: reqwest::Client,
    url: String,
    model: String,
    tools: Box<RawValue>,
    db: Option<Db>,
}

/// A conversation: its id and its messages.
pub struct Talk {
    id: String,
    messages: Vec<Message>,
}

impl Parts {
    async fn send(&self, messages: &[Message], stream: bool) -> Result<reqwest::Response> {
        let body = serde_json::to_vec(&Request { model: &self.model, messages, tools: &self.tools, stream })?;
        let request = self.http.post(&self.url).header("content-type", "application/json");
        Ok(request.header("authorization", "Bearer x").body(body).send().await?.error_for_status()?)
    }

    /// Calls the model until it calls no tool any more.
    async fn answer(&self, messages: &mut Vec<Message>) -> Result<String> {
        let mut tokens = 0;
        loop {
            let response = self.send(messages, false).await?;
            let reply: Reply = serde_json::from_slice(&response.bytes().await?)?;
            tokens += reply.usage.prompt_tokens + reply.usage.completion_tokens;
            let reply = reply.choices.into_iter().next().ok_or("no choice")?.message;
            messages.push(reply.clone());
            if reply.tool_calls.is_empty() {
                std::hint::black_box(tokens);
                return Ok(reply.content.unwrap_or_default());
            }
            for call in reply.tool_calls {
                if call.function.name != "add" {
                    return Err("no such tool".into());
                }
                let Add { a, b } = serde_json::from_str(&call.function.arguments)?;
                messages.push(Message { tool_call_id: Some(call.id), ..message("tool", (a + b).to_string()) });
            }
        }
    }

    /// The turn of a conversation that is kept in the database.
    async fn turn_on_disk(&self, db: &Db, id: &str, text: &str) -> Result<String> {
        let mut messages = vec![message("system", SYSTEM)];
        db.load(id, |body| {
            messages.push(serde_json::from_str(body)?);
            Ok(())
        })?;
        let had = messages.len();
        db.begin(id, text)?;
        messages.push(message("user", text));
        let answer = self.answer(&mut messages).await?;
        let new = messages.get(had..).unwrap_or_default();
        let bodies = new.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>()?;
        db.end(id, had - 1, bodies.iter().map(String::as_str))?;
        Ok(answer)
    }
}

impl Client for Bare {
    type Talk = Talk;

    async fn new(work: &Work, model: &str) -> Result<Self> {
        let url = format!("{}/chat/completions", work.base_url());
        let tools = RawValue::from_string(tools_json(work.tools))?;
        let db = work.db.as_ref().map(|path| Db::open(path, work)).transpose()?;
        Ok(Self(Arc::new(Parts { http: reqwest::Client::new(), url, model: model.to_owned(), tools, db })))
    }

    async fn open(&self, id: &str) -> Result<Talk> {
        Ok(Talk { id: id.to_owned(), messages: vec![message("system", SYSTEM)] })
    }

    async fn turn(&self, talk: &mut Talk, text: &str) -> Result<String> {
        match &self.0.db {
            Some(db) => self.0.turn_on_disk(db, &talk.id, text).await,
            None => {
                talk.messages.push(message("user", text));
                self.0.answer(&mut talk.messages).await
            }
        }
    }

    async fn stream(&self, talk: &mut Talk, text: &str) -> Result<usize> {
        talk.messages.push(message("user", text));
        let mut response = self.0.send(&talk.messages, true).await?;
        let (mut chunks, mut answer, mut buffer) = (0, String::new(), Vec::new());
        while let Some(bytes) = response.chunk().await? {
            buffer.extend_from_slice(&bytes);
            let mut done = 0;
            while let Some(length) = buffer[done..].iter().position(|byte| *byte == b'\n') {
                let line = &buffer[done..done + length];
                done += length + 1;
                let Some(data) = line.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") else { continue };
                let chunk: Chunk = serde_json::from_slice(data)?;
                let text = chunk.choices.into_iter().next().and_then(|choice| choice.delta.content);
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    chunks += 1;
                    answer.push_str(&text);
                }
            }
            buffer.drain(..done);
        }
        talk.messages.push(message("assistant", answer));
        Ok(chunks)
    }
}
