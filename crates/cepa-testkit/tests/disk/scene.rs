//! The agent of these tests: a call that a person decides on, a result too long for the model, and plain answers.

use std::sync::{Arc, Mutex};

use cepa_agent::{Agent, Clock, Decision, Decisions, PauseKind, TurnError, TurnOptions, TurnStore, ids};
use cepa_core::{Message, Role, Tool, ToolFlags, ToolOutput, ToolSpec};
use cepa_testkit::scripted::{Reply, ScriptedModel};

/// What bodies ran, in order.
pub(crate) type Ran = Arc<Mutex<Vec<String>>>;

fn model() -> ScriptedModel {
    ScriptedModel::choosing(|_, request| {
        let said: Vec<&Message> = request.messages.messages().collect();
        let opened = said.iter().rposition(|message| message.role() == Role::User).unwrap();
        let text = said[opened].text().into_owned();
        match said.len() - opened {
            1 if text.starts_with("go") => {
                let args = format!(r#"{{"for":"{text}"}}"#);
                Reply::text("Let me see.").call("c1", "long", &args).call("c2", "pay", &args)
            }
            _ => Reply::text(format!("the answer to {text}")),
        }
    })
}

fn tool(name: &'static str, ran: &Ran) -> Tool {
    let flags = ToolFlags { sensitive: name == "pay", ..ToolFlags::default() };
    let spec = ToolSpec::new(name, "Does it.", None).unwrap().with_flags(flags);
    let ran = ran.clone();
    Tool::new(spec, move |args, _| {
        ran.lock().unwrap().push(format!("{name} {}", args.as_str()));
        async move { Ok(ToolOutput::new(format!("{name}{}", " and more".repeat(300)))) }
    })
}

pub(crate) fn agent(store: impl TurnStore, ran: &Ran) -> Agent {
    agent_at(store, ran, 0)
}

/// An agent so many milliseconds from now.
pub(crate) fn agent_at(store: impl TurnStore, ran: &Ran, later: i64) -> Agent {
    let builder = Agent::builder(model()).tool(tool("long", ran)).tool(tool("pay", ran));
    builder
        .memory(store)
        .pausing(true)
        .max_result_chars(500)
        .clock(Clock::of(move || ids::now_ms() + later))
        .build()
        .unwrap()
}

/// One message, streamed, and all decisions that it needs.
pub(crate) async fn say(agent: &Agent, conversation: &str, text: &str) -> Result<(), TurnError> {
    agent.conversation(conversation).chat_with(text, TurnOptions::new().on_event(|_| {})).await?;
    decide(agent, conversation).await
}

/// Decides about all that waits: what may have run is answered, all else may run.
pub(crate) async fn decide(agent: &Agent, conversation: &str) -> Result<(), TurnError> {
    let conversation = agent.conversation(conversation);
    while let Some(pause) = conversation.pending().await?.into_iter().next() {
        let decision = match pause.kind {
            PauseKind::Approval => Decision::Approve,
            PauseKind::Unknown | PauseKind::Environment => Decision::Reply { content: "it ran".to_owned() },
        };
        conversation.resume(Decisions::one(&pause.id, decision)).await?;
    }
    Ok(())
}
