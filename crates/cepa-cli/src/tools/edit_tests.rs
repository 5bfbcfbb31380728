//! An edit changes exactly what was meant, or nothing and says why.

use std::{fs, os::unix::fs::PermissionsExt};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::testing::{Sandbox, args, failure, on},
    *,
};

fn edit(sandbox: &Sandbox, call: Value) -> Result<String, ToolError> {
    edit_file(&sandbox.root, &args(call), &on())
}

fn call(old: &str, new: &str) -> Value {
    json!({"path": "f", "old_text": old, "new_text": new})
}

#[test]
fn the_only_place_is_replaced() {
    let sandbox = Sandbox::new().with("f", "one\ntwo\nthree");
    fs::set_permissions(sandbox.work.join("f"), fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(edit(&sandbox, call("two\n", "2\n2b\n")).unwrap(), "edited f at line 2");
    assert_eq!(sandbox.text("f"), "one\n2\n2b\nthree");
    assert_eq!(edit(&sandbox, call("three", "")).unwrap(), "edited f at line 4");
    assert_eq!(sandbox.text("f"), "one\n2\n2b\n");
    assert_eq!(fs::metadata(sandbox.work.join("f")).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn no_place_shows_the_nearest() {
    let before = "fn main() {\n    let total = sum(&list);\n    println!(\"{total}\");\n}\n";
    let sandbox = Sandbox::new().with("f", before);
    let said = failure(edit(&sandbox, call("    let totals = sum(list);\n    println!(\"{total}\")", "x")));
    assert_eq!(
        said,
        "old_text is not in f; nothing was changed. the nearest place is at line 2:\n    let total = sum(&list);\n    \
         println!(\"{total}\");\nCopy the text exactly as it is there"
    );
    let said = failure(edit(&sandbox, call("let total = sum(&list);\nprintln!(\"{total}\");", "x")));
    assert!(said.contains("the same but for white space is at line 2:\n    let total"), "{said}");
    let said = failure(edit(&sandbox, call("Lorem ipsum dolor sit amet", "x")));
    assert_eq!(said, "old_text is not in f, and nothing like it; read the file again");
    assert_eq!(sandbox.text("f"), before);
}

#[test]
fn two_places_are_named() {
    let sandbox = Sandbox::new().with("f", "x = 1\ny = 2\nx = 1\n");
    let said = failure(edit(&sandbox, call("x = 1", "x = 2")));
    assert!(said.starts_with("old_text is in f 2 times (at lines 1, 3); nothing was changed."), "{said}");
    assert_eq!(sandbox.text("f"), "x = 1\ny = 2\nx = 1\n");
    let all = json!({"path": "f", "old_text": "x = 1", "new_text": "x = 2", "replace_all": true});
    assert_eq!(edit(&sandbox, all).unwrap(), "edited f at 2 places");
    assert_eq!(sandbox.text("f"), "x = 2\ny = 2\nx = 2\n");
    sandbox.put("f", "x\n".repeat(50));
    assert!(failure(edit(&sandbox, call("x", "y"))).contains("50 times (at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"));
}

#[test]
fn places_that_overlap_are_two_places() {
    let sandbox = Sandbox::new().with("f", "aXaXa");
    assert!(failure(edit(&sandbox, call("aXa", "b"))).contains("2 times"));
    let all = json!({"path": "f", "old_text": "aXa", "new_text": "b", "replace_all": true});
    edit(&sandbox, all).unwrap();
    assert_eq!(sandbox.text("f"), "bXa");
}

#[test]
fn crlf_files_stay_crlf() {
    let sandbox = Sandbox::new().with("f", "one\r\ntwo\r\nthree\r\nfour");
    edit(&sandbox, call("two\nthree", "2\n2b\n3")).unwrap();
    assert_eq!(sandbox.text("f"), "one\r\n2\r\n2b\r\n3\r\nfour");
    // Without a line break in the place, those of the file.
    edit(&sandbox, call("four", "four\nfive")).unwrap();
    assert_eq!(sandbox.text("f"), "one\r\n2\r\n2b\r\n3\r\nfour\r\nfive");
    // A place that begins or ends with a line break takes the whole of it.
    edit(&sandbox, call("\n2b\n", "\n")).unwrap();
    assert_eq!(sandbox.text("f"), "one\r\n2\r\n3\r\nfour\r\nfive");
    // A model that writes CR means it.
    edit(&sandbox, call("2\r\n3\r\n", "2\n3\n")).unwrap();
    assert_eq!(sandbox.text("f"), "one\r\n2\n3\nfour\r\nfive");
    // Mixed: each place keeps its own.
    edit(&sandbox, call("2\n3\n", "2\n2c\n3\n")).unwrap();
    edit(&sandbox, call("one\n", "zero\none\n")).unwrap();
    assert_eq!(sandbox.text("f"), "zero\r\none\r\n2\n2c\n3\nfour\r\nfive");
}

#[test]
fn bytes_that_are_not_utf8_stay() {
    let sandbox = Sandbox::new().with("f", b"caf\xe9 one\n\xff\xfe\n");
    edit(&sandbox, call("one", "two")).unwrap();
    assert_eq!(sandbox.bytes("f"), b"caf\xe9 two\n\xff\xfe\n");
}

#[test]
fn edits_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new().with("f", "x").with("b", b"x\0").with("empty", "");
    assert!(failure(edit(&sandbox, call("", "y"))).contains("old_text is empty"));
    assert!(failure(edit(&sandbox, call("x", "x"))).contains("nothing would change"));
    assert!(failure(edit(&sandbox, json!({"path": "b", "old_text": "x", "new_text": "y"}))).contains("a binary file"));
    assert!(
        failure(edit(&sandbox, json!({"path": "gone", "old_text": "x", "new_text": "y"}))).contains("no such file")
    );
    assert!(
        failure(edit(&sandbox, json!({"path": "empty", "old_text": "x", "new_text": "y"}))).contains("not in empty")
    );
    let file = fs::OpenOptions::new().write(true).open(sandbox.work.join("f")).unwrap();
    file.set_len(MAX_FILE + 1).unwrap();
    assert!(failure(edit(&sandbox, call("x", "y"))).contains("run_shell"));
}

#[test]
fn a_file_that_changes_meanwhile_is_not_overwritten() {
    let sandbox = Sandbox::new().with("f", "old text");
    let open = sandbox.root.open_file("f").unwrap();
    sandbox.put("f", "somebody else's text");
    let put = Place::find(&sandbox.root, "f").unwrap().put(b"mine", Some(Stamp::of(&open.metadata)));
    assert!(failure(put).contains("read it again"));
    assert_eq!(sandbox.text("f"), "somebody else's text");
}

fn edited(bytes: &[u8], old: &str, new: &str) -> (usize, Vec<u8>) {
    let call = args(call(old, new));
    let text = Text::new(bytes, &call);
    let places = text.places(true);
    (places.len(), text.replace(&places))
}

proptest! {
    /// In a file with LF only, an edit is what `str::replace` does.
    #[test]
    fn plain_files(text in "[ab\n]{0,30}", old in "[ab\n]{1,3}", new in "[abc\n]{0,4}") {
        let (places, bytes) = edited(text.as_bytes(), &old, &new);
        prop_assert_eq!(places, text.matches(&old).count());
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), text.replace(&old, &new));
    }

    /// A CRLF file is edited as its LF twin is, and has CRLF only afterwards.
    #[test]
    fn crlf_files(text in "[ab\n]{0,30}", old in "[ab\n]{1,3}", new in "[abc\n]{0,4}") {
        prop_assume!(text.contains('\n'));
        let (places, bytes) = edited(text.replace('\n', "\r\n").as_bytes(), &old, &new);
        prop_assert_eq!(places, text.matches(&old).count());
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), text.replace(&old, &new).replace('\n', "\r\n"));
    }

    /// Whatever the line endings, what is outside the places stays byte for byte.
    #[test]
    fn mixed_files(text in "[ab\r\n]{0,30}", old in "[ab\n]{1,3}") {
        let call = args(call(&old, "-"));
        let edit = Text::new(text.as_bytes(), &call);
        let places = edit.places(true);
        let mut expected = Vec::new();
        let mut from = 0;
        for place in &places {
            prop_assert_eq!(text[place.clone()].replace("\r\n", "\n"), old.clone());
            expected.extend_from_slice(&text.as_bytes()[from..place.start]);
            expected.push(b'-');
            from = place.end;
        }
        expected.extend_from_slice(&text.as_bytes()[from..]);
        prop_assert_eq!(edit.replace(&places), expected);
    }
}
