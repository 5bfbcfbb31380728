//! Kind `scenario`: agents with scripted replies or behind a local server, step by step.

mod agents;
mod filters;
mod input;
mod memory;
mod model;
mod record;
mod source;
mod steps;
mod tools;

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use cepa_core::{ChatRequest, EventSink, Message, RawJson};
use serde::Serialize;

use crate::{
    line::{Fail, Line, Observed, observed},
    neutral::Neutral,
    outcome::Outcome,
    wire::{Wire, deltas},
};
use input::{Input, Step};
use model::Sent;
use record::{Event, Record, ToolRun};
use source::Source;
use steps::{Stage, StepOutcome};

/// Everything that a scenario reports; what does not apply is left out.
#[derive(Default, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepOutcome>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_runs: Option<Vec<ToolRun>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_before_step: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Neutral>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_calls: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<Sent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_requests: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deltas: Option<Vec<String>>,
    elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate_calls: Option<BTreeMap<String, usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_args: Option<BTreeMap<String, RawJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_pause_calls: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<Event>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner_model_calls: Option<usize>,
    /// Null if the server did not see the connection close.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_closed_ms: Option<Option<u64>>,
}

/// Runs the scenario and reports what was seen.
pub(crate) async fn run(line: &Line) -> Result<Observed, Fail> {
    let input: Input = line.input()?;
    let record = Arc::new(Record::default());
    let source = Source::of(&input, &line.provider, &record).await?;
    let mut report = Report::default();
    let start = Instant::now();
    let source = match input.steps.clone() {
        None => {
            (report.result, report.deltas) = single(&input, &source, &line.provider).await?;
            report.elapsed_ms = ms(start.elapsed());
            source
        }
        Some(steps) => {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let stage = Arc::new(Stage::new(input.clone(), source, record.clone(), folder));
            all(&stage, &record, &steps).await?;
            report.elapsed_ms = ms(start.elapsed());
            with_steps(&mut report, &stage, &record, &steps).await?;
            Arc::into_inner(stage).ok_or_else(|| "a step is still running".to_owned())?.source
        }
    };
    match &source {
        Source::Script(model) => {
            let requests = model.requests();
            report.model_calls = Some(requests.len());
            report.requests = Some(requests.iter().map(Sent::of).collect());
        }
        Source::Http(http) => report.http_requests = Some(http.server.requests()),
    }
    observed(&report)
}

async fn all(stage: &Arc<Stage>, record: &Record, steps: &[Step]) -> Result<(), Fail> {
    for step in steps {
        {
            let mut notes = record.notes();
            let runs = notes.tool_runs.len();
            notes.runs_before_step.push(runs);
        }
        let outcome = stage.clone().step(step.clone()).await?;
        record.notes().outcomes.push(outcome);
    }
    Ok(())
}

async fn with_steps(report: &mut Report, stage: &Stage, record: &Record, steps: &[Step]) -> Result<(), Fail> {
    report.history = Some(stage.history().await?);
    let input = &stage.input;
    let closed = match &stage.source {
        Source::Script(_) => None,
        Source::Http(http) => http.server.closed(),
    };
    let mut notes = record.notes();
    let on_pause = |agent: &input::AgentWords| agent.on_pause;
    let has_on_pause = input.agent.iter().chain(input.agents.iter().flat_map(BTreeMap::values)).any(on_pause);
    let any_step = |has: fn(&Step) -> bool| steps.iter().chain(steps.iter().flat_map(|step| &step.of)).any(has);
    report.steps = Some(std::mem::take(&mut notes.outcomes));
    report.tool_runs = Some(notes.tool_runs.clone());
    report.runs_before_step = Some(notes.runs_before_step.clone());
    if input.gate.is_some() || input.tools.iter().any(|tool| tool.gate.is_some()) {
        report.gate_calls = Some(notes.gate_calls.clone());
    }
    if has_on_pause {
        report.pending_args = Some(notes.pending_args.clone());
        report.on_pause_calls = Some(notes.on_pause_calls);
    }
    if any_step(|step| step.op == "chat_stream") {
        report.events = Some(notes.events.clone());
    }
    if !input.filters.is_empty() {
        report.trace = Some(notes.trace.clone());
    }
    if input.tools.iter().any(|tool| tool.agent.is_some()) {
        report.inner_model_calls = Some(notes.inner_model_calls);
    }
    if any_step(|step| step.drop_when.is_some()) {
        let after = notes.dropped.zip(closed).map(|(dropped, closed)| ms(closed.saturating_duration_since(dropped)));
        report.connection_closed_ms = Some(after);
    }
    Ok(())
}

/// One model call without an agent.
async fn single(
    input: &Input,
    source: &Source,
    provider: &str,
) -> Result<(Option<Outcome>, Option<Vec<String>>), Fail> {
    let model = source.model()?;
    let (sink, heard) = deltas();
    let mut request = ChatRequest::new(vec![Message::user("hi")]);
    request.events = if input.stream { sink } else { EventSink::none() };
    let result = model.chat(request).await;
    let name = match source {
        Source::Script(_) => "m",
        Source::Http(http) => &http.name,
    };
    let outcome = Outcome::of(&Wire::of(provider, name)?, result, None)?;
    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((Some(outcome), input.stream.then_some(heard)))
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
