//! JSON to the letter: digits as they were written, members in their order, 1 and 1.0 two values.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::{Value, value::RawValue};

/// A JSON value.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// The number as it was written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one value; the error says what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Self::read(raw).map_err(|error| error.to_string())
    }

    fn read(raw: &RawValue) -> Result<Self, serde_json::Error> {
        let text = raw.get();
        Ok(match text.as_bytes().first() {
            Some(b'{') => {
                let members: Members<'_> = serde_json::from_str(text)?;
                let read = |(name, value): (String, &RawValue)| Ok((name, Self::read(value)?));
                Self::Object(members.0.into_iter().map(read).collect::<Result<_, serde_json::Error>>()?)
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text)?;
                Self::List(items.into_iter().map(Self::read).collect::<Result<_, _>>()?)
            }
            Some(b'"') => Self::Text(serde_json::from_str(text)?),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') => Self::Null,
            _ => Self::Number(text.to_owned()),
        })
    }

    /// A member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.members().iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The members of an object, none of anything else.
    pub(crate) fn members(&self) -> &[(String, Json)] {
        if let Self::Object(members) = self { members } else { &[] }
    }

    /// The elements of a list, none of anything else.
    pub(crate) fn items(&self) -> &[Json] {
        if let Self::List(items) = self { items } else { &[] }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The number, if it is an integer.
    pub(crate) fn integer(&self) -> Option<i128> {
        if let Self::Number(digits) = self { digits.parse().ok() } else { None }
    }

    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        if let Self::Number(digits) = self { digits.parse().ok() } else { None }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Null, or nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Object(members) => members.is_empty(),
            Self::Bool(_) | Self::Number(_) => false,
        }
    }

    /// The object with this member set, in the place that it had.
    pub(crate) fn with(mut self, name: &str, value: Json) -> Self {
        if let Self::Object(members) = &mut self {
            match members.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => *old = value,
                None => members.push((name.to_owned(), value)),
            }
        }
        self
    }

    /// The object without some members.
    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let kept = self.members().iter().filter(|(name, _)| !names.contains(&name.as_str()));
        Self::Object(kept.cloned().collect())
    }

    /// For the judges, which do not look at digits.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::from_str(&self.to_string()).unwrap_or(Value::Null)
    }
}

/// Two values are equal as JSON: members in any order, numbers by kind.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(name, value)| other.get(name) == Some(value))
            }
            (Self::Number(a), Self::Number(b)) => match (self.integer(), other.integer()) {
                (Some(a), Some(b)) => a == b,
                (None, None) => a == b || self.number() == other.number(),
                (Some(_), None) | (None, Some(_)) => false,
            },
            _ => false,
        }
    }
}

/// Compact, as it would be sent.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(digits) => {
                RawValue::from_string(digits.clone()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| seq.serialize_element(item))?;
                seq.end()
            }
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

/// The members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for InOrder<'a> {
            type Value = Members<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder(std::marker::PhantomData))
    }
}
