//! A write happens wholly or not at all, and keeps what it should.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::atomic::AtomicBool,
};

use serde_json::json;

use super::{
    super::testing::{Sandbox, args, failure, on},
    *,
};

fn write(sandbox: &Sandbox, path: &str, content: &str) -> Result<String, ToolError> {
    write_file(&sandbox.root, &args(json!({"path": path, "content": content})), &on())
}

fn mode(sandbox: &Sandbox, path: &str) -> u32 {
    fs::metadata(sandbox.work.join(path)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn files_are_created_and_replaced() {
    let sandbox = Sandbox::new();
    assert_eq!(write(&sandbox, "notes.txt", "hello").unwrap(), "created notes.txt (5 bytes)");
    assert_eq!(write(&sandbox, "notes.txt", "").unwrap(), "replaced notes.txt (0 bytes, was 5 bytes)");
    assert_eq!(write(&sandbox, "./a/b/../c/d.txt", "x").unwrap(), "created a/b/../c/d.txt (1 byte)");
    assert_eq!(sandbox.text("a/c/d.txt"), "x");
    assert_eq!(write(&sandbox, "x/y/z/d.txt", "deep\n").unwrap(), "created x/y/z/d.txt (5 bytes)");
    assert_eq!(sandbox.text("x/y/z/d.txt"), "deep\n");
    assert_eq!(sandbox.names("x/y/z"), ["d.txt"]);
}

#[test]
fn folders_and_nothing_are_no_files() {
    let sandbox = Sandbox::new().with("a/f", "x");
    for path in ["", ".", "a", "a/", "new/", "a/..", ".."] {
        failure(write(&sandbox, path, "x"));
    }
    assert!(failure(write(&sandbox, "a/f/g", "x")).contains("a part of the path is a file"));
    assert_eq!(sandbox.names("."), ["a"]);
    sandbox.assert_outside_untouched();
}

#[test]
fn the_mode_stays() {
    let sandbox = Sandbox::new().with("run.sh", "old").with("set-id", "old").with("private", "old");
    for (name, old, new) in [("run.sh", 0o755, 0o755), ("set-id", 0o4711, 0o711), ("private", 0o600, 0o600)] {
        fs::set_permissions(sandbox.work.join(name), fs::Permissions::from_mode(old)).unwrap();
        write(&sandbox, name, "new").unwrap();
        assert_eq!((mode(&sandbox, name), sandbox.text(name)), (new, "new".to_owned()));
    }
}

#[test]
fn the_owner_stays_where_the_system_lets_it() {
    let sandbox = Sandbox::new().with("f", "old");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::os::unix::fs::chown(sandbox.work.join("f"), Some(1234), Some(2345)).unwrap();
    write(&sandbox, "f", "new").unwrap();
    let metadata = fs::metadata(sandbox.work.join("f")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 2345));
}

#[test]
fn a_write_protected_file_stays() {
    let sandbox = Sandbox::new().with("f", "old");
    if rustix::process::geteuid().is_root() {
        return; // Root may write to everything.
    }
    fs::set_permissions(sandbox.work.join("f"), fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(failure(write(&sandbox, "f", "new")), "no permission to write f");
    assert_eq!(sandbox.text("f"), "old");
}

#[test]
fn a_link_to_a_file_stays_a_link_and_one_to_nothing_is_refused() {
    let sandbox = Sandbox::new().with("real/f", "old");
    symlink("real/f", sandbox.work.join("link")).unwrap();
    symlink("real", sandbox.work.join("folder")).unwrap();
    symlink("nowhere", sandbox.work.join("dangling")).unwrap();
    assert_eq!(write(&sandbox, "link", "new").unwrap(), "replaced link (3 bytes, was 3 bytes)");
    assert_eq!(sandbox.text("real/f"), "new");
    write(&sandbox, "folder/g", "new").unwrap();
    assert_eq!(sandbox.names("real"), ["f", "g"]);
    assert!(failure(write(&sandbox, "dangling", "x")).contains("leads nowhere"));
    assert!(sandbox.work.join("link").is_symlink() && sandbox.work.join("folder").is_symlink());
}

#[test]
fn other_names_of_the_same_content_are_not_changed() {
    let sandbox = Sandbox::new();
    fs::hard_link(sandbox.outside.join("secret.txt"), sandbox.work.join("f")).unwrap();
    write(&sandbox, "f", "new").unwrap();
    sandbox.assert_outside_untouched();
}

#[test]
fn names_at_the_limit_work() {
    let sandbox = Sandbox::new();
    let name = "n".repeat(255);
    write(&sandbox, &name, "x").unwrap();
    write(&sandbox, &name, "y").unwrap();
    assert!(failure(write(&sandbox, &"n".repeat(256), "x")).contains("too long"));
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let sandbox = Sandbox::new().with("f", "old");
    let place = Place::find(&sandbox.root, "f").unwrap();
    let stamp = Stamp { length: 999, modified: None };
    assert!(failure(place.put(b"new", Some(stamp))).contains("changed by something else"));
    assert_eq!((sandbox.names("."), sandbox.text("f")), (vec!["f".to_owned()], "old".to_owned()));
    // A folder takes the place of the file after the look.
    fs::remove_file(sandbox.work.join("f")).unwrap();
    fs::create_dir(sandbox.work.join("f")).unwrap();
    place.put(b"new", None).unwrap_err();
    assert_eq!(sandbox.names("."), ["f"]);
}

#[test]
fn a_way_that_turns_back_up_leaves_no_folders() {
    let sandbox = Sandbox::new().with("there/f", "old");
    for refused in
        ["x/../../y", "there/new/../../../y", "there/../../y/z", "../y", "x/..", "x/../..", "x/y/../../../z/a"]
    {
        failure(write(&sandbox, refused, "new"));
        assert_eq!((sandbox.names("."), sandbox.names("there")), (vec!["there".to_owned()], vec!["f".to_owned()]));
    }
    write(&sandbox, "there/../there/f", "new").unwrap();
    write(&sandbox, "x/../there/y/../f", "newer").unwrap();
    write(&sandbox, "there/../x/../g", "new").unwrap();
    assert_eq!((sandbox.text("there/f"), sandbox.text("g")), ("newer".to_owned(), "new".to_owned()));
    assert_eq!(
        (sandbox.names("."), sandbox.names("there")),
        (vec!["g".to_owned(), "there".to_owned()], vec!["f".to_owned()])
    );
}

#[test]
fn a_temporary_file_of_a_dead_process_is_in_nobodys_way() {
    let sandbox = Sandbox::new();
    // The counter is this process's; the next numbers are taken.
    for number in 0..200 {
        sandbox.put(&format!(".cepa-{}-{number}.tmp", std::process::id()), "left");
    }
    write(&sandbox, "f", "new").unwrap();
    assert_eq!(sandbox.text("f"), "new");
    assert_eq!(sandbox.text(&format!(".cepa-{}-199.tmp", std::process::id())), "left");
}

#[test]
fn a_full_disk_is_for_a_person() {
    let full = std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
    let error = io_error("write", "f", full);
    assert_eq!(error.failure, cepa::ToolFailure::Environment);
    assert!(error.message.contains("the disk is full") && error.message.contains("nothing was changed"));
}

/// A reader sees the old content or the new, never a part.
#[test]
fn a_reader_never_sees_half_a_file() {
    let sandbox = Sandbox::new().with("f", "a".repeat(300_000));
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut seen = 0_u32;
            while !done.load(Ordering::Relaxed) {
                let bytes = sandbox.bytes("f");
                assert_eq!(bytes.len(), 300_000);
                assert!(bytes.iter().all(|byte| *byte == bytes[0]));
                seen += 1;
            }
            seen
        });
        for letter in ["b", "c", "d", "e"].iter().cycle().take(40) {
            write(&sandbox, "f", &letter.repeat(300_000)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 1);
    });
}

#[test]
fn a_cancelled_write_does_not_begin() {
    let sandbox = Sandbox::new();
    let stop = on();
    stop.0.cancel();
    failure(write_file(&sandbox.root, &args(json!({"path": "a/f", "content": "x"})), &stop));
    assert!(sandbox.names(".").is_empty());
}
