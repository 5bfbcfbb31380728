//! Half characters are replaced, nothing else is touched.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[test]
fn half_characters_are_replaced_and_whole_ones_stay() {
    for (json, text) in [
        (r#""smile \ud83d""#, "smile \u{fffd}"),
        (r#""\ud83d\ude00 \uDE00x""#, "😀 \u{fffd}x"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
        (r#""\\ud83d""#, "\\ud83d"),
        (r#""\\\ud83d\n""#, "\\\u{fffd}\n"),
    ] {
        assert_eq!(read::<String>(json).unwrap(), text, "{json}");
    }
}

#[test]
fn good_json_is_not_copied() {
    assert!(matches!(whole(r#"{"a":"\ud83d\ude00\"é\u00e9"}"#), Cow::Borrowed(_)));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in r#"(\\|u|d83d|de00|"|é|[a-f0-9]|.){0,20}"#) {
        let _ = whole(&text);
    }

    #[test]
    fn what_parses_is_left_alone(text in ".*") {
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(whole(&json), json.as_str());
        prop_assert_eq!(read::<Value>(&json).unwrap(), Value::String(text));
    }
}
