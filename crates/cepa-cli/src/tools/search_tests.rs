//! What is found, what is passed over and said, and how to read on.

use serde_json::json;

use super::{
    super::testing::{Sandbox, args, failure, on},
    *,
};

fn search(sandbox: &Sandbox, call: serde_json::Value) -> Result<String, ToolError> {
    search_files(&sandbox.root, &args(call), &on())
}

#[test]
fn text_and_regular_expressions() {
    let sandbox = Sandbox::new().with("a.txt", "one (1)\r\nTwo\nthree").with("b/c.md", "two 2\n");
    for (call, said) in [
        (json!({"pattern": "(1)"}), "1 matching line in 1 file (2 files searched)\n\na.txt:1: one (1)\n"),
        (json!({"pattern": "two"}), "1 matching line in 1 file (2 files searched)\n\nb/c.md:1: two 2\n"),
        (
            json!({"pattern": "two", "ignore_case": true}),
            "2 matching lines in 2 files (2 files searched)\n\na.txt:2: Two\nb/c.md:1: two 2\n",
        ),
        (
            json!({"pattern": "^t\\w+$", "regex": true}),
            "1 matching line in 1 file (2 files searched)\n\na.txt:3: three\n",
        ),
        (
            json!({"pattern": "\\)$", "regex": true}),
            "1 matching line in 1 file (2 files searched)\n\na.txt:1: one (1)\n",
        ),
        (json!({"pattern": "two", "glob": "*.txt"}), "no match in 1 file"),
        (json!({"pattern": "two", "path": "b"}), "1 matching line in 1 file (1 file searched)\n\nb/c.md:1: two 2\n"),
        (json!({"pattern": "o", "path": "a.txt"}), {
            "2 matching lines in 1 file (1 file searched)\n\na.txt:1: one (1)\na.txt:2: Two\n"
        }),
    ] {
        assert_eq!(search(&sandbox, call.clone()).unwrap(), said, "{call}");
    }
}

#[test]
fn context_lines_join_and_part() {
    let sandbox = Sandbox::new().with("f", "1\nx2\n3\nx4\n5\n6\n7\nx8\n");
    let said = search(&sandbox, json!({"pattern": "x", "context": 1})).unwrap();
    assert_eq!(
        said,
        "3 matching lines in 1 file (1 file searched)\n\n\
         f-1- 1\nf:2: x2\nf-3- 3\nf:4: x4\nf-5- 5\n--\nf-7- 7\nf:8: x8\n"
    );
    assert!(search(&sandbox, json!({"pattern": "x4", "context": 4_000_000_000_u32})).unwrap().contains("f-8- x8"));
}

#[test]
fn patterns_that_cannot_match_are_refused() {
    let sandbox = Sandbox::new().with("f", "x");
    assert!(failure(search(&sandbox, json!({"pattern": ""}))).contains("empty"));
    assert!(failure(search(&sandbox, json!({"pattern": "a\nb"}))).contains("one line of it"));
    assert!(failure(search(&sandbox, json!({"pattern": "(", "regex": true}))).contains("unclosed group"));
    assert!(failure(search(&sandbox, json!({"pattern": "x{9999}{9999}", "regex": true}))).contains("usable"));
    assert!(failure(search(&sandbox, json!({"pattern": "x", "path": "gone"}))).contains("no such file"));
}

#[test]
fn what_is_passed_over_is_said() {
    let sandbox = Sandbox::new()
        .with(".gitignore", "out/\n*.log\n")
        .with("out/x", "needle")
        .with("a.log", "needle")
        .with("b.bin", b"needle\0")
        .with("latin", b"caf\xe9 needle\n");
    let said = search(&sandbox, json!({"pattern": "needle"})).unwrap();
    assert_eq!(
        said,
        "1 matching line in 1 file (2 files searched; passed over: 2 ignored (include_ignored searches them), 1 not \
         text)\n\nlatin:1: caf\u{FFFD} needle\n"
    );
    assert!(
        search(&sandbox, json!({"pattern": "needle", "include_ignored": true})).unwrap().contains("out/x:1: needle")
    );
    assert!(failure(search(&sandbox, json!({"pattern": "needle", "path": "b.bin"}))).contains("not a text file"));
}

#[test]
fn huge_files_are_passed_over() {
    let sandbox = Sandbox::new().with("huge", "needle\n");
    let file = std::fs::OpenOptions::new().write(true).open(sandbox.work.join("huge")).unwrap();
    file.set_len(MAX_FILE + 1).unwrap();
    assert_eq!(
        search(&sandbox, json!({"pattern": "needle"})).unwrap(),
        "no match in 0 files; passed over: 1 larger than 64 MB"
    );
    let said = failure(search(&sandbox, json!({"pattern": "needle", "path": "huge"})));
    assert!(said.starts_with("huge is 67.1 MB (the limit is 67.1 MB); read a part"), "{said}");
}

#[test]
fn many_matches_are_read_in_parts() {
    let sandbox = Sandbox::new();
    for file in 0..3 {
        sandbox.put(&format!("f{file}"), (0..150).map(|n| format!("match {file}/{n}\nother\n")).collect::<String>());
    }
    let mut found = Vec::new();
    let mut skip = Some(0);
    while let Some(at) = skip {
        let said = search(&sandbox, json!({"pattern": "match", "skip": at})).unwrap();
        found.extend(
            said.lines().filter(|line| line.starts_with('f')).map(|line| line.rsplit_once(' ').unwrap().1.to_owned()),
        );
        skip = said.split_once("skip=").map(|(_, rest)| rest.split_once(',').unwrap().0.parse().unwrap());
    }
    let all: Vec<String> = (0..3).flat_map(|file| (0..150).map(move |n| format!("{file}/{n}"))).collect();
    assert_eq!(found, all);
    assert!(failure(search(&sandbox, json!({"pattern": "match", "skip": 450}))).contains("only 450 matching lines"));
}

#[test]
fn a_long_line_is_shown_around_its_match() {
    let sandbox = Sandbox::new().with("f", format!("{}needle{}\n", "ä".repeat(10_000), "ö".repeat(10_000)));
    let said = search(&sandbox, json!({"pattern": "needle"})).unwrap();
    let line = said.lines().last().unwrap();
    assert!(line.len() < MAX_LINE + 20 && line.contains("ääneedleöö"), "{line}");
    assert!(line.starts_with("f:1: …ä") && line.ends_with("ö…") && !line.contains('\u{FFFD}'), "{line}");
}

#[test]
fn long_results_end_by_size_too() {
    let sandbox = Sandbox::new().with("f", format!("needle {}\n", "x".repeat(280)).repeat(199));
    let said = search(&sandbox, json!({"pattern": "needle"})).unwrap();
    assert!(said.len() < MAX_BYTES + 1000 && said.contains("[more: search_files with skip="), "{}", said.len());
}

#[test]
fn a_search_that_nobody_wants_ends() {
    let sandbox = Sandbox::new().with("f", "x\n".repeat(10_000));
    let stop = on();
    stop.0.cancel();
    assert_eq!(failure(search_files(&sandbox.root, &args(json!({"pattern": "y"})), &stop)), "cancelled");
}
