//! An approval that survives a restart: run it, see it wait, run it again with `approve`.
//!
//! ```text
//! OPENAI_API_KEY=… cargo run -p cepa --example approval
//! OPENAI_API_KEY=… cargo run -p cepa --example approval approve
//! ```

use cepa::prelude::*;

/// Pays an amount in euros to somebody.
#[tool(sensitive)]
async fn pay(to: String, amount: u32) -> String {
    format!("{amount} euros were paid to {to}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = OpenAi::builder("gpt-5.4-mini").build()?;
    let agent = Agent::builder(model).tool(pay()).memory(Sqlite::open("approval.db")?).pausing(true).build()?;
    let conversation = agent.conversation("bills");
    let result = match std::env::args().nth(1) {
        Some(_) => conversation.resume(Decisions::approved()).await?,
        None => conversation.chat("Pay 40 euros to Anna.").await?,
    };
    for pause in &result.pending {
        println!("waits: {} {}", pause.tool, pause.args);
    }
    println!("{:?}: {}", result.status, result.text);
    Ok(())
}
