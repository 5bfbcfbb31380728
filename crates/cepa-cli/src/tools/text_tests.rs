//! Names go out and come back; cuts fall between characters.

use proptest::prelude::*;

use super::*;

#[test]
fn numbers_and_sizes_are_for_people() {
    assert_eq!(count(1, "line", "lines"), "1 line");
    assert_eq!(count(0, "line", "lines"), "0 lines");
    assert_eq!(count(1_234_567, "line", "lines"), "1,234,567 lines");
    assert_eq!(size(1), "1 byte");
    assert_eq!(size(9_999), "9,999 bytes");
    assert_eq!(size(10_000), "10.0 kB");
    assert_eq!(size(52_345_678), "52.3 MB");
    assert_eq!(size(u64::MAX), "18446744.1 TB");
}

#[test]
fn a_name_cannot_forge_a_line_of_a_listing() {
    assert_eq!(show_path(Path::new("a\nb/ (3 bytes)\u{1b}[31m\u{85}")), "a\\x0ab/ (3 bytes)\\x1b[31m\\xc2\\x85");
    assert_eq!(show_path(Path::new("文件/é.txt")), "文件/é.txt");
}

#[test]
fn nul_and_what_is_not_utf8_is_replaced_and_counted() {
    assert_eq!(lossy(b"a\xff\xfeb\0c"), ("a\u{FFFD}\u{FFFD}b\u{FFFD}c".to_owned(), 2));
    assert_eq!(lossy("é".as_bytes()), ("é".to_owned(), 0));
}

#[test]
fn unescape_leaves_what_is_no_escape() {
    assert_eq!(unescape("plain\\name"), None);
    assert_eq!(unescape("\\xzz\\x4"), None);
    assert_eq!(unescape("\\x\\x41é\\xé").unwrap(), "\\xAé\\xé".as_bytes());
}

proptest! {
    #[test]
    fn heads_and_tails_are_whole_characters(text in "\\PC{0,40}", max in 0_usize..60) {
        let (head, tail) = (head(text.as_bytes(), max), tail(text.as_bytes(), max));
        prop_assert!(head.len() <= max && tail.len() <= max);
        prop_assert!(text.as_bytes().starts_with(head) && text.as_bytes().ends_with(tail));
        prop_assert!(std::str::from_utf8(head).is_ok() && std::str::from_utf8(tail).is_ok());
        prop_assert!(head.len() == text.len() || head.len() + 4 > max);
        prop_assert!(tail.len() == text.len() || tail.len() + 4 > max);
    }

    #[test]
    fn bytes_that_are_no_text_are_cut_too(bytes in prop::collection::vec(any::<u8>(), 0..40), max in 0_usize..60) {
        prop_assert!(head(&bytes, max).len() <= max && tail(&bytes, max).len() <= max);
        prop_assert!(bytes.len() <= max || head(&bytes, max).len() + 4 > max);
    }

    #[cfg(unix)]
    #[test]
    fn a_shown_name_comes_back(bytes in prop::collection::vec(any::<u8>(), 1..30)) {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
        // A name that itself holds `\x` is the one thing that cannot be told apart.
        prop_assume!(!bytes.windows(2).any(|pair| pair == b"\\x"));
        let shown = show_path(Path::new(OsStr::from_bytes(&bytes)));
        prop_assert!(!shown.chars().any(char::is_control));
        prop_assert_eq!(unescape(&shown).unwrap_or_else(|| shown.clone().into_bytes()), bytes);
    }
}
