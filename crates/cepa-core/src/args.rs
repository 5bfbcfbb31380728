//! The arguments of a tool call, and the one rule by which a provider's text becomes arguments.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::RawJson;

/// Arguments as the model wrote them: an object, or text that is none and is therefore never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Args {
    /// A JSON object, with its exact text.
    Object(RawJson),
    /// Text that is not a JSON object.
    Invalid {
        /// What the model wrote.
        raw: String,
        /// Why it is not usable, in words for the model.
        why: String,
    },
}

impl Args {
    /// Decodes arguments that arrived as text: blank is `{}`, a string that holds an object is that object,
    /// anything else that is not an object is [`Args::Invalid`].
    ///
    /// ```
    /// use cepa_core::Args;
    /// assert_eq!(Args::decode("  ").as_str(), "{}");
    /// assert_eq!(Args::decode(r#"{"id": 12345678901234567890123}"#).as_str(), r#"{"id": 12345678901234567890123}"#);
    /// assert_eq!(Args::decode(r#""{\"a\":1}""#).as_str(), r#"{"a":1}"#);
    /// assert!(Args::decode(r#"{"a":"#).is_invalid());
    /// assert!(Args::decode("[1]").is_invalid());
    /// ```
    pub fn decode(text: &str) -> Self {
        Self::decode_nested(text, 0)
    }

    fn decode_nested(text: &str, depth: u8) -> Self {
        // Providers that encode twice exist; none that encodes more than three times.
        const MAX_DEPTH: u8 = 2;
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed == "null" {
            return Self::empty();
        }
        let raw = match RawJson::parse(trimmed) {
            Ok(raw) => raw,
            Err(error) => return Self::invalid(text, format!("not valid JSON: {error}")),
        };
        if raw.is_object() {
            // RawValue checks syntax only loosely inside strings (lone surrogates): a full read finds it.
            return match raw.read::<Readable>() {
                Ok(Readable) => Self::Object(raw),
                Err(error) => Self::invalid(text, format!("not valid JSON: {error}")),
            };
        }
        match raw.read::<String>() {
            Ok(inner) if depth < MAX_DEPTH => match Self::decode_nested(&inner, depth + 1) {
                object @ Self::Object(_) => object,
                Self::Invalid { .. } => Self::invalid(text, "a JSON string, not an object".to_owned()),
            },
            _ => Self::invalid(text, "not a JSON object".to_owned()),
        }
    }

    /// Decodes arguments that arrived as a JSON value of any type; a missing one is `None`.
    pub fn decode_value(value: Option<&RawJson>) -> Self {
        value.map_or_else(Self::empty, |raw| Self::decode(raw.as_str()))
    }

    /// `{}`.
    pub fn empty() -> Self {
        Self::Object(RawJson::empty_object())
    }

    /// Arguments of any serialisable value; what is not an object becomes [`Args::Invalid`].
    pub fn of<T: serde::Serialize + ?Sized>(value: &T) -> Self {
        match RawJson::of(value) {
            Ok(raw) => Self::decode(raw.as_str()),
            Err(error) => Self::invalid("", error.to_string()),
        }
    }

    fn invalid(raw: &str, why: String) -> Self {
        Self::Invalid { raw: raw.to_owned(), why }
    }

    /// The exact text, valid or not.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Object(raw) => raw.as_str(),
            Self::Invalid { raw, .. } => raw,
        }
    }

    /// The text that a wire may send: the object, or `{}` in place of what is none.
    pub fn as_object_str(&self) -> &str {
        match self {
            Self::Object(raw) => raw.as_str(),
            Self::Invalid { .. } => "{}",
        }
    }

    /// Whether these arguments can not be run.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid { .. })
    }

    /// Reads the arguments into a type; the error text is meant for the model.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        match self {
            Self::Object(raw) => raw.read().map_err(|error| error.to_string()),
            Self::Invalid { why, .. } => Err(why.clone()),
        }
    }

    /// The arguments as a [`Value`] (numbers beyond 64 bits lose digits here), `null` if invalid.
    pub fn to_value(&self) -> Value {
        self.read().unwrap_or(Value::Null)
    }
}

/// Any JSON value, read to its end as [`Value`] reads it, of which nothing is kept.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Readable {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
