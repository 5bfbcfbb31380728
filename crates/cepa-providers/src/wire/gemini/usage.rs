//! What a reply cost. <https://ai.google.dev/api/generate-content#UsageMetadata>

use cepa_core::Usage;

use crate::wire::pick;

/// Reads `usageMetadata`; what is missing or no count is not told. `None` if nothing is told.
pub(super) fn read(json: &str) -> Option<Usage> {
    let names = [
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        "thoughtsTokenCount",
        "toolUsePromptTokenCount",
        "cachedContentTokenCount",
    ];
    let counts = pick::members(json, names)?.map(|raw| raw?.get().parse::<u64>().ok());
    let [prompt, candidates, total, thoughts, tools, cached] = counts;
    let thoughts = thoughts.unwrap_or_default();
    prompt.or(candidates).or(total)?;
    // Results of the provider's own tools are read too.
    let input = prompt.unwrap_or_default().saturating_add(tools.unwrap_or_default());
    // Thoughts are counted beside the candidates; where a gateway counts them inside, the total tells.
    let output = match total.and_then(|total| total.checked_sub(input)).filter(|rest| *rest > 0) {
        Some(rest) => rest,
        None => candidates.unwrap_or_default().saturating_add(thoughts),
    };
    Some(Usage {
        input,
        output,
        // Parts of a sum are never more than the sum, whatever a proxy says.
        cache_read: cached.unwrap_or_default().min(input),
        cache_write: 0,
        reasoning: thoughts.min(output),
    })
}
