//! What a reply cost.

use cepa_core::{RawJson, Usage};
use serde_json::Value;

/// Reads a `usage` object; what is missing or of a wrong type counts as not told. `None` if neither count is told.
pub(super) fn read(raw: &RawJson) -> Option<Usage> {
    let value: Value = raw.read().ok()?;
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let (input, output) = (count("/input_tokens"), count("/output_tokens"));
    input.or(output)?;
    let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
    let part = |path: &str, whole: u64| count(path).unwrap_or_default().min(whole);
    Some(Usage {
        input,
        output,
        // Parts of a sum are never more than the sum, whatever a proxy says.
        cache_read: part("/input_tokens_details/cached_tokens", input),
        cache_write: part("/input_tokens_details/cache_write_tokens", input),
        reasoning: part("/output_tokens_details/reasoning_tokens", output),
    })
}
