//! Files that a disk damaged: cut short, or with a flipped bit. What opens then is what was there after some earlier
//! write, whole; or a typed error says that it is corrupt.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use cepa_agent::{ChatMemory, TurnStore, load_whole};
use cepa_core::{Error, ErrorKind, pairing};
use cepa_store::{Options, Sqlite, Synchronous};
use cepa_testkit::{
    arbitrary::Rng,
    rows::rows,
    watched::{Watch, Watched, Write},
};

use crate::{
    durability::{
        Child, number,
        program::Program,
        task::{Kill, Task, What, When},
    },
    scene::{self, Ran},
};

/// Longer than any damaged file is looked at on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// What the database said after each write that was acknowledged, in order.
struct States {
    path: PathBuf,
    states: Mutex<Vec<Vec<String>>>,
}

impl Watch for States {
    fn after(&self, _: Write, done: Result<(), &Error>) {
        done.unwrap();
        self.states.lock().unwrap().push(rows(&self.path).unwrap());
    }
}

/// The files of a database as a process leaves them that was killed: bytes of `-wal` and `-shm` may be none.
#[derive(Clone)]
struct Image {
    main: Vec<u8>,
    wal: Vec<u8>,
    shm: Vec<u8>,
}

impl Image {
    fn of(path: &Path) -> Self {
        let beside = |end: &str| fs::read(format!("{}{end}", path.display())).unwrap_or_default();
        Self { main: beside(""), wal: beside("-wal"), shm: beside("-shm") }
    }

    fn put(&self, path: &Path) {
        for (bytes, end) in [(&self.main, ""), (&self.wal, "-wal"), (&self.shm, "-shm")] {
            if !bytes.is_empty() || end.is_empty() {
                fs::write(format!("{}{end}", path.display()), bytes).unwrap();
            }
        }
    }
}

/// Turns with pauses and long results on a store; what each write left, and the files while it is still open: what a
/// kill leaves. `checkpoint` says after which turn the log is written back, so that it begins anew over its old self.
fn worked(folder: &Path, checkpoint: Option<usize>) -> (Vec<Vec<String>>, usize, Image) {
    let path = folder.join("chat.db");
    let store = Sqlite::open_with(&path, Options::default().synchronous(Synchronous::Normal)).unwrap();
    let states = Arc::new(States { path: path.clone(), states: Mutex::new(vec![rows(&path).unwrap()]) });
    let agent = scene::agent(Watched::new(store.clone(), states.clone()), &Ran::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut safe = 0;
    runtime.block_on(async {
        for n in 0..6 {
            let text = if n % 3 == 2 { format!("say {n}") } else { format!("go {n}") };
            scene::say(&agent, &format!("c{}", n % 2), &text).await.unwrap();
            if checkpoint == Some(n) {
                let written: (i64, i64, i64) = rusqlite::Connection::open(&path)
                    .unwrap()
                    .query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                    .unwrap();
                assert_eq!((written.0, written.1), (0, written.2));
                safe = states.states.lock().unwrap().len() - 1;
            }
        }
    });
    let image = Image::of(&path);
    drop((agent, store));
    let states = states.states.lock().unwrap().clone();
    (states, safe, image)
}

/// What came of a damaged database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    /// It is as it was after this write.
    State(usize),
    /// It says that it is damaged, when it is opened or touched.
    Corrupt,
    /// It opens and reads, and says something that it never said before; only `PRAGMA integrity_check` may notice.
    Other { noticed: bool },
}

/// The error of a touch: nothing else than `corrupt`, with the file or the row named, and never a thread that is gone.
fn corrupt(path: &Path, error: &Error, what: &str) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    let named = error.message().contains(&path.display().to_string()) || error.message().contains("of conversation");
    assert!(named, "{what}: {error}");
}

/// Touches everything; the first error.
async fn touch(store: &Sqlite) -> Result<(), Error> {
    let list = store.list(0, 1_000).await?;
    for turn in store.live_turns(None).await? {
        store.turn(&turn.id).await?;
    }
    store.pending(None).await?;
    store.audit(None, 0, 10_000).await?;
    for conversation in list.iter().map(|info| info.id.as_str()).chain(["c0", "c1"]) {
        // What can be read of a damaged one can be read without the rest.
        let (_, lost) = store.load_lossy(conversation).await?;
        let whole = load_whole(store, conversation).await;
        assert_eq!(whole.is_err(), !lost.is_empty(), "{whole:?} {lost:?}");
        let (_, history) = whole?;
        for entry in history.iter() {
            store.full_result(entry.id.as_deref().unwrap_or_default()).await?;
        }
    }
    Ok(())
}

