//! What the `logging` filter writes. Alone in its program: tracing remembers for all threads of a program whether
//! anybody listens to a place, and a test beside this one could be asked first.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use cepa_agent::{Agent, InMemory, TurnOptions, filters::Logging};
use cepa_core::{Error, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Usage};
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

/// Writes down every span and event: its level, its name or message, its fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(tracing::Level, String)>>>);

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("cepa_agent::filters")
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        self.0.lock().unwrap().push((*span.metadata().level(), fields.0));
        tracing::span::Id::from_u64(1)
    }
    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push((*event.metadata().level(), fields.0));
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn the_log_names_and_counts_and_quotes_nobody() {
    // F10: `logging`. Contents are at TRACE alone, values of the context nowhere.
    let log = Log::default();
    let quiet = tracing::subscriber::set_default(log.clone());
    let usage = Usage { input: 1200, output: 34, cache_read: 1000, ..Usage::default() };
    let model = ScriptedModel::new([
        Reply::text("PRIVATE-REPLY").call("c1", "work", r#"{"do":"PRIVATE-ARGS"}"#).usage(usage),
        Reply::empty().call("c2", "work", r#"{"do":"fail"}"#),
        Reply::error(Error::new(ErrorKind::Overloaded, "PRIVATE-ERROR").with_status(529)),
    ]);
    let agent = Agent::builder(model)
        .tool(work())
        .chat_filter(Logging::new())
        .tool_filter(Logging::new())
        .memory(InMemory::new())
        .conversation_id("c")
        .build()
        .unwrap();
    let context = ToolContext::new().with_value("token", "SECRET").unwrap();
    let options = TurnOptions::new().context(context).system_prompt("PRIVATE-PROMPT");
    agent.own_conversation().chat_with("PRIVATE-QUESTION", options).await.unwrap_err();
    drop(quiet);

    let log = log.0.lock().unwrap().clone();
    let at = |level| log.iter().filter(move |(of, _)| *of == level).map(|(_, text)| text.as_str());
    let loud: Vec<&str> = log.iter().filter(|(of, _)| *of <= tracing::Level::INFO).map(|(_, text)| &**text).collect();
    let text = loud.join("\n");
    assert!(!text.contains("PRIVATE"), "{text}");
    assert!(!log.iter().any(|(_, text)| text.contains("SECRET") || text.contains("PRIVATE-PROMPT")), "{log:?}");
    for expected in [
        "chat conversation=\"c\"",
        "provider=\"scripted\" model=\"scripted\" input_tokens=1200 output_tokens=34 cached_tokens=1000 \
         finish=\"tool_calls\" calls=1 streamed=false duration_ms=",
        "tool tool=\"work\" call=\"c1\"",
        "message=ran status=\"ok\" duration_ms=",
        "what=\"tool\" kind=\"tool\" failure=\"semantic\" retryable=false duration_ms=",
        "what=\"chat\" kind=\"overloaded\" retryable=true status=529 duration_ms=",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in\n{text}");
    }
    for (level, expected) in [
        (tracing::Level::TRACE, "PRIVATE-QUESTION"),
        (tracing::Level::TRACE, "PRIVATE-REPLY"),
        (tracing::Level::TRACE, "PRIVATE-ARGS"),
        (tracing::Level::DEBUG, "PRIVATE-ERROR"),
        (tracing::Level::DEBUG, "no such file"),
    ] {
        assert!(at(level).any(|line| line.contains(expected)), "`{expected}` at {level}: {log:#?}");
    }
}
