//! Readers that take whatever a server may send in the place of anything, and build nothing of what is not kept: a tree of
//! small values takes tens of times the bytes that they came in.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// A text that is not empty, or nothing: `null`, `""` and anything that is no text count as left out.
#[derive(Debug, Default)]
pub(super) struct Word<'a>(pub(super) Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordVisitor)
    }
}

struct WordVisitor;

impl<'de> Visitor<'de> for WordVisitor {
    type Value = Word<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
        Ok(Word((!text.is_empty()).then_some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Word<'de>, E> {
        Ok(Word((!text.is_empty()).then(|| Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Word<'de>, E> {
        Ok(Word(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Word<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Word(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Word<'de>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Word(None))
    }
}

/// A text as it is written, with its quotes, so that half a character at its end can still find the other half; nothing
/// where [`Word`] is nothing.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Option<&'a str>);

impl<'a> Text<'a> {
    pub(super) fn of(raw: &'a RawValue) -> Self {
        Self(Some(raw.get()).filter(|json| json.starts_with('"') && *json != "\"\""))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::of)
    }
}

/// A list of so many elements at most; one with more is an error.
#[derive(Debug)]
pub(super) struct Few<T, const MOST: usize>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for FewVisitor<T, MOST> {
    type Value = Few<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {MOST} elements at most")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        // Most lists have one.
        let mut taken = Vec::with_capacity(1);
        while let Some(element) = list.next_element()? {
            if taken.len() >= MOST {
                return Err(de::Error::invalid_length(taken.len() + 1, &self));
            }
            taken.push(element);
        }
        Ok(Few(taken))
    }
}

/// Gives each element of a list, as it is written; what is no list has none.
pub(super) fn elements(
    json: &str,
    take: impl FnMut(&str) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    if !json.starts_with('[') {
        return Ok(());
    }
    serde_json::Deserializer::from_str(json).deserialize_seq(EachElement(take))
}

/// Gives each member of an object, with its value as it is written; what is no object has none.
pub(super) fn members(json: &str, take: impl FnMut(String, &str)) -> Result<(), serde_json::Error> {
    if !json.starts_with('{') {
        return Ok(());
    }
    serde_json::Deserializer::from_str(json).deserialize_map(EachMember(take))
}

struct EachElement<F>(F);

impl<'de, F: FnMut(&str) -> Result<(), serde_json::Error>> Visitor<'de> for EachElement<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element::<&RawValue>()? {
            (self.0)(element.get()).map_err(de::Error::custom)?;
        }
        Ok(())
    }
}

struct EachMember<F>(F);

impl<'de, F: FnMut(String, &str)> Visitor<'de> for EachMember<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        while let Some((name, value)) = object.next_entry::<String, &RawValue>()? {
            (self.0)(name, value.get());
        }
        Ok(())
    }
}
