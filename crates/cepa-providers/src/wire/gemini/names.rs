//! Names of functions: "Must start with a letter or an underscore", with at most 64 letters, digits, `_`, `.`, `:` and `-`
//! (<https://ai.google.dev/api/caching#FunctionDeclaration>).
//!
//! [`wire_name`] takes care of all but the start, and knows nothing of Gemini. An underscore in front does, and can be taken
//! off again without knowing the tools: what begins with underscores and then a digit or a dash always has one more here.

use std::borrow::Cow;

use cepa_core::{Error, ErrorKind};

use crate::wire::names::wire_name;

const MAX_LEN: usize = 64;

/// The name of a tool in a request.
pub(super) fn sent(name: &str) -> Cow<'_, str> {
    let name = wire_name(name);
    if !has_odd_start(&name) {
        return name;
    }
    // Only of a tool that is not offered any more: `declared` refuses what would be cut here.
    let kept: String = name.chars().take(MAX_LEN - 1).collect();
    format!("_{kept}").into()
}

/// The name of a tool that is offered.
///
/// # Errors
/// `invalid_tool` if it could not be told back.
pub(super) fn declared(name: &str) -> Result<Cow<'_, str>, Error> {
    let wire = wire_name(name);
    if has_odd_start(&wire) && wire.len() >= MAX_LEN {
        let message = format!("the tool `{name}` must begin with a letter for Gemini: rename it");
        return Err(Error::new(ErrorKind::InvalidTool, message));
    }
    Ok(sent(name))
}

/// The name on other wires of a name in a reply.
pub(super) fn received(name: &str) -> &str {
    match name.strip_prefix('_') {
        Some(rest) if has_odd_start(rest) => rest,
        Some(_) | None => name,
    }
}

fn has_odd_start(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_begin_as_they_must_and_come_back() {
        for (name, wire) in
            [("get_weather", "get_weather"), ("2fa", "_2fa"), ("_2fa", "__2fa"), ("-", "_-"), ("_a", "_a")]
        {
            assert_eq!(sent(name), wire);
            assert_eq!(received(wire), name);
        }
        assert!(declared(&"1".repeat(64)).is_err());
        assert_eq!(sent(&"1".repeat(64)).len(), 64);
    }

    proptest! {
        #[test]
        fn any_name_is_legal_and_comes_back(name in "[a-zA-Z0-9_-]{1,64}|.{0,90}") {
            let wire = sent(&name).into_owned();
            prop_assert!((1..=64).contains(&wire.len()), "{wire}");
            prop_assert!(wire.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{wire}");
            prop_assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            if declared(&name).is_ok() {
                prop_assert_eq!(received(&wire), &*wire_name(&name));
            }
        }
    }
}
