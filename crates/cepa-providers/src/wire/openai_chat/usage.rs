//! What a reply cost, in the words of the servers that speak this wire.

use cepa_core::{RawJson, Usage};
use serde::Deserialize;

/// The members that are read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    prompt_tokens: Option<RawJson>,
    completion_tokens: Option<RawJson>,
    total_tokens: Option<RawJson>,
    reasoning_tokens: Option<RawJson>,
    cached_tokens: Option<RawJson>,
    prompt_cache_hit_tokens: Option<RawJson>,
    prompt_tokens_details: Option<RawJson>,
    completion_tokens_details: Option<RawJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<RawJson>,
    cache_write_tokens: Option<RawJson>,
    reasoning_tokens: Option<RawJson>,
}

/// Reads a `usage` object; what is missing or of a wrong type counts as not told. `None` if neither count is told.
pub(super) fn read(raw: &RawJson) -> Option<Usage> {
    let counts: Counts = object(Some(raw))?;
    let input = number(counts.prompt_tokens);
    let output = number(counts.completion_tokens);
    if input.is_none() && output.is_none() {
        return None;
    }
    let input = input.unwrap_or_default();
    let mut output = output.unwrap_or_default();
    let of_prompt: Details = object(counts.prompt_tokens_details.as_ref()).unwrap_or_default();
    let of_completion: Details = object(counts.completion_tokens_details.as_ref()).unwrap_or_default();
    let reasoning = number(of_completion.reasoning_tokens).or(number(counts.reasoning_tokens)).unwrap_or(0);
    // xAI and Gemini count reasoning beside the completion; their total tells
    // (<https://docs.x.ai/docs/guides/reasoning>).
    if reasoning > 0 && number(counts.total_tokens) == Some(input.saturating_add(output).saturating_add(reasoning)) {
        output = output.saturating_add(reasoning);
    }
    let cached = number(of_prompt.cached_tokens)
        // DeepSeek (<https://api-docs.deepseek.com/guides/kv_cache>), and Moonshot.
        .or(number(counts.prompt_cache_hit_tokens))
        .or(number(counts.cached_tokens));
    Some(Usage {
        input,
        output,
        // Parts of a sum are never more than the sum, whatever a proxy says.
        cache_read: cached.unwrap_or(0).min(input),
        cache_write: number(of_prompt.cache_write_tokens).unwrap_or(0).min(input),
        reasoning: reasoning.min(output),
    })
}

/// Structs can be read from arrays too; here only from objects.
fn object<'a, T: Deserialize<'a>>(raw: Option<&'a RawJson>) -> Option<T> {
    raw.filter(|raw| raw.is_object())?.read().ok()
}

/// A count; some servers write it with a decimal point.
fn number(raw: Option<RawJson>) -> Option<u64> {
    let raw = raw?;
    raw.as_str().parse().ok().or_else(|| {
        let float = raw.as_str().parse().ok().filter(|float: &f64| (0.0..=9_007_199_254_740_992.0).contains(float))?;
        format!("{float:.0}").parse().ok()
    })
}
