//! The ready filters: what each does, and that it does the same streamed and not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cepa_agent::{
    Agent, AgentBuilder, AgentEvent, InMemory, TurnOptions, TurnStore,
    filters::{Answer, Approval, Errors, Logging, Timeout},
};
use cepa_core::{
    Args, CancellationToken, Error, ErrorKind, Kernel, Message, Stage, Tool, ToolCall, ToolContext, ToolError,
    ToolFailure, ToolOutput, ToolRequest, ToolResponse, ToolSpec, ToolStatus,
};
use cepa_testkit::scripted::{Reply, ScriptedModel};

/// A tool that does what its argument says: `ok`, `fail`, `transient`, `environment`, `panic`, `hang`.
fn work() -> Tool {
    let schema = r#"{"type":"object","properties":{"do":{"type":"string"}},"required":["do"]}"#;
    Tool::new(ToolSpec::new("work", "Works.", Some(schema)).unwrap(), |args, context| async move {
        context.set("worked", true)?;
        match args.to_value()["do"].as_str().unwrap() {
            "fail" => Err(ToolError::semantic("no such file")),
            "transient" => Err(ToolError::transient("try later")),
            "environment" => Err(ToolError::environment("disk full")),
            "panic" => panic!("at the disk"),
            "hang" => std::future::pending().await,
            _ => Ok(ToolOutput::new("worked")),
        }
    })
}

fn request(what: &str) -> ToolRequest {
    let args = Args::of(&serde_json::json!({ "do": what }));
    let context = ToolContext::new().with_conversation("c").for_call("key");
    ToolRequest { tool: work(), call: ToolCall::new("c1", "work", args), context, decided: None }
}

fn kernel(filter: impl cepa_core::Filter<Tool>) -> Kernel {
    Kernel::builder(ScriptedModel::new([])).tool(work()).tool_filter(filter).build().unwrap()
}

async fn run(filter: impl cepa_core::Filter<Tool>, what: &str) -> Result<(ToolStatus, String, bool), Error> {
    let ToolResponse { output, writes } = kernel(filter).invoke_tool(request(what)).await?;
    Ok((output.status, output.content.text().into_owned(), !writes.is_empty()))
}

