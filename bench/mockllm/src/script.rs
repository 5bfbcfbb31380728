//! What a request asks for: the model's name is the script, and the messages tell how far the turn has come.

use std::{borrow::Cow, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;

/// A request, as far as it decides the answer. The rest is checked to be JSON and left alone.
#[derive(Deserialize)]
pub struct Request<'a> {
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    #[serde(default)]
    pub stream: bool,
    #[serde(borrow)]
    messages: Vec<Said<'a>>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}

impl Said<'_> {
    /// In Anthropic's form the results of tools are a user's message.
    fn is_result(&self) -> bool {
        let blocks = self.content.map(RawValue::get).filter(|content| content.starts_with('['));
        let blocks: Vec<Block> = blocks.and_then(|content| serde_json::from_str(content).ok()).unwrap_or_default();
        blocks.iter().any(|block| block.r#type == "tool_result")
    }
}

impl Request<'_> {
    /// How many replies there were since the last message of the user that is not a tool result.
    pub fn rounds_so_far(&self) -> usize {
        let turn = self.messages.iter().rev().take_while(|said| said.role != "user" || said.is_result());
        turn.filter(|said| said.role == "assistant").count()
    }
}

/// What a model's name asks for.
pub struct Script {
    pub rounds: usize,
    pub calls: usize,
    words: usize,
    pub delay: Duration,
}

impl Script {
    pub fn of(model: &str) -> Self {
        let mut script = Self { rounds: 0, calls: 1, words: 3, delay: Duration::ZERO };
        let mut parts = model.split('-');
        while let Some(part) = parts.next() {
            let mut number = || parts.next().and_then(|number| number.parse().ok()).unwrap_or(0);
            match part {
                "loop" => script.rounds = number(),
                "par" => (script.rounds, script.calls) = (1, number()),
                "say" => script.words = number(),
                _ => {
                    let milliseconds = part.strip_prefix('d').and_then(|number| number.parse().ok());
                    script.delay = Duration::from_millis(milliseconds.unwrap_or(0));
                }
            }
        }
        script
    }

    pub fn words(&self) -> impl Iterator<Item = String> {
        (0..self.words).map(|word| format!("word{word} "))
    }

    pub fn text(&self) -> String {
        self.words().collect()
    }
}
