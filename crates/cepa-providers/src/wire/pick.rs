//! What a server sent, member by member: nothing is kept that nobody asks for, so that no reply needs much more memory than
//! its own bytes.

use std::{borrow::Cow, fmt};

use cepa_core::{Error, Extra, RawJson};
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::caps::check_items;

/// These members of an object as the text they are; of two with one name the later. `null` counts as left out. `None` if it
/// is no object.
pub(super) fn members<'a, const N: usize>(json: &'a str, names: [&str; N]) -> Option<[Option<&'a RawValue>; N]> {
    let mut found = [None; N];
    let visitor = Object(|name: String, value: &'a RawValue| {
        if let Some(place) = names.iter().position(|wanted| *wanted == name)
            && let Some(found) = found.get_mut(place)
        {
            *found = Some(value).filter(|value| value.get() != "null");
        }
        Ok(())
    });
    serde_json::Deserializer::from_str(json).deserialize_map(visitor).ok()?;
    Some(found)
}

/// All members of an object, to be kept; `None` if it is none.
///
/// # Errors
/// `decode` if there are more of them than a reply holds.
pub(super) fn all(json: &str) -> Result<Option<Extra>, Error> {
    let (mut kept, mut fault) = (Extra::new(), None);
    let visitor = Object(|name: String, value: &RawValue| {
        fault = check_items(kept.len(), "members").err();
        match (&fault, keep(value)) {
            (None, Some(value)) => kept.insert(name, value),
            _ => return Err(()),
        };
        Ok(())
    });
    let read = serde_json::Deserializer::from_str(json).deserialize_map(visitor);
    fault.map_or(Ok(read.is_ok().then_some(kept)), Err)
}

/// Goes through a list; whether it is one.
///
/// # Errors
/// The first that comes of one of its elements.
pub(super) fn each<'a>(json: &'a str, take: impl FnMut(&'a RawValue) -> Result<(), Error>) -> Result<bool, Error> {
    let mut fault = None;
    let read = serde_json::Deserializer::from_str(json).deserialize_seq(List { take, fault: &mut fault });
    fault.map_or(Ok(read.is_ok()), Err)
}

/// A text; `None` for what is none.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// A text where it lies, if nothing in it is escaped; `None` for what is none.
pub(super) fn lent_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { text(raw).map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// A value, as the text it is.
pub(super) fn keep(raw: &RawValue) -> Option<RawJson> {
    RawJson::parse(raw.get()).ok()
}

struct Object<F>(F);

impl<'de, F: FnMut(String, &'de RawValue) -> Result<(), ()>> Visitor<'de> for Object<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry()? {
            (self.0)(name, value).map_err(|()| A::Error::custom("it is given up"))?;
        }
        Ok(())
    }
}

struct List<'f, F> {
    take: F,
    fault: &'f mut Option<Error>,
}

impl<'de, F: FnMut(&'de RawValue) -> Result<(), Error>> Visitor<'de> for List<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element()? {
            if let Err(error) = (self.take)(value) {
                *self.fault = Some(error);
                return Err(A::Error::custom("it is given up"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_lent_unless_something_in_it_is_escaped() {
        let of = |json: &'static str| lent_text(serde_json::from_str(json).expect("JSON"));
        assert!(matches!(of("\"a é\""), Some(Cow::Borrowed("a é"))));
        assert!(matches!(of("\"\""), Some(Cow::Borrowed(""))));
        assert_eq!(of(r#""a\n\"b\\""#).as_deref(), Some("a\n\"b\\"));
        assert_eq!([of("null"), of("1"), of("[\"a\"]"), of("{}")], [None, None, None, None]);
    }
}