#[tokio::test]
async fn a_bodys_error_becomes_a_result() {
    // F10: `errors`.
    let result = |status, text: &str, wrote| Ok((status, text.to_owned(), wrote));
    let same = |got: Result<_, Error>, expected: Result<_, Error>| assert_eq!(got.unwrap(), expected.unwrap());
    same(run(Errors::new(), "ok").await, result(ToolStatus::Ok, "worked", true));
    same(run(Errors::new(), "fail").await, result(ToolStatus::Error, "no such file", false));
    same(run(Errors::new(), "transient").await, result(ToolStatus::Error, "try later", false));
    same(run(Errors::new(), "panic").await, result(ToolStatus::Error, "the tool panicked: at the disk", false));
    // What a person can repair stays an error, unless told otherwise.
    let error = run(Errors::new(), "environment").await.unwrap_err();
    assert_eq!(error.tool_failure(), Some(ToolFailure::Environment));
    same(run(Errors::all(), "environment").await, result(ToolStatus::Error, "disk full", false));
    // What is not the body's failure stays an error.
    let broken = Tool::before("broken", |_| Err(Error::new(ErrorKind::Cancelled, "cancelled"))).order(5);
    let kernel = kernel(Errors::all()).to_builder().tool_filter(broken).build().unwrap();
    assert_eq!(kernel.invoke_tool(request("ok")).await.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_a_transient_failure() {
    // F10: `timeout`.
    let limit = || Timeout::after(Duration::from_secs(5));
    assert!(run(limit(), "ok").await.is_ok());
    let error = run(limit(), "hang").await.unwrap_err();
    assert_eq!((error.kind(), error.tool_failure()), (ErrorKind::Tool, Some(ToolFailure::Transient)));
    assert_eq!(error.message(), "Timed out after 5s: the call was stopped.");
    // Another filter's time counts too, and what the inside left running elsewhere is told to stop.
    let told: Arc<Mutex<Option<CancellationToken>>> = Arc::default();
    let tell = told.clone();
    let slow = Tool::around("slow", move |request: ToolRequest, next| {
        *tell.lock().unwrap() = Some(request.context.cancel().clone());
        async move {
            tokio::time::sleep(Duration::from_secs(6)).await;
            next.run(request).await
        }
    });
    let kernel = kernel(limit()).to_builder().tool_filter(slow.order(1)).build().unwrap();
    let request = request("ok");
    let outer = request.context.cancel().clone();
    assert!(kernel.invoke_tool(request).await.is_err());
    assert!(told.lock().unwrap().as_ref().unwrap().is_cancelled() && !outer.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_model_call_that_takes_too_long_is_a_timeout() {
    // F10: `timeout`; the token that the caller gets back is his own.
    let model = ScriptedModel::new([Reply::text("late").after(Duration::from_secs(60)), Reply::text("in time")]);
    let kernel = Kernel::builder(model).chat_filter(Timeout::after(Duration::from_secs(5))).build().unwrap();
    let ask = || {
        let context = ToolContext::new().with_cancel(CancellationToken::new());
        cepa_core::ChatRequest { context, ..cepa_core::ChatRequest::new(vec![Message::user("hi")]) }
    };
    let error = kernel.invoke_chat(ask()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
    let request = ask();
    let mine = request.context.cancel().clone();
    let response = kernel.invoke_chat(request).await.unwrap();
    mine.cancel();
    assert!(response.context.cancel().is_cancelled());
}

#[tokio::test]
async fn somebody_is_asked_on_the_spot() {
    // F10: `approval`; a refusal becomes a rejected result and the body does not run.
    assert_eq!(run(Approval::asking(|_| async { true }), "ok").await.unwrap().0, ToolStatus::Ok);
    let (status, text, wrote) = run(Approval::asking(|_| async { false }), "ok").await.unwrap();
    assert_eq!(
        (status, text.as_str(), wrote),
        (ToolStatus::Rejected, "Rejected: this call was not allowed and did not run.", false)
    );
    let because = |_| async { Answer::Refuse { reason: Some("too risky".into()) } };
    assert!(run(Approval::asking(because), "ok").await.unwrap().1.ends_with("Reason: too risky"));
    // Only some tools; one that is not asked about is not shown.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let ask = Approval::asking(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { false }
    });
    let sensitive = |tool: &Tool| tool.flags().sensitive;
    assert_eq!(run(ask.clone().only(sensitive), "ok").await.unwrap().0, ToolStatus::Ok);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    // A question that cannot be asked is a no.
    let broken = Approval::asking(|call| async move { if call.name == "work" { panic!("no terminal") } else { true } });
    assert_eq!(run(broken, "ok").await.unwrap().0, ToolStatus::Rejected);
    // Tests have no terminal.
    if !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        let (status, text, _) = run(Approval::terminal(), "ok").await.unwrap();
        assert!(status == ToolStatus::Rejected && text.contains("no terminal"));
    }
}

#[tokio::test]
async fn what_was_allowed_is_what_runs() {
    // H7: a filter further inside cannot change what was shown; cancelling ends the wait.
    let change = Tool::before("change", |mut request| {
        request.call.args = Args::of(&serde_json::json!({"do": "other"}));
        Ok(request)
    });
    let allow = kernel(Approval::asking(|_| async { true }));
    let kernel = allow.to_builder().tool_filter(change.order(1)).build().unwrap();
    let error = kernel.invoke_tool(request("ok")).await.unwrap_err();
    assert!(error.message().contains("changed after the decision"), "{error}");

    let never = allow_never();
    let mut request = request("ok");
    let cancel = CancellationToken::new();
    request.context = request.context.with_cancel(cancel.clone());
    cancel.cancel();
    assert_eq!(never.invoke_tool(request).await.unwrap_err().kind(), ErrorKind::Cancelled);
}

fn allow_never() -> Kernel {
    kernel(Approval::asking(|_| std::future::pending::<bool>()))
}

/// Everything that a caller and a store see of one turn, without ids and times.
async fn seen(mount: &dyn Fn(AgentBuilder) -> AgentBuilder, stream: bool) -> Vec<String> {
    let model = ScriptedModel::new([
        Reply::text("Let me see. ").call("c1", "work", r#"{"do":"ok"}"#).call("c2", "work", r#"{"do":"fail"}"#),
        Reply::empty().call("c3", "work", r#"{"do":"hang"}"#),
        Reply::text("It is done."),
    ]);
    let store = InMemory::new();
    let agent = Agent::builder(model.clone()).tool(work()).memory(store.clone()).conversation_id("c");
    // What hangs is stopped, if not by the filter then in the end by the caller.
    let cancel = CancellationToken::new();
    let (options, later) = (TurnOptions::new().cancel(cancel.clone()), cancel);
    let agent = mount(agent).build().unwrap();
    let conversation = agent.own_conversation();
    let turn = async {
        if stream {
            let mut events = conversation.chat_stream_with("go", options);
            let mut text = String::new();
            while let Some(event) = events.next().await {
                match event {
                    Ok(AgentEvent::Text(piece)) => text.push_str(&piece),
                    Ok(AgentEvent::Reset) => text.clear(),
                    Ok(AgentEvent::Done(result)) => {
                        assert!(text.ends_with(&result.text), "what was streamed is what came: {text}");
                        return Ok(*result);
                    }
                    Ok(_) => {}
                    Err(error) => return Err(error),
                }
            }
            panic!("the stream ended without an end");
        } else {
            conversation.chat_with("go", options).await
        }
    };
    let give_up = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        later.cancel();
        std::future::pending().await
    };
    let result = tokio::select! { result = turn => result, () = give_up => unreachable!() };
    let (end, records) = match result {
        Ok(result) => (format!("{:?} `{}` {:?}", result.status, result.text, result.usage), result.records),
        Err(failed) => (format!("{}", failed.error), failed.records),
    };
    let mut seen = vec![end];
    seen.extend(records.into_iter().map(|r| format!("{} {} {:?} {} {}", r.id, r.name, r.args, r.outcome, r.result)));
    let history = conversation.history().await.unwrap();
    seen.extend(history.messages().map(|message| serde_json::to_string(message).unwrap()));
    // Nothing is left to be done in the store.
    let left = (store.live_turns(None).await.unwrap(), store.pending(None).await.unwrap());
    seen.push(format!("{left:?}"));
    let asked = model.requests().into_iter().map(|request| format!("{:?}", request.messages));
    seen.extend(asked);
    seen
}

#[tokio::test(start_paused = true)]
async fn each_filter_does_the_same_streamed_and_not() {
    // F8: results, records, what was sent and what is stored.
    type Mount = Box<dyn Fn(AgentBuilder) -> AgentBuilder>;
    let limit = || Timeout::after(Duration::from_secs(5));
    let refuses = |call: ToolCall| async move { call.id != "c1" };
    let mounts: Vec<(&str, Mount, &str)> = vec![
        ("none", Box::new(|agent| agent), "Cancelled"),
        ("logging", Box::new(|agent| agent.chat_filter(Logging::new()).tool_filter(Logging::new())), "Cancelled"),
        (
            "errors",
            Box::new(|agent| agent.tool_filter(Errors::new())),
            "c2 work Object({\"do\":\"fail\"}) error no such",
        ),
        ("timeout of tools", Box::new(move |agent| agent.tool_filter(limit())), "error Timed out after 5s"),
        ("timeout of chats", Box::new(move |agent| agent.chat_filter(limit()).tool_filter(limit())), "It is done."),
        (
            "approval",
            Box::new(move |agent| agent.tool_filter(Approval::asking(refuses)).tool_filter(limit().order(9))),
            "c1 work Object({\"do\":\"ok\"}) rejected Rejected",
        ),
    ];
    for (name, mount, expected) in mounts {
        let (whole, streamed) = (seen(&mount, false).await, seen(&mount, true).await);
        assert_eq!(whole, streamed, "{name}");
        assert!(whole.iter().any(|line| line.contains(expected)), "{name}: {whole:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cut_off_by_time_leaves_the_same_streamed_and_not() {
    // F8, M3: the first call fails, nothing is stored, the next try is as if nothing had been.
    for stream in [false, true] {
        let slow = ScriptedModel::new([Reply::text("late").after(Duration::from_secs(60)), Reply::text("in time")]);
        let agent = Agent::builder(slow)
            .chat_filter(Timeout::after(Duration::from_secs(5)))
            .memory(InMemory::new())
            .conversation_id("c")
            .build()
            .unwrap();
        let chat = async || match stream {
            true => agent.chat_stream("hi").finish().await,
            false => agent.chat("hi").await,
        };
        assert_eq!(chat().await.unwrap_err().error.kind(), ErrorKind::Timeout);
        assert!(agent.own_conversation().history().await.unwrap().is_empty());
        assert_eq!(chat().await.unwrap().text, "in time");
        assert_eq!(agent.own_conversation().history().await.unwrap().len(), 2);
    }
}

#[test]
fn two_of_one_kind_need_two_names() {
    // F5
    let outer = Timeout::after(Duration::from_secs(9));
    let inner = Timeout::after(Duration::from_secs(1)).order(1);
    let build = |inner| Kernel::builder(ScriptedModel::new([])).tool_filter(outer.clone()).tool_filter(inner).build();
    assert_eq!(build(inner.clone()).unwrap_err().kind(), ErrorKind::InvalidConfig);
    assert!(build(inner.named("short timeout")).is_ok());
}
