//! `.gitignore` is read as git reads it; git itself is asked where it is installed.

use std::process::Command;

use super::{super::testing::Sandbox, *};

/// Whether the walk would leave the path out, with the rules of every folder above it.
fn left_out(sandbox: &Sandbox, path: &str) -> bool {
    let path = Path::new(path);
    // As in a walk: what is in an ignored folder is never met.
    path.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| {
        let is_folder = sandbox.work.join(part).is_dir();
        Ignored::above(sandbox.root.dir(), part).leaves_out(part, is_folder)
    })
}

#[test]
fn rules_agree_with_git() {
    let sandbox = Sandbox::new()
        .with(
            ".gitignore",
            "# comment\n\n*.log\n!keep.log\n/top.txt\nbuild/\ndocs/*.html\n**/deep/x\nspace \nfoo{1}\n[ab].c\n\\!bang\nq/**\n*.tmp  \n",
        )
        .with("sub/.gitignore", "!*.log\nlocal\n/anchored\n");
    let files = [
        "a.log",
        "keep.log",
        "top.txt",
        "sub/top.txt",
        "build/out",
        "sub/build/out",
        "sub/c/build",
        "docs/a.html",
        "docs/b/a.html",
        "sub/docs/a.html",
        "deep/x",
        "sub/deep/x",
        "sub/a.log",
        "sub/local",
        "local",
        "sub/anchored",
        "sub/c/anchored",
        "space",
        "foo{1}",
        "foo1",
        "a.c",
        "c.c",
        "!bang",
        "q/r/s",
        "buildx",
        "x.tmp",
        "sub/x/y/b.c",
    ];
    for file in files {
        sandbox.put(file, "x");
    }
    let git = |args: &[&str]| {
        Command::new("git").args(args).current_dir(&sandbox.work).env("GIT_CONFIG_GLOBAL", "/dev/null").output()
    };
    let Ok(made) = git(&["init", "-q"]) else { return };
    assert!(made.status.success());
    for file in files {
        let by_git = git(&["check-ignore", "-q", "--", file]).unwrap().status.success();
        assert_eq!(left_out(&sandbox, file), by_git, "{file}");
    }
}

#[test]
fn caches_and_version_control_are_never_walked() {
    let sandbox = Sandbox::new()
        .with("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
        .with(".git/HEAD", "x")
        .with("node_modules/a", "x")
        .with("src/a", "x");
    let never = |name: &str| never_walked(sandbox.root.dir(), Path::new(name));
    assert_eq!([never("target"), never(".git"), never("node_modules"), never("src")], [true, true, true, false]);
}

#[test]
fn rules_that_cannot_be_read_ignore_nothing() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.work.join(".gitignore")).unwrap();
    assert!(!left_out(&sandbox, "a"));
    std::fs::remove_dir(sandbox.work.join(".gitignore")).unwrap();
    std::os::unix::fs::symlink(sandbox.outside.join("secret.txt"), sandbox.work.join(".gitignore")).unwrap();
    assert!(!left_out(&sandbox, "the secret outside"));
}
