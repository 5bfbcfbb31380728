//! A turn as a program reads it: one JSON object a line, the last one `{"type": "result", …}`.

use std::io::{self, Write};

use cepa::{AgentEvent, Args, Error, Pause, RawJson, Record, TurnError, TurnResult, Usage};
use serde::Serialize;

use crate::{drive::View, exit::Exit};

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    Text {
        text: &'a str,
    },
    Reasoning {
        text: &'a str,
    },
    ToolCall {
        id: &'a str,
        name: &'a str,
        #[serde(flatten)]
        args: ArgsOut<'a>,
    },
    ToolStarted {
        id: &'a str,
        name: &'a str,
    },
    ToolFinished {
        id: &'a str,
        name: &'a str,
        status: &'a str,
        content: &'a str,
    },
    Paused {
        pending: Vec<Pending<'a>>,
    },
    Usage {
        usage: UsageOut,
    },
    /// The text and calls of the present reply are void.
    Reset {},
    Result(Box<ResultOut<'a>>),
}

/// What came of a turn.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ResultOut<'a> {
    status: &'a str,
    exit_code: u8,
    text: &'a str,
    conversation: Option<&'a str>,
    turn: Option<&'a str>,
    model: Option<&'a str>,
    finish_reason: Option<&'a str>,
    records: Vec<RecordOut<'a>>,
    usage: UsageOut,
    pending: Vec<Pending<'a>>,
    error: Option<ErrorOut<'a>>,
}

/// A waiting call. `cepa pending --json` lists these.
#[derive(Debug, Serialize)]
pub(crate) struct Pending<'a> {
    pause_id: &'a str,
    kind: &'a str,
    conversation: &'a str,
    tool: &'a str,
    /// Exactly what would run.
    args: &'a RawJson,
    reason: Option<&'a str>,
    created: Time,
    expires: Option<Time>,
}

/// The members of messages: `args`, or `args: null` and what the model wrote instead.
#[derive(Debug, Serialize)]
pub(crate) struct ArgsOut<'a> {
    args: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_args: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct RecordOut<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(flatten)]
    args: ArgsOut<'a>,
    outcome: &'a str,
    result: &'a str,
    duration_ms: u64,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct UsageOut {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
}

#[derive(Debug, Serialize)]
struct ErrorOut<'a> {
    kind: &'a str,
    message: &'a str,
    retryable: bool,
    provider: Option<&'a str>,
    status: Option<u16>,
    code: Option<&'a str>,
    request_id: Option<&'a str>,
    /// In seconds.
    retry_after: Option<f64>,
}

/// A time: RFC 3339, or the number itself if it is no time.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Time {
    Text(String),
    Number(i64),
}

impl Time {
    /// From milliseconds since 1970.
    pub(crate) fn of(ms: i64) -> Self {
        jiff::Timestamp::from_millisecond(ms).map_or(Self::Number(ms), |time| Self::Text(time.to_string()))
    }
}

impl<'a> Line<'a> {
    /// The line of an event; `None` for what only repeats another.
    pub(crate) fn of(event: &'a AgentEvent) -> Option<Self> {
        Some(match event {
            AgentEvent::Text(text) => Self::Text { text },
            AgentEvent::Reasoning(text) => Self::Reasoning { text },
            AgentEvent::ToolCallReady { id, name, args } => Self::ToolCall { id, name, args: args.into() },
            AgentEvent::ToolStarted { id, name } => Self::ToolStarted { id, name },
            AgentEvent::ToolFinished { id, name, status, content } => {
                Self::ToolFinished { id, name, status: status.as_str(), content }
            }
            AgentEvent::Paused(pauses) => Self::Paused { pending: pauses.iter().map(Pending::from).collect() },
            AgentEvent::Usage(usage) => Self::Usage { usage: (*usage).into() },
            AgentEvent::Reset => Self::Reset {},
            // A call is told when it is whole, the end as the result.
            _ => return None,
        })
    }

    /// The last line of a turn that did not fail.
    pub(crate) fn result(result: &'a TurnResult, model: &'a str) -> Self {
        Self::Result(Box::new(ResultOut {
            status: result.status.as_str(),
            exit_code: Exit::of(result.status).code(),
            text: &result.text,
            conversation: result.conversation.as_deref(),
            turn: Some(&result.turn),
            model: Some(model),
            finish_reason: result.finish_reason.map(|reason| reason.as_str()),
            records: result.records.iter().map(RecordOut::from).collect(),
            usage: result.usage.into(),
            pending: result.pending.iter().map(Pending::from).collect(),
            error: None,
        }))
    }

    /// The last line of a turn that failed.
    pub(crate) fn failure(failed: &'a TurnError, exit: Exit, conversation: Option<&'a str>) -> Self {
        Self::Result(Box::new(ResultOut {
            status: "error",
            exit_code: exit.code(),
            conversation,
            records: failed.records.iter().map(RecordOut::from).collect(),
            usage: failed.usage.into(),
            error: Some((&failed.error).into()),
            ..ResultOut::default()
        }))
    }
}

impl<'a> From<&'a Pause> for Pending<'a> {
    fn from(pause: &'a Pause) -> Self {
        Self {
            pause_id: &pause.id,
            kind: pause.kind.as_str(),
            conversation: &pause.conversation,
            tool: &pause.tool,
            args: &pause.args,
            reason: pause.reason.as_deref(),
            created: Time::of(pause.created),
            expires: pause.expires.map(Time::of),
        }
    }
}

impl<'a> From<&'a Args> for ArgsOut<'a> {
    fn from(args: &'a Args) -> Self {
        match args {
            Args::Object(raw) => Self { args: Some(raw), raw_args: None },
            Args::Invalid { raw, .. } => Self { args: None, raw_args: Some(raw) },
        }
    }
}

impl<'a> From<&'a Record> for RecordOut<'a> {
    fn from(record: &'a Record) -> Self {
        Self {
            id: &record.id,
            name: &record.name,
            args: (&record.args).into(),
            outcome: record.outcome.as_str(),
            result: &record.result,
            duration_ms: u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl From<Usage> for UsageOut {
    fn from(Usage { input, output, cache_read, cache_write, reasoning }: Usage) -> Self {
        Self { input, output, cache_read, cache_write, reasoning }
    }
}

impl<'a> From<&'a Error> for ErrorOut<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            kind: error.kind().as_str(),
            message: error.message(),
            retryable: error.is_retryable(),
            provider: error.provider(),
            status: error.status(),
            code: error.code(),
            request_id: error.request_id(),
            retry_after: error.retry_after().map(|wait| wait.as_secs_f64()),
        }
    }
}

/// Shows a turn as these lines.
pub(crate) struct JsonLines;

impl View for JsonLines {
    fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        Line::of(event).map_or(Ok(()), |line| print(&line))
    }
    fn result(&mut self, result: &TurnResult, model: &str) -> io::Result<()> {
        print(&Line::result(result, model))
    }
    fn failure(&mut self, failed: &TurnError, exit: Exit, conversation: Option<&str>) -> io::Result<()> {
        print(&Line::failure(failed, exit, conversation))
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn print(value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    // One write a line, so that lines of two processes do not mix.
    out.write_all(&line)?;
    out.flush()
}

#[cfg(test)]
#[path = "json_lines_tests.rs"]
mod tests;
