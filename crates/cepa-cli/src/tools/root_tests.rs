//! Nothing leads out of the root, and nothing in it makes a tool wait.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use proptest::prelude::*;
use serde_json::json;

use super::{
    super::{
        edit::{EditFile, edit_file},
        list::{ListFiles, list_files},
        read::{ReadFile, read_file},
        search::{SearchFiles, search_files},
        testing::{SECRET, Sandbox, args, failure, make_pipe, on},
        write::{WriteFile, write_file},
    },
    *,
};

/// Calls every file tool with the path; what they say.
fn try_all(sandbox: &Sandbox, path: &str) -> Vec<Result<String, ToolError>> {
    let root = &sandbox.root;
    vec![
        list_files(root, &args::<ListFiles>(json!({"path": path, "depth": 9, "include_ignored": true})), &on()),
        read_file(root, &args::<ReadFile>(json!({"path": path})), &on()),
        search_files(root, &args::<SearchFiles>(json!({"path": path, "pattern": "secret"})), &on()),
        write_file(root, &args::<WriteFile>(json!({"path": path, "content": "changed"})), &on()),
        edit_file(root, &args::<EditFile>(json!({"path": path, "old_text": "secret", "new_text": "changed"})), &on()),
    ]
}

fn assert_all_refused(sandbox: &Sandbox, path: &str) {
    for (tool, result) in try_all(sandbox, path).into_iter().enumerate() {
        let said = failure(result);
        assert!(!said.contains(SECRET), "tool {tool} showed the secret by {path}: {said}");
    }
    sandbox.assert_outside_untouched();
}

#[test]
fn paths_that_say_they_leave_are_refused() {
    let sandbox = Sandbox::new().with("a/b.txt", "x");
    let absolute = sandbox.outside.join("secret.txt");
    for path in [
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "./.././outside/secret.txt",
        "../work/../outside/secret.txt",
        "..",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "\\x2e\\x2e/outside/secret.txt",
        "\\x2fetc/passwd",
        absolute.to_str().unwrap(),
    ] {
        assert_all_refused(&sandbox, path);
    }
    let said = failure(sandbox.root.open_file("../outside/secret.txt"));
    assert_eq!(
        said,
        "../outside/secret.txt is outside the folder that the file tools may use; give a path relative to it"
    );
}

#[test]
fn links_that_lead_out_are_refused_wherever_they_are_in_the_path() {
    let sandbox = Sandbox::new().with("a/b.txt", "x");
    let (work, outside) = (&sandbox.work, &sandbox.outside);
    symlink(outside.join("secret.txt"), work.join("file")).unwrap();
    symlink("../outside/secret.txt", work.join("relative-file")).unwrap();
    symlink(outside, work.join("folder")).unwrap();
    symlink("../../outside", work.join("a/folder")).unwrap();
    symlink("a/folder", work.join("link-to-link")).unwrap();
    symlink("/", work.join("slash")).unwrap();
    symlink(outside.join("not-there"), work.join("dangling-out")).unwrap();
    symlink("/proc/self/environ", work.join("environment")).unwrap();
    symlink("/proc/self/root", work.join("magic")).unwrap();
    for path in [
        "file",
        "relative-file",
        "folder/secret.txt",
        "folder/new.txt",
        "folder/new/deep.txt",
        "a/folder/secret.txt",
        "a/folder/../outside/secret.txt",
        "link-to-link/secret.txt",
        "slash/etc/passwd",
        "dangling-out",
        "environment",
        "magic/etc/passwd",
    ] {
        assert_all_refused(&sandbox, path);
    }
}

