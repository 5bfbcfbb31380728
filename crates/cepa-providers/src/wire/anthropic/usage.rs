//! What a reply cost: counts that may come in several events, later ones replacing earlier ones.

use cepa_core::Usage;
use serde_json::value::RawValue;

use crate::wire::pick;

/// The counts of a `usage` object; what is missing, null or no count is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    thinking_tokens: Option<u64>,
}

impl Counts {
    /// The counts in a value of any shape: an odd `usage` must not cost the reply.
    pub(super) fn of(usage: Option<&RawValue>) -> Self {
        let names = [
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens_details",
        ];
        let members = usage.and_then(|usage| pick::members(usage.get(), names)).unwrap_or_default();
        let count = |raw: Option<&RawValue>| raw?.get().parse().ok();
        let [input, output, cache_read, cache_creation, details] = members;
        let [thinking] = details.and_then(|raw| pick::members(raw.get(), ["thinking_tokens"])).unwrap_or_default();
        Self {
            input_tokens: count(input),
            output_tokens: count(output),
            cache_read_input_tokens: count(cache_read),
            cache_creation_input_tokens: count(cache_creation),
            thinking_tokens: count(thinking),
        }
    }

    /// Takes what a later event knows. The counts of Anthropic's events are cumulative.
    pub(super) fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.thinking_tokens = later.thinking_tokens.or(self.thinking_tokens);
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
            reasoning: self.thinking_tokens.unwrap_or_default(),
        })
    }
}
