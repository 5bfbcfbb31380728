//! What a reply cost.

use cepa_core::Usage;

use crate::wire::pick;

/// Reads a `usage` object; what is missing or of a wrong type counts as not told. `None` if neither count is told.
pub(super) fn read(json: &str) -> Option<Usage> {
    let [input, output, input_details, output_details] =
        pick::members(json, ["input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"])?;
    let count = |raw: Option<&serde_json::value::RawValue>| raw?.get().parse::<u64>().ok();
    let (input, output) = (count(input), count(output));
    input.or(output)?;
    let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
    let [cached, written] = input_details
        .and_then(|raw| pick::members(raw.get(), ["cached_tokens", "cache_write_tokens"]))
        .unwrap_or_default();
    let [reasoning] = output_details.and_then(|raw| pick::members(raw.get(), ["reasoning_tokens"])).unwrap_or_default();
    // Parts of a sum are never more than the sum, whatever a proxy says.
    let part = |raw, whole: u64| count(raw).unwrap_or_default().min(whole);
    Some(Usage {
        input,
        output,
        cache_read: part(cached, input),
        cache_write: part(written, input),
        reasoning: part(reasoning, output),
    })
}
