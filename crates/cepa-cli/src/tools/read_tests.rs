//! Ranges, sizes, line endings and the hints how to read on.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::{
    super::testing::{Sandbox, args, failure, on},
    *,
};

fn read(sandbox: &Sandbox, call: serde_json::Value) -> Result<String, ToolError> {
    read_file(&sandbox.root, &args(call), &on())
}

#[test]
fn a_small_file_is_whole_and_described() {
    let sandbox = Sandbox::new()
        .with("lf", "one\ntwo\n")
        .with("open", "one\ntwo")
        .with("crlf", "one\r\ntwo\r\n")
        .with("mixed", "one\r\ntwo\nthree")
        .with("latin", b"caf\xe9\n")
        .with("bom", "\u{FEFF}one\n")
        .with("newline", "\n")
        .with("lone-cr", "a\rb\n")
        .with("empty", "");
    for (name, said) in [
        ("lf", "lf: 2 lines, 8 bytes\n\none\ntwo\n"),
        ("open", "open: 2 lines, 7 bytes, no newline at the end\n\none\ntwo\n"),
        ("crlf", "crlf: 2 lines, 10 bytes, lines end with CRLF\n\none\ntwo\n"),
        (
            "mixed",
            "mixed: 3 lines, 14 bytes, line endings are mixed (CRLF and LF), no newline at the end\n\none\ntwo\nthree\n",
        ),
        ("latin", "latin: 1 line, 5 bytes, not UTF-8: 1 place is shown as U+FFFD\n\ncaf\u{FFFD}\n"),
        ("bom", "bom: 1 line, 7 bytes, begins with a byte order mark\n\none\n"),
        ("newline", "newline: 1 line, 1 byte\n\n\n"),
        ("lone-cr", "lone-cr: 1 line, 4 bytes\n\na\rb\n"),
        ("empty", "empty is empty"),
    ] {
        assert_eq!(read(&sandbox, json!({"path": name})).unwrap(), said);
    }
}

#[test]
fn ranges_of_lines() {
    let sandbox = Sandbox::new().with("f", "1\n2\n3\n4\n5\n");
    let said = |call| read(&sandbox, call).unwrap();
    assert_eq!(
        said(json!({"path": "f", "start_line": 2, "lines": 2})),
        "f: lines 2 to 3 of 5, 10 bytes\n\n2\n3\n[more: read_file with start_line=4]\n"
    );
    assert_eq!(said(json!({"path": "f", "start_line": 4})), "f: lines 4 to 5 of 5, 10 bytes\n\n4\n5\n");
    assert_eq!(said(json!({"path": "f", "start_line": 5, "lines": 99})), "f: lines 5 to 5 of 5, 10 bytes\n\n5\n");
    assert_eq!(said(json!({"path": "f", "start_line": 0, "lines": 0})), {
        "f: lines 1 to 1 of 5, 10 bytes\n\n1\n[more: read_file with start_line=2]\n"
    });
    assert_eq!(
        said(json!({"path": "f", "lines": u64::MAX, "start_line": null})),
        "f: 5 lines, 10 bytes\n\n1\n2\n3\n4\n5\n"
    );
    assert_eq!(failure(read(&sandbox, json!({"path": "f", "start_line": 6}))), "f has only 5 lines");
    assert!(failure(read(&sandbox, json!({"path": "f", "start_line": 1, "start_byte": 1}))).contains("not both"));
}

#[test]
fn what_is_no_text_is_said_and_not_shown() {
    let sandbox = Sandbox::new()
        .with("b", b"\x7fELF\0\0")
        .with("w", b"\xff\xfea\0")
        .with("late", [vec![b'a'; 9000], vec![0]].concat());
    assert_eq!(failure(read(&sandbox, json!({"path": "b"}))), "b is a binary file (6 bytes); it is not shown");
    assert_eq!(failure(read(&sandbox, json!({"path": "w"}))), "w is text in UTF-16 (4 bytes); it is not shown");
    // A NUL far inside gets through as a replacement: some stores and providers refuse the character itself.
    assert!(!read(&sandbox, json!({"path": "late", "start_byte": 8000})).unwrap().contains('\0'));
    assert!(failure(read(&sandbox, json!({"path": "."}))).contains("is a folder"));
}

