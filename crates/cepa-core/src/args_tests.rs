//! Arguments: what is an object, what is not, and that nothing is changed on the way.

use proptest::prelude::*;

use crate::{Args, RawJson, toys};

#[test]
fn what_becomes_arguments() {
    // L9: blank or missing arguments are `{}`; anything that is no object is never coerced.
    for (text, wanted) in [
        ("", "{}"),
        (" \n\t", "{}"),
        ("null", "{}"),
        (" null ", "{}"),
        ("{}", "{}"),
        (" { \"a\" : 1 } ", "{ \"a\" : 1 }"),
        ("{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
        (
            "{\"n\":1234567890123456789012345678901234567890,\"f\":1.500}",
            "{\"n\":1234567890123456789012345678901234567890,\"f\":1.500}",
        ),
        ("{\"z\":1,\"a\":{\"y\":[null]}}", "{\"z\":1,\"a\":{\"y\":[null]}}"),
        ("{\"\":\"\\u0000 北京\"}", "{\"\":\"\\u0000 北京\"}"),
        // A name that a JSON reader uses inside itself is one like any other.
        ("{\"$serde_json::private::RawValue\":\"x\"}", "{\"$serde_json::private::RawValue\":\"x\"}"),
        // Encoded twice, and thrice.
        (r#""{\"a\":1}""#, r#"{"a":1}"#),
        (r#""\"{\\\"a\\\":1}\"""#, r#"{"a":1}"#),
        (r#""""#, "{}"),
    ] {
        assert_eq!(Args::decode(text), Args::Object(RawJson::parse(wanted).unwrap()), "{text}");
    }
}

#[test]
fn what_does_not() {
    // L9: the text is kept and the reason is given; nothing is repaired.
    for (text, why) in [
        ("{\"a\":", "not valid JSON: EOF"),
        ("{'a':1}", "not valid JSON: key must be a string"),
        ("{\"a\":1} {}", "not valid JSON: trailing characters"),
        ("{\"a\":1,}", "not valid JSON: key must be a string"),
        ("{\"a\":NaN}", "not valid JSON"),
        ("{\"a\":\"\\ud800\"}", "not valid JSON"),
        ("{\"a\":1e999}", "not valid JSON: number out of range"),
        ("city=Oslo", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ("[{\"a\":1}]", "not a JSON object"),
        ("5", "not a JSON object"),
        ("true", "not a JSON object"),
        ("\"Oslo\"", "a JSON string, not an object"),
        (r#""[1]""#, "a JSON string, not an object"),
        // Four times is not something that a provider does.
        (r#""\"\\\"{}\\\"\"""#, "a JSON string, not an object"),
    ] {
        match Args::decode(text) {
            Args::Invalid { raw, why: said } => {
                assert_eq!(raw, text);
                assert!(said.contains(why), "{text}: {said}");
            }
            Args::Object(raw) => panic!("{text} became {raw}"),
        }
    }
}

#[test]
fn nesting_without_end_is_refused_and_does_not_overflow() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Args::decode(&deep).is_invalid());
    assert!(Args::decode(&"{\"a\":".repeat(100_000)).is_invalid());
}

#[test]
fn what_is_sent_and_read() {
    let broken = Args::decode("{\"a\":");
    assert_eq!(
        (broken.as_str(), broken.as_object_str(), broken.to_value()),
        ("{\"a\":", "{}", serde_json::Value::Null)
    );
    assert!(broken.read::<serde_json::Value>().unwrap_err().contains("not valid JSON"));
    assert_eq!(Args::of(&serde_json::json!({"a": [1]})).as_str(), r#"{"a":[1]}"#);
    assert!(Args::of(&[1]).is_invalid());
    assert_eq!(Args::of(&()), Args::empty());
    assert_eq!(Args::decode_value(None), Args::empty());
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Weather {
        city: String,
    }
    assert_eq!(Args::decode(r#"{"city":"北京"}"#).read(), Ok(Weather { city: "北京".to_owned() }));
    assert!(Args::decode("{}").read::<Weather>().unwrap_err().contains("`city`"));
}

proptest! {
    #[test]
    fn an_object_keeps_its_text(text in toys::object_text()) {
        prop_assert_eq!(Args::decode(&text), Args::Object(RawJson::parse(&text).unwrap()));
        let spaced = Args::decode(&format!("\n {text}\t"));
        prop_assert_eq!(spaced.as_str(), &text);
        // A string that holds it is the object.
        let nested = Args::decode(&serde_json::to_string(&text).unwrap());
        prop_assert_eq!(nested.as_str(), &text);
    }

    #[test]
    fn any_text_is_kept_or_is_an_object(text in any::<String>()) {
        match Args::decode(&text) {
            Args::Invalid { raw, why } => {
                prop_assert_eq!(raw, text);
                prop_assert!(!why.is_empty());
            }
            Args::Object(raw) => prop_assert!(raw.is_object()),
        }
    }
}
