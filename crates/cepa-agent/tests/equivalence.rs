//! One loop: without a gate it is plain invoke; with one that lets everything run, and with one that pauses and is
//! approved, the same comes of it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::sync::Arc;

use cepa_agent::{
    Agent, AgentBuilder, Decisions, InMemory, Record, TurnResult, TurnStatus, Verdict, gate_fn, run_tools,
};
use cepa_core::{
    ChatRequest, FinishReason, History, Kernel, Message, Tool, ToolContext, ToolError, ToolFlags, ToolOutput, ToolSpec,
    ToolStatus, Usage,
};
use cepa_testkit::scripted::{Reply, ScriptedModel};

fn tools() -> Vec<Tool> {
    let spec = |name: &str, flags: ToolFlags| {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
        ToolSpec::new(name, "Does it.", Some(schema)).unwrap().with_flags(flags)
    };
    let sensitive = ToolFlags { sensitive: true, ..ToolFlags::default() };
    let reads = ToolFlags { read_only: true, ..ToolFlags::default() };
    vec![
        Tool::new(spec("work", ToolFlags::default()), |args, context: ToolContext| async move {
            let seen: Option<String> = context.get("seen");
            context.set("seen", args.as_str()).map_err(|error| ToolError::semantic(error.to_string()))?;
            Ok(ToolOutput::new(format!("worked on {} after {seen:?}", args.as_str())))
        }),
        Tool::new(spec("look", reads), |args, _| async move { Ok(ToolOutput::new(format!("saw {}", args.as_str()))) }),
        Tool::new(
            spec("pay", sensitive),
            |args, _| async move { Ok(ToolOutput::new(format!("paid {}", args.as_str()))) },
        ),
        Tool::new(spec("fail", ToolFlags::default()), |_, _| async {
            Err::<ToolOutput, _>(ToolError::semantic("no such thing"))
        }),
    ]
}