#[test]
fn a_large_file_is_read_in_parts_that_lose_nothing() {
    let mut whole = String::new();
    for n in 0..20_000 {
        writeln!(whole, "line {n} with some text, ünïcödé").unwrap();
    }
    let sandbox = Sandbox::new().with("big", &whole);
    let (mut read_back, mut next) = (String::new(), Some(1));
    while let Some(start) = next {
        let said = read(&sandbox, json!({"path": "big", "start_line": start})).unwrap();
        assert!(said.len() < MAX_BYTES + 300);
        let (head, text) = said.split_once("\n\n").unwrap();
        assert!(head.contains(" of 20,000, "), "{head}");
        let (text, hint) =
            text.split_once("[more: the result is full; read_file with start_line=").unwrap_or((text, ""));
        read_back.push_str(text);
        next = hint.strip_suffix("]\n").map(|line| line.parse().unwrap());
    }
    assert!(read_back == whole);
}

#[test]
fn a_line_that_never_ends_is_cut_and_can_be_read_on() {
    let line = "ä".repeat(50_000);
    let sandbox = Sandbox::new().with("f", format!("short\n{line}\nlast\n"));
    let said = read(&sandbox, json!({"path": "f"})).unwrap();
    assert!(said.contains(" [cut: the line has 100.0 kB]\nlast\n"), "{said}");
    assert!(said.ends_with("[to read the rest of line 2: read_file with start_byte=4006]\n"), "{said}");
    let mut read_back = "ä".repeat(2_000);
    let mut next = Some(4_006);
    while let Some(start) = next {
        let said = read(&sandbox, json!({"path": "f", "start_byte": start})).unwrap();
        let (head, text) = said.split_once("\n\n").unwrap();
        assert!(head.starts_with(&format!("f: bytes {start} to ")) && !head.contains("UTF-8"), "{head}");
        let (text, hint) = text.split_once("\n[more: read_file with start_byte=").unwrap_or((text, ""));
        read_back.push_str(text);
        next = hint.strip_suffix(']').map(|line| line.parse().unwrap());
    }
    assert!(read_back == format!("{line}\nlast\n"));
    assert_eq!(failure(read(&sandbox, json!({"path": "f", "start_byte": 200_000}))), "f has only 100,012 bytes");
}

#[test]
fn a_huge_file_is_not_read_to_its_end() {
    let sandbox = Sandbox::new().with("huge", "first\nsecond\n");
    // 100 GB that take no space.
    let file = std::fs::OpenOptions::new().write(true).open(sandbox.work.join("huge")).unwrap();
    if file.set_len(100_000_000_000).is_err() {
        return;
    }
    let started = std::time::Instant::now();
    let said = read(&sandbox, json!({"path": "huge", "lines": 2}));
    // The hole behind the text is NUL: nothing to show, and quickly so.
    assert_eq!(failure(said), "huge is a binary file (100.0 GB); it is not shown");
    sandbox.put("huge", "text\n".repeat(20_000));
    let file = std::fs::OpenOptions::new().write(true).open(sandbox.work.join("huge")).unwrap();
    file.set_len(100_000_000_000).unwrap();
    let said = read(&sandbox, json!({"path": "huge", "lines": 2})).unwrap();
    assert_eq!(
        said,
        "huge: lines 1 to 2 (too large to count them all), 100.0 GB\n\ntext\ntext\n[more: read_file with start_line=3]\n"
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
    // A line far behind can be waited for only as long as somebody wants it.
    let stop = on();
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| {
            let call = args(json!({"path": "huge", "start_line": 1_000_000}));
            read_file(&sandbox.root, &call, &stop)
        });
        std::thread::sleep(std::time::Duration::from_millis(100));
        stop.0.cancel();
        assert_eq!(failure(waiting.join().unwrap()), "cancelled");
    });
}

proptest! {
    /// Whatever the bytes, the lines told are those of the file, and reading line by line gives what reading all gives.
    #[test]
    fn lines_are_counted_as_they_are(text in "([ab\r\n]|\\PC){0,60}") {
        let sandbox = Sandbox::new().with("f", &text);
        let whole = read(&sandbox, json!({"path": "f"})).unwrap();
        if text.is_empty() {
            prop_assert_eq!(whole, "f is empty");
            return Ok(());
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let told = format!("f: {}", count(lines.len() as u64, "line", "lines"));
        prop_assert!(whole.starts_with(&told), "{whole:?}");
        let shown: String = lines.iter().map(|line| {
            let line = line.strip_suffix('\n').map_or(*line, |line| line.strip_suffix('\r').unwrap_or(line));
            format!("{line}\n")
        }).collect();
        prop_assert_eq!(whole.split_once("\n\n").unwrap().1, shown.as_str());
        for number in 1..=lines.len() {
            let one = read(&sandbox, json!({"path": "f", "start_line": number, "lines": 1})).unwrap();
            let text = one.split_once("\n\n").unwrap().1;
            let text = text.split_once("[more:").map_or(text, |(text, _)| text);
            prop_assert_eq!(text, shown.split_inclusive('\n').nth(number - 1).unwrap());
        }
    }
}
