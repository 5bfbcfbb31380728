//! rig: its agent with the tool loop, without memory, with rig-memory's store, or with rig-sqlite's.

use futures::StreamExt;
use meter::{ADD_SCHEMA, Client, Result, SYSTEM, Work, tool_name};
use rig::{
    agent::MultiTurnStreamItem,
    prelude::*,
    providers::openai::OpenAIConfig,
    streaming::{Item, StreamEvent},
    tool::{Tool, ToolContext, ToolExecutionError},
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

struct Add;

impl Tool for Add {
    const NAME: &'static str = "add";
    type Error = ToolExecutionError;
    type Args = Numbers;
    type Output = i64;

    fn description(&self) -> String {
        "Adds two integers.".to_owned()
    }

    fn parameters(&self) -> Value {
        serde_json::from_str(ADD_SCHEMA).unwrap_or_default()
    }

    async fn call(
        &self,
        _: &mut ToolContext,
        Numbers { a, b }: Numbers,
    ) -> std::result::Result<i64, ToolExecutionError> {
        Ok(a + b)
    }
}

/// An agent.
#[derive(Clone)]
pub struct Rig {
    agent: rig::Agent,
    has_memory: bool,
}

/// A conversation: its id, where there is a memory.
pub struct Talk(Option<String>);

impl Client for Rig {
    type Talk = Talk;

    async fn new(work: &Work, model: &str) -> Result<Self> {
        if work.tools != 1 {
            return Err(format!("{} is the only tool here", tool_name(0)).into());
        }
        let mut config = OpenAIConfig::new("x");
        config.base_url = work.base_url();
        let builder = AgentBuilder::new(config.client().chat(model)).preamble(SYSTEM).tool(Add).default_max_turns(30);
        let builder = match &work.db {
            Some(path) => {
                let connection = tokio_rusqlite::Connection::open(path).await?;
                let synchronous = if work.full { "full" } else { "normal" };
                let pragmas = format!("pragma journal_mode = wal; pragma synchronous = {synchronous};");
                connection.call(move |connection| Ok(connection.execute_batch(&pragmas)?)).await?;
                builder.memory(rig::sqlite::SqliteSessionStore::open(connection).await?)
            }
            None if work.memory => builder.memory(rig::memory::MemoryStore::default()),
            None => builder,
        };
        Ok(Self { agent: builder.build(), has_memory: work.memory })
    }

    async fn open(&self, id: &str) -> Result<Talk> {
        Ok(Talk(self.has_memory.then(|| id.to_owned())))
    }

    async fn turn(&self, Talk(id): &mut Talk, text: &str) -> Result<String> {
        let prompt = self.agent.prompt(text);
        let reply = match id {
            Some(id) => prompt.conversation(id.as_str()).await?,
            None => prompt.await?,
        };
        Ok(reply.output().to_owned())
    }

    async fn stream(&self, Talk(id): &mut Talk, text: &str) -> Result<usize> {
        let prompt = self.agent.prompt(text);
        let mut stream = match id {
            Some(id) => prompt.conversation(id.as_str()).stream(),
            None => prompt.stream(),
        };
        let mut chunks = 0;
        while let Some(item) = stream.next().await {
            if let MultiTurnStreamItem::StreamAssistantItem(Item::Event(StreamEvent::Text { text, .. })) = item? {
                chunks += usize::from(!text.is_empty());
            }
        }
        Ok(chunks)
    }
}
