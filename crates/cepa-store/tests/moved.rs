//! A file or folder that is moved, replaced, removed or made read-only while a store has it open: a typed error at every
//! touch, no word from another file, and what was acknowledged is there once the file is back.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::{fs, path::Path, process::Command};

use cepa_agent::{ChatMemory, Decision, TurnStore};
use cepa_core::{Error, ErrorKind};
use cepa_store::Sqlite;
use common::{Place, at, entry, kind_of, paused_turn, texts};

/// What each kind of touch says: reads and writes alike.
async fn touches(store: &Sqlite) -> Vec<Error> {
    let reads = [
        store.load("c", None).await.map(drop),
        store.page("c", 0, 10).await.map(drop),
        store.list(0, 10).await.map(drop),
        store.live_turns(None).await.map(drop),
        store.pending(None).await.map(drop),
        store.turn("t").await.map(drop),
        store.audit(None, 0, 10).await.map(drop),
    ];
    let writes = [
        store.append("c", at(0, 1), vec![entry("b", "2")]).await.map(drop),
        store.lease("c", "another", 5_000, 9_000).await.map(drop),
        store.decide("p", Decision::Approve, "ann", 500).await.map(drop),
        store.clear("c").await,
    ];
    reads.into_iter().chain(writes).map(Result::unwrap_err).collect()
}

fn all_say(errors: &[Error]) {
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        assert!(error.message().contains("deleted or replaced") && error.message().contains("chat.db"), "{error}");
    }
}

fn rename(place: &Place, from: &str, to: &str) {
    fs::rename(place.folder().join(from), place.folder().join(to)).unwrap();
}

const FILES: [&str; 3] = ["chat.db", "chat.db-wal", "chat.db-shm"];

// D5: a file that was renamed is not written, and not read either; back under its name it has all that was acknowledged.
#[tokio::test]
async fn a_file_that_was_renamed_under_us() {
    for read_before in [false, true] {
        let place = Place::new();
        let store = place.open();
        paused_turn(&store).await;
        if read_before {
            texts(&store, "c").await;
        }
        rename(&place, "chat.db", "moved.db");
        all_say(&touches(&store).await);
        rename(&place, "moved.db", "chat.db");
        assert_eq!(texts(&store, "c").await, ["pay"]);
        assert_eq!(store.append("c", at(0, 1), vec![entry("b", "2")]).await.unwrap(), at(0, 2));
        // Moved with its log, by who does not know that it is open; then the store goes.
        for name in FILES {
            rename(&place, name, &name.replace("chat", "moved"));
        }
        drop(store);
        assert_eq!(texts(&Sqlite::open(place.folder().join("moved.db")).unwrap(), "c").await, ["pay", "2"]);
    }
}

// D5: of a file that took the place of ours nothing is read and nothing is written, and closing leaves its log alone.
#[tokio::test]
async fn a_file_that_was_replaced_under_us() {
    for read_before in [false, true] {
        let place = Place::new();
        let store = place.open();
        paused_turn(&store).await;
        if read_before {
            texts(&store, "c").await;
        }
        for name in FILES {
            rename(&place, name, &format!("old-{name}"));
        }
        let other = place.open();
        other.append("c", at(0, 0), vec![entry("z", "another's")]).await.unwrap();
        all_say(&touches(&store).await);
        drop(store);
        // Had closing removed the other's log, a kill would lose what is in it.
        let copy = Place::new();
        for name in FILES {
            fs::copy(place.folder().join(name), copy.folder().join(name)).unwrap();
        }
        assert_eq!(texts(&copy.open(), "c").await, ["another's"]);
        assert_eq!(other.append("c", at(0, 1), vec![entry("y", "and more")]).await.unwrap(), at(0, 2));
        drop(other);
        assert_eq!(texts(&place.open(), "c").await, ["another's", "and more"]);
        for name in FILES {
            fs::rename(place.folder().join(format!("old-{name}")), copy.folder().join(name)).unwrap();
        }
        assert_eq!(texts(&copy.open(), "c").await, ["pay"]);
    }
}

// D5: a folder that is gone takes the database with it, and says so; moved back, all is there.
#[tokio::test]
async fn a_folder_that_was_moved_or_removed() {
    let place = Place::new();
    let (folder, moved) = (place.folder().join("f"), place.folder().join("moved"));
    fs::create_dir(&folder).unwrap();
    let store = Sqlite::open(folder.join("chat.db")).unwrap();
    paused_turn(&store).await;
    texts(&store, "c").await;
    fs::rename(&folder, &moved).unwrap();
    all_say(&touches(&store).await);
    fs::rename(&moved, &folder).unwrap();
    assert_eq!(texts(&store, "c").await, ["pay"]);
    fs::remove_dir_all(&folder).unwrap();
    all_say(&touches(&store).await);
    let again = Sqlite::open(folder.join("chat.db")).unwrap_err();
    assert!(again.kind() == ErrorKind::Store && again.message().contains("make the folder first"), "{again}");
    // Whoever makes it anew begins anew: the old handle does not mix itself in.
    fs::create_dir(&folder).unwrap();
    let new = Sqlite::open(folder.join("chat.db")).unwrap();
    all_say(&touches(&store).await);
    drop(store);
    assert_eq!(new.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap(), at(0, 1));
}

/// A bind mount that is gone with the test.
struct ReadOnly<'a>(&'a Path);

impl<'a> ReadOnly<'a> {
    /// `None` where this user may not mount.
    fn mount(folder: &'a Path) -> Option<Self> {
        let mount = |words: &[&str]| {
            Command::new("mount").args(words).arg(folder).output().is_ok_and(|ran| ran.status.success())
        };
        let bound = mount(&["--bind", folder.to_str().unwrap()]);
        let mounted = bound.then_some(Self(folder))?;
        mount(&["-o", "remount,ro,bind"]).then_some(mounted)
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0).status().unwrap();
    }
}

// D5: a file system that is read-only for everybody: what can be read is read, writes say what to do, nothing changes.
#[tokio::test]
async fn a_read_only_file_system() {
    let place = Place::new();
    let store = place.open();
    paused_turn(&store).await;
    store.release("c", 1).await.unwrap();
    drop(store);
    let before = fs::read(place.path()).unwrap();
    {
        let Some(_mounted) = ReadOnly::mount(place.folder()) else {
            println!("not shown here: this user may not mount");
            return;
        };
        assert!(fs::write(place.folder().join("x"), "").is_err());
        match Sqlite::open(place.path()) {
            Ok(store) => {
                assert_eq!(texts(&store, "c").await, ["pay"]);
                assert_eq!(kind_of(store.append("c", at(0, 1), vec![entry("b", "2")]).await), "store");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Store, "{error}");
                assert!(error.message().contains("writable") || error.message().contains("may be used"), "{error}");
            }
        }
        let new = Sqlite::open(place.folder().join("new.db")).unwrap_err();
        assert!(new.kind() == ErrorKind::Store && new.message().contains("cannot create"), "{new}");
    }
    assert!(fs::read(place.path()).unwrap() == before);
    assert_eq!(place.open().append("c", at(0, 1), vec![entry("b", "2")]).await.unwrap(), at(0, 2));
}
