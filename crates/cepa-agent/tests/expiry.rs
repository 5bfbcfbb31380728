//! A pause that nobody decides in time: every touch of the conversation sees it, and the model is told.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicUsize, Ordering},
};
use std::time::Duration;

use cepa_agent::{
    Agent, AgentBuilder, AuditKind, Clock, Conversation, Decision, Decisions, InMemory, Siblings, TurnOptions,
    TurnStatus, TurnStore, WhilePaused,
};
use cepa_core::{ErrorKind, Tool, ToolFlags, ToolOutput, ToolSpec, ToolStatus};
use cepa_testkit::scripted::{Reply, ScriptedModel};

/// A world with a clock of its own, in which a call waits for at most a minute.
struct World {
    clock: Arc<AtomicI64>,
    ran: Arc<AtomicUsize>,
    store: InMemory,
    model: ScriptedModel,
}

impl World {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let model = ScriptedModel::new(replies);
        Self { clock: Arc::new(AtomicI64::new(1_000_000)), ran: Arc::default(), store: InMemory::new(), model }
    }

    fn agent(&self) -> AgentBuilder {
        let clock = self.clock.clone();
        let tool = |name: &str, sensitive: bool| {
            let flags = ToolFlags { sensitive, ..ToolFlags::default() };
            let spec = ToolSpec::new(name, "Does it.", None).unwrap().with_flags(flags);
            let ran = self.ran.clone();
            Tool::new(spec, move |_, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                async { Ok(ToolOutput::new("done")) }
            })
        };
        Agent::builder(self.model.clone())
            .tools([tool("pay", true), tool("look", false)])
            .memory(self.store.clone())
            .pausing(true)
            .pauses_expire_after(Duration::from_secs(60))
            .clock(Clock::of(move || clock.load(Ordering::SeqCst)))
    }

    fn minute_goes_by(&self) {
        self.clock.fetch_add(60_000, Ordering::SeqCst);
    }

    async fn paused(&self) -> Conversation {
        let conversation = self.agent().build().unwrap().conversation("c");
        let result = conversation.chat("pay").await.unwrap();
        assert_eq!(result.pending[0].expires, Some(1_060_000));
        conversation
    }

    async fn is_told_of_expiry(&self, conversation: &Conversation) {
        let history = conversation.history().await.unwrap();
        let expired = history.messages().any(|message| match message {
            cepa_core::Message::Tool(result) => result.status == ToolStatus::Expired,
            _ => false,
        });
        assert!(expired, "{:?}", history.messages().collect::<Vec<_>>());
        assert_eq!(self.ran.load(Ordering::SeqCst), 0);
        assert_eq!(conversation.pending().await.unwrap(), []);
        let trail = self.store.audit(Some("c"), 0, 100).await.unwrap();
        let kinds: Vec<AuditKind> = trail.iter().map(|entry| entry.what).collect();
        assert_eq!(kinds, [AuditKind::Shown, AuditKind::Expired]);
    }
}

fn pay() -> Reply {
    Reply::empty().call("a", "pay", "{}")
}

#[tokio::test]
async fn a_pause_ends_with_its_last_millisecond() {
    // H5, L21: until its time it can be decided, from its time on not; its time is the clock's.
    let world = World::new([pay(), Reply::text("paid")]);
    let conversation = world.paused().await;
    world.clock.fetch_add(59_999, Ordering::SeqCst);
    assert_eq!(conversation.pending().await.unwrap().len(), 1);
    assert_eq!(conversation.resume(Decisions::approved()).await.unwrap().text, "paid");
}

