//! What a reply cost: counts that may come in several events, later ones replacing earlier ones.

use cepa_core::Usage;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The counts of a `usage` object; what is missing, null or no count is not known.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    #[serde(deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "thinking_tokens")]
    output_tokens_details: Option<u64>,
}

impl Counts {
    /// The counts in a value of any shape: an odd `usage` must not cost the reply.
    pub(super) fn of(value: Option<&Value>) -> Self {
        value.and_then(|value| Self::deserialize(value).ok()).unwrap_or_default()
    }

    /// Takes what a later event knows. The counts of Anthropic's events are cumulative.
    pub(super) fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// The neutral usage. Anthropic's `input_tokens` are those that no cache saw; ours are all.
    /// <https://platform.claude.com/docs/en/build-with-claude/prompt-caching#tracking-cache-performance>
    pub(super) fn usage(&self) -> Option<Usage> {
        self.input_tokens.or(self.output_tokens)?;
        let cache_read = self.cache_read_input_tokens.unwrap_or_default();
        let cache_write = self.cache_creation_input_tokens.unwrap_or_default();
        Some(Usage {
            input: self.input_tokens.unwrap_or_default().saturating_add(cache_read).saturating_add(cache_write),
            output: self.output_tokens.unwrap_or_default(),
            cache_read,
            cache_write,
            reasoning: self.output_tokens_details.unwrap_or_default(),
        })
    }
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64())
}

fn thinking_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.get("thinking_tokens").and_then(Value::as_u64))
}
