//! The work: what the command line says, and the texts that everybody sends.

use std::{fmt::Write as _, path::PathBuf, str::FromStr};

use crate::{Error, Result};

/// The system prompt of every request.
pub const SYSTEM: &str = "You are a helpful assistant.";
/// The schema of the tools.
pub const ADD_SCHEMA: &str =
    r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#;

/// What a run is told: `CLIENT SCENARIO SERVER [KEY=VALUE...]`.
#[derive(Clone, Debug)]
pub struct Work {
    /// Which scenario.
    pub scenario: String,
    /// The mock server, without a path.
    pub server: String,
    /// Turns to measure; conversations, where those are counted.
    pub turns: usize,
    /// Turns before that.
    pub warm_up: usize,
    /// Conversations at the same time.
    pub at_once: usize,
    /// Tools that are offered.
    pub tools: usize,
    /// How long a user's message is at least, in a conversation that grows.
    pub said: usize,
    /// Whether the client keeps conversations itself, where it can also do without.
    pub memory: bool,
    /// The database file to keep conversations in.
    pub db: Option<PathBuf>,
    /// How many bytes of conversations the client holds ready, where that can be set.
    pub hot: Option<usize>,
    /// Commits that a hand-written loop makes in one turn.
    pub commits: usize,
    /// Whether a commit waits for the disk: `synchronous` FULL, else NORMAL.
    pub full: bool,
}

impl Work {
    /// What this program's command line says.
    ///
    /// # Errors
    /// For words that are missing or not understood.
    pub fn from_args() -> Result<Self> {
        let mut args = std::env::args().skip(1);
        let (Some(scenario), Some(server)) = (args.next(), args.next()) else {
            return Err("usage: CLIENT SCENARIO SERVER [KEY=VALUE...]".into());
        };
        let mut work = Self {
            scenario,
            server,
            turns: 100,
            warm_up: 20,
            at_once: 1,
            tools: 1,
            said: 0,
            memory: true,
            db: None,
            hot: None,
            commits: 1,
            full: true,
        };
        for arg in args {
            let (key, value) = arg.split_once('=').ok_or_else(|| format!("{arg} is not KEY=VALUE"))?;
            match key {
                "turns" => work.turns = number(key, value)?,
                "warm_up" => work.warm_up = number(key, value)?,
                "at_once" => work.at_once = number(key, value)?,
                "tools" => work.tools = number(key, value)?,
                "said" => work.said = number(key, value)?,
                "hot" => work.hot = Some(number(key, value)?),
                "memory" => work.memory = number(key, value)?,
                "db" => work.db = Some(value.into()),
                "commits" => work.commits = number(key, value)?,
                "full" => work.full = number(key, value)?,
                _ => return Err(format!("no such key: {key}").into()),
            }
        }
        Ok(work)
    }

    /// The base URL of a client in OpenAI's form.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.server)
    }

    /// Host and port of the server.
    pub fn address(&self) -> &str {
        self.server.trim_start_matches("http://")
    }

    /// The file that a client with a store must have been given.
    pub fn db(&self) -> Result<&PathBuf> {
        self.db.as_ref().ok_or_else(|| "give db=FILE".into())
    }
}

fn number<T: FromStr>(key: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| Error::from(format!("{key}={value} is not understood")))
}

/// The name of a tool: the first is the one that is called.
pub fn tool_name(index: usize) -> String {
    if index == 0 { "add".to_owned() } else { format!("add_{index}") }
}

/// So many tools in OpenAI's form.
pub fn tools_json(count: usize) -> String {
    let mut tools = String::from("[");
    for index in 0..count {
        let (comma, name) = (if index == 0 { "" } else { "," }, tool_name(index));
        // Writing to a string does not fail.
        let _ = write!(
            tools,
            r#"{comma}{{"type":"function","function":{{"name":"{name}","description":"Adds two integers.","parameters":{ADD_SCHEMA}}}}}"#
        );
    }
    tools + "]"
}
