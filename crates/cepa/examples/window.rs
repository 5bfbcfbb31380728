//! A long conversation through a window: the model is shown the newest messages, and the database keeps all of them.
//!
//! ```text
//! OPENAI_API_KEY=… cargo run -p cepa --example window openai/gpt-5.4-mini https://api.openai.com/v1 talk.db c1 8 "Read the file a.md."
//! ```
//!
//! The words are a model, its server, a database, a conversation, how many messages are shown, and what is said. The answer comes in
//! one piece, not as a stream.

use std::sync::Arc;

use cepa::{Window, Windowed, prelude::*};

/// Reads a text file in this folder.
#[tool(read_only)]
fn read_file(path: String) -> Result<String, ToolError> {
    if path.contains(['/', '\\']) {
        return Err(ToolError::semantic("only files in this folder can be read: give a name without slashes"));
    }
    std::fs::read_to_string(&path).map_err(|error| ToolError::semantic(format!("{path} cannot be read: {error}")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [model, url, db, conversation, shown, prompt] = words.as_slice() else {
        return Err("say a model, its server, a database, a conversation, a number of messages and a prompt".into());
    };
    let memory = Windowed::new(Sqlite::open(db)?, Window::messages(shown.parse()?)?);
    let agent = Agent::builder_shared(client(model, url)?).tool(read_file()).memory(memory).build()?;
    println!("{}", agent.conversation(conversation).chat(prompt.as_str()).await?.text);
    Ok(())
}

fn client(model: &str, url: &str) -> Result<Arc<dyn ChatModel>, Error> {
    match model.split_once('/') {
        Some(("openai", name)) => Ok(Arc::new(OpenAi::builder(name).base_url(url).build()?)),
        Some(("openai-responses", name)) => Ok(Arc::new(OpenAiResponses::builder(name).base_url(url).build()?)),
        Some(("anthropic", name)) => Ok(Arc::new(Anthropic::builder(name).base_url(url).build()?)),
        _ => {
            Err(Error::new(ErrorKind::InvalidConfig, format!("write {model:?} as PROVIDER/MODEL: openai/gpt-5.4-mini")))
        }
    }
}
