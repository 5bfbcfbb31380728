//! What a turn tells while it runs, in one typed stream.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cepa_core::{Args, ChatEvent, ToolStatus, Usage};

use crate::{pause::Pause, result::TurnResult};

/// One thing that happened in a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// Some text of the reply.
    Text(String),
    /// Some reasoning.
    Reasoning(String),
    /// The model begins a call.
    ToolCallBegun {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// A piece of a call's arguments.
    ToolCallArguments {
        /// The call's id.
        id: String,
        /// The piece.
        delta: String,
    },
    /// A call with all its arguments; once per call, streamed or not.
    ToolCallReady {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        args: Args,
    },
    /// A body is entered.
    ToolStarted {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// A call has its result.
    ToolFinished {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// How it ended.
        status: ToolStatus,
        /// What the model reads.
        content: String,
    },
    /// The turn waits for decisions.
    Paused(Vec<Pause>),
    /// What the turn has cost so far.
    Usage(Usage),
    /// The text and calls of the present reply are void: it is written anew.
    Reset,
    /// The turn is over, or paused.
    Done(Box<TurnResult>),
}

/// Who listens. A listener that panics is logged and never changes a turn.
#[derive(Clone, Default)]
pub struct Listeners {
    listening: Vec<Listener>,
    /// Who keeps the events.
    keeping: Vec<Keeper>,
}

/// A function that is told of events.
type Listener = Arc<dyn Fn(&AgentEvent) + Send + Sync>;

/// A function that events are handed to.
type Keeper = Arc<dyn Fn(AgentEvent) + Send + Sync>;

impl Listeners {
    /// Adds a listener.
    pub fn push(&mut self, listener: Arc<dyn Fn(&AgentEvent) + Send + Sync + 'static>) {
        self.listening.push(listener);
    }

    /// Adds somebody who keeps the events, and gets each when the listeners were told of it.
    pub(crate) fn push_keeper(&mut self, keeper: impl Fn(AgentEvent) + Send + Sync + 'static) {
        self.keeping.push(Arc::new(keeper));
    }

    /// Adds the listeners of another.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.listening.extend(other.listening.iter().cloned());
        self.keeping.extend(other.keeping.iter().cloned());
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.listening.is_empty() && self.keeping.is_empty()
    }

    /// Tells everybody.
    pub fn emit(&self, event: &AgentEvent) {
        self.tell(event);
        for keeper in &self.keeping {
            contained(|| keeper(event.clone()));
        }
    }

    /// Tells everybody, and hands the event to whoever keeps it: it is not copied for one.
    pub(crate) fn hand(&self, event: AgentEvent) {
        let [keeper] = &*self.keeping else { return self.emit(&event) };
        self.tell(&event);
        contained(|| keeper(event));
    }

    fn tell(&self, event: &AgentEvent) {
        for listener in &self.listening {
            contained(|| listener(event));
        }
    }
}

fn contained(told: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(told)).is_err() {
        tracing::warn!("an event listener panicked; the turn goes on");
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listeners({})", self.listening.len() + self.keeping.len())
    }
}

/// Translates what the model emits. Calls are told by id, and `ToolCallReady` waits for the whole reply.
#[derive(Debug, Default)]
pub(crate) struct ChatEvents {
    ids: Vec<(usize, String)>,
    text: String,
}

impl ChatEvents {
    /// The event to tell, if any.
    pub(crate) fn translate(&mut self, event: ChatEvent) -> Option<AgentEvent> {
        Some(match event {
            ChatEvent::Text(text) => {
                self.text.push_str(&text);
                AgentEvent::Text(text)
            }
            ChatEvent::Reasoning(text) => AgentEvent::Reasoning(text),
            ChatEvent::CallBegun { index, id, name } => {
                self.ids.push((index, id.clone()));
                AgentEvent::ToolCallBegun { id, name }
            }
            ChatEvent::CallArguments { index, delta } => {
                let id = self.ids.iter().find(|(at, _)| *at == index).map(|(_, id)| id.clone())?;
                AgentEvent::ToolCallArguments { id, delta }
            }
            ChatEvent::Reset => {
                *self = Self::default();
                AgentEvent::Reset
            }
            // Ready calls and usage are told when the reply is whole, the same for streamed and not.
            _ => return None,
        })
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}