/// The scripts that all loops are given.
fn scripts() -> Vec<Vec<Reply>> {
    let usage = Usage { input: 3, output: 5, ..Usage::default() };
    vec![
        vec![Reply::text("hello").usage(usage)],
        vec![Reply::text("I look.").call("a", "look", r#"{"n":1}"#).usage(usage), Reply::text("seen").usage(usage)],
        vec![
            Reply::empty().call("a", "work", r#"{"n":1}"#).call("b", "work", r#"{ "n": 2 }"#),
            Reply::empty().call("a", "work", "").call("b", "look", r#"{"n":3}"#).call("c", "look", r#"{"n":4}"#),
            Reply::text("all done"),
        ],
        vec![
            Reply::empty().call("a", "nothing", "{}").call("b", "fail", "{}").call("c", "work", r#"{"n":"#),
            Reply::empty().call("d", "work", r#"{"n":"one"}"#).call("e", "pay", r#"{"n":1.0}"#),
            Reply::empty().call("f", "pay", r#"{"n":1}"#).call("g", "work", r#"{"n":1}"#),
            Reply::text("done"),
        ],
    ]
}

/// What must be the same.
#[derive(Debug, PartialEq)]
struct Came {
    messages: Vec<Message>,
    records: Vec<(String, String, ToolStatus, String)>,
    text: String,
}

fn records(records: &[Record]) -> Vec<(String, String, ToolStatus, String)> {
    let plain = |r: &Record| (r.id.clone(), r.name.clone(), r.outcome, r.result.clone());
    records.iter().map(plain).collect()
}

/// A loop by hand, of the two primitives.
async fn by_hand(script: Vec<Reply>) -> Came {
    let kernel = Kernel::builder(ScriptedModel::new(script)).tools(tools()).build().unwrap();
    let mut history = History::new();
    history.push(Message::user("go"));
    let (mut context, mut done) = (ToolContext::new(), Vec::new());
    loop {
        let request = ChatRequest {
            messages: history.clone(),
            tools: kernel.list_tools().clone(),
            context: context.clone(),
            ..ChatRequest::default()
        };
        let response = kernel.invoke_chat(request).await.unwrap();
        let mut reply = response.message;
        reply.finish_reason = reply.finish_reason.or(Some(response.finish_reason));
        reply.usage = reply.usage.or(response.usage);
        let calls = reply.tool_calls.clone();
        let text = reply.content.as_ref().map(|content| content.text().into_owned()).unwrap_or_default();
        history.push(Message::Assistant(reply));
        if calls.is_empty() {
            return Came { messages: history.messages().cloned().collect(), records: records(&done), text };
        }
        let batch = run_tools(&kernel, calls, &context, None).await.unwrap();
        done.extend(batch.records);
        context = batch.context;
        for result in batch.messages {
            history.push(result);
        }
    }
}

async fn by_agent(script: Vec<Reply>, set: impl Fn(AgentBuilder) -> AgentBuilder) -> (Came, usize) {
    let builder = Agent::builder(ScriptedModel::new(script)).tools(tools()).memory(InMemory::new());
    let agent = set(builder).build().unwrap();
    let conversation = agent.conversation("c");
    let mut result: TurnResult = conversation.chat("go").await.unwrap();
    let mut pauses = 0;
    while result.is_paused() {
        pauses += result.pending.len();
        result = conversation.resume(Decisions::approved()).await.unwrap();
    }
    assert_eq!(result.status, TurnStatus::Completed);
    let messages = conversation.history().await.unwrap().messages().cloned().collect();
    (Came { messages, records: records(&result.records), text: result.text }, pauses)
}

#[tokio::test]
async fn without_a_gate_the_loop_is_plain_invoke() {
    // L6, L13: also for tools that are called sensitive
    for script in scripts() {
        let (came, pauses) = by_agent(script.clone(), |builder| builder).await;
        assert_eq!((came, pauses), (by_hand(script).await, 0));
    }
}

#[tokio::test]
async fn a_gate_that_lets_everything_run_changes_nothing() {
    // L6
    for script in scripts() {
        let gate = gate_fn(|_| async { Ok(Verdict::Proceed) });
        let allowed = |builder: AgentBuilder| builder.gate(gate.clone()).allow(|_| true);
        assert_eq!(by_agent(script.clone(), allowed).await, (by_hand(script).await, 0));
    }
}

#[tokio::test]
async fn pauses_that_are_approved_change_nothing() {
    // L1, L6, L7, H7: sensitive tools only, and then every call that can run.
    let everything = gate_fn(|_| async { Ok(Verdict::Pause { reason: None }) });
    for (n, script) in scripts().into_iter().enumerate() {
        let expected = by_hand(script.clone()).await;
        let sensitive = by_agent(script.clone(), |builder| builder.pausing(true)).await;
        assert_eq!(sensitive, (by_hand(script.clone()).await, [0, 0, 0, 2][n]));
        let gate = Arc::clone(&everything);
        let (came, pauses) = by_agent(script, |builder| builder.gate(gate.clone())).await;
        assert_eq!((came, pauses), (expected, [0, 1, 5, 4][n]));
    }
}

#[test]
fn the_scripts_reach_every_end() {
    // What this file compares is not empty: replies with text, calls that run, that fail, that cannot run.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let all: Vec<Came> = runtime.block_on(async {
        let mut all = Vec::new();
        for script in scripts() {
            all.push(by_hand(script).await);
        }
        all
    });
    let outcomes: Vec<ToolStatus> = all.iter().flat_map(|came| came.records.iter().map(|record| record.2)).collect();
    assert!(outcomes.contains(&ToolStatus::Ok) && outcomes.contains(&ToolStatus::Error), "{outcomes:?}");
    assert!(all.iter().all(|came| !came.text.is_empty()));
    let finish = |message: &Message| match message {
        Message::Assistant(reply) => reply.finish_reason,
        _ => None,
    };
    assert!(all[1].messages.iter().filter_map(finish).eq([FinishReason::ToolCalls, FinishReason::Stop]));
}
