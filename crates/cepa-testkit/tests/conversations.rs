//! Random programs over a conversation: chat, pause, decide, cancel, drop, restart, in any order, on every store.
//! Whatever happened, both wires can send what is left, and nothing that was shown to a person ran otherwise.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cepa_agent::{
    Agent, AgentEvent, Decision, Decisions, InMemory, Pause, Siblings, TurnOptions, TurnStatus, TurnStore, WhilePaused,
    Window, Windowed,
};
use cepa_core::{
    CancellationToken, ChatRequest, ErrorKind, FinishReason, History, Message, Origin, Role, Tool, ToolFlags,
    ToolOutput, ToolSpec, pairing,
};
use cepa_providers::wire::{Dialect, anthropic::AnthropicMessages, openai_chat::OpenAiChat};
use cepa_store::Sqlite;
use cepa_testkit::{
    arbitrary::Rng,
    scripted::{Reply, ScriptedModel},
    validate,
};

/// What ran: tool, arguments, idempotency key.
type Runs = Arc<Mutex<Vec<(String, String, String)>>>;

/// One program: a store, the seed of everything random, what ran and what was decided.
struct Program {
    store: Arc<dyn TurnStore>,
    rng: Rng,
    seed: u64,
    runs: Runs,
    decided: HashMap<String, (Pause, Decision)>,
    texts: u64,
}

