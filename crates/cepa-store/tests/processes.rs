//! Several processes on one file, some of them killed. The tests run this very program again for a child.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use cepa_agent::{ChatMemory, Decision, TurnStore, Version, load_whole};
use cepa_store::Sqlite;
use common::{Place, at, entry, kind_of, open, paused_turn, texts};

fn child(program: &Path, path: &Path, task: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "a_child", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("CEPA_CHILD_PATH", path).env("CEPA_CHILD_TASK", task).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn start(path: &Path, task: &str) -> Child {
    child(&std::env::current_exe().unwrap(), path, task).spawn().unwrap()
}

/// What a child says, line by line, without the harness's own lines.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.lines().map_while(Result::ok).filter_map(|line| line.split_once("said ").map(|(_, said)| said.to_owned()))
}

#[tokio::test]
#[ignore = "the tests below run it, each with a task"]
async fn a_child() {
    let path = PathBuf::from(std::env::var_os("CEPA_CHILD_PATH").unwrap());
    let task = std::env::var("CEPA_CHILD_TASK").unwrap();
    match task.split_once(' ').unwrap_or((&task, "")) {
        ("append", _) => {
            let store = open(&path);
            for n in 0.. {
                let (version, _) = load_whole(&store, "c").await.unwrap();
                store.append("c", version, vec![entry(&format!("n{n}"), &n.to_string())]).await.unwrap();
                println!("said {n}");
            }
        }
        ("decide", word) => {
            let store = open(&path);
            println!("said ready");
            // All children begin at one moment: when the file appears.
            while !path.with_extension("go").exists() {
                std::hint::spin_loop();
            }
            let decided = store.decide("p", Decision::Reply { content: word.into() }, word, 500).await;
            println!("said {}", decided.map_or_else(|error| error.kind().to_string(), |pause| pause.actor.unwrap()));
        }
        ("create", word) => {
            let store = Sqlite::open(&path).unwrap();
            println!("said {}", kind_of(store.append(word, at(0, 0), vec![entry("a", word)]).await));
        }
        ("read-only", _) => match Sqlite::open(&path) {
            Ok(store) => {
                println!("said {:?}", texts(&store, "c").await);
                let error = store.append("c", at(0, 1), vec![entry("b", "2")]).await.unwrap_err();
                println!("said {error}");
            }
            Err(error) => println!("said {error}"),
        },
        (other, _) => panic!("no task {other}"),
    }
}

// D5: kill -9 at any instant: what was acknowledged is there, what was not is there whole or not at all.
#[tokio::test]
async fn nothing_acknowledged_is_lost_by_a_kill() {
    let place = Place::new();
    for (round, acknowledged) in [1, 7, 20, 41].into_iter().enumerate() {
        drop(place.open());
        let mut child = start(&place.path(), "append");
        let mut said = lines(&mut child);
        let mut last = None;
        for _ in 0..acknowledged {
            last = said.next();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        last = said.last().or(last);
        let last: usize = last.unwrap().parse().unwrap();

        let store = place.open();
        let (version, history) = load_whole(&store, "c").await.unwrap();
        let texts: Vec<_> = history.messages().map(|message| message.text().into_owned()).collect();
        assert!(texts.len() == last + 1 || texts.len() == last + 2, "round {round}: {} of {last}", texts.len());
        assert_eq!(texts, (0..texts.len()).map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(version, Version { epoch: round as u64, seq: texts.len() as u64 });
        store.clear("c").await.unwrap();
    }
}

// H4: of processes that decide at once exactly one wins.
#[tokio::test]
async fn one_of_several_processes_wins() {
    for _ in 0..3 {
        let place = Place::new();
        let store = place.open();
        paused_turn(&store).await;
        let mut children: Vec<Child> =
            ["ann", "bob", "eve"].map(|word| start(&place.path(), &format!("decide {word}"))).into();
        let mut said: Vec<_> = children.iter_mut().map(lines).collect();
        for said in &mut said {
            assert_eq!(said.next().as_deref(), Some("ready"));
        }
        fs::write(place.path().with_extension("go"), "").unwrap();
        let outcomes: Vec<String> = said.iter_mut().map(|said| said.next().unwrap()).collect();
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
        let (lost, won): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| *outcome == "already_decided");
        assert_eq!((won.len(), lost.len()), (1, 2), "{outcomes:?}");
        assert_eq!(store.pause("p").await.unwrap().unwrap().actor.as_ref(), won.first().copied());
    }
}

#[tokio::test]
async fn several_processes_create_one_file() {
    for _ in 0..3 {
        let place = Place::new();
        let mut children: Vec<Child> =
            ["a", "b", "c", "d"].map(|word| start(&place.path(), &format!("create {word}"))).into();
        for child in &mut children {
            assert_eq!(lines(child).collect::<Vec<_>>(), ["ok"]);
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(place.open().list(0, 10).await.unwrap().len(), 4);
    }
}

/// Starts a program that was just written. Another test's child, forked in between, may still hold it open for writing.
fn spawned(command: &mut Command) -> Child {
    for _ in 0..200 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            started => return started.unwrap(),
        }
    }
    command.spawn().unwrap()
}

// D5: a read-only database can be read; a write says what to do.
#[tokio::test]
async fn a_read_only_database_says_so() {
    let place = Place::new();
    place.open().append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&place.path(), 0o444);
    mode(place.folder(), 0o777);
    // Nothing is read-only for root: as root the child becomes somebody else, and needs a program it may run.
    let program = place.folder().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    mode(&program, 0o755);
    let run = || {
        let mut command = child(&program, &place.path(), "read-only");
        if fs::metadata(&program).unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        let mut child = spawned(command.current_dir("/"));
        let said: Vec<String> = lines(&mut child).collect();
        assert!(child.wait().unwrap().success());
        said
    };
    let said = run();
    assert_eq!(said[0], "[\"1\"]");
    assert!(said[1].starts_with("store: the database is read-only") && said[1].contains("chat.db"), "{said:?}");
    // Not even files beside it can be made.
    mode(place.folder(), 0o555);
    let said = run();
    mode(place.folder(), 0o777);
    assert!(said.last().unwrap().starts_with("store: "), "{said:?}");
    assert_eq!(texts(&place.open(), "c").await, ["1"]);
}
