//! What reaches the terminal of the text that a model or a tool wrote.

use proptest::prelude::*;

use super::*;

#[test]
fn escapes_are_shown_and_not_obeyed() {
    assert_eq!(visible("\u{1b}[2Jgone\u{7}", Care::Reading), "␛[2Jgone␇");
    assert_eq!(visible("\u{9b}31m\u{7f}", Care::Reading), "<U+009B>31m␡");
    assert_eq!(visible("safe\roops", Care::Reading), "safe␍oops");
    assert_eq!(visible("a\r\nb\tc\n", Care::Reading), "a\nb\tc\n");
}

#[test]
fn what_reorders_or_hides_is_seen() {
    assert_eq!(visible("rm \u{202e}txt.sh\u{2066}", Care::Reading), "rm <U+202E>txt.sh<U+2066>");
    assert_eq!(visible("pay\u{200b}pal \u{feff}\u{e0041}", Care::Reading), "pay<U+200B>pal <U+FEFF><U+E0041>");
    assert_eq!(visible("a\u{a0}b\u{200d}c", Care::Deciding), "a<U+00A0>b<U+200D>c");
}

#[test]
fn ordinary_text_of_any_script_stays() {
    for text in ["洋葱 né ñ", "👩\u{200d}💻 ❤\u{fe0f}", "می\u{200c}خواهم", "שלום"] {
        assert_eq!(visible(text, Care::Reading), text);
    }
}

#[test]
fn one_line_is_one_line() {
    assert_eq!(one_line("  a\r\n\n b\tc\u{1b} ", 100), "a b c␛");
    assert_eq!(one_line("洋葱洋葱", 3), "洋葱洋…");
}

proptest! {
    #[test]
    fn no_control_character_is_left(text in any::<String>()) {
        for care in [Care::Reading, Care::Deciding] {
            let shown = visible(&text, care);
            prop_assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            // What is shown needs no second pass.
            prop_assert_eq!(visible(&shown, care), shown.as_ref());
        }
        prop_assert!(!one_line(&text, 50).contains('\n'));
    }
}