/// Opens a damaged database and touches everything; then, if it is what it was, a turn is done on it.
fn examine(image: &Image, states: &[Vec<String>], goes_on: bool, what: &str) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("chat.db");
    image.put(&path);
    let store = match Sqlite::open_with(&path, Options::default().synchronous(Synchronous::Normal)) {
        Ok(store) => store,
        Err(error) => {
            // What does not begin like a database of ours is somebody else's: it is left alone, and so said.
            let foreign = error.kind() == ErrorKind::Store && error.message().contains("name another file");
            let newer = error.kind() == ErrorKind::Store && error.message().contains("newer version");
            if !foreign && !newer {
                corrupt(&path, &error, what);
            }
            return Seen::Corrupt;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let touched = touch(&store).await;
        let found = rows(&path);
        let state = found.as_ref().ok().and_then(|found| states.iter().rposition(|state| state == found));
        if let Some(state) = state {
            // Damage where nothing is kept, or in an index that this look did not use.
            if let Err(error) = touched {
                corrupt(&path, &error, what);
                return Seen::Corrupt;
            }
            if goes_on {
                let checked: String = rusqlite::Connection::open(&path)
                    .unwrap()
                    .pragma_query_value(None, "integrity_check", |row| row.get(0))
                    .unwrap();
                assert_eq!(checked, "ok", "{what}");
                // The lease of the killed process is over by then.
                let later = scene::agent_at(store.clone(), &Ran::default(), 3_600_000);
                for result in later.recover().await.unwrap() {
                    result.unwrap_or_else(|error| panic!("{what}: {error:?}"));
                }
                for conversation in ["c0", "c1"] {
                    scene::decide(&later, conversation).await.unwrap();
                    scene::say(&later, conversation, "and now?").await.unwrap();
                    pairing::validate(&load_whole(&store, conversation).await.unwrap().1).unwrap();
                }
            }
            return Seen::State(state);
        }
        match (touched, found) {
            (Err(error), _) => {
                corrupt(&path, &error, what);
                Seen::Corrupt
            }
            (Ok(()), Err(_)) => Seen::Other { noticed: true },
            (Ok(()), Ok(_)) => {
                let checked =
                    rusqlite::Connection::open(&path)
                        .unwrap()
                        .pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0));
                Seen::Other { noticed: checked.is_ok_and(|said| said != "ok") }
            }
        }
    })
}

/// As [`examine`], on a thread of its own: a hang or a panic is a failure that names the damage.
fn looked_at(image: Image, states: &Arc<Vec<Vec<String>>>, goes_on: bool, what: &str) -> Seen {
    let (tell, told) = mpsc::channel();
    let (states, name) = (states.clone(), what.to_owned());
    let thread = std::thread::spawn(move || {
        let _ = tell.send(examine(&image, &states, goes_on, &name));
    });
    match told.recv_timeout(LIMIT) {
        Ok(seen) => seen,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let panicked = thread.join().unwrap_err();
            let why = panicked.downcast_ref::<String>().cloned().unwrap_or_default();
            panic!("{what}: {why}")
        }
    }
}

fn flip(bytes: &mut [u8], rng: &mut Rng, from: usize, until: usize) -> String {
    let (at, bit) = (from + rng.below(until - from), rng.below(8));
    bytes[at] ^= 1 << bit;
    format!("bit {bit} of byte {at}")
}

/// What happens to the index of the log, which is only a help and made anew.
fn spoil_index(image: &mut Image, rng: &mut Rng) -> &'static str {
    match rng.below(3) {
        0 => {
            image.shm = Vec::new();
            "no index"
        }
        1 => {
            image.shm.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
            "garbage as index"
        }
        _ => "the index as it was",
    }
}

const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const PAGE: usize = 1024;
const FRAME: usize = FRAME_HEADER + PAGE;

