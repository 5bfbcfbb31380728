//! Listings say what is there, what is left out, and how to read on.

use serde_json::json;

use super::{
    super::testing::{Sandbox, args, failure, make_pipe, on},
    *,
};

fn list(sandbox: &Sandbox, call: serde_json::Value) -> Result<String, ToolError> {
    list_files(&sandbox.root, &args(call), &on())
}

#[test]
fn every_kind_of_thing_has_its_mark() {
    let sandbox =
        Sandbox::new().with("src/main.rs", "fn main() {}\n").with("README.md", "x".repeat(12_345)).with(".env", "");
    std::os::unix::fs::symlink("src/main.rs", sandbox.work.join("link")).unwrap();
    make_pipe(&sandbox.work.join("pipe"));
    assert_eq!(
        list(&sandbox, json!({})).unwrap(),
        "the working folder: 5 entries\n\n.env (0 bytes)\nREADME.md (12.3 kB)\nlink -> src/main.rs\npipe (named pipe)\nsrc/\n"
    );
    assert_eq!(list(&sandbox, json!({"path": "src"})).unwrap(), "src: 1 entry\n\nsrc/main.rs (13 bytes)\n");
}

#[test]
fn depth_and_glob() {
    let sandbox = Sandbox::new().with("a/b/c.rs", "").with("a/d.md", "").with("e.rs", "");
    assert_eq!(list(&sandbox, json!({"depth": 2})).unwrap(), {
        "the working folder: 4 entries\n\na/\na/b/\na/d.md (0 bytes)\ne.rs (0 bytes)\n"
    });
    assert_eq!(list(&sandbox, json!({"glob": "*.rs"})).unwrap(), {
        "the working folder: 2 entries\n\na/b/c.rs (0 bytes)\ne.rs (0 bytes)\n"
    });
    assert_eq!(list(&sandbox, json!({"glob": "*.rs", "depth": 1})).unwrap(), {
        "the working folder: 1 entry\n\ne.rs (0 bytes)\n"
    });
    assert_eq!(list(&sandbox, json!({"glob": "*.py"})).unwrap(), "nothing matches in the working folder");
}

#[test]
fn ignored_folders_are_named_and_not_entered() {
    let sandbox =
        Sandbox::new().with(".gitignore", "out/\n*.log\n").with("out/x", "").with("a.log", "").with(".git/HEAD", "");
    let listed = list(&sandbox, json!({"depth": 9})).unwrap();
    assert_eq!(
        listed,
        "the working folder: 4 entries (2 ignored folders not entered: include_ignored does)\n\n\
         .git/\n.gitignore (11 bytes)\na.log (0 bytes)\nout/\n"
    );
    assert!(list(&sandbox, json!({"depth": 9, "include_ignored": true})).unwrap().contains("out/x (0 bytes)"));
    assert_eq!(list(&sandbox, json!({"path": "out"})).unwrap(), "out: 1 entry\n\nout/x (0 bytes)\n");
}

#[test]
fn a_long_listing_is_read_in_parts() {
    let sandbox = Sandbox::new();
    for n in 0..1203 {
        sandbox.put(&format!("f{n:04}"), "");
    }
    let mut names = Vec::new();
    let mut skip = Some(0);
    while let Some(at) = skip {
        let listed = list(&sandbox, json!({"skip": at})).unwrap();
        let (_, entries) = listed.split_once("\n\n").unwrap();
        names.extend(entries.lines().filter(|line| line.starts_with('f')).map(|line| line[..5].to_owned()));
        skip = entries.split_once("skip=").map(|(_, rest)| rest.split_once(',').unwrap().0.parse().unwrap());
    }
    assert_eq!(names, (0..1203).map(|n| format!("f{n:04}")).collect::<Vec<_>>());
    assert_eq!(failure(list(&sandbox, json!({"skip": 1203}))), "there are only 1,203 entries");
}

#[test]
fn an_empty_folder_and_a_missing_one() {
    let sandbox = Sandbox::new();
    assert_eq!(list(&sandbox, json!({})).unwrap(), "nothing is in the working folder");
    assert_eq!(list(&sandbox, json!({"skip": 3})).unwrap(), "nothing is in the working folder");
    assert!(failure(list(&sandbox, json!({"path": "gone"}))).starts_with("no such file or folder: gone"));
}
