//! The agent: a kernel with memory, loop and gate. Immutable, shared, cheap to clone.

use std::{
    collections::HashSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

use cepa_core::{
    Chain, Chat, ChatModel, ChatOptions, Error, ErrorKind, Filter, Kernel, KernelBuilder, Tool, ToolChoice, ToolSet,
};

use crate::{
    Bare, Held, InMemory,
    body::BodyFilter,
    clock::Clock,
    conversation::Conversation,
    event::{AgentEvent, Listeners},
    gate::{Gate, GateCall},
    host::AllowRule,
    ids,
    journal::Keeper,
    memory::ChatMemory,
    memory_filter::MemoryFilter,
    options::{self, Decisions, Input, TurnOptions, TurnRequest},
    pause::Pause,
    paused::PausedState,
    result::{TurnError, TurnResult},
    run,
    stop_filter::StopFilter,
    store::TurnStore,
    stream::TurnStream,
    texts::Texts,
    turn::{OnExhausted, Siblings, Turn, TurnSettings},
};

/// What happens to calls that wait for a person when a new message comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhilePaused {
    /// They are cancelled, and the model is told so.
    #[default]
    Cancel,
    /// The new message waits until they are decided.
    Queue,
    /// The new message is refused with `busy`.
    Refuse,
}

pub(crate) type OnPause = Arc<dyn Fn(&[Pause]) + Send + Sync>;

/// What an agent is made of; shared by all its clones.
pub(crate) struct Core {
    pub(crate) kernel: Kernel,
    pub(crate) store: Arc<dyn TurnStore>,
    pub(crate) has_memory: bool,
    pub(crate) settings: TurnSettings,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) allow: Option<AllowRule>,
    pub(crate) on_pause: Option<OnPause>,
    pub(crate) listeners: Listeners,
    pub(crate) while_paused: WhilePaused,
    pub(crate) texts: Arc<Texts>,
    /// The agent's own conversation.
    pub(crate) own: Option<String>,
    pub(crate) queue: String,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) lease: Duration,
    pub(crate) lease_wait: Duration,
    /// Turns whose future was dropped: given up, not crashed.
    pub(crate) dropped: Mutex<HashSet<String>>,
    /// The turns without a conversation that the agent's own handle began and that wait.
    pub(crate) waiting: Arc<Mutex<HashSet<String>>>,
}

/// An agent; see [`Agent::builder`].
///
/// ```
/// use cepa_agent::{Agent, InMemory};
/// use cepa_core::ChatModel;
/// async fn talk(model: impl ChatModel) -> Result<(), Box<dyn std::error::Error>> {
///     let agent = Agent::builder(model).memory(InMemory::new()).build()?;
///     let conversation = agent.conversation("anna");
///     let result = conversation.chat("hello").await?;
///     println!("{}", result.text);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Agent {
    pub(crate) core: Arc<Core>,
    pub(crate) chain: Chain<Turn>,
}

/// Collects what an agent is made of.
pub struct AgentBuilder {
    kernel: Result<KernelBuilder, Kernel>,
    store: Option<Arc<dyn TurnStore>>,
    turn_filters: Vec<Arc<dyn Filter<Turn>>>,
    settings: TurnSettings,
    gate: Option<Arc<dyn Gate>>,
    allow: Option<AllowRule>,
    on_pause: Option<OnPause>,
    listeners: Listeners,
    while_paused: WhilePaused,
    texts: Texts,
    own: Option<String>,
    lease: Duration,
    lease_wait: Duration,
    hot_bytes: Option<usize>,
    clock: Clock,
}

impl AgentBuilder {
    fn of(kernel: Result<KernelBuilder, Kernel>) -> Self {
        Self {
            kernel,
            store: None,
            turn_filters: Vec::new(),
            settings: TurnSettings::default(),
            gate: None,
            allow: None,
            on_pause: None,
            listeners: Listeners::default(),
            while_paused: WhilePaused::default(),
            texts: Texts::default(),
            own: None,
            lease: Duration::from_secs(30),
            lease_wait: Duration::ZERO,
            hot_bytes: None,
            clock: Clock::system(),
        }
    }