#[test]
fn a_walk_does_not_follow_links_out() {
    let sandbox = Sandbox::new().with("inside.txt", "the secret inside");
    symlink(&sandbox.outside, sandbox.work.join("folder")).unwrap();
    symlink(sandbox.outside.join("secret.txt"), sandbox.work.join("file")).unwrap();
    let found = search_files(&sandbox.root, &args(json!({"pattern": "the secret"})), &on()).unwrap();
    assert_eq!(found, "1 matching line in 1 file (1 file searched)\n\ninside.txt:1: the secret inside\n");
    let listed = list_files(&sandbox.root, &args(json!({"depth": 5})), &on()).unwrap();
    assert!(!listed.contains("secret.txt (") && listed.contains("folder -> /"), "{listed}");
}

#[test]
fn links_inside_the_root_work() {
    let sandbox = Sandbox::new().with("a/b.txt", "hello\n");
    symlink("a", sandbox.work.join("folder")).unwrap();
    symlink("../a/b.txt", sandbox.work.join("a/file")).unwrap();
    for path in ["folder/b.txt", "a/file", "folder/../a/b.txt", "./a//b.txt"] {
        let text = read_file(&sandbox.root, &args(json!({"path": path})), &on()).unwrap();
        assert!(text.ends_with("\n\nhello\n"), "{path}: {text}");
    }
}

#[test]
fn an_absolute_path_into_the_root_is_taken_as_relative() {
    let sandbox = Sandbox::new().with("a/b.txt", "hello\n");
    let path = sandbox.work.join("a/b.txt");
    assert_eq!(sandbox.root.relative(path.to_str().unwrap()).unwrap(), Path::new("a/b.txt"));
    let sneaky = format!("{}/../outside/secret.txt", sandbox.work.display());
    assert_all_refused(&sandbox, &sneaky);
}

