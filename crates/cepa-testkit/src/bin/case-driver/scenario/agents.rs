//! Builds the agents of a scenario from the input, again after each restart.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use cepa_agent::{Agent, AgentEvent, Gate, GateCall, OnExhausted, TurnStore, Verdict, gate_fn};
use cepa_core::{ChatModel, Error};

use super::{
    filters,
    input::{AgentWords, GateWords, Input, ObserverWords, ToolWords},
    memory,
    record::Record,
    tools,
};
use crate::{line::Fail, request::choice};

/// The agents by name, and the store that they share. The only agent of a scenario has the name "".
pub(crate) struct Agents {
    pub(crate) by_name: BTreeMap<String, Agent>,
    pub(crate) store: Option<Arc<dyn TurnStore>>,
}

/// Opens the store and builds all agents, without the tools that were removed.
pub(crate) fn build(
    input: &Input,
    removed: &[String],
    model: &Arc<dyn ChatModel>,
    folder: &Path,
    record: &Arc<Record>,
) -> Result<Result<Agents, Error>, Fail> {
    let memory = words(input).into_values().find_map(|agent| agent.memory);
    let store = memory::open(memory.as_ref(), folder)?;
    build_on(input, removed, model, store, record)
}

/// Builds all agents on a store that is open.
pub(crate) fn build_on(
    input: &Input,
    removed: &[String],
    model: &Arc<dyn ChatModel>,
    store: Option<Arc<dyn TurnStore>>,
    record: &Arc<Record>,
) -> Result<Result<Agents, Error>, Fail> {
    let mut by_name = BTreeMap::new();
    for (name, agent) in words(input) {
        let store = store.clone().filter(|_| agent.memory.as_ref().is_some_and(|memory| memory.kind != "none"));
        match build_one(input, &agent, removed, model.clone(), store, record)? {
            Ok(agent) => drop(by_name.insert(name, agent)),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(Agents { by_name, store }))
}

fn words(input: &Input) -> BTreeMap<String, AgentWords> {
    match (&input.agent, &input.agents) {
        (_, Some(agents)) => agents.clone(),
        (agent, None) => BTreeMap::from([(String::new(), agent.clone().unwrap_or_default())]),
    }
}

fn build_one(
    input: &Input,
    words: &AgentWords,
    removed: &[String],
    model: Arc<dyn ChatModel>,
    store: Option<Arc<dyn TurnStore>>,
    record: &Arc<Record>,
) -> Result<Result<Agent, Error>, Fail> {
    let mut builder = Agent::builder_shared(model);
    for tool in input.tools.iter().filter(|tool| !removed.contains(&tool.name)) {
        match tools::tool(tool, &input.inner_tools, record, words.tool_timeout_ms) {
            Ok(tool) => builder = builder.tool(tool),
            Err(error) => return Ok(Err(error)),
        }
    }
    for filter in &input.filters {
        builder = filters::add(builder, filter, record)?;
    }
    if let Some(store) = store {
        builder = builder.memory_shared(store);
    }
    if let Some(id) = &words.conversation_id {
        builder = builder.conversation_id(id);
    }
    if let Some(prompt) = &words.system_prompt {
        builder = builder.system_prompt(prompt);
    }
    if let Some(word) = &words.tool_choice {
        builder = builder.tool_choice(choice(word));
    }
    if let Some(batches) = words.max_batches {
        builder = builder.max_batches(batches);
    }
    match words.on_exhausted.as_deref() {
        None => {}
        Some("stop") => builder = builder.on_exhausted(OnExhausted::Stop),
        Some(policy) => return Err(Fail::Crash(format!("the policy `{policy}` is not known"))),
    }
    if let Some(chars) = words.max_result_chars {
        builder = builder.max_result_chars(chars);
    }
    if words.on_pause {
        let record = record.clone();
        builder = builder.on_pause(move |pauses| {
            record.waiting(pauses);
            record.notes().on_pause_calls += 1;
        });
    }
    if let Some(gate) = gate(input.gate.as_ref(), &input.tools, record) {
        builder = builder.gate(gate);
    }
    for observer in &input.observers {
        let observer = observer.clone();
        builder = builder.on_event(move |event| observe(&observer, event));
    }
    Ok(builder.build())
}

/// A listener that fails, as one in Rust does: by a panic.
#[expect(clippy::panic, reason = "it stands for a listener of a user's that has a fault")]
fn observe(words: &ObserverWords, event: &AgentEvent) {
    let happened = match words.on.as_str() {
        "tool_started" => matches!(event, AgentEvent::ToolStarted { .. }),
        "tool_finished" => matches!(event, AgentEvent::ToolFinished { .. }),
        "text_delta" => matches!(event, AgentEvent::Text(_)),
        "completed" => matches!(event, AgentEvent::Done(_)),
        _ => false,
    };
    if happened {
        std::panic::panic_any(words.raises.clone());
    }
}

/// The gate, if the input or a tool speaks of one. It counts its calls.
fn gate(words: Option<&GateWords>, tools: &[ToolWords], record: &Arc<Record>) -> Option<Arc<dyn Gate>> {
    let by_tool: BTreeMap<String, String> =
        tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.gate.clone()?))).collect();
    if words.is_none() && by_tool.is_empty() {
        return None;
    }
    let (words, record) = (words.cloned(), record.clone());
    Some(gate_fn(move |call: GateCall| {
        let nth = {
            let mut notes = record.notes();
            let count = notes.gate_calls.entry(call.id.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let word = answer(words.as_ref(), &by_tool, &call, nth);
        async move {
            Ok(match word.as_str() {
                "pause" => Verdict::pause(),
                "reject" => Verdict::reject(),
                _ => Verdict::Proceed,
            })
        }
    }))
}

fn answer(words: Option<&GateWords>, by_tool: &BTreeMap<String, String>, call: &GateCall, nth: usize) -> String {
    let proceed = || "proceed".to_owned();
    if let Some(word) = by_tool.get(&call.tool) {
        return word.clone();
    }
    let Some(words) = words else { return proceed() };
    if let Some(rule) = &words.pause_if {
        let value = call.args.to_value().get(&rule.arg).and_then(serde_json::Value::as_f64);
        return if value.is_some_and(|value| value > rule.greater_than) { "pause".to_owned() } else { proceed() };
    }
    words.script.get(&call.id).and_then(|answers| answers.get(nth)).cloned().unwrap_or_else(proceed)
}