    fn kernel(mut self, change: impl FnOnce(KernelBuilder) -> KernelBuilder) -> Self {
        let builder = match self.kernel {
            Ok(builder) => builder,
            Err(kernel) => kernel.to_builder(),
        };
        self.kernel = Ok(change(builder));
        self
    }

    /// Adds a tool.
    pub fn tool(self, tool: Tool) -> Self {
        self.kernel(|kernel| kernel.tool(tool))
    }
    /// Adds tools.
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.kernel(|kernel| kernel.tools(tools))
    }
    /// Adds a filter around every model call.
    pub fn chat_filter(self, filter: impl Filter<Chat>) -> Self {
        self.kernel(|kernel| kernel.chat_filter(filter))
    }
    /// Adds a filter around every tool call.
    pub fn tool_filter(self, filter: impl Filter<Tool>) -> Self {
        self.kernel(|kernel| kernel.tool_filter(filter))
    }
    /// Adds a filter around every turn.
    pub fn turn_filter(mut self, filter: impl Filter<Turn>) -> Self {
        self.turn_filters.push(Arc::new(filter));
        self
    }
    /// Sets the options of every model call.
    pub fn settings(self, settings: ChatOptions) -> Self {
        self.kernel(|kernel| kernel.settings(settings))
    }
    /// Keeps conversations and turns in a store.
    pub fn memory(self, store: impl TurnStore) -> Self {
        self.memory_shared(Arc::new(store))
    }
    /// Keeps conversations and turns in a store that others use too.
    pub fn memory_shared(mut self, store: Arc<dyn TurnStore>) -> Self {
        self.store = Some(store);
        self
    }
    /// Keeps conversations in a memory that knows no turns: pauses live as long as this process; see [`Bare`].
    pub fn bare_memory(self, memory: impl ChatMemory) -> Self {
        self.memory(Bare::new(memory))
    }
    /// Sets the agent's own conversation, for [`Agent::chat`].
    pub fn conversation_id(mut self, id: impl Into<String>) -> Self {
        self.own = Some(id.into());
        self
    }
    /// Sets the system prompt; it is sent with every model call and never stored.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.settings.system_prompt = Some(prompt.into());
        self
    }
    /// Sets the most batches of calls in a turn; 25 by default.
    pub fn max_batches(mut self, batches: u32) -> Self {
        self.settings.max_batches = batches;
        self
    }
    /// Sets how long a turn may be driven; for ever by default. A turn whose time is up is cancelled: the request is
    /// aborted, tools are told to stop, what was received is kept, and the result says
    /// [`CancelReason::Deadline`](crate::turn::CancelReason::Deadline).
    ///
    /// Time in which the turn waits for a person, or for its conversation, does not count; a turn that goes on after
    /// decisions, or after a crash, has the whole time again.
    pub fn turn_deadline(mut self, time: Duration) -> Self {
        self.settings.deadline_ms = Some(options::millis(time));
        self
    }
    /// Sets what happens when the batches are used up.
    pub fn on_exhausted(mut self, policy: OnExhausted) -> Self {
        self.settings.on_exhausted = policy;
        self
    }
    /// Sets what happens to the other calls of a batch while one waits.
    pub fn siblings(mut self, policy: Siblings) -> Self {
        self.settings.siblings = policy;
        self
    }
    /// Offers only tools that have one of these tags.
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }
    /// Sets the tool choice of each turn's first model call.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.settings.tool_choice = Some(choice);
        self
    }
    /// Sets the most characters of a result that the model is given; the rest is kept and can be read by it.
    pub fn max_result_chars(mut self, chars: usize) -> Self {
        self.settings.max_result_chars = Some(chars);
        self
    }
    /// Sets the gate. One that can pause turns pausing on.
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.settings.pausing |= gate.can_pause();
        self.gate = Some(gate);
        self
    }
    /// Turns pausing on: sensitive tools wait for a person.
    pub fn pausing(mut self, on: bool) -> Self {
        self.settings.pausing = on;
        self
    }
    /// Tells a function of the calls that wait, once per paused turn; turns pausing on.
    pub fn on_pause(mut self, tell: impl Fn(&[Pause]) + Send + Sync + 'static) -> Self {
        self.on_pause = Some(Arc::new(tell));
        self.settings.pausing = true;
        self
    }
    /// Sets how long a pause may be decided; for ever by default.
    pub fn pauses_expire_after(mut self, time: Duration) -> Self {
        self.settings.expires_ms = i64::try_from(time.as_millis()).ok();
        self
    }
    /// An operator's rule: a sensitive tool for which it holds runs without asking.
    pub fn allow(mut self, rule: impl Fn(&GateCall) -> bool + Send + Sync + 'static) -> Self {
        self.allow = Some(Arc::new(rule));
        self
    }
    /// Adds a listener to all turns.
    pub fn on_event(mut self, listener: impl Fn(&AgentEvent) + Send + Sync + 'static) -> Self {
        self.listeners.push(Arc::new(listener));
        self
    }
    /// Sets what a new message does to calls that wait.
    pub fn while_paused(mut self, policy: WhilePaused) -> Self {
        self.while_paused = policy;
        self
    }
    /// Replaces the texts that the model reads about calls without a result of their own.
    pub fn texts(mut self, texts: Texts) -> Self {
        self.texts = texts;
        self
    }
    /// Sets how long a process that died keeps others from its conversations; 30 seconds by default.
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time.max(Duration::from_millis(100));
        self
    }
    /// Sets how long to wait for a conversation that another process works on; not at all by default.
    pub fn lease_wait(mut self, time: Duration) -> Self {
        self.lease_wait = time;
        self
    }

    /// Sets about how many bytes the conversations may take that are held ready for their next turn; 16 MiB by default.
    /// Others are read from the store. An in-memory store has a [bound of its own](InMemory::hot_bytes).
    pub fn hot_bytes(mut self, bytes: usize) -> Self {
        self.hot_bytes = Some(bytes);
        self
    }

    /// Sets the clock that times are taken from; the system's by default.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Puts it together.
    ///
    /// # Errors
    /// `invalid_config` for filters or settings that do not fit, `invalid_tool` for two tools of one name.
    pub fn build(self) -> Result<Agent, Error> {
        let Self { kernel, store, turn_filters, settings, gate, allow, on_pause, listeners, while_paused, .. } = self;
        let texts = Arc::new(self.texts);
        let has_memory = store.is_some();
        let store = store.unwrap_or_else(|| Arc::new(InMemory::new()));
        let queue = store.identity().unwrap_or_else(|| format!("{:p}", Arc::as_ptr(&store)));
        // Hot conversations stay in memory: what a turn costs does not grow with what was said before.
        let held = Held::new(store);
        let store: Arc<dyn TurnStore> = Arc::new(match self.hot_bytes {
            Some(bytes) => held.max_bytes(bytes),
            None => held,
        });
        let mut builder = match kernel {
            Ok(builder) => builder,
            Err(kernel) => kernel.to_builder(),
        };
        builder = builder.tool_filter(BodyFilter { texts: texts.clone() }).chat_filter(StopFilter);
        if has_memory {
            builder = builder.chat_filter(MemoryFilter::of_turns(store.clone(), self.clock.clone()));
        }
        let kernel = builder.build()?;
        if !settings.pausing && gate.is_none() {
            warn_of_sensitive(kernel.list_tools());
        }
        let own = self.own.filter(|id| !id.trim().is_empty());
        let keeper = Arc::new(Keeper {
            store: store.clone(),
            holder: ids::new_id(&format!("{}-", std::process::id())).into(),
            lease_ms: i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX),
            clock: self.clock,
        });
        let core = Arc::new(Core {
            kernel,
            own: own.or_else(|| has_memory.then(|| ids::new_id("c"))),
            queue,
            store,
            has_memory,
            settings,
            gate,
            allow,
            on_pause,
            listeners,
            while_paused,
            texts,
            keeper,
            lease: self.lease,
            lease_wait: self.lease_wait,
            dropped: Mutex::default(),
            waiting: Arc::default(),
        });
        let inside = core.clone();
        let chain = Chain::new(turn_filters, move |request: TurnRequest| run::turn(inside.clone(), request))?;
        Ok(Agent { core, chain })
    }
}