#[tokio::test]
async fn a_late_decision_is_expired_and_the_next_touch_goes_on() {
    // H5: whatever is decided, however often, by whoever.
    let world = World::new([pay(), Reply::text("then not")]);
    let conversation = world.paused().await;
    let pause = conversation.pending().await.unwrap().remove(0).id;
    world.minute_goes_by();
    assert!(!conversation.is_paused().await.unwrap());
    for decision in [Decision::Approve, Decision::Reject { reason: None }, Decision::Reply { content: "x".into() }] {
        let late = conversation.resume(Decisions::one(&*pause, decision)).await.unwrap_err();
        assert_eq!(late.error.kind(), ErrorKind::Expired, "{late}");
    }
    // Also where the clock is behind.
    let late = world.store.decide(&pause, Decision::Approve, "anna", 1_000_001).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Expired);
    let gone_on = conversation.recover().await.unwrap().unwrap();
    assert_eq!((gone_on.status, gone_on.text.as_str()), (TurnStatus::Completed, "then not"));
    world.is_told_of_expiry(&conversation).await;
}

#[tokio::test]
async fn a_new_message_sees_the_expiry_first() {
    // H5, H6: under each policy; what expired is not "cancelled", and refuses nothing.
    for policy in [WhilePaused::Cancel, WhilePaused::Queue, WhilePaused::Refuse] {
        let world = World::new([pay(), Reply::text("then not"), Reply::text("hello")]);
        world.paused().await;
        world.minute_goes_by();
        let conversation = world.agent().while_paused(policy).build().unwrap().conversation("c");
        assert_eq!(conversation.chat("hi").await.unwrap().text, "hello");
        world.is_told_of_expiry(&conversation).await;
    }
}

#[tokio::test]
async fn a_sweep_sees_it_and_leaves_what_still_waits() {
    // H5, D3
    let world = World::new([pay(), pay(), Reply::text("then not")]);
    let agent = world.agent().build().unwrap();
    assert!(agent.conversation("c").chat("pay").await.unwrap().is_paused());
    world.clock.fetch_add(30_000, Ordering::SeqCst);
    assert!(agent.conversation("d").chat("pay").await.unwrap().is_paused());
    assert_eq!(agent.recover().await.unwrap().len(), 0, "nothing is interrupted yet");
    world.clock.fetch_add(30_000, Ordering::SeqCst);
    let swept = agent.recover().await.unwrap();
    assert_eq!(swept.len(), 1);
    assert_eq!(swept[0].as_ref().unwrap().conversation.as_deref(), Some("c"));
    assert!(agent.conversation("d").is_paused().await.unwrap());
    world.is_told_of_expiry(&agent.conversation("c")).await;
}

#[tokio::test]
async fn the_calls_beside_it_run() {
    // H5, L7: a batch that was held runs what may run, once the call it waited for has expired.
    let both = Reply::empty().call("a", "look", "{}").call("b", "pay", "{}").call("c", "look", "{}");
    let world = World::new([both, Reply::text("then not")]);
    let agent = world.agent().siblings(Siblings::Hold).build().unwrap();
    assert!(agent.conversation("c").chat("pay").await.unwrap().is_paused());
    assert_eq!(world.ran.load(Ordering::SeqCst), 0);
    world.minute_goes_by();
    let result = agent.conversation("c").recover().await.unwrap().unwrap();
    let outcomes: Vec<ToolStatus> = result.records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [ToolStatus::Ok, ToolStatus::Expired, ToolStatus::Ok]);
}

#[tokio::test]
async fn one_of_two_decided_in_time() {
    // H2, H5: what was decided stands, what was not has expired.
    let both = Reply::empty().call("a", "pay", "{}").call("b", "pay", "{}");
    let world = World::new([both, Reply::text("half")]);
    let conversation = world.paused().await;
    let first = conversation.pending().await.unwrap().remove(0).id;
    let partial = Decisions::one(first, Decision::Approve);
    assert!(conversation.resume_with_options(partial, TurnOptions::new()).await.unwrap().is_paused());
    world.minute_goes_by();
    let result = conversation.recover().await.unwrap().unwrap();
    let outcomes: Vec<ToolStatus> = result.records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [ToolStatus::Ok, ToolStatus::Expired]);
    assert_eq!((result.text.as_str(), world.ran.load(Ordering::SeqCst)), ("half", 1));
}
