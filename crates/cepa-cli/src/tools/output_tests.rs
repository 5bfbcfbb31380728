//! Of much output the ends stay, as text.

use proptest::prelude::*;

use super::*;

fn text(limit: usize, parts: &[&[u8]]) -> String {
    let mut capped = Capped::new(limit);
    parts.iter().for_each(|part| capped.push(part));
    capped.text()
}

#[test]
fn little_is_whole_and_much_keeps_its_ends() {
    assert_eq!(text(10, &[]), "");
    assert_eq!(text(10, &[b"01234", b"56789"]), "0123456789");
    assert_eq!(text(10, &[b"0123456789", b"a"]), "01234\n[… 1 byte left out …]\n6789a");
    let all = "0123456789".repeat(5_000);
    assert_eq!(text(10, &[all.as_bytes()]), "01234\n[… 50.0 kB left out …]\n56789");
    // Characters are not cut: two bytes each.
    assert_eq!(text(10, &["éééééééééé".as_bytes()]), "éé\n[… 12 bytes left out …]\néé");
}

#[test]
fn what_a_terminal_would_do_is_left_out() {
    for (printed, plain) in [
        ("\u{1b}[1;31mred\u{1b}[0m\r\nnext\r\n", "red\nnext\n"),
        ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
        ("10%\r 20%\r100%\ndone", "100%\ndone"),
        ("kept at the end\r", "kept at the end"),
        ("a\0b\u{8}\u{7}c\td", "a\u{FFFD}bc\td"),
        ("cut \u{1b}[3", "cut "),
        ("cut \u{1b}", "cut "),
        ("\u{1b}[é", "é"),
        ("\u{1b}\nline", "\nline"),
    ] {
        assert_eq!(text(1000, &[printed.as_bytes()]), plain, "{printed:?}");
    }
    assert_eq!(text(1000, &[b"caf\xe9"]), "caf\u{FFFD}");
}

proptest! {
    #[test]
    fn however_it_comes_it_is_the_same(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
        limit in 2_usize..200,
    ) {
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let whole = parts.concat();
        prop_assert_eq!(text(limit, &slices), text(limit, &[&whole]));
        let mut capped = Capped::new(limit);
        slices.iter().for_each(|part| capped.push(part));
        prop_assert!(capped.first.len() + capped.last.len() <= limit / 2 * 3);
    }

    #[test]
    fn no_bytes_are_kept_that_control_a_terminal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!text(1000, &[&bytes]).chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }
}
