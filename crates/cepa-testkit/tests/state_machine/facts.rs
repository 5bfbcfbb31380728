//! What really happened outside the store: what the model said, which bodies ran, what people were shown.

use std::{collections::BTreeMap, io::Write as _};

use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Fact {
    /// The model was asked and made this reply; `mark` is in its usage and in no other's.
    Replied { mark: u64, message: String },
    /// The model had begun to stream this text and then fell silent.
    Began { text: String },
    /// A body was entered.
    Entered { run: u64, key: String, tool: String, args: String },
    /// A body ended by itself.
    Ended { run: u64, outcome: Result<String, String> },
    /// A number was given away.
    Used(u64),
    /// Something was seen to be wrong at once.
    Wrong(String),
}

/// One time that a body ran.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) tool: String,
    pub(crate) args: String,
    /// The text of its result or of its error; `None` if it was stopped, or died.
    pub(crate) outcome: Option<Result<String, String>>,
}

/// All that happened so far.
#[derive(Default)]
pub(crate) struct Facts {
    /// The replies by mark, each as the JSON of a message.
    pub(crate) replies: BTreeMap<u64, String>,
    pub(crate) began: Vec<String>,
    /// The runs by idempotency key, in order.
    runs: BTreeMap<String, Vec<(u64, Run)>>,
    pub(crate) wrong: Vec<String>,
    last: u64,
    /// Where a process that will be killed leaves what it saw.
    log: Option<std::fs::File>,
}

impl Facts {
    /// Facts that are also written to a file, for whoever reads it after this process.
    pub(crate) fn logged(mut self, log: std::fs::File, last: u64) -> Self {
        (self.log, self.last) = (Some(log), last);
        self
    }

    pub(crate) fn add(&mut self, fact: Fact) {
        if let Some(log) = &mut self.log {
            // One write: a process that is killed leaves whole lines.
            let line = format!("{}\n", serde_json::to_string(&fact).unwrap());
            log.write_all(line.as_bytes()).unwrap();
        }
        match fact {
            Fact::Replied { mark, message } => drop(self.replies.insert(mark, message)),
            Fact::Began { text } => self.began.push(text),
            Fact::Entered { run, key, tool, args } => {
                self.runs.entry(key).or_default().push((run, Run { tool, args, outcome: None }));
            }
            Fact::Ended { run, outcome } => {
                let mut runs = self.runs.values_mut().flatten();
                runs.find(|(n, _)| *n == run).unwrap().1.outcome = Some(outcome);
            }
            Fact::Used(number) => self.last = self.last.max(number),
            Fact::Wrong(what) => self.wrong.push(what),
        }
    }

    /// A number that was never given before.
    pub(crate) fn number(&mut self) -> u64 {
        let number = self.last + 1;
        self.add(Fact::Used(number));
        number
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// How often and how the body of a call ran.
    pub(crate) fn runs(&self, key: &str) -> Vec<&Run> {
        self.runs.get(key).into_iter().flatten().map(|(_, run)| run).collect()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.runs.keys().map(String::as_str)
    }
}