fn warn_of_sensitive(tools: &ToolSet) {
    let sensitive: Vec<&str> = tools.iter().filter(|tool| tool.flags().sensitive).map(Tool::name).collect();
    if !sensitive.is_empty() {
        let tools = sensitive.join(", ");
        tracing::warn!(tools, "sensitive tools run without asking: turn pausing on, or set a gate");
    }
}

impl Core {
    /// The time, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.keeper.clock.now_ms()
    }

    /// Tells of waiting calls; what the callback does never changes the turn.
    pub(crate) fn tell_paused(&self, pauses: &[Pause]) {
        if let Some(tell) = &self.on_pause
            && catch_unwind(AssertUnwindSafe(|| tell(pauses))).is_err()
        {
            tracing::warn!("on_pause panicked; the turn stays paused");
        }
    }
}

impl Agent {
    /// Begins an agent around a model.
    pub fn builder(model: impl ChatModel) -> AgentBuilder {
        AgentBuilder::of(Ok(Kernel::builder(model)))
    }
    /// Begins an agent around a model that others use too.
    pub fn builder_shared(model: Arc<dyn ChatModel>) -> AgentBuilder {
        AgentBuilder::of(Ok(Kernel::builder_shared(model)))
    }
    /// Begins an agent around a kernel.
    pub fn builder_from(kernel: Kernel) -> AgentBuilder {
        AgentBuilder::of(Err(kernel))
    }

