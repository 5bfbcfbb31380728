//! A key is usable or refused with a reason, and never shown.

use super::*;

const KEY: &str = "sk-test-0123456789";

#[test]
fn space_around_a_key_is_dropped() {
    let key = ApiKey::new(" \t sk-test-0123456789\r\n").unwrap();
    assert_eq!(key.header(), KEY);
    assert_eq!(key.bearer(), format!("Bearer {KEY}"));
}

#[test]
fn a_key_is_shown_nowhere() {
    let key = ApiKey::new(KEY).unwrap();
    let shown = format!("{key:?} {:?} {:?} {:#?}", key.header(), key.bearer(), (&key, 1));
    assert!(!shown.contains("0123"), "{shown}");
}

#[test]
fn unusable_keys_are_refused_with_the_reason_and_without_the_key() {
    for (text, reason) in [
        ("", "blank"),
        (" \n\t", "blank"),
        ("\"sk-0123456789\"", "quotes"),
        ("'sk-0123456789'", "quotes"),
        ("sk-0123\n456789", "line break"),
        ("sk-0123\r\nx-evil: 1", "line break"),
        ("Bearer sk-0123456789", "space"),
        ("sk-0123\u{0}456789", "control character"),
        ("sk-0123\u{7f}456789", "control character"),
        ("sk-0123“456789", "outside ASCII"),
        ("sk-0123\u{200b}456789", "outside ASCII"),
    ] {
        let error = ApiKey::new(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth, "{text:?}");
        assert!(error.message().contains(reason), "{text:?}: {error}");
        assert!(!format!("{error} {error:?}").contains("0123"), "{error}");
    }
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let error = ApiKey::from_env("CEPA_TEST_NO_SUCH_KEY").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.message().contains("set the environment variable CEPA_TEST_NO_SUCH_KEY"), "{error}");
    // Set wherever tests run, and not a key on any system: it has no space, and only has to be read.
    let path = ApiKey::from_env("CARGO_PKG_NAME").unwrap();
    assert_eq!(path.header(), "cepa-providers");
}

#[test]
fn an_echoed_key_is_cut_out_everywhere() {
    let key = ApiKey::new(KEY).unwrap();
    assert_eq!(key.redact(&format!("{KEY}: bad key '{KEY}'.")), "[api key]: bad key '[api key]'.");
    assert_eq!(key.redact("nothing here"), "nothing here");
    assert_eq!(ApiKey::new("none").unwrap().redact("none of these"), "none of these");
}

#[test]
fn a_key_is_cut_out_in_any_spelling() {
    use base64::{Engine, engine::general_purpose as kinds};

    let secret = "sk-te+st/0123=456789_~";
    let key = ApiKey::new(secret).unwrap();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let escaped = |how: &dyn Fn(u8) -> String| secret.bytes().map(how).collect::<String>();
    let some_escaped = |byte: u8| {
        let plain = char::from(byte);
        if plain.is_ascii_alphanumeric() { plain.to_string() } else { format!("%{byte:02X}") }
    };
    for spelled in [
        secret.to_owned(),
        hex(secret),
        hex(secret).to_uppercase(),
        escaped(&some_escaped),
        escaped(&some_escaped).to_lowercase(),
        escaped(&|byte| format!("%{byte:02x}")),
        escaped(&|byte| format!("\\u{byte:04x}")),
        escaped(&|byte| format!("\\x{byte:02x}")),
        secret.replace('/', "\\/"),
    ] {
        assert_eq!(key.redact(&format!("é {spelled}: bad key '{spelled}'.é")), "é [api key]: bad key '[api key]'.é");
    }
    // In base64 alone, and inside of something longer, at any place of it.
    for before in ["", "u", "us", "Bearer ", "user:", "key=", "{\"key\":\""] {
        for behind in ["", "\n", "\"}", "xyz"] {
            let text = format!("{before}{secret}{behind}");
            for engine in [kinds::STANDARD, kinds::STANDARD_NO_PAD, kinds::URL_SAFE, kinds::URL_SAFE_NO_PAD] {
                let spelled = engine.encode(&text);
                assert_eq!(key.redact(&format!("bad: '{spelled}', no.")), "bad: '[api key]', no.", "{text:?}");
                let in_address = spelled.replace('+', "%2B").replace('/', "%2f");
                let masked = key.redact(&in_address);
                assert!(masked.contains("[api key]"), "{text:?} {in_address}: {masked}");
            }
        }
    }
}

#[test]
fn what_is_no_key_stays_as_it_is() {
    let key = ApiKey::new(KEY).unwrap();
    for text in ["", "%", "\\", "\\u00", "%7", "sk-test-012345678", "sk-test-é", "aéb%C3%A9 \\x", "736b2d746573742d"]
    {
        assert_eq!(key.redact(text), text);
    }
    // Large bodies of nearly the key take no long time.
    let nearly = "sk-test-012345678".repeat(10_000);
    assert_eq!(key.redact(&nearly), nearly);
}

#[test]
fn a_key_that_was_cut_is_cut_out_too() {
    let key = ApiKey::new(KEY).unwrap();
    for length in 4..KEY.len() {
        let part = &KEY[..length];
        assert_eq!(key.redact(&format!("bad: {part}… (see 'keys')")), "bad: [api key]… (see 'keys')");
        assert_eq!(key.redact_cut(&format!("bad: {part}")), "bad: [api key]");
        // Who wrote it so meant it so.
        assert_eq!(key.redact(part), part);
        assert_eq!(key.redact_cut(&format!("{part}: bad")), format!("{part}: bad"));
        let hex: String = part.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(key.redact(&format!("{hex}… {hex}…")), "[api key]… [api key]…");
        let escaped: String = part.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        for end in ["", "\\", "\\u", "\\u0", "\\u00", "%", "%3"] {
            assert_eq!(key.redact_cut(&format!("{escaped}{end}")), "[api key]", "{escaped}{end}");
        }
    }
    assert_eq!(key.redact("sk-…"), "sk-…");
}
