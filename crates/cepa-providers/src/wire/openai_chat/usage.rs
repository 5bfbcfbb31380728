//! What a reply cost, in the words of the servers that speak this wire.

use cepa_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The members that are read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts<'a> {
    #[serde(borrow)]
    prompt_tokens: Option<&'a RawValue>,
    completion_tokens: Option<&'a RawValue>,
    total_tokens: Option<&'a RawValue>,
    reasoning_tokens: Option<&'a RawValue>,
    cached_tokens: Option<&'a RawValue>,
    prompt_cache_hit_tokens: Option<&'a RawValue>,
    prompt_tokens_details: Option<&'a RawValue>,
    completion_tokens_details: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details<'a> {
    #[serde(borrow)]
    cached_tokens: Option<&'a RawValue>,
    cache_write_tokens: Option<&'a RawValue>,
    reasoning_tokens: Option<&'a RawValue>,
}

/// Reads a `usage` object; what is missing or of a wrong type counts as not told. `None` if neither count is told.
pub(super) fn read(raw: &RawValue) -> Option<Usage> {
    let counts: Counts<'_> = object(raw.get())?;
    let input = number(counts.prompt_tokens);
    let output = number(counts.completion_tokens);
    if input.is_none() && output.is_none() {
        return None;
    }
    let input = input.unwrap_or_default();
    let mut output = output.unwrap_or_default();
    let of_prompt = details(counts.prompt_tokens_details);
    let of_completion = details(counts.completion_tokens_details);
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

fn details(raw: Option<&RawValue>) -> Details<'_> {
    raw.and_then(|raw| object(raw.get())).unwrap_or_default()
}

/// Structs can be read from arrays too; here only from objects.
fn object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    json.starts_with('{').then(|| serde_json::from_str(json).ok())?
}

/// A count; some servers write it with a decimal point.
fn number(raw: Option<&RawValue>) -> Option<u64> {
    let raw = raw?.get();
    raw.parse().ok().or_else(|| {
        let float = raw.parse().ok().filter(|float: &f64| (0.0..=9_007_199_254_740_992.0).contains(float))?;
        format!("{float:.0}").parse().ok()
    })
}
