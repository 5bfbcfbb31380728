//! How many transactions a program has committed, read off SQLite's write-ahead log: each ends with a marked frame.
//! (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>)

use std::{fs, path::Path};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The commits in the log beside a database now; `None` if there is no log.
pub(crate) fn commits(db: &Path) -> Option<usize> {
    let mut log = db.as_os_str().to_owned();
    log.push("-wal");
    let log = fs::read(log).ok()?;
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_be_bytes);
    let page = usize::try_from(number(log.get(8..12)?)?).ok()?;
    let salt = log.get(16..24)?;
    let frames = log.get(HEADER..)?.chunks_exact(FRAME_HEADER + page);
    // Frames of an earlier round of the log have another salt.
    let frames = frames.take_while(|frame| frame.get(8..16) == Some(salt));
    Some(frames.filter(|frame| frame.get(4..8).and_then(number).is_some_and(|size| size > 0)).count())
}
