//! What a reply cost, in the words of the servers that speak this wire.

use cepa_core::{RawJson, Usage};
use serde_json::Value;

/// Reads a `usage` object; what is missing or of a wrong type counts as not told. `None` if neither count is told.
pub(super) fn read(raw: &RawJson) -> Option<Usage> {
    let value: Value = raw.read().ok()?;
    let count = |path: &[&str]| number(path.iter().try_fold(&value, |value, name| value.get(name))?);
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| count(path));

    let input = count(&["prompt_tokens"]);
    let output = count(&["completion_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let input = input.unwrap_or_default();
    let mut output = output.unwrap_or_default();
    let reasoning = first(&[&["completion_tokens_details", "reasoning_tokens"], &["reasoning_tokens"]]).unwrap_or(0);
    // xAI and Gemini count reasoning beside the completion; their total tells
    // (<https://docs.x.ai/docs/guides/reasoning>).
    if reasoning > 0 && count(&["total_tokens"]) == Some(input.saturating_add(output).saturating_add(reasoning)) {
        output = output.saturating_add(reasoning);
    }
    let cached: &[&[&str]] = &[
        &["prompt_tokens_details", "cached_tokens"],
        // DeepSeek (<https://api-docs.deepseek.com/guides/kv_cache>), and Moonshot.
        &["prompt_cache_hit_tokens"],
        &["cached_tokens"],
    ];
    Some(Usage {
        input,
        output,
        // Parts of a sum are never more than the sum, whatever a proxy says.
        cache_read: first(cached).unwrap_or(0).min(input),
        cache_write: count(&["prompt_tokens_details", "cache_write_tokens"]).unwrap_or(0).min(input),
        reasoning: reasoning.min(output),
    })
}

/// A count; some servers write it with a decimal point.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| (0.0..=9_007_199_254_740_992.0).contains(float))?;
        format!("{float:.0}").parse().ok()
    })
}
