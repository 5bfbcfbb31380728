//! The driver's host over a kernel: calls the model, asks the gate, runs the tools, and hands commits to a journal.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::Poll,
    time::Instant,
};

use cepa_core::{
    Args, ChatOptions, ChatRequest, Content, Error, ErrorKind, EventSink, Kernel, RawJson, Tool, ToolCall, ToolContext,
    ToolFlags, ToolRequest, ToolResponse, ToolSet, ToolStatus,
};
use serde_json::{Map, Value};

use crate::{
    agent::Core,
    body::BodyGuard,
    cap,
    driver::{Host, Replied, ToolRun},
    entrance::Entrance,
    event::{AgentEvent, ChatEvents, Listeners},
    gate::{Gate, GateCall, Verdict},
    ids,
    journal::Journal,
    memory_filter::{MEMORY_FILTER, TurnCall},
    run,
    store::{CallResult, Commit},
    texts::{self, Texts},
    turn::{CancelReason, Did, ModelCall, PartialReply, PlannedCall, Restored, Ruling, RulingOutcome, Turn, json},
};

/// An operator's rule that lets a sensitive tool run without asking.
pub(crate) type AllowRule = Arc<dyn Fn(&GateCall) -> bool + Send + Sync>;

/// What a host is made of.
pub(crate) struct KernelHost {
    pub(crate) kernel: Kernel,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) allow: Option<AllowRule>,
    pub(crate) options: ChatOptions,
    /// Handles and cancellation of the turn; the values are the turn's own.
    pub(crate) context: ToolContext,
    pub(crate) listeners: Listeners,
    pub(crate) stream: bool,
    pub(crate) texts: Arc<Texts>,
    pub(crate) journal: Journal,
    /// What was offered with the last reply; a call is looked up here.
    offered: Mutex<Option<ToolSet>>,
    written: Arc<Mutex<ChatEvents>>,
    new_pauses: AtomicBool,
    storing: Arc<AtomicBool>,
    late: AtomicBool,
    /// Where the turn can be read back from, if it is written anywhere.
    pub(crate) core: Option<Arc<Core>>,
    /// Whether the calls that are open may have been decided on with other tools than these.
    pub(crate) may_have_changed: bool,
}

impl KernelHost {
    pub(crate) fn new(kernel: Kernel, texts: Arc<Texts>, journal: Journal) -> Self {
        Self {
            kernel,
            gate: None,
            allow: None,
            options: ChatOptions::default(),
            context: ToolContext::new(),
            listeners: Listeners::default(),
            stream: false,
            texts,
            journal,
            offered: Mutex::default(),
            written: Arc::default(),
            new_pauses: AtomicBool::new(false),
            storing: Arc::default(),
            late: AtomicBool::new(false),
            core: None,
            may_have_changed: false,
        }
    }

    /// Whether calls began to wait while this host worked.
    pub(crate) fn has_new_pauses(&self) -> bool {
        self.new_pauses.load(Ordering::Relaxed)
    }

    /// Notes that the turn is cancelled because it took too long.
    pub(crate) fn time_is_up(&self) {
        self.late.store(true, Ordering::Relaxed);
    }

    /// The tools of a turn: those of the kernel that have one of the turn's tags.
    fn tools(&self, turn: &Turn) -> Result<ToolSet, Error> {
        let all = self.kernel.list_tools();
        let tools = match &turn.data().settings.tags {
            Some(tags) => all.filter(|tool| tool.flags().tags.iter().any(|tag| tags.contains(tag))),
            None => all.clone(),
        };
        if !turn.data().cut || tools.get(cap::READ_RESULT).is_some() {
            return Ok(tools);
        }
        tools.with(cap::read_result(self.journal.clone())?)
    }

    fn offered(&self, turn: &Turn) -> ToolSet {
        let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A turn that goes on elsewhere offers what this process has.
        offered.or_else(|| self.tools(turn).ok()).unwrap_or_default()
    }

    fn sink(&self) -> EventSink {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = ChatEvents::default();
        if !self.stream {
            return EventSink::none();
        }
        let (written, listeners) = (self.written.clone(), self.listeners.clone());
        EventSink::new(move |event| {
            let told = written.lock().unwrap_or_else(PoisonError::into_inner).translate(event);
            if let Some(told) = told {
                listeners.hand(told);
            }
        })
    }

    /// The context of the turn with its own values.
    fn context(&self, values: Arc<Map<String, Value>>) -> ToolContext {
        self.context.clone().with_values(values)
    }

