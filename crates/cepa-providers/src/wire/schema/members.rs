//! The members of a JSON object in their order. `serde_json`'s own map would sort them, and models read in order.

use std::fmt;

use cepa_core::RawJson;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::json;

/// Members in order; a name that comes twice counts as its last value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members(Vec<(String, RawJson)>);

impl Members {
    /// The members of an object; `None` for any other value.
    pub fn of(value: &RawJson) -> Option<Self> {
        value.read().ok()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.read().ok()
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<RawJson> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(place).1)
    }

    /// Sets a member to JSON, in its place if there is one of that name. What is no JSON changes nothing.
    pub(super) fn put(&mut self, name: &str, json: String) {
        let Ok(value) = RawJson::parse(&json) else { return };
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(super) fn put_first(&mut self, name: &str, json: String) {
        if let Ok(value) = RawJson::parse(&json) {
            self.remove(name);
            self.0.insert(0, (name.to_owned(), value));
        }
    }

    pub(super) fn extend<'a>(&mut self, members: impl IntoIterator<Item = (&'a str, RawJson)>) {
        self.0.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }

    /// Adds the members that are not there yet.
    pub(super) fn fill_from(&mut self, others: Self) {
        for (name, value) in others.0 {
            if !self.has(&name) {
                self.0.push((name, value));
            }
        }
    }

    /// Adds words to the description.
    pub(super) fn say(&mut self, words: &str) {
        let words = format!("({words})");
        let text = match self.text("description") {
            Some(before) if !before.trim().is_empty() => format!("{before} {words}"),
            Some(_) | None => words,
        };
        self.put("description", json!(text).to_string());
    }
}

impl fmt::Display for Members {
    /// The object as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (name, value)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}:{value}", json!(name))?;
        }
        f.write_str("}")
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some((name, value)) = map.next_entry::<String, RawJson>()? {
                    members.remove(&name);
                    members.0.push((name, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
