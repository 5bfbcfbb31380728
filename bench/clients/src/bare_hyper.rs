//! The lowest floor: one hyper connection for each conversation in work, the history kept as the bytes to send, replies
//! parsed in place into borrowed structs. On a database it holds what it has sent, and asks whether that is still all.

use std::{
    borrow::Cow,
    io::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use meter::{Client, Result, SYSTEM, Work, tools_json};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

use crate::db::Db;

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<ChunkChoice<'a>>,
}

#[derive(Deserialize)]
struct ChunkChoice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

type Connection = SendRequest<Full<Bytes>>;

/// The loop with what it needs.
#[derive(Clone)]
pub struct BareHyper(Arc<Parts>);

struct Parts {
    address: String,
    /// Everything before the messages.
    head: [String; 2],
    /// Connections that nobody uses now.
    free: Mutex<Vec<Connection>>,
    db: Option<Db>,
}

/// A conversation: its messages as JSON with a comma before each, and where each begins in it.
pub struct Talk {
    id: String,
    json: Vec<u8>,
    starts: Vec<usize>,
}

impl Talk {
    fn push(&mut self, message: std::fmt::Arguments<'_>) -> Result<()> {
        self.starts.push(self.json.len());
        Ok(self.json.write_fmt(message)?)
    }

    fn push_text(&mut self, role: &str, text: &str) -> Result<()> {
        self.push(format_args!(r#",{{"role":"{role}","content":"#))?;
        serde_json::to_writer(&mut self.json, text)?;
        self.json.push(b'}');
        Ok(())
    }

    /// The messages from one on, each without its comma.
    fn messages_from(&self, first: usize) -> Result<Vec<&str>> {
        let starts = self.starts.get(first..).unwrap_or_default();
        let ends = starts.iter().skip(1).copied().chain([self.json.len()]);
        starts.iter().zip(ends).map(|(start, end)| Ok(std::str::from_utf8(&self.json[start + 1..end])?)).collect()
    }
}

impl Parts {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connection(&self) -> Result<Connection> {
        if let Some(connection) = self.free().pop() {
            return Ok(connection);
        }
        let socket = TcpStream::connect(&self.address).await?;
        socket.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(socket)).await?;
        tokio::spawn(driver);
        Ok(connection)
    }

    async fn send(&self, connection: &mut Connection, talk: &Talk, stream: bool) -> Result<Incoming> {
        let head = &self.head[usize::from(stream)];
        let mut body = Vec::with_capacity(head.len() + talk.json.len() + 2);
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&talk.json);
        body.extend_from_slice(b"]}");
        let request = Request::post("/v1/chat/completions")
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("authorization", "Bearer x")
            .body(Full::new(body.into()))?;
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        if !response.status().is_success() {
            return Err(format!("the server answered {}", response.status()).into());
        }
        Ok(response.into_body())
    }

    /// Calls the model until it calls no tool any more.
    async fn answer(&self, talk: &mut Talk) -> Result<String> {
        let mut connection = self.connection().await?;
        loop {
            let body = self.send(&mut connection, talk, false).await?.collect().await?.to_bytes();
            let reply: Reply = serde_json::from_slice(&body)?;
            let message = &reply.choices.first().ok_or("no choice")?.message;
            let Some(raw) = message.tool_calls else {
                let text = message.content.as_deref().unwrap_or_default();
                talk.push_text("assistant", text)?;
                self.free().push(connection);
                return Ok(text.to_owned());
            };
            talk.push(format_args!(r#",{{"role":"assistant","content":null,"tool_calls":{}}}"#, raw.get()))?;
            for call in serde_json::from_str::<Vec<Call>>(raw.get())? {
                if call.function.name != "add" {
                    return Err("no such tool".into());
                }
                let Add { a, b } = serde_json::from_str(&call.function.arguments)?;
                talk.push(format_args!(r#",{{"role":"tool","content":"{}","tool_call_id":"{}"}}"#, a + b, call.id))?;
            }
        }
    }
}

impl Client for BareHyper {
    type Talk = Talk;

    async fn new(work: &Work, model: &str) -> Result<Self> {
        let tools = tools_json(work.tools);
        let head = ["", r#""stream":true,"#].map(|stream| {
            let system = format!(r#"{{"role":"system","content":"{SYSTEM}"}}"#);
            format!(r#"{{"model":"{model}",{stream}"tools":{tools},"messages":[{system}"#)
        });
        let db = work.db.as_ref().map(|path| Db::open(path, work)).transpose()?;
        let (address, free) = (work.address().to_owned(), Mutex::default());
        Ok(Self(Arc::new(Parts { address, head, free, db })))
    }

    async fn open(&self, id: &str) -> Result<Talk> {
        Ok(Talk { id: id.to_owned(), json: Vec::new(), starts: Vec::new() })
    }

    async fn turn(&self, talk: &mut Talk, text: &str) -> Result<String> {
        let had = talk.starts.len();
        if let Some(db) = &self.0.db {
            if !db.is_at(&talk.id, had)? {
                return Err("somebody else wrote to the conversation".into());
            }
            db.begin(&talk.id, text)?;
        }
        talk.push_text("user", text)?;
        let answer = self.0.answer(talk).await?;
        if let Some(db) = &self.0.db {
            db.end(&talk.id, had, talk.messages_from(had)?)?;
        }
        Ok(answer)
    }

    async fn stream(&self, talk: &mut Talk, text: &str) -> Result<usize> {
        talk.push_text("user", text)?;
        let mut connection = self.0.connection().await?;
        let mut body = self.0.send(&mut connection, talk, true).await?;
        let (mut chunks, mut answer, mut buffer) = (0, String::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(bytes) = frame?.into_data() else { continue };
            buffer.extend_from_slice(&bytes);
            let mut done = 0;
            while let Some(length) = buffer[done..].iter().position(|byte| *byte == b'\n') {
                let line = &buffer[done..done + length];
                done += length + 1;
                let Some(data) = line.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") else { continue };
                let chunk: Chunk = serde_json::from_slice(data)?;
                let text = chunk.choices.first().and_then(|choice| choice.delta.content.as_deref());
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    chunks += 1;
                    answer.push_str(text);
                }
            }
            buffer.drain(..done);
        }
        self.0.free().push(connection);
        talk.push_text("assistant", &answer)?;
        Ok(chunks)
    }
}