    async fn rule(&self, turn: &Turn, offered: &ToolSet, call: &ToolCall, context: &ToolContext) -> Ruling {
        let refuse = |text: String, flags: ToolFlags| Ruling {
            outcome: RulingOutcome::Refuse { text },
            flags,
            prepared: None,
            schema_hash: "".into(),
        };
        let Some(tool) = offered.get(&call.name) else {
            return refuse(texts::unknown_tool(&call.name, offered), ToolFlags::default());
        };
        let prepared = match tool.prepare(&call.args) {
            Ok(prepared) => prepared,
            Err(why) => return refuse(texts::bad_arguments(&call.name, &why), tool.flags().clone()),
        };
        let outcome = self.verdict(tool, call, &prepared, context, turn.data().settings.pausing).await;
        let prepared = match prepared {
            Args::Object(raw) => Some(raw),
            Args::Invalid { .. } => None,
        };
        Ruling { outcome, flags: tool.flags().clone(), prepared, schema_hash: schema_hash(tool).clone() }
    }

    async fn verdict(
        &self,
        tool: &Tool,
        call: &ToolCall,
        args: &Args,
        context: &ToolContext,
        pausing: bool,
    ) -> RulingOutcome {
        if self.gate.is_none() && !(pausing && tool.flags().sensitive) {
            return RulingOutcome::Proceed;
        }
        let call = &GateCall {
            id: call.id.clone(),
            tool: call.name.clone(),
            flags: tool.flags().clone(),
            args: args.clone(),
            context: context.clone(),
        };
        let verdict = match &self.gate {
            None => Verdict::Proceed,
            Some(gate) => match contained(gate.decide(call)).await {
                Ok(verdict) => verdict,
                // Fail closed: what cannot be decided is not run unasked.
                Err(error) if gate.can_pause() => Verdict::Pause { reason: Some(format!("the gate failed: {error}")) },
                Err(error) => Verdict::Reject { reason: Some(format!("the gate failed: {error}")) },
            },
        };
        match verdict {
            Verdict::Proceed if pausing && call.flags.sensitive && !self.is_allowed(call) => {
                RulingOutcome::Pause { reason: None }
            }
            Verdict::Proceed => RulingOutcome::Proceed,
            Verdict::Pause { reason } => RulingOutcome::Pause { reason },
            Verdict::Reject { reason } => RulingOutcome::Reject { reason },
            Verdict::Reply { content } => RulingOutcome::Reply { content },
        }
    }

    fn is_allowed(&self, call: &GateCall) -> bool {
        // A rule that panics allows nothing.
        let asked = |rule: &AllowRule| std::panic::catch_unwind(AssertUnwindSafe(|| rule(call))).unwrap_or(false);
        self.allow.as_ref().is_some_and(asked)
    }

    async fn run(
        &self,
        tool: Option<Tool>,
        planned: PlannedCall,
        context: ToolContext,
        cap: Option<usize>,
        id: String,
    ) -> ToolRun {
        let from = Instant::now();
        let args = planned.call.args.clone();
        let result = match tool {
            None => {
                let text = texts::unknown_tool(&planned.call.name, self.kernel.list_tools());
                Err(Error::new(ErrorKind::InvalidTool, text))
            }
            Some(tool) if self.may_have_changed && *schema_hash(&tool) != planned.schema_hash => {
                let text = texts::changed_tool(&planned.call.name);
                Err(Error::new(ErrorKind::Tool, text))
            }
            Some(tool) => {
                let request = ToolRequest { tool, call: planned.call, context, decided: self.decided(args) };
                self.kernel.invoke_tool(request).await
            }
        };
        ToolRun { result: call_result(result, cap, &id, &self.texts), took: from.elapsed() }
    }

    /// The arguments that a gate or a person decided on; without either, filters may still change them.
    fn decided(&self, args: Args) -> Option<Args> {
        (self.gate.is_some() || self.context.extension::<Pausing>().is_some()).then_some(args)
    }
}

/// Marks the context of a turn in which calls can wait for a person.
#[derive(Debug)]
pub(crate) struct Pausing;

/// The hash by which a changed tool is found out.
pub(crate) fn schema_hash(tool: &Tool) -> &Arc<str> {
    tool.fingerprint(|spec| ids::hash(spec.schema.as_ref().map_or("", RawJson::as_str)))
}

/// A future whose panic is an error.
async fn contained<T>(mut future: cepa_core::BoxFuture<'_, Result<T, Error>>) -> Result<T, Error> {
    std::future::poll_fn(move |context| {
        std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(Error::new(ErrorKind::InvalidConfig, "it panicked"))))
    })
    .await
}

