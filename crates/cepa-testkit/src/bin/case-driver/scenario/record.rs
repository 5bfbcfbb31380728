//! What the driver's own parts (tools, gate, callbacks, filters) note while a scenario runs.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use cepa_agent::{AgentEvent, Pause, TurnStatus};
use cepa_core::RawJson;
use serde::Serialize;
use tokio::sync::watch;

use crate::{neutral, scenario::steps::StepOutcome};

/// A tool's body that was started.
#[derive(Clone, Serialize)]
pub(crate) struct ToolRun {
    pub(crate) name: String,
    pub(crate) args: RawJson,
}

/// An event for the user interface.
#[derive(Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    ToolCall { id: String, name: String, args: Option<RawJson> },
    ToolResult { id: String, content: String },
    TextDelta(String),
    Completed(bool),
}

impl Event {
    /// What the protocol asks for, of all that the library tells.
    pub(crate) fn of(event: &AgentEvent) -> Option<Self> {
        Some(match event {
            AgentEvent::ToolCallReady { id, name, args } => {
                Self::ToolCall { id: id.clone(), name: name.clone(), args: neutral::args(args) }
            }
            AgentEvent::ToolFinished { id, content, .. } => {
                Self::ToolResult { id: id.clone(), content: content.clone() }
            }
            AgentEvent::Text(text) => Self::TextDelta(text.clone()),
            AgentEvent::Done(result) if result.status == TurnStatus::Completed => Self::Completed(true),
            _ => return None,
        })
    }
}

/// Everything noted so far.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) tool_runs: Vec<ToolRun>,
    pub(crate) gate_calls: BTreeMap<String, usize>,
    pub(crate) pending_args: BTreeMap<String, RawJson>,
    /// Under which pause id a call was last reported to wait.
    pub(crate) pause_ids: BTreeMap<String, String>,
    pub(crate) on_pause_calls: usize,
    pub(crate) events: Vec<Event>,
    pub(crate) trace: Vec<String>,
    pub(crate) inner_model_calls: usize,
    pub(crate) dropped: Option<Instant>,
    pub(crate) runs_before_step: Vec<usize>,
    pub(crate) outcomes: Vec<StepOutcome>,
}

/// The notes of one scenario, shared by all its parts.
pub(crate) struct Record {
    notes: Mutex<Notes>,
    /// The tools whose bodies were started, in order.
    started: watch::Sender<Vec<String>>,
}

impl Default for Record {
    fn default() -> Self {
        Self { notes: Mutex::default(), started: watch::Sender::new(Vec::new()) }
    }
}

impl Record {
    /// The notes, to be read or added to.
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a tool's body was started.
    pub(crate) fn tool_started(&self, name: &str, args: RawJson) {
        self.notes().tool_runs.push(ToolRun { name: name.to_owned(), args });
        self.started.send_modify(|started| started.push(name.to_owned()));
    }

    /// Waits until the body of a tool is started, from now on.
    pub(crate) fn when_started(&self, name: String) -> impl Future<Output = ()> + Send + 'static {
        let mut started = self.started.subscribe();
        let before = started.borrow().len();
        async move {
            let is_there = |started: &Vec<String>| started.iter().skip(before).any(|tool| *tool == name);
            if started.wait_for(is_there).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Notes calls that wait for a person, as they are shown.
    pub(crate) fn waiting(&self, pauses: &[Pause]) {
        let mut notes = self.notes();
        for pause in pauses {
            notes.pending_args.insert(pause.call_id.clone(), pause.args.clone());
            notes.pause_ids.insert(pause.call_id.clone(), pause.id.clone());
        }
    }
}
