//! cepa's public API: an agent with an in-memory store, with SQLite (`db=`), or without memory (`memory=false`).

use std::path::Path;

use ::cepa::{SqliteOptions, Synchronous, prelude::*};
use meter::{ADD_SCHEMA, Client, Result, SYSTEM, Work, tool_name};
use serde::Deserialize;

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

/// An agent.
#[derive(Clone)]
pub struct Cepa {
    agent: Agent,
    has_memory: bool,
}

fn tool(index: usize) -> Result<Tool> {
    let spec = ToolSpec::new(&tool_name(index), "Adds two integers.", Some(ADD_SCHEMA))?;
    Ok(Tool::new(spec, |args, _| async move {
        let Numbers { a, b } = args.read().map_err(ToolError::semantic)?;
        Ok(ToolOutput::new((a + b).to_string()))
    }))
}

fn sqlite(path: &Path, full: bool) -> Result<Sqlite> {
    let synchronous = if full { Synchronous::Full } else { Synchronous::Normal };
    Ok(Sqlite::open_with(path, SqliteOptions::default().synchronous(synchronous))?)
}

impl Client for Cepa {
    type Talk = Conversation;

    async fn new(work: &Work, model: &str) -> Result<Self> {
        let model = OpenAi::builder(model).base_url(work.base_url()).api_key("sk-none").build()?;
        let tools = (0..work.tools).map(tool).collect::<Result<Vec<_>>>()?;
        let builder = Agent::builder(model).system_prompt(SYSTEM).tools(tools);
        let builder = match &work.db {
            Some(path) => builder.memory(sqlite(path, work.full)?),
            None if work.memory => match work.hot {
                Some(bytes) => builder.memory(InMemory::new().hot_bytes(bytes)).hot_bytes(bytes),
                None => builder.memory(InMemory::new()),
            },
            None => builder,
        };
        Ok(Self { agent: builder.build()?, has_memory: work.memory })
    }

    async fn open(&self, id: &str) -> Result<Conversation> {
        Ok(if self.has_memory { self.agent.conversation(id) } else { self.agent.own_conversation() })
    }

    async fn turn(&self, talk: &mut Conversation, text: &str) -> Result<String> {
        Ok(talk.chat(text).await?.text)
    }

    async fn stream(&self, talk: &mut Conversation, text: &str) -> Result<usize> {
        let (mut stream, mut chunks) = (talk.chat_stream(text), 0);
        while let Some(event) = stream.next().await {
            if let AgentEvent::Text(text) = event? {
                chunks += usize::from(!text.is_empty());
            }
        }
        Ok(chunks)
    }

    async fn stored_bytes(&self, talk: &Conversation) -> Result<Option<usize>> {
        let history = talk.history().await?;
        let sizes = history.messages().map(|message| Ok(serde_json::to_vec(message)?.len()));
        Ok(Some(sizes.sum::<Result<usize>>()?))
    }
}