#[test]
fn pipes_sockets_and_devices_are_refused_without_waiting() {
    let sandbox = Sandbox::new();
    make_pipe(&sandbox.work.join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.work.join("socket")).unwrap();
    symlink("pipe", sandbox.work.join("link")).unwrap();
    let started = Instant::now();
    for path in ["pipe", "socket", "link"] {
        assert_all_refused(&sandbox, path);
    }
    let said = failure(sandbox.root.open_file("pipe"));
    assert_eq!(said, "pipe is a named pipe, not a regular file; it is not opened");
    // In the way of a walk they are no trouble either.
    list_files(&sandbox.root, &args(json!({"depth": 3})), &on()).unwrap();
    search_files(&sandbox.root, &args(json!({"pattern": "x"})), &on()).unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_pipe_that_takes_the_place_of_a_file_is_not_waited_for() {
    let sandbox = Sandbox::new();
    make_pipe(&sandbox.work.join("pipe"));
    let mut options = OpenOptions::new();
    options.read(true);
    without_waiting(&mut options);
    // What happens after the first look when the file is swapped for a pipe: opening returns at once.
    let file = sandbox.root.dir().open_with("pipe", &options).unwrap();
    assert!(failure(expect_file(&file.metadata().unwrap(), "pipe")).contains("named pipe"));
}

#[cfg(target_os = "linux")]
#[test]
fn process_files_are_refused_even_with_the_root_at_the_top() {
    let root = Root::open(Path::new("/")).unwrap();
    for path in ["proc/self/environ", "/proc/self/environ", "proc/version"] {
        let said = failure(root.open_file(path));
        assert!(said.contains("process information"), "{path}: {said}");
    }
    failure(root.open_file("proc/self/root/proc/self/environ"));
    let root = Root::open(Path::new("/dev")).unwrap();
    assert!(failure(root.open_file("null")).contains("is a device"));
}

#[test]
fn a_root_that_is_no_folder_is_refused() {
    let sandbox = Sandbox::new().with("file", "");
    for path in ["file", "not-there"] {
        let error = Root::open(&sandbox.work.join(path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().contains(path), "{error}");
    }
}

#[test]
fn names_that_are_not_utf8_are_shown_and_taken_back() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let sandbox = Sandbox::new();
    let name = OsStr::from_bytes(b"caf\xe9\n.txt");
    if fs::write(sandbox.work.join(name), "coffee\n").is_err() {
        return; // macOS takes UTF-8 names only.
    }
    let listed = list_files(&sandbox.root, &ListFiles::default(), &on()).unwrap();
    assert_eq!(listed, "the working folder: 1 entry\n\ncaf\\xe9\\x0a.txt (7 bytes)\n");
    let text = read_file(&sandbox.root, &args(json!({"path": "caf\\xe9\\x0a.txt"})), &on()).unwrap();
    assert!(text.ends_with("\n\ncoffee\n"), "{text}");
    // A file whose name only looks like that comes first.
    sandbox.put("caf\\xe9\\x0a.txt", "literal\n");
    let text = read_file(&sandbox.root, &args(json!({"path": "caf\\xe9\\x0a.txt"})), &on()).unwrap();
    assert!(text.ends_with("\n\nliteral\n"), "{text}");
}

#[test]
fn paths_that_no_system_takes_are_said() {
    let sandbox = Sandbox::new().with("file", "x");
    assert!(failure(sandbox.root.open_file("a\0b")).contains("NUL"));
    assert!(failure(sandbox.root.open_file("a\\x00b")).contains("NUL"));
    assert!(failure(sandbox.root.open_file(&"n".repeat(300))).contains("too long"));
    assert!(failure(sandbox.root.open_file(&"d/".repeat(5000))).contains("too long"));
    assert!(failure(sandbox.root.open_file("file/inside")).contains("a part of the path is a file"));
    assert!(failure(sandbox.root.open_file("")).contains("is a folder"));
    assert!(failure(sandbox.root.open_file("gone")).contains("list_files shows what is there"));
}

/// One thread swaps a folder for a link out of the root and back while tools work below it.
#[test]
fn a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere() {
    let sandbox = Sandbox::new().with("real/secret.txt", "harmless");
    let (done, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (work, outside) = (&sandbox.work, &sandbox.outside);
    symlink(outside, work.join("trap")).unwrap();
    let place = work.join("place");
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for kind in ["real", "trap"] {
                    let kind = work.join(kind);
                    if fs::rename(&kind, &place).and_then(|()| fs::rename(&place, &kind)).is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    } else {
                        // `write_file` made a folder of that name in the moment when there was none.
                        let _ = fs::remove_dir_all(&place);
                    }
                }
            }
        });
        let until = Instant::now() + Duration::from_secs(2);
        let mut read = 0;
        while Instant::now() < until {
            for result in try_all(&sandbox, "place/secret.txt") {
                let text = result.unwrap_or_else(|error| error.message);
                assert!(!text.contains(SECRET), "{text}");
            }
            let found = search_files(&sandbox.root, &args(json!({"pattern": SECRET})), &on());
            let text = found.unwrap_or_else(|error| error.message);
            assert!(!text.contains(SECRET), "{text}");
            read += 1;
        }
        done.store(true, Ordering::Relaxed);
        assert!(read > 10 && swaps.load(Ordering::Relaxed) > 1000, "{read} rounds, {swaps:?} swaps");
    });
    sandbox.assert_outside_untouched();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a path is made of, no tool reads or changes anything outside.
    #[test]
    fn no_path_leads_out(parts in prop::collection::vec(
        prop::sample::select(vec!["..", ".", "a", "up", "out", "loop", "top", "secret.txt", "outside", "work", "", "\\x2e\\x2e"]), 1..8)
    ) {
        let sandbox = Sandbox::new().with("a/a/a.txt", "x");
        symlink("..", sandbox.work.join("a/up")).unwrap();
        symlink("../..", sandbox.work.join("up")).unwrap();
        symlink("../outside", sandbox.work.join("out")).unwrap();
        symlink("loop", sandbox.work.join("loop")).unwrap();
        symlink("/", sandbox.work.join("top")).unwrap();
        for result in try_all(&sandbox, &parts.join("/")) {
            let text = result.unwrap_or_else(|error| error.message);
            prop_assert!(!text.contains(SECRET), "{}", text);
        }
        sandbox.assert_outside_untouched();
    }
}
