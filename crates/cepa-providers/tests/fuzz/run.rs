//! Runs one target: the corpus as it is, then broken, until the time is over.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    time::{Duration, Instant},
};

use crate::{mutate::mutate, rng::Rng};

/// More than any of these inputs can need, many times over.
const MOST_MEMORY_KIB: u64 = 1024 * 1024;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// The files of these folders that end so, or all.
pub(crate) fn corpus(folders: &[&str], ending: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let mut files: Vec<_> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.to_str().unwrap().ends_with(ending))
        .collect();
    files.sort();
    assert!(files.len() >= 3, "the corpus of {folders:?} is not there");
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Tries inputs on one reader until the time is over.
pub(crate) fn fuzz(name: &str, corpus: &[Vec<u8>], check: impl Fn(&[u8], &mut Rng)) {
    let seconds = setting("CEPA_FUZZ_SECONDS", 0);
    let time = if seconds == 0 { Duration::from_millis(400) } else { Duration::from_secs(seconds) };
    let seed = setting("CEPA_FUZZ_SEED", 1);
    let start = Instant::now();
    let mut tried = 0_u64;
    let mut one = |input: &[u8], rng: &mut Rng| {
        tried += 1;
        let again = rng.clone();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input, rng))) {
            eprintln!("{name}, input {tried}, {again:?}: b\"{}\"", input.escape_ascii());
            resume_unwind(panic);
        }
    };
    let mut rng = Rng::new(seed ^ name.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte)));
    for input in corpus {
        one(input, &mut rng);
    }
    while start.elapsed() < time {
        let input = mutate(&mut rng, corpus);
        one(&input, &mut rng);
    }
    println!("{name}: {tried} inputs in {:?}", start.elapsed());
    if let Some(most) = peak_kib() {
        assert!(most < MOST_MEMORY_KIB, "{name}: the process needed {most} KiB");
    }
}

/// The most memory that this process had, where the system tells it (Linux).
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