fn call_result(result: Result<ToolResponse, Error>, max_chars: Option<usize>, id: &str, texts: &Texts) -> CallResult {
    let (status, content, writes, failure) = match result {
        Ok(ToolResponse { output, writes }) => {
            // What a failed call wrote is void.
            let writes = (!writes.is_empty() && output.status == ToolStatus::Ok).then(|| json(&writes));
            (output.status, output.content, writes, None)
        }
        Err(error) => {
            let status = match error.kind() {
                ErrorKind::Cancelled => ToolStatus::Cancelled,
                _ => ToolStatus::Error,
            };
            let failure = error.tool_failure().map(|failure| failure.as_str().to_owned());
            let text = if error.kind() == ErrorKind::Tool { error.message().to_owned() } else { error.to_string() };
            (status, Content::Text(text), None, failure)
        }
    };
    let (content, full) = match max_chars.and_then(|max| cap::cut(&content, max, id, texts)) {
        Some(cut) => (cut, Some(json(&content))),
        None => (content, None),
    };
    CallResult { status, content: json(&content), full, writes, failure }
}

impl Host for KernelHost {
    async fn call_model(&self, turn: &Turn, call: ModelCall) -> Result<Replied, Error> {
        let settings = &turn.data().settings;
        let tools = if call.without_tools { ToolSet::default() } else { self.tools(turn)? };
        let first = turn.data().replies == 0;
        let mut options = self.options.clone();
        options.continue_pause = call.continue_pause;
        let fence = self.journal.token().map(|token| (turn.id().to_owned(), token));
        let stage = TurnCall {
            fence,
            reply_id: call.reply_id,
            opens: call.opens,
            stored_delta: call.stored,
            // Where nothing stands around the memory filter nothing can come between it and the turn.
            defers: self.journal.token().is_some() && self.kernel.chat_filters().next() == Some(MEMORY_FILTER),
            unstored: Mutex::default(),
            stored: AtomicU32::new(0),
            storing: self.storing.clone(),
        };
        let stage = Arc::new(stage);
        let context = self.context(turn.data().values.clone()).with_shared(stage.clone());
        let request = ChatRequest {
            messages: call.messages,
            system_prompt: settings.system_prompt.as_deref().map(Into::into),
            // A forced choice holds for the first call only: it would never let the model answer.
            tool_choice: settings.tool_choice.clone().filter(|_| first && !tools.is_empty()),
            tools,
            options,
            context,
            events: self.sink(),
            model: None,
        };
        let response = self.kernel.invoke_chat(request).await?;
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(response.offered.clone());
        Ok(Replied { unstored: stage.take_unstored(), response })
    }

    fn partial_reply(&self) -> Option<PartialReply> {
        let text = self.written.lock().unwrap_or_else(PoisonError::into_inner).text().to_owned();
        // A filter may have asked another model; who it was is known only of a reply that came whole.
        (!text.is_empty()).then(|| PartialReply { text, origin: Some(self.kernel.origin().clone()) })
    }

    async fn read_back(&self, turn: &mut Turn) -> Result<Vec<Did>, Error> {
        let (Some(core), Some(_)) = (&self.core, self.journal.token()) else { return Ok(Vec::new()) };
        let Some(stored) = core.store.turn(turn.id()).await? else { return Ok(Vec::new()) };
        let Restored { turn: restored, missed, decided } = run::restore(core, stored).await?;
        *turn = restored;
        let at = self.now_ms();
        Ok(missed.into_iter().chain(decided.into_iter().map(|pause| Did::Decided { pause, at })).collect())
    }

    fn cancel_reason(&self) -> CancelReason {
        if self.late.load(Ordering::Relaxed) { CancelReason::Deadline } else { CancelReason::Caller }
    }

    fn is_storing(&self) -> bool {
        self.storing.load(Ordering::Acquire)
    }

    async fn decide(&self, turn: &Turn, calls: Vec<ToolCall>) -> Vec<Ruling> {
        let offered = self.offered(turn);
        let context = self.context(turn.data().values.clone());
        let mut rulings = Vec::with_capacity(calls.len());
        for call in &calls {
            rulings.push(self.rule(turn, &offered, call, &context).await);
        }
        rulings
    }

    fn run_tool(
        &self,
        turn: &Turn,
        call: PlannedCall,
        values: Arc<Map<String, Value>>,
        entrance: Entrance,
    ) -> Pin<Box<dyn Future<Output = ToolRun> + Send + '_>> {
        let tool = self.offered(turn).get(&call.call.name).cloned();
        let guard = BodyGuard { idx: call.key.idx, entrance, entered: AtomicU32::new(0) };
        let key = ids::idempotency_key(turn.id(), call.key);
        let context = self.context(values).for_call(key).with_extension(guard);
        let cap = turn.data().settings.max_result_chars;
        let id = ids::result_id(turn.id(), call.key);
        Box::pin(self.run(tool, call, context, cap, id))
    }

    async fn commit(&self, turn: &Turn, commit: Commit) -> Result<(), Error> {
        if !commit.pauses.is_empty() {
            self.new_pauses.store(true, Ordering::Relaxed);
        }
        self.journal.commit(turn, commit).await
    }

    fn now_ms(&self) -> i64 {
        self.journal.now_ms()
    }

    fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    fn tell(&self, event: AgentEvent) {
        self.listeners.hand(event);
    }
}
