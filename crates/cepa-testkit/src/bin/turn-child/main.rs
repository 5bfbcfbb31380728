//! One process of the tests of durability: it opens an SQLite file, does what it is told, says what is true from now on,
//! and dies where it is told to. It judges nothing.

#![allow(clippy::print_stdout, reason = "what it says is what it is for")]

mod kill_at;
mod model;
mod program;
mod task;
mod tools;

use std::{
    io::Write,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use cepa_agent::{
    Agent, AgentEvent, Conversation, Decision, Decisions, Pause, PauseKind, TurnError, TurnOptions, TurnResult,
    TurnStore, WhilePaused,
};
use cepa_core::Error;
use cepa_store::{Options, Sqlite};
use cepa_testkit::{arbitrary::Rng, watched::Watched};

use kill_at::KillAt;
use model::Asked;
use task::{Said, Task, What};

/// The most characters of a result that the model is given.
const RESULT_CHARS: usize = 400;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task: Task = serde_json::from_str(&std::env::args().nth(1).ok_or("the task is missing")?)?;
    say(&Said::Ready);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let child = Child::new(task)?;
        child.run().await?;
        say(&Said::Writes { writes: child.store.writes() });
        Ok(())
    })
}

/// Says something at once: what was said stays said, whatever happens to the process.
fn say(said: &Said) {
    let mut line = serde_json::to_string(said).unwrap_or_default();
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    // Whoever started us is gone: then nobody needs to know.
    let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
}

struct Child {
    task: Task,
    store: Watched<Sqlite>,
    agent: Agent,
    asked: Asked,
}

impl Child {
    fn new(task: Task) -> Result<Self, Error> {
        let pace = Duration::from_millis(task.pace_ms);
        // Many processes on a busy machine: none is to fail because all others were quicker for five seconds.
        let options = Options::default().busy_timeout(Duration::from_secs(60));
        let store = Watched::new(Sqlite::open_with(&task.database, options)?, Arc::new(KillAt(task.kill)));
        let asked = Asked::default();
        let agent = Agent::builder(model::model(task.program, pace, asked.clone()))
            .tools(tools::all(&task.ran, pace)?)
            .memory(store.clone())
            .pausing(task.pausing)
            .while_paused(if task.refuse { WhilePaused::Refuse } else { WhilePaused::Cancel })
            .max_result_chars(RESULT_CHARS)
            .lease(Duration::from_millis(task.lease_ms))
            .lease_wait(Duration::from_millis(task.lease_wait_ms))
            .on_event(|event| {
                if let AgentEvent::ToolFinished { id, status, .. } = event {
                    say(&Said::Finished { call: id.clone(), status: status.as_str().to_owned() });
                }
            })
            .build()?;
        Ok(Self { task, store, agent, asked })
    }

    async fn run(&self) -> Result<(), Error> {
        match &self.task.what {
            What::Chat { conversation, text } => self.chat(conversation, text).await,
            What::Recover { conversation } => match self.agent.conversation(conversation).recover().await {
                Ok(None) => {}
                Ok(Some(result)) => self.tell(None, Ok(result), Instant::now()),
                Err(error) => self.tell(None, Err(error), Instant::now()),
            },
            What::Sweep => {
                for result in self.agent.recover().await? {
                    self.tell(None, result, Instant::now());
                }
            }
            What::Decide { conversation } => self.decide(&self.agent.conversation(conversation)).await?,
            What::Write { conversations, messages, name } => {
                for (number, conversation) in conversations.iter().cycle().take(*messages).enumerate() {
                    self.chat(conversation, &format!("go {name} {number}")).await;
                }
            }
        }
        Ok(())
    }

    async fn chat(&self, conversation: &str, text: &str) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let from = Instant::now();
        let done = self.agent.conversation(conversation).chat_with(text, self.options()).await;
        self.tell(Some(text), done, from);
    }

    fn options(&self) -> TurnOptions {
        let options = TurnOptions::new().actor("a child");
        if self.task.streamed { options.on_event(|_| {}) } else { options }
    }

    async fn decide(&self, conversation: &Conversation) -> Result<(), Error> {
        while let Some(pause) = conversation.pending().await?.into_iter().next() {
            let decision = self.decision(&pause)?;
            let decided = Decisions::one(&pause.id, decision);
            let done = conversation.resume_with_options(decided, self.options()).await;
            let failed = done.is_err();
            if let Some(pause) = self.store.pause(&pause.id).await?.filter(|pause| pause.decision.is_some()) {
                say(&Said::Decided { pause: pause.id, state: pause.state.as_str().to_owned() });
            }
            self.tell(None, done, Instant::now());
            if failed {
                break;
            }
        }
        Ok(())
    }

    /// What the person of this seed says: the same each time the same is asked.
    fn decision(&self, pause: &Pause) -> Result<Decision, Error> {
        let asked = format!("{} {} {}", pause.kind.as_str(), pause.key.batch, pause.key.idx);
        let mut rng =
            Rng::new(asked.bytes().fold(self.task.seed, |seed, byte| seed * 31 % 1_000_003 + u64::from(byte)));
        let reject = Decision::Reject { reason: Some("no".to_owned()) };
        let reply = Decision::Reply { content: "a person's answer".to_owned() };
        Ok(match (pause.kind, rng.below(3)) {
            (_, 0) => Decision::Approve,
            (PauseKind::Approval, 1) => Decision::edit(r#"{"n":1001}"#)?,
            (PauseKind::Unknown | PauseKind::Environment, 1) => reply,
            _ => reject,
        })
    }

    fn tell(&self, input: Option<&str>, done: Result<TurnResult, TurnError>, from: Instant) {
        let micros =
            |since: Instant| u64::try_from(since.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX);
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let input = input.map(str::to_owned);
        say(&match done {
            Ok(result) => Said::Done {
                input,
                turn: result.turn,
                status: result.status.as_str().to_owned(),
                text: result.text,
                wait_us: asked.map_or(0, micros),
                took_us: micros(Instant::now()),
            },
            Err(TurnError { error, .. }) => Said::Failed {
                input,
                kind: error.kind().to_string(),
                code: error.code().map(str::to_owned),
                message: error.to_string(),
            },
        });
    }
}
