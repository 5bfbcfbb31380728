//! What a reply cost. <https://ai.google.dev/api/generate-content#UsageMetadata>

use cepa_core::{RawJson, Usage};
use serde_json::Value;

/// Reads `usageMetadata`; what is missing or no count is not told. `None` if nothing is told.
pub(super) fn read(raw: &RawJson) -> Option<Usage> {
    let value: Value = raw.read().ok()?;
    let count = |name: &str| value.get(name).and_then(Value::as_u64);
    let (prompt, candidates, total) =
        (count("promptTokenCount"), count("candidatesTokenCount"), count("totalTokenCount"));
    let thoughts = count("thoughtsTokenCount").unwrap_or_default();
    prompt.or(candidates).or(total)?;
    // Results of the provider's own tools are read too.
    let input = prompt.unwrap_or_default().saturating_add(count("toolUsePromptTokenCount").unwrap_or_default());
    // Thoughts are counted beside the candidates; where a gateway counts them inside, the total tells.
    let output = match total.and_then(|total| total.checked_sub(input)).filter(|rest| *rest > 0) {
        Some(rest) => rest,
        None => candidates.unwrap_or_default().saturating_add(thoughts),
    };
    Some(Usage {
        input,
        output,
        // Parts of a sum are never more than the sum, whatever a proxy says.
        cache_read: count("cachedContentTokenCount").unwrap_or_default().min(input),
        cache_write: 0,
        reasoning: thoughts.min(output),
    })
}
