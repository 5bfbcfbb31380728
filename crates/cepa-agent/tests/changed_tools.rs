//! A decision is about the tool that was shown: one that has changed since does not run.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cepa_agent::{Agent, Decision, Decisions, InMemory, TurnOptions, TurnStatus, TurnStore};
use cepa_core::{ErrorKind, Tool, ToolFlags, ToolOutput, ToolSpec, ToolStatus};
use cepa_testkit::scripted::{Reply, ScriptedModel};

const BEFORE: &str = r#"{"type":"object","properties":{"amount":{"type":"integer"}}}"#;
const AFTER: &str = r#"{"type":"object","properties":{"amount":{"type":"integer"},"currency":{"type":"string"}}}"#;

/// An agent of another day: the same model and store, a tool with this schema, or none.
struct Shop {
    model: ScriptedModel,
    store: InMemory,
    ran: Arc<AtomicUsize>,
}

impl Shop {
    fn new() -> Self {
        let call = Reply::empty().call("a", "pay", r#"{"amount":1}"#);
        let model = ScriptedModel::new([call, Reply::text("done")]);
        Self { model, store: InMemory::new(), ran: Arc::default() }
    }

    fn agent(&self, schema: Option<&str>) -> Agent {
        let mut builder = Agent::builder(self.model.clone()).memory(self.store.clone()).pausing(true);
        if let Some(schema) = schema {
            let flags = ToolFlags { sensitive: true, ..ToolFlags::default() };
            let spec = ToolSpec::new("pay", "Pays.", Some(schema)).unwrap().with_flags(flags);
            let ran = self.ran.clone();
            builder = builder.tool(Tool::new(spec, move |_, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                async { Ok(ToolOutput::new("paid")) }
            }));
        }
        builder.build().unwrap()
    }

    fn runs(&self) -> usize {
        self.ran.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_decision_about_a_changed_tool_is_refused_and_the_pause_stays() {
    // H8: approve and edit are refused with what to do; reject and reply need no tool.
    for schema in [Some(AFTER), None] {
        let shop = Shop::new();
        assert!(shop.agent(Some(BEFORE)).conversation("c").chat("pay").await.unwrap().is_paused());
        let conversation = shop.agent(schema).conversation("c");
        for decision in [Decision::Approve, Decision::edit(r#"{"amount":2}"#).unwrap()] {
            let refused = conversation.resume(Decisions::All(decision)).await.unwrap_err();
            assert_eq!(refused.error.kind(), ErrorKind::InvalidTool, "{refused}");
            // To accept helps where there is something to accept.
            let (does, does_not) = match schema {
                Some(_) => ("accept changed tools", "is gone"),
                None => ("decide in the program that has it, or reject or reply", "accept"),
            };
            let told = refused.error.message();
            assert!(told.contains(does) && !told.contains(does_not), "{refused}");
        }
        assert_eq!(conversation.pending().await.unwrap().len(), 1);
        let rejected = conversation.resume(Decisions::rejected()).await.unwrap();
        assert_eq!((rejected.text.as_str(), shop.runs()), ("done", 0));
    }
}

#[tokio::test]
async fn it_runs_where_changed_tools_are_accepted() {
    // H8: "unless told otherwise"
    let shop = Shop::new();
    assert!(shop.agent(Some(BEFORE)).conversation("c").chat("pay").await.unwrap().is_paused());
    let conversation = shop.agent(Some(AFTER)).conversation("c");
    let options = TurnOptions::new().accept_changed_tools();
    let result = conversation.resume_with_options(Decisions::approved(), options).await.unwrap();
    assert_eq!((result.text.as_str(), shop.runs()), ("done", 1));
}

#[tokio::test]
async fn a_tool_that_is_gone_cannot_be_accepted() {
    // H8: the call would only fail; so it waits on, for the program that has its tool.
    let shop = Shop::new();
    assert!(shop.agent(Some(BEFORE)).conversation("c").chat("pay").await.unwrap().is_paused());
    let conversation = shop.agent(None).conversation("c");
    let options = TurnOptions::new().accept_changed_tools();
    let refused = conversation.resume_with_options(Decisions::approved(), options).await.unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::InvalidTool, "{refused}");
    assert_eq!(conversation.pending().await.unwrap().len(), 1);
    let result = shop.agent(Some(BEFORE)).conversation("c").resume(Decisions::approved()).await.unwrap();
    assert_eq!((result.text.as_str(), shop.runs()), ("done", 1));
}

#[tokio::test]
async fn a_tool_that_changes_between_decision_and_run_does_not_run() {
    // H8, H7: decided in one process, driven by another in which the tool is not the one that was shown.
    for (schema, status) in [(Some(AFTER), ToolStatus::Error), (None, ToolStatus::Error)] {
        let shop = Shop::new();
        let paused = shop.agent(Some(BEFORE)).conversation("c").chat("pay").await.unwrap();
        shop.store.decide(&paused.pending[0].id, Decision::Approve, "anna", 1).await.unwrap();
        let result = shop.agent(schema).conversation("c").recover().await.unwrap().unwrap();
        assert_eq!((result.status, shop.runs()), (TurnStatus::Completed, 0));
        assert_eq!(result.records[0].outcome, status, "{:?}", result.records);
    }
}

#[tokio::test]
async fn a_tool_that_is_the_same_runs_in_any_process() {
    // H8: the check finds no change where there is none.
    let shop = Shop::new();
    let paused = shop.agent(Some(BEFORE)).conversation("c").chat("pay").await.unwrap();
    shop.store.decide(&paused.pending[0].id, Decision::Approve, "anna", 1).await.unwrap();
    let result = shop.agent(Some(BEFORE)).conversation("c").recover().await.unwrap().unwrap();
    assert_eq!((result.text.as_str(), shop.runs()), ("done", 1));
}
