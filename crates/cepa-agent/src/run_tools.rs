//! One batch of calls for callers with a loop of their own: the same machine and driver as in a turn.

use std::sync::Arc;

use cepa_core::{AssistantMessage, Error, FinishReason, Kernel, Message, ToolCall, ToolContext};

use crate::{
    InMemory,
    body::BodyFilter,
    clock::Clock,
    driver::{Next, Unwritten, advance},
    gate::Gate,
    host::KernelHost,
    ids,
    journal::Journal,
    journal::Keeper,
    pause::Pause,
    result::Record,
    texts::Texts,
    turn::{Did, Todo, Turn, TurnData, TurnSettings},
};

/// What came of a batch.
#[derive(Clone, Debug)]
pub struct ToolBatch {
    /// One result per call, in call order; empty while calls wait.
    pub messages: Vec<Message>,
    /// One record per call that has a result.
    pub records: Vec<Record>,
    /// The context with what the tools wrote.
    pub context: ToolContext,
    /// The calls that the gate wants a person to decide on. Nothing of the batch ran then: ask, and call again with a
    /// gate that knows the answers.
    pub waiting: Vec<Pause>,
}

/// Runs the calls of one reply: checks, gate, filters, one after another (or together where the tools allow it).
///
/// ```
/// use cepa_agent::run_tools;
/// use cepa_core::{ChatRequest, Error, History, Kernel, Message, ToolContext};
///
/// async fn my_loop(kernel: &Kernel, mut history: History) -> Result<String, Error> {
///     loop {
///         let mut request = ChatRequest::new(history.clone());
///         request.tools = kernel.list_tools().clone();
///         let reply = kernel.invoke_chat(request).await?.message;
///         let calls = reply.tool_calls.clone();
///         let message = Message::Assistant(reply);
///         if calls.is_empty() {
///             return Ok(message.text().into_owned());
///         }
///         history.push(message);
///         for result in run_tools(kernel, calls, &ToolContext::new(), None).await?.messages {
///             history.push(result);
///         }
///     }
/// }
/// ```
///
/// # Errors
/// `invalid_config` if the kernel cannot be used. What goes wrong in a call is its result.
pub async fn run_tools(
    kernel: &Kernel,
    calls: Vec<ToolCall>,
    context: &ToolContext,
    gate: Option<Arc<dyn Gate>>,
) -> Result<ToolBatch, Error> {
    let texts = Arc::new(Texts::default());
    let kernel = kernel.to_builder().tool_filter(BodyFilter { texts: texts.clone() }).build()?;
    let settings = TurnSettings {
        max_batches: 1,
        pausing: gate.as_ref().is_some_and(|gate| gate.can_pause()),
        ..TurnSettings::default()
    };
    let data = TurnData { settings: settings.into(), values: context.shared_values(), ..TurnData::default() };
    let clock = Clock::system();
    let mut turn = Turn::new(ids::new_id("t"), None, true, Vec::new(), data, clock.now_ms(), texts.clone());
    let count = calls.len();
    let reply = AssistantMessage { tool_calls: calls, ..AssistantMessage::default() };
    turn.did(Did::Replied { reply, usage: None, finish: FinishReason::ToolCalls, at: clock.now_ms() })?;

    let store = Arc::new(InMemory::new());
    let keeper = Keeper { store, holder: "run_tools".into(), lease_ms: 0, clock };
    let journal = Journal::held(Arc::new(keeper));
    let mut host = KernelHost::new(kernel, texts, journal);
    host.gate = gate;
    host.context = context.clone();
    let mut waiting = Vec::new();
    let mut unwritten = Unwritten::default();
    // The batch is over when the model would be called with its results.
    while !matches!(turn.todo(), Todo::CallModel(_)) {
        if let Todo::Wait(pauses) = turn.todo() {
            waiting = pauses;
        }
        if advance(&mut turn, &host, &mut unwritten, context.cancel()).await? == Next::Stop {
            break;
        }
    }
    let messages: Vec<Message> = turn.whole_transcript().messages().skip(1).take(count).cloned().collect();
    Ok(ToolBatch {
        messages: if waiting.is_empty() { messages } else { Vec::new() },
        records: turn.records(),
        context: context.clone().with_values(turn.values_at(u32::MAX)),
        waiting,
    })
}
