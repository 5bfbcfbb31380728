//! The same work through cepa's public API: an agent with an in-memory store, a fresh conversation each turn.

use std::sync::atomic::{AtomicU64, Ordering};

use cepa::prelude::*;
use clients::{ADD_SCHEMA, MODEL, SYSTEM, USER, base_url, measure};
use serde::Deserialize;

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = OpenAi::builder(MODEL).base_url(base_url()?).api_key("sk-none").build()?;
    let spec = ToolSpec::new("add", "Adds two integers.", Some(ADD_SCHEMA))?;
    let add = Tool::new(spec, |args, _| async move {
        let Add { a, b } = args.read().map_err(ToolError::semantic)?;
        Ok(ToolOutput::new((a + b).to_string()))
    });
    let agent = Agent::builder(model).system_prompt(SYSTEM).tool(add).memory(InMemory::new()).build()?;
    let conversations = AtomicU64::new(0);
    measure("cepa", || {
        let conversation = agent.conversation(conversations.fetch_add(1, Ordering::Relaxed).to_string());
        async move { Ok(conversation.chat(USER).await?.text) }
    })
    .await
}
