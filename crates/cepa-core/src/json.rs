//! A piece of JSON kept as its exact text: digits, key order and spaces survive.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Any JSON value, kept as the text it came in. Cloning it shares the text.
///
/// ```
/// use cepa_core::RawJson;
/// let big = RawJson::parse("{\"n\": 123456789012345678901234567890}")?;
/// assert_eq!(big.as_str(), "{\"n\": 123456789012345678901234567890}");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Checks that the text is one JSON value and keeps it.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(|raw| Self(raw.to_owned().into()))
    }

    /// The JSON of any value that can be serialised.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// The empty object `{}`.
    pub fn empty_object() -> Self {
        RawValue::from_string("{}".to_owned()).unwrap_or_default().into()
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Reads the value into a type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// Whether this is a JSON object.
    pub fn is_object(&self) -> bool {
        self.0.get().starts_with('{')
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// Members of a stored object that this version does not know: kept, in order of name.
pub type Extra = std::collections::BTreeMap<String, RawJson>;