    /// The handle of a conversation. A blank id, or an agent without memory, makes every turn ephemeral.
    pub fn conversation(&self, id: impl Into<String>) -> Conversation {
        let id = Some(id.into()).filter(|id| !id.trim().is_empty());
        Conversation::new(self, id)
    }

    /// The handle of the agent's own conversation: the id given at build, else a generated one; ephemeral without memory.
    pub fn own_conversation(&self) -> Conversation {
        Conversation::own(self, self.core.own.clone())
    }

    /// One turn in the agent's own conversation.
    ///
    /// # Errors
    /// As [`Conversation::chat`].
    pub async fn chat(&self, input: impl Into<Input>) -> Result<TurnResult, TurnError> {
        self.own_conversation().chat(input).await
    }

    /// One turn in the agent's own conversation, as a stream.
    pub fn chat_stream(&self, input: impl Into<Input>) -> TurnStream {
        self.own_conversation().chat_stream(input)
    }

    /// Decides about calls that wait in the agent's own conversation.
    ///
    /// # Errors
    /// As [`Conversation::resume`].
    pub async fn resume(&self, decisions: Decisions) -> Result<TurnResult, TurnError> {
        self.own_conversation().resume(decisions).await
    }

    /// Decides about a paused turn that the caller kept as plain data.
    ///
    /// # Errors
    /// As [`Conversation::resume`]; `invalid_input` for a state that this version cannot read.
    pub async fn resume_with(
        &self,
        state: PausedState,
        decisions: Decisions,
        options: TurnOptions,
    ) -> Result<TurnResult, TurnError> {
        run::adopt(&self.core, state).await?.resume_in(self, decisions, options).await
    }

    /// Drives every turn, of all conversations, that a crash left behind, or whose pauses have expired or were decided
    /// without anybody to go on. Those that wait for a person go on waiting; those that somebody drives now are left
    /// alone, so that a server can call this again and again.
    ///
    /// # Errors
    /// `store` if the store cannot be read. A turn that fails is reported in its place.
    pub async fn recover(&self) -> Result<Vec<Result<TurnResult, TurnError>>, Error> {
        let mut results = Vec::new();
        for turn in self.core.store.interrupted(self.core.now_ms()).await? {
            let conversation = Conversation::new(self, Some(turn.conversation));
            if let Some(result) = conversation.recover_if_free().await.transpose() {
                results.push(result);
            }
        }
        Ok(results)
    }

    /// The kernel, with the filters that the agent mounted.
    pub fn kernel(&self) -> &Kernel {
        &self.core.kernel
    }
    /// The store of conversations and turns.
    pub fn store(&self) -> &Arc<dyn TurnStore> {
        &self.core.store
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("kernel", &self.core.kernel).field("own", &self.core.own).finish_non_exhaustive()
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

pub(crate) fn busy(message: String) -> Error {
    Error::new(ErrorKind::Busy, message)
}
