//! What a reply looks like; only what we read of it. What is null, missing or of another type counts as not said.

use std::borrow::Cow;

use cepa_core::RawJson;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// A whole reply, or a chunk of a streamed one: both have the same form.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    /// A list of candidates.
    #[serde(borrow)]
    pub(super) candidates: Option<&'a RawValue>,
    #[serde(deserialize_with = "lenient")]
    pub(super) prompt_feedback: Option<Feedback>,
    #[serde(borrow)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Parts<'a>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) finish_message: Option<String>,
    #[serde(borrow)]
    pub(super) index: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Parts<'a> {
    /// A list.
    #[serde(borrow)]
    pub(super) parts: Option<&'a RawValue>,
}

/// Why a prompt was not answered.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Feedback {
    #[serde(deserialize_with = "lenient")]
    pub(super) block_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) block_reason_message: Option<String>,
}

/// A call inside a part.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FunctionCall {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    pub(super) args: Option<RawJson>,
    /// Whether more of its arguments follows.
    #[serde(deserialize_with = "lenient")]
    pub(super) will_continue: Option<bool>,
}

/// Bytes inside a part.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Blob {
    #[serde(deserialize_with = "lenient")]
    pub(super) mime_type: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) data: Option<String>,
}

/// The text of a part that holds nothing else, as nearly all do.
pub(super) fn text_alone(part: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Alone<'a> {
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    // Structs can be read from lists too; here a list is no part.
    let part = Some(part).filter(|part| part.starts_with('{'))?;
    serde_json::from_str(part).ok().map(|Alone { text }| text)
}

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw: &RawValue = Deserialize::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}
