//! Turns through the agent, on the in-memory store: loop, gate, pauses, memory, streams.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use cepa_agent::{
    Agent, AgentBuilder, AgentEvent, Decision, Decisions, InMemory, OnExhausted, TurnOptions, TurnStatus, Verdict,
    WhilePaused, gate_fn,
};
use cepa_core::{
    CancellationToken, ErrorKind, FinishReason, Message, Role, Stage, Tool, ToolChoice, ToolError, ToolFlags,
    ToolOutput, ToolSpec, ToolStatus, pairing,
};
use cepa_testkit::scripted::{Reply, ScriptedModel};

/// What ran, as `name args`.
type Runs = Arc<Mutex<Vec<String>>>;

fn tool(name: &str, flags: ToolFlags, runs: &Runs) -> Tool {
    let runs = runs.clone();
    let spec = ToolSpec::new(name, "A test tool.", Some(r#"{"type":"object","properties":{}}"#)).unwrap();
    let name = name.to_owned();
    Tool::new(spec.with_flags(flags), move |args, _| {
        runs.lock().unwrap().push(format!("{name} {}", args.as_str()));
        let text = format!("{name} done");
        async move { Ok(ToolOutput::new(text)) }
    })
}

fn sensitive() -> ToolFlags {
    ToolFlags { sensitive: true, ..ToolFlags::default() }
}

fn agent(model: &ScriptedModel, runs: &Runs) -> AgentBuilder {
    Agent::builder(model.clone())
        .tool(tool("lookup", ToolFlags::default(), runs))
        .tool(tool("pay", sensitive(), runs))
        .memory(InMemory::new())
        .conversation_id("c")
}

fn ran(runs: &Runs) -> Vec<String> {
    runs.lock().unwrap().clone()
}

fn roles(history: &cepa_core::History) -> Vec<Role> {
    history.messages().map(Message::role).collect()
}

#[tokio::test]
async fn answers_without_tools() {
    let (model, runs) = (ScriptedModel::new([Reply::text("hello")]), Runs::default());
    let agent = agent(&model, &runs).build().unwrap();
    let result = agent.chat("hi").await.unwrap();
    assert_eq!((result.status, result.text.as_str()), (TurnStatus::Completed, "hello"));
    let history = agent.own_conversation().history().await.unwrap();
    assert_eq!(roles(&history), [Role::User, Role::Assistant]);
}

#[tokio::test]
async fn a_round_of_tools_passes_on_only_what_is_new() {
    // L2: with memory the store is the only conversation: the second call's delta is the result alone.
    let (model, runs) = (
        ScriptedModel::new([
            Reply::empty().call("c1", "lookup", "{}").call("c2", "lookup", r#"{"a":1}"#),
            Reply::text("ok"),
        ]),
        Runs::default(),
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let outside = seen.clone();
    let agent = agent(&model, &runs)
        .chat_filter(cepa_core::Chat::before("outside memory", move |request| {
            outside.lock().unwrap().push(request.messages.messages().map(Message::role).collect::<Vec<_>>());
            Ok(request)
        }))
        .build()
        .unwrap();
    let result = agent.chat("go").await.unwrap();
    assert_eq!(result.text, "ok");
    assert_eq!(ran(&runs), ["lookup {}", r#"lookup {"a":1}"#]);
    assert_eq!(*seen.lock().unwrap(), [vec![Role::User], vec![Role::Tool, Role::Tool]]);
    assert_eq!(model.requests()[1].messages.len(), 4);
    assert_eq!(result.records.len(), 2);
    let history = agent.own_conversation().history().await.unwrap();
    assert_eq!(pairing::validate(&history), Ok(()));
}

#[tokio::test]
async fn without_memory_the_turn_carries_its_transcript() {
    // M4 and L12: no memory: each request has the whole turn, and nothing stays.
    let (model, runs) = (
        ScriptedModel::new([Reply::empty().call("c1", "lookup", "{}"), Reply::text("ok"), Reply::text("again")]),
        Runs::default(),
    );
    let agent = Agent::builder(model.clone()).tool(tool("lookup", ToolFlags::default(), &runs)).build().unwrap();
    assert_eq!(agent.chat("go").await.unwrap().text, "ok");
    assert_eq!(roles(&model.requests()[1].messages), [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(agent.chat("more").await.unwrap().text, "again");
    assert_eq!(roles(&model.requests()[2].messages), [Role::User]);
    assert!(agent.store().live_turns(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_sensitive_tool_pauses_and_is_approved() {
    // L6, L7, H1: the batch waits as a whole, the pause is there before anybody is told.
    let (model, runs) = (
        ScriptedModel::new([
            Reply::empty().call("c1", "lookup", "{}").call("c2", "pay", r#"{"amount":5}"#),
            Reply::text("paid"),
        ]),
        Runs::default(),
    );
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    let agent = agent(&model, &runs)
        .on_pause(move |pauses| {
            count.fetch_add(pauses.len(), Ordering::Relaxed);
            panic!("L20: an observer that panics changes nothing");
        })
        .build()
        .unwrap();
    let result = agent.chat("go").await.unwrap();
    assert!(result.is_paused());
    assert_eq!(result.pending.iter().map(|pause| pause.call_id.as_str()).collect::<Vec<_>>(), ["c2"]);
    assert!(ran(&runs).is_empty());
    assert_eq!(told.load(Ordering::Relaxed), 1);

    let decided = Decisions::one(&result.pending[0].id, Decision::Approve);
    let result = agent.resume(decided.clone()).await.unwrap();
    assert_eq!((result.text.as_str(), result.records.len()), ("paid", 2));
    assert_eq!(ran(&runs), ["lookup {}", r#"pay {"amount":5}"#]);

    // H4: the same decision again gives the same outcome; another one is refused.
    let again = agent.resume(decided).await.unwrap();
    assert_eq!((again.status, again.text.as_str(), again.records.len()), (TurnStatus::Completed, "paid", 2));
    let other =
        agent.resume(Decisions::one(&result_pause(&agent, "c2").await, Decision::Reject { reason: None })).await;
    assert_eq!(other.unwrap_err().error.kind(), ErrorKind::AlreadyDecided);
    assert_eq!(ran(&runs).len(), 2);
}

async fn result_pause(agent: &Agent, call: &str) -> String {
    // The pause id derives from the turn's; the history's message ids name the turn.
    let history = agent.own_conversation().history().await.unwrap();
    let turn =
        history.iter().find_map(|entry| cepa_agent::ids::turn_of(entry.id.as_deref()?).map(str::to_owned)).unwrap();
    let stored = agent.store().turn(&turn).await.unwrap().unwrap();
    stored.pauses.into_iter().find(|pause| pause.call_id == call).unwrap().id
}

#[tokio::test]
async fn decisions_edit_reject_and_reply() {
    // H2, H3, H9: each decision has its own effect and its own word for the model.
    for (decision, runs_wanted, told) in [
        (Decision::edit(r#"{"amount":50}"#).unwrap(), vec![r#"pay {"amount":50}"#], "amount\":50"),
        (Decision::Reject { reason: Some("limit is 100".into()) }, vec![], "limit is 100"),
        (Decision::Reply { content: "already paid".into() }, vec![], "already paid"),
    ] {
        let (model, runs) = (
            ScriptedModel::new([Reply::empty().call("c1", "pay", r#"{"amount":500}"#), Reply::text("ok")]),
            Runs::default(),
        );
        let agent = agent(&model, &runs).pausing(true).build().unwrap();
        assert!(agent.chat("go").await.unwrap().is_paused());
        let result = agent.resume(Decisions::All(decision)).await.unwrap();
        assert_eq!(result.text, "ok");
        assert_eq!(ran(&runs), runs_wanted);
        let history = agent.own_conversation().history().await.unwrap();
        let result = history.messages().find(|message| message.role() == Role::Tool).unwrap();
        assert!(result.text().contains(told), "{}", result.text());
    }
}

#[tokio::test]
async fn a_new_message_while_paused_follows_the_policy() {
    // H6
    let script = || ScriptedModel::new([Reply::empty().call("c1", "pay", "{}"), Reply::text("hi")]);
    let (model, runs) = (script(), Runs::default());
    let cancelling = agent(&model, &runs).pausing(true).build().unwrap();
    cancelling.chat("pay").await.unwrap();
    assert_eq!(cancelling.chat("never mind").await.unwrap().text, "hi");
    assert!(ran(&runs).is_empty());
    let history = cancelling.own_conversation().history().await.unwrap();
    assert_eq!(pairing::validate(&history), Ok(()));
    let late = cancelling.resume(Decisions::approved()).await.unwrap_err();
    assert_eq!(late.error.kind(), ErrorKind::NotPaused);

    let (model, runs) = (script(), Runs::default());
    let refusing = agent(&model, &runs).pausing(true).while_paused(WhilePaused::Refuse).build().unwrap();
    refusing.chat("pay").await.unwrap();
    assert_eq!(refusing.chat("hello").await.unwrap_err().error.kind(), ErrorKind::Busy);

    let (model, runs) = (
        ScriptedModel::new([Reply::empty().call("c1", "pay", "{}"), Reply::text("paid"), Reply::text("hi")]),
        Runs::default(),
    );
    let queueing = agent(&model, &runs).pausing(true).while_paused(WhilePaused::Queue).build().unwrap();
    queueing.chat("pay").await.unwrap();
    let waiting = tokio::spawn({
        let queueing = queueing.clone();
        async move { queueing.chat("hello").await.unwrap().text }
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(queueing.resume(Decisions::approved()).await.unwrap().text, "paid");
    assert_eq!(waiting.await.unwrap(), "hi");
}

#[tokio::test]
async fn the_gate_is_asked_once_and_fails_closed() {
    // L6: one verdict per call; a gate that panics pauses.
    let (model, runs) =
        (ScriptedModel::new([Reply::empty().call("c1", "lookup", "{}"), Reply::text("no")]), Runs::default());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let agent = agent(&model, &runs)
        .gate(gate_fn(move |_| {
            let first = count.fetch_add(1, Ordering::Relaxed) == 0;
            async move { if first { panic!("broken gate") } else { Ok(Verdict::Proceed) } }
        }))
        .build()
        .unwrap();
    assert!(agent.chat("go").await.unwrap().is_paused());
    assert_eq!(agent.resume(Decisions::rejected()).await.unwrap().text, "no");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(ran(&runs).is_empty());
}

#[tokio::test]
async fn the_budget_is_n_batches_and_n_plus_one_calls() {
    // L4
    let loops = |_: usize, _: &cepa_core::ChatRequest| Reply::empty().call("c1", "lookup", "{}");
    for (policy, calls, status) in
        [(OnExhausted::Stop, 3, TurnStatus::Exhausted), (OnExhausted::Finish, 4, TurnStatus::Exhausted)]
    {
        let (model, runs) = (ScriptedModel::choosing(loops), Runs::default());
        let agent = agent(&model, &runs).max_batches(2).on_exhausted(policy).build().unwrap();
        let result = agent.chat("go").await.unwrap();
        assert_eq!((result.status, model.calls(), ran(&runs).len()), (status, calls, 2));
        let history = agent.own_conversation().history().await.unwrap();
        assert_eq!(pairing::validate(&history), Ok(()));
    }
}

#[tokio::test]
async fn a_failed_first_call_leaves_no_trace() {
    // M3
    let error = cepa_core::Error::new(ErrorKind::Server, "down");
    let (model, runs) = (ScriptedModel::new([Reply::error(error), Reply::text("hello")]), Runs::default());
    let agent = agent(&model, &runs).build().unwrap();
    assert_eq!(agent.chat("hi").await.unwrap_err().error.kind(), ErrorKind::Server);
    assert!(agent.own_conversation().history().await.unwrap().is_empty());
    agent.chat("hi").await.unwrap();
    assert_eq!(roles(&agent.own_conversation().history().await.unwrap()), [Role::User, Role::Assistant]);
}

#[tokio::test]
async fn mistakes_of_the_model_are_told_to_it() {
    // L9: unknown tool, broken arguments, a failing body, a panic: each an error result, siblings run.
    let runs = Runs::default();
    let model = ScriptedModel::new([
        Reply::empty()
            .call("c1", "lokup", "{}")
            .call("c2", "lookup", "{broken")
            .call("c3", "fails", "{}")
            .call("c4", "panics", "{}")
            .call("c5", "lookup", ""),
        Reply::text("ok"),
    ]);
    let spec = |name| ToolSpec::new(name, "", None).unwrap();
    let agent = agent(&model, &runs)
        .tool(Tool::new(spec("fails"), |_, _| async { Err(ToolError::semantic("disk full")) }))
        .tool(Tool::new(spec("panics"), |_, _| async { panic!("boom") }))
        .build()
        .unwrap();
    let result = agent.chat("go").await.unwrap();
    assert_eq!(ran(&runs), ["lookup {}"]);
    let outcomes: Vec<_> = result.records.iter().map(|record| (record.outcome, record.result.clone())).collect();
    for (at, text) in [(0, "lookup"), (1, "JSON"), (2, "disk full"), (3, "boom")] {
        assert_eq!(outcomes[at].0, ToolStatus::Error);
        assert!(outcomes[at].1.contains(text), "{}", outcomes[at].1);
    }
    assert_eq!(outcomes[4], (ToolStatus::Ok, "lookup done".to_owned()));
}

#[tokio::test]
async fn cancelled_text_is_kept_and_marked() {
    // L11
    let (model, runs) = (
        ScriptedModel::new([Reply::error(
            cepa_core::Error::new(ErrorKind::Network, "never seen").with_partial_text("Let me"),
        )]),
        Runs::default(),
    );
    drop(model);
    let model = ScriptedModel::new([
        Reply::silence().streaming([cepa_core::ChatEvent::Text("Let me".into())]),
        Reply::text("fine"),
    ]);
    let agent = agent(&model, &runs).build().unwrap();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let options = TurnOptions::new().cancel(cancel).on_event(move |event| {
        if matches!(event, AgentEvent::Text(_)) {
            stop.cancel();
        }
    });
    let result = agent.own_conversation().chat_with("go", options).await.unwrap();
    assert_eq!(result.status, TurnStatus::Cancelled);
    let history = agent.own_conversation().history().await.unwrap();
    let Some(Message::Assistant(reply)) = history.messages().nth(1) else { panic!("the partial reply is kept") };
    assert_eq!(reply.finish_reason, Some(FinishReason::Cancelled));
    assert_eq!(agent.chat("hello").await.unwrap().text, "fine");
}

#[tokio::test]
async fn a_forced_tool_choice_holds_once() {
    // L18
    let (model, runs) =
        (ScriptedModel::new([Reply::empty().call("c1", "lookup", "{}"), Reply::text("ok")]), Runs::default());
    let agent = agent(&model, &runs).tool_choice(ToolChoice::Required).build().unwrap();
    agent.chat("go").await.unwrap();
    let choices: Vec<_> = model.requests().iter().map(|request| request.tool_choice.clone()).collect();
    assert_eq!(choices, [Some(ToolChoice::Required), None]);
}

#[tokio::test]
async fn huge_results_are_cut_and_can_be_read() {
    // L16
    let runs = Runs::default();
    let model = ScriptedModel::choosing(|call, request| match call {
        0 => Reply::empty().call("c1", "dump", "{}"),
        1 => {
            let cut = request.messages.last().unwrap().message.text().into_owned();
            let id = cut.split("id \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
            assert!(request.tools.get("read_result").is_some());
            Reply::empty().call("c2", "read_result", &format!(r#"{{"id":"{id}","start":4998,"length":3}}"#))
        }
        _ => Reply::text("ok"),
    });
    let spec = ToolSpec::new("dump", "", None).unwrap();
    let agent = agent(&model, &runs)
        .tool(Tool::new(spec, |_, _| async { Ok(ToolOutput::new(format!("{}xyz", "é".repeat(4998)))) }))
        .max_result_chars(1000)
        .build()
        .unwrap();
    let result = agent.chat("go").await.unwrap();
    assert!(model.requests()[0].tools.get("read_result").is_none());
    assert!(result.records[0].result.chars().count() < 1200);
    assert_eq!(result.records[1].result, "xyz");
}

#[tokio::test]
async fn a_stream_tells_everything_in_order() {
    // L1: a stream is the same turn; nothing is spawned.
    let (model, runs) =
        (ScriptedModel::new([Reply::empty().call("c1", "lookup", "{}"), Reply::text("fine")]), Runs::default());
    let agent = agent(&model, &runs).build().unwrap();
    let mut stream = agent.chat_stream("go");
    let mut words = Vec::new();
    while let Some(event) = stream.next().await {
        words.push(match event.unwrap() {
            AgentEvent::Text(_) => "text",
            AgentEvent::ToolCallBegun { .. } => "begun",
            AgentEvent::ToolCallArguments { .. } => "arguments",
            AgentEvent::ToolCallReady { .. } => "ready",
            AgentEvent::ToolStarted { .. } => "started",
            AgentEvent::ToolFinished { .. } => "finished",
            AgentEvent::Done(result) => {
                assert_eq!(result.text, "fine");
                "done"
            }
            _ => continue,
        });
    }
    words.dedup();
    assert_eq!(words, ["begun", "arguments", "ready", "started", "finished", "text", "done"]);
}

#[tokio::test]
async fn a_paused_turn_moves_as_plain_data() {
    // H1: serialise, move, resume = resume in memory; also without any memory.
    let (model, runs) =
        (ScriptedModel::new([Reply::empty().call("c1", "pay", "{}"), Reply::text("paid")]), Runs::default());
    let build = || Agent::builder(model.clone()).tool(tool("pay", sensitive(), &runs)).pausing(true).build().unwrap();
    let state = build().chat("go").await.unwrap().state.unwrap();
    let json = serde_json::to_string(&state).unwrap();
    let state = serde_json::from_str(&json).unwrap();
    let result = build().resume_with(state, Decisions::approved(), TurnOptions::new()).await.unwrap();
    assert_eq!(result.text, "paid");
    assert_eq!(ran(&runs), ["pay {}"]);
}

#[tokio::test]
async fn turns_on_one_conversation_wait_in_order() {
    // L15
    let (model, runs) = (
        ScriptedModel::choosing(|n, _| Reply::text(format!("r{n}")).after(std::time::Duration::from_millis(5))),
        Runs::default(),
    );
    let agent = agent(&model, &runs).build().unwrap();
    let turns: Vec<_> = (0..8)
        .map(|n| {
            let agent = agent.clone();
            tokio::spawn(async move { agent.chat(format!("u{n}")).await.unwrap().text })
        })
        .collect();
    for turn in turns {
        turn.await.unwrap();
    }
    let history = agent.own_conversation().history().await.unwrap();
    assert_eq!(history.len(), 16);
    for (n, message) in history.messages().enumerate() {
        assert_eq!(message.role(), if n % 2 == 0 { Role::User } else { Role::Assistant });
    }
}

#[tokio::test]
async fn a_turn_filter_wraps_the_whole_turn() {
    // F2: the same machinery as for calls.
    let (model, runs) = (ScriptedModel::new([Reply::text("one"), Reply::text("two")]), Runs::default());
    let agent = agent(&model, &runs)
        .turn_filter(cepa_agent::Turn::around("twice", |request, next| async move {
            next.clone().run(request.clone()).await?;
            next.run(request).await
        }))
        .build()
        .unwrap();
    assert_eq!(agent.chat("go").await.unwrap().text, "two");
}

#[tokio::test]
async fn a_caller_can_drive_its_own_loop() {
    // L13: the batch is the same one function, with and without a gate.
    let runs = Runs::default();
    let kernel = cepa_core::Kernel::builder(ScriptedModel::new([]))
        .tool(tool("lookup", ToolFlags::default(), &runs))
        .tool(tool("pay", sensitive(), &runs))
        .build()
        .unwrap();
    let calls = || {
        ["lookup", "pay", "nope"].map(|name| cepa_core::ToolCall::new(name, name, cepa_core::Args::empty())).to_vec()
    };
    let batch = cepa_agent::run_tools(&kernel, calls(), &cepa_core::ToolContext::new(), None).await.unwrap();
    assert_eq!(batch.messages.len(), 3);
    assert_eq!(ran(&runs), ["lookup {}", "pay {}"]);

    let gate = gate_fn(|call| async move { Ok(if call.tool == "pay" { Verdict::pause() } else { Verdict::Proceed }) });
    let batch = cepa_agent::run_tools(&kernel, calls(), &cepa_core::ToolContext::new(), Some(gate)).await.unwrap();
    assert_eq!((batch.messages.len(), batch.waiting.len()), (0, 1));
    assert_eq!(ran(&runs).len(), 2);

    let gate = gate_fn(|_| async { Ok(Verdict::reject()) });
    let batch = cepa_agent::run_tools(&kernel, calls(), &cepa_core::ToolContext::new(), Some(gate)).await.unwrap();
    assert_eq!(batch.records.iter().filter(|record| record.outcome == ToolStatus::Rejected).count(), 2);
}

#[tokio::test]
async fn reading_tools_run_together_and_writes_fold_in_call_order() {
    // L8: neighbours that only read run side by side on a snapshot; the others see what came before them.
    let spec = |name, flags: ToolFlags| ToolSpec::new(name, "", None).unwrap().with_flags(flags);
    let meet = Arc::new(tokio::sync::Barrier::new(2));
    let reads = ToolFlags { read_only: true, ..ToolFlags::default() };
    let reader = |name: &'static str| {
        let meet = meet.clone();
        Tool::new(spec(name, reads.clone()), move |_, context| {
            let meet = meet.clone();
            async move {
                // Comes back only if the other one is there too.
                meet.wait().await;
                let seen: Option<String> = context.get("by");
                context.set("by", name)?;
                Ok(ToolOutput::new(seen.unwrap_or_default()))
            }
        })
    };
    let writer = Tool::new(spec("writer", ToolFlags::default()), |_, context| async move {
        let seen: Option<String> = context.get("by");
        context.set("by", "writer")?;
        Ok(ToolOutput::new(seen.unwrap_or_default()))
    });
    let model = ScriptedModel::new([
        Reply::empty()
            .call("c1", "one", "{}")
            .call("c2", "two", "{}")
            .call("c3", "writer", "{}")
            .call("c4", "writer", "{}"),
        Reply::text("ok"),
    ]);
    let agent = Agent::builder(model).tool(reader("one")).tool(reader("two")).tool(writer).build().unwrap();
    let result = tokio::time::timeout(std::time::Duration::from_secs(5), agent.chat("go")).await.unwrap().unwrap();
    let seen: Vec<_> = result.records.iter().map(|record| record.result.as_str()).collect();
    assert_eq!(seen, ["", "", "two", "writer"]);
    assert_eq!(result.context.get::<String>("by").as_deref(), Some("writer"));
}

#[tokio::test]
async fn a_tool_outside_the_tags_is_not_offered_and_does_not_run() {
    // L5: what was not offered is an unknown tool, also when the model names it.
    let runs = Runs::default();
    let model = ScriptedModel::new([Reply::empty().call("c1", "pay", "{}"), Reply::text("ok")]);
    let tagged = ToolFlags { tags: vec!["safe".into()], ..ToolFlags::default() };
    let agent = Agent::builder(model.clone())
        .tool(tool("lookup", tagged, &runs))
        .tool(tool("pay", ToolFlags::default(), &runs))
        .build()
        .unwrap();
    let options = TurnOptions::new().tags(["safe"]);
    let result = agent.own_conversation().chat_with("go", options).await.unwrap();
    assert_eq!(model.requests()[0].tools.len(), 1);
    assert!(ran(&runs).is_empty());
    assert!(result.records[0].result.contains("lookup"));
}

#[tokio::test]
async fn arguments_changed_after_a_decision_are_refused() {
    // L5: the terminal compares what runs with what was decided on.
    let (model, runs) =
        (ScriptedModel::new([Reply::empty().call("c1", "pay", r#"{"amount":5}"#), Reply::text("ok")]), Runs::default());
    let agent = agent(&model, &runs)
        .pausing(true)
        .tool_filter(Tool::before("rewrite", |mut request| {
            request.call.args = cepa_core::Args::decode(r#"{"amount":500}"#);
            Ok(request)
        }))
        .build()
        .unwrap();
    let paused = agent.chat("go").await.unwrap();
    assert_eq!(paused.pending[0].args.as_str(), r#"{"amount":5}"#);
    let result = agent.resume(Decisions::approved()).await.unwrap();
    assert_eq!(result.records[0].outcome, ToolStatus::Error);
    assert!(ran(&runs).is_empty());
}

#[tokio::test]
async fn an_idempotent_body_is_tried_again_and_another_is_not() {
    // F9, L10, D3: a transient failure is repeated under the same key only where the tool says that it may be.
    for (idempotent, attempts) in [(true, 3), (false, 1)] {
        let keys = Arc::new(Mutex::new(Vec::new()));
        let (seen, flags) = (keys.clone(), ToolFlags { idempotent, ..ToolFlags::default() });
        let flaky = Tool::new(ToolSpec::new("flaky", "", None).unwrap().with_flags(flags), move |_, context| {
            let mut seen = seen.lock().unwrap();
            seen.push(context.idempotency_key().unwrap().to_owned());
            let result =
                if seen.len() < 3 { Err(ToolError::transient("not yet")) } else { Ok(ToolOutput::new("done")) };
            async move { result }
        });
        let model = ScriptedModel::new([Reply::empty().call("c1", "flaky", "{}"), Reply::text("ok")]);
        let agent = Agent::builder(model).tool(flaky).build().unwrap();
        let result = agent.chat("go").await.unwrap();
        let keys = keys.lock().unwrap();
        assert_eq!(keys.len(), attempts);
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(result.records[0].outcome == ToolStatus::Ok, idempotent);
    }
}

#[tokio::test]
async fn an_environment_failure_waits_for_repair() {
    // L10: with pausing on a person is asked; approving runs only the failed call again.
    let broken = Arc::new(AtomicUsize::new(0));
    let (runs, count) = (Runs::default(), broken.clone());
    let disk = Tool::new(ToolSpec::new("disk", "", None).unwrap(), move |_, _| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if first { Err(ToolError::environment("disk full")) } else { Ok(ToolOutput::new("written")) } }
    });
    let model =
        ScriptedModel::new([Reply::empty().call("c1", "disk", "{}").call("c2", "lookup", "{}"), Reply::text("ok")]);
    let agent = agent(&model, &runs).tool(disk).pausing(true).build().unwrap();
    let paused = agent.chat("go").await.unwrap();
    assert_eq!(paused.pending[0].kind, cepa_agent::PauseKind::Environment);
    assert_eq!(paused.pending[0].reason.as_deref(), Some("disk full"));
    assert_eq!(ran(&runs), ["lookup {}"]);
    let result = agent.resume(Decisions::approved()).await.unwrap();
    assert_eq!(result.records[0].result, "written");
    assert_eq!((broken.load(Ordering::Relaxed), ran(&runs).len()), (2, 1));
}

#[tokio::test]
async fn a_filters_own_model_call_has_its_own_sink() {
    // F7: what a filter asks the model by itself never appears in the caller's stream.
    let (model, runs) = (ScriptedModel::new([Reply::text("secret plan"), Reply::text("answer")]), Runs::default());
    let agent = agent(&model, &runs)
        .chat_filter(
            cepa_core::Chat::around("plan", |request, next| async move {
                let mut own = request.clone();
                own.events = cepa_core::EventSink::none();
                own.context = cepa_core::ToolContext::new();
                next.clone().run(own).await?;
                next.run(request).await
            })
            .order(200),
        )
        .build()
        .unwrap();
    let mut stream = agent.chat_stream("go");
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        if let AgentEvent::Text(piece) = event.unwrap() {
            text.push_str(&piece);
        }
    }
    assert_eq!(text, "answer");
}

#[tokio::test]
async fn a_message_is_stored_with_its_reply_and_results_before_the_call() {
    // M2: what opens a turn waits for the reply; results are facts and are there before the model is called again.
    let (model, runs) =
        (ScriptedModel::new([Reply::empty().call("c1", "lookup", "{}"), Reply::text("ok")]), Runs::default());
    let store = InMemory::new();
    let (seen, stored) = (Arc::new(Mutex::new(Vec::new())), store.clone());
    let kept = seen.clone();
    let agent = agent(&model, &runs)
        .memory(store)
        .chat_filter(
            cepa_core::Chat::around("inside memory", move |request, next| {
                let (kept, stored) = (kept.clone(), stored.clone());
                async move {
                    let (_, history) = cepa_agent::load_whole(&stored, "c").await?;
                    kept.lock().unwrap().push(roles(&history));
                    next.run(request).await
                }
            })
            .order(200),
        )
        .build()
        .unwrap();
    agent.chat("go").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [vec![], vec![Role::User, Role::Assistant, Role::Tool]]);
}

#[tokio::test]
async fn a_listener_that_panics_changes_nothing() {
    // L20: also for events; `on_pause` that panics is in the test of the pause above.
    let (model, runs) =
        (ScriptedModel::new([Reply::empty().call("c1", "lookup", "{}"), Reply::text("ok")]), Runs::default());
    let agent = agent(&model, &runs).on_event(|_| panic!("a broken listener")).build().unwrap();
    let result = agent.chat("go").await.unwrap();
    assert_eq!((result.text.as_str(), ran(&runs).len()), ("ok", 1));
}
