//! The number by which events tell items, blocks and parts apart: a key, not a position.

use serde_json::value::RawValue;

/// An index as the provider writes it. One that is no whole number (`"0"`, `-1`, `1.5`) is a key as good as any: what is
/// written the same is the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Index {
    Number(u64),
    /// The JSON text of anything else.
    Text(Box<str>),
}

impl Index {
    pub(super) fn of(raw: &RawValue) -> Self {
        raw.get().parse().map_or_else(|_| Self::Text(raw.get().into()), Self::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_otherwise_is_another() {
        let of = |json: &str| Index::of(&RawValue::from_string(json.to_owned()).expect("JSON"));
        assert_eq!(of("7"), Index::Number(7));
        let all = ["0", "\"0\"", "0.0", "-1", "1.5", "9223372036854775808", "99999999999999999999", "[0]", "true"];
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().enumerate().all(|(other, text)| (of(one) == of(text)) == (at == other)), "{one}");
        }
    }
}