fn tool(name: &'static str, flags: ToolFlags, runs: &Runs) -> Tool {
    let runs = runs.clone();
    let spec = ToolSpec::new(name, "", Some(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#)).unwrap();
    Tool::new(spec.with_flags(flags), move |args, context| {
        let key = context.idempotency_key().unwrap().to_owned();
        runs.lock().unwrap().push((name.to_owned(), args.as_str().to_owned(), key));
        async move {
            if name == "slow" {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            Ok(ToolOutput::new(format!("{name} {}", args.as_str())))
        }
    })
}

impl Program {
    fn agent(&mut self) -> Agent {
        let seeds = AtomicU64::new(self.rng.next_u64());
        let model = ScriptedModel::choosing(move |_, request| {
            let mut rng = Rng::new(seeds.fetch_add(1, Ordering::Relaxed));
            reply(&mut rng, request)
        });
        let sensitive = ToolFlags { sensitive: true, ..ToolFlags::default() };
        let reads = ToolFlags { read_only: true, ..ToolFlags::default() };
        let idempotent = ToolFlags { idempotent: true, ..ToolFlags::default() };
        Agent::builder(model)
            .tool(tool("pay", sensitive, &self.runs))
            .tool(tool("look", reads, &self.runs))
            .tool(tool("slow", ToolFlags::default(), &self.runs))
            .tool(tool("put", idempotent, &self.runs))
            .memory_shared(self.store.clone())
            .pausing(self.rng.chance(80))
            .siblings(self.rng.pick(&[Siblings::Hold, Siblings::RunOthers]))
            .while_paused(if self.rng.chance(80) { WhilePaused::Cancel } else { WhilePaused::Refuse })
            .max_batches(3)
            .lease(Duration::from_millis(100))
            .lease_wait(Duration::from_secs(5))
            .build()
            .unwrap()
    }

    async fn run(&mut self, steps: usize) {
        let mut agent = self.agent();
        for step in 0..steps {
            match self.rng.below(10) {
                0..4 => self.chat(&agent).await,
                4..8 => self.decide(&agent).await,
                8 => agent = self.agent(),
                _ => {
                    // A recovered turn calls the model too, and the model may be down.
                    let recovered = agent.conversation("c").recover().await;
                    self.accept(recovered.map(|_| TurnStatus::Completed));
                }
            }
            self.check(&agent, step).await;
        }
    }

    async fn chat(&mut self, agent: &Agent) {
        self.texts += 1;
        let conversation = agent.conversation("c");
        let text = format!("message {}", self.texts);
        let cancel = CancellationToken::new();
        match self.rng.below(4) {
            // Let it go where nobody waits for it any more, or stop it at some event.
            0 => {
                let wait = Duration::from_micros(self.rng.below(4000) as u64);
                drop(tokio::time::timeout(wait, conversation.chat(text)).await);
            }
            1 => {
                let (stop, after) = (cancel.clone(), AtomicU64::new(self.rng.below(6) as u64));
                let options = TurnOptions::new().cancel(cancel).on_event(move |_: &AgentEvent| {
                    if after.fetch_sub(1, Ordering::Relaxed) == 0 {
                        stop.cancel();
                    }
                });
                self.accept(conversation.chat_with(text, options).await.map(|result| result.status));
            }
            _ => self.accept(conversation.chat(text).await.map(|result| result.status)),
        }
    }

    fn accept(&self, outcome: Result<TurnStatus, cepa_agent::TurnError>) {
        if let Err(error) = outcome {
            let kind = error.error.kind();
            let known = [ErrorKind::Busy, ErrorKind::Server, ErrorKind::NotPaused, ErrorKind::AlreadyDecided];
            assert!(known.contains(&kind), "seed {}: {error:?}", self.seed);
        }
    }

    async fn decide(&mut self, agent: &Agent) {
        let pending = agent.conversation("c").pending().await.unwrap();
        let old: Vec<Pause> = self.decided.values().map(|(pause, _)| pause.clone()).collect();
        let choices = if pending.is_empty() || self.rng.chance(15) { old } else { pending };
        if choices.is_empty() {
            return;
        }
        let pause = choices[self.rng.below(choices.len())].clone();
        let decision = match self.rng.below(4) {
            0 => Decision::Approve,
            1 => Decision::edit(&format!(r#"{{"n":{}}}"#, self.rng.below(1000) + 1000)).unwrap(),
            2 => Decision::Reject { reason: Some("no".into()) },
            _ => Decision::Reply { content: "a person's answer".into() },
        };
        let outcome = agent.conversation("c").resume(Decisions::one(&pause.id, decision.clone())).await;
        if let Some((_, before)) = self.decided.get(&pause.id) {
            // H4: the first decision stands.
            if *before != decision {
                let kind = outcome.unwrap_err().error.kind();
                assert!(matches!(kind, ErrorKind::AlreadyDecided | ErrorKind::NotPaused), "seed {}", self.seed);
            }
            return;
        }
        let stored = self.store.pause(&pause.id).await.unwrap().unwrap();
        if stored.decision.as_ref() == Some(&decision) {
            self.decided.insert(pause.id.clone(), (pause, decision));
        }
        self.accept(outcome.map(|result| result.status));
    }

    async fn check(&self, agent: &Agent, step: usize) {
        let at = format!("seed {} step {step}", self.seed);
        // First this: a write of a dropped future may still land, and then the turn is over with all its messages.
        let live = self.store.live_turns(Some("c")).await.unwrap();
        let history = agent.conversation("c").history().await.unwrap();
        let healed = pairing::heal(&history);
        assert_eq!(pairing::validate(&healed), Ok(()), "M6 {at}");
        assert_eq!(pairing::heal(&healed), healed, "M6 {at}");
        if live.is_empty() {
            // L3, L11: a turn that is over leaves nothing open.
            assert_eq!(pairing::validate(&history), Ok(()), "{at}: {history:?}");
        }
        let ids: Vec<_> = history.iter().map(|entry| entry.id.clone().unwrap()).collect();
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(ids.len(), distinct.len(), "M1 {at}: a message is doubled");
        both_wires_take(&history, &at);
        for window in [1, 3, 7] {
            let view = Windowed::new(self.store.clone(), Window::messages(window).unwrap());
            let (_, shown) = cepa_agent::load_whole(&view, "c").await.unwrap();
            let shown = pairing::heal(&shown);
            let first = shown.messages().find(|message| message.role() != Role::System);
            assert!(first.is_none_or(|first| first.role() == Role::User), "M5 {at} window {window}: {shown:?}");
            both_wires_take(&shown, &format!("{at} window {window}"));
        }
        self.check_runs(&at);
    }

    fn check_runs(&self, at: &str) {
        let runs = self.runs.lock().unwrap();
        let mut keys: HashMap<&str, Vec<&(String, String, String)>> = HashMap::new();
        for run in runs.iter() {
            keys.entry(&run.2).or_default().push(run);
        }
        for (key, runs) in &keys {
            let repeatable = ["look", "put"].contains(&runs[0].0.as_str());
            // A person may send a call with an unknown outcome again: only then does it run more than once.
            let asked_again = self.decided.values().any(|(pause, decision)| {
                key.ends_with(&format!("-{}-{}", pause.key.batch, pause.key.idx))
                    && key.starts_with(&pause.turn)
                    && pause.kind == cepa_agent::PauseKind::Unknown
                    && matches!(decision, Decision::Approve | Decision::Edit { .. })
            });
            assert!(runs.len() == 1 || repeatable || asked_again, "D2 {at}: {key} ran {} times", runs.len());
        }
        for (pause, decision) in self.decided.values() {
            let key = format!("{}-{}-{}", pause.turn, pause.key.batch, pause.key.idx);
            let ran: Vec<&str> = keys.get(key.as_str()).into_iter().flatten().map(|run| run.1.as_str()).collect();
            match decision {
                Decision::Approve => assert!(ran.iter().all(|args| *args == pause.args.as_str()), "L5 {at}"),
                Decision::Edit { args } if pause.kind == cepa_agent::PauseKind::Approval => {
                    assert!(ran.iter().all(|ran| ran == args), "H2 {at}: {ran:?} {args}");
                }
                Decision::Edit { .. } => {}
                Decision::Reject { .. } | Decision::Reply { .. } => {
                    let approval = pause.kind == cepa_agent::PauseKind::Approval;
                    assert!(!approval || ran.is_empty(), "H3 {at}: a rejected call ran");
                }
            }
        }
    }
}

/// A reply as odd as a model's: calls of known and unknown tools, broken arguments, repeated ids, cuts, failures.
fn reply(rng: &mut Rng, request: &ChatRequest) -> Reply {
    let after_tools = request.messages.last().is_some_and(|last| last.message.role() == Role::Tool);
    if rng.chance(5) {
        return Reply::error(cepa_core::Error::new(ErrorKind::Server, "down"));
    }
    let mut reply = match rng.below(3) {
        0 => Reply::empty(),
        1 => Reply::text("some text"),
        _ => Reply::text(""),
    };
    if after_tools && rng.chance(50) || rng.chance(20) {
        return Reply::text("an answer");
    }
    for n in 0..1 + rng.below(4) {
        let name = rng.pick(&["pay", "look", "slow", "put", "pay", "nope"]);
        let args = rng.pick(&["{}", r#"{"n":1}"#, r#"{"n": 2}"#, r#"{"n":"x"}"#, r#"{"n":"#, ""]);
        let id = rng.pick(&["call_0", "call_1", "id with spaces", "x"]);
        reply = reply.call(format!("{id}{n}"), name, args);
    }
    if rng.chance(10) { reply.finish(FinishReason::Length) } else { reply }
}

fn body(wire: &impl Dialect, request: &ChatRequest) -> serde_json::Value {
    let pieces = wire.encode(request).unwrap();
    serde_json::from_slice(&pieces.concat()).unwrap()
}

fn both_wires_take(history: &History, at: &str) {
    if history.is_empty() {
        return;
    }
    let mut messages = pairing::heal(history);
    if messages.last().is_some_and(|last| last.message.role() == Role::Assistant) {
        messages.push(Message::user("go on"));
    }
    let request = ChatRequest::new(messages);
    let origin = || Origin { provider: "p".into(), model: "m".into() };
    let openai = body(&OpenAiChat::new(origin(), Default::default()), &request);
    let violations = validate::openai_chat::validate(&openai);
    assert!(violations.is_empty(), "{at}: {}\n{openai}", validate::list(&violations));
    let anthropic = body(&AnthropicMessages::new(origin()), &request);
    let violations = validate::anthropic::validate(&anthropic);
    assert!(violations.is_empty(), "{at}: {}\n{anthropic}", validate::list(&violations));
}

async fn program(store: Arc<dyn TurnStore>, seed: u64) {
    let rng = Rng::new(seed);
    let mut program = Program { store, rng, seed, runs: Runs::default(), decided: HashMap::new(), texts: 0 };
    program.run(14).await;
}

/// The first seed; set it to run one program again.
fn first_seed() -> u64 {
    std::env::var("CEPA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

// FR-036, FR-040: whatever was paused, decided and resumed, each call stands once, with its result.
#[tokio::test]
async fn any_program_leaves_what_both_wires_take_in_memory() {
    // Goal 1; L3, L11, L17, M1, M5, M6, H2, H3, H4, D2.
    for seed in first_seed()..first_seed() + 150 {
        program(Arc::new(InMemory::new()), seed).await;
    }
}

#[tokio::test]
async fn any_program_leaves_what_both_wires_take_on_sqlite() {
    // The same programs; each commit is synced to disk, hence fewer of them.
    let folder = tempfile::tempdir().unwrap();
    for seed in first_seed()..first_seed() + 25 {
        let store = Sqlite::open(folder.path().join(format!("{seed}.db"))).unwrap();
        program(Arc::new(store), seed).await;
    }
}