fn tries(least: usize) -> usize {
    number("CEPA_SOAK_DISK").unwrap_or(least)
}

fn counted(all: &[Seen]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for seen in all {
        let name = if let Seen::State(_) = seen { "an earlier state".to_owned() } else { format!("{seen:?}") };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

// D5: the log of a process that was killed, cut at each frame and anywhere, or with a flipped bit anywhere: what is
// there is what was there after an earlier write, in order, whole, and turns go on from it.
#[test]
fn a_damaged_log_gives_an_earlier_state() {
    for checkpoint in [None, Some(2)] {
        let folder = tempfile::tempdir().unwrap();
        let (states, safe, image) = worked(folder.path(), checkpoint);
        let (last, states) = (states.len() - 1, Arc::new(states));
        let mut rng = Rng::new(number("CEPA_SEED").unwrap_or(1) as u64);
        assert!(last > 30 && image.wal.len() > 60 * FRAME, "{last} writes, {} bytes", image.wal.len());
        assert_eq!(looked_at(image.clone(), &states, true, "undamaged"), Seen::State(last));

        // Cut: the longer the log, the later the state.
        let frames = (image.wal.len() - WAL_HEADER) / FRAME;
        let step = if checkpoint.is_some() { 4 } else { 1 };
        let mut cuts: Vec<usize> = (0..frames).step_by(step).map(|frame| WAL_HEADER + frame * FRAME).collect();
        cuts.push(image.wal.len());
        cuts.extend((0..tries(40)).map(|_| rng.below(image.wal.len())));
        cuts.sort_unstable();
        let (mut before, mut seen) = (safe, Vec::new());
        for (n, cut) in cuts.into_iter().enumerate() {
            let mut image = image.clone();
            image.wal.truncate(cut);
            let index = spoil_index(&mut image, &mut rng);
            let what = format!("the log cut at {cut}, {index}");
            let Seen::State(state) = looked_at(image, &states, n % 8 == 0, &what) else {
                panic!("{what}: no earlier state")
            };
            assert!(state >= before, "{what}: state {state} after {before}");
            before = state;
            seen.push(state);
        }
        assert_eq!((seen.first(), before), (Some(&safe), last));
        seen.dedup();
        println!("checkpoint {checkpoint:?}: {frames} frames, {last} writes; cuts gave {} states", seen.len());

        // A flipped bit: everything before the frame is there, nothing behind it.
        let mut seen = Vec::new();
        for n in 0..tries(60) {
            let mut image = image.clone();
            let frame = WAL_HEADER + rng.below(frames) * FRAME;
            let (from, until) = match n % 4 {
                0 => (0, WAL_HEADER),
                1 => (frame, frame + FRAME_HEADER),
                _ => (frame + FRAME_HEADER, frame + FRAME),
            };
            let what = flip(&mut image.wal, &mut rng, from, until);
            let index = spoil_index(&mut image, &mut rng);
            let what = format!("{what} of the log flipped, {index}");
            let found = looked_at(image, &states, n % 7 == 0, &what);
            let fine = matches!(found, Seen::State(state) if state >= safe);
            assert!(fine, "{what}: {found:?}");
            seen.push(found);
        }
        println!("checkpoint {checkpoint:?}: flipped bits in the log gave {:?}", counted(&seen));
    }
}

/// The files that a process leaves which was killed in the middle of a turn.
fn killed(folder: &Path) -> Image {
    let task = Task {
        database: folder.join("chat.db"),
        ran: folder.join("ran"),
        program: Program::Batch,
        seed: 1,
        what: What::Write { conversations: vec!["c0".into(), "c1".into()], messages: 12, name: "to be killed".into() },
        kill: Some(Kill { write: 70, when: When::After }),
        streamed: true,
        pausing: false,
        refuse: false,
        lease_ms: 200,
        lease_wait_ms: 60_000,
        pace_ms: 0,
    };
    assert!(Child::run(&task).killed);
    Image::of(&folder.join("chat.db"))
}

// D5: the same of a process that was really killed: whatever is cut off its log, what is left of each conversation is how
// it began, and both go on.
#[test]
fn the_log_of_a_killed_process_cut_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let image = killed(folder.path());
    let frames = (image.wal.len() - WAL_HEADER) / FRAME;
    assert!(frames > 100, "{frames} frames");
    let mut rng = Rng::new(number("CEPA_SEED").unwrap_or(1) as u64);
    let mut cuts: Vec<usize> =
        (0..=frames).step_by((frames / tries(40)).max(1)).map(|frame| WAL_HEADER + frame * FRAME).collect();
    cuts.extend((0..tries(40)).map(|_| rng.below(image.wal.len())));
    cuts.push(image.wal.len());
    cuts.sort_unstable();
    let (mut states, mut longest) = (Vec::new(), [Vec::new(), Vec::new()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (n, cut) in cuts.into_iter().enumerate() {
        let mut image = image.clone();
        image.wal.truncate(cut);
        let what = format!("the log cut at {cut}, {}", spoil_index(&mut image, &mut rng));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.db");
        image.put(&path);
        let store = Sqlite::open(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = rows(&path).unwrap();
        if states.last() != Some(&found) {
            assert!(!states.contains(&found), "{what}: a state comes back");
            states.push(found);
        }
        runtime.block_on(async {
            for (conversation, longest) in ["c0", "c1"].into_iter().zip(&mut longest) {
                let (_, history) = load_whole(&store, conversation).await.unwrap();
                let said: Vec<String> =
                    history.iter().map(|entry| format!("{:?} {:?}", entry.id, entry.message)).collect();
                assert!(
                    said.starts_with(longest),
                    "{what}: {conversation} is not how it was continued: {said:?} {longest:?}"
                );
                *longest = said;
            }
            if n % 8 == 0 {
                let later = scene::agent_at(store.clone(), &Ran::default(), 3_600_000);
                for conversation in ["c0", "c1"] {
                    scene::decide(&later, conversation).await.unwrap();
                    scene::say(&later, conversation, "and now?").await.unwrap();
                    scene::decide(&later, conversation).await.unwrap();
                    pairing::validate(&load_whole(&store, conversation).await.unwrap().1).unwrap();
                }
            }
        });
    }
    println!(
        "{frames} frames of a killed process; cuts gave {} states, the last with {} messages",
        states.len(),
        longest.concat().len()
    );
    assert!(states.len() > 20 && longest.iter().all(|said| said.len() > 4));
}

// D5: the main file cut at each page, or with a flipped bit anywhere: no panic, no hang; a typed error, or it reads. A
// flipped bit in what a page holds is noticed only where it breaks something: SQLite keeps no checksums of pages.
#[test]
fn a_damaged_main_file_is_corrupt_or_reads() {
    let folder = tempfile::tempdir().unwrap();
    let (states, _, _) = worked(folder.path(), None);
    let (last, states) = (states.len() - 1, Arc::new(states));
    let image = Image::of(&folder.path().join("chat.db"));
    assert!(image.wal.is_empty(), "the last handle leaves one file");
    let mut rng = Rng::new(number("CEPA_SEED").unwrap_or(1) as u64);
    assert_eq!(looked_at(image.clone(), &states, true, "undamaged"), Seen::State(last));

    let pages = image.main.len() / PAGE;
    let mut seen = Vec::new();
    for page in 1..pages {
        let mut image = image.clone();
        image.main.truncate(page * PAGE);
        let what = format!("{page} of {pages} pages");
        let found = looked_at(image, &states, false, &what);
        // Nothing may be read out of what is not there.
        assert_eq!(found, Seen::Corrupt, "{what}");
        seen.push(found);
    }
    println!("{pages} pages: cuts gave {:?}", counted(&seen));

    let mut seen = Vec::new();
    for n in 0..tries(150) {
        let mut image = image.clone();
        let (from, until) = if n % 5 == 0 { (0, 100) } else { (100, image.main.len()) };
        let what = flip(&mut image.main, &mut rng, from, until);
        let what = format!("{what} of the main file flipped");
        let found = looked_at(image, &states, false, &what);
        // An earlier state than the last would be a mixture.
        assert!(!matches!(found, Seen::State(state) if state != last), "{what}: {found:?}");
        seen.push(found);
    }
    println!("flipped bits in the main file gave {:?}", counted(&seen));
    assert!(seen.contains(&Seen::Corrupt));
}
