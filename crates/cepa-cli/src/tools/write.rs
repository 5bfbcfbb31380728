//! `write_file`, and how a file is replaced: a new one beside it takes its place in one step, or nothing changes.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use cap_std::fs::{Dir, Metadata, OpenOptions};
use cepa::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Stop,
    root::{Root, expect_file, io_error, refused, without_waiting},
    text::{show_path, size},
};

// The arguments of `write_file`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// The file, relative to the working folder. Missing folders are made; an existing file is replaced.
    pub(super) path: String,
    /// The whole new content.
    pub(super) content: String,
}

/// Writes a whole file.
pub(super) fn write_file(root: &Root, args: &WriteFile, stop: &Stop) -> Result<String, ToolError> {
    stop.check()?;
    let place = Place::find(root, &args.path)?;
    place.put(args.content.as_bytes(), None)?;
    let now = size(args.content.len() as u64);
    Ok(match &place.old {
        Some(old) => format!("replaced {} ({now}, was {})", place.shown, size(old.len())),
        None => format!("created {} ({now})", place.shown),
    })
}

/// Where a file is, or will be: an open folder and a name in it, so that no link can come between.
#[derive(Debug)]
pub(super) struct Place {
    folder: Dir,
    name: OsString,
    /// What is there now.
    pub(super) old: Option<Metadata>,
    /// The path as the model should read it.
    pub(super) shown: String,
}

/// What tells one content of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { length: metadata.len(), modified: metadata.modified().ok().map(|time| time.into_std()) }
    }
}

impl Place {
    /// Finds the place of a file and makes the folders that lead to it.
    pub(super) fn find(root: &Root, given: &str) -> Result<Self, ToolError> {
        let path = root.relative(given)?;
        let shown = show_path(&path);
        if given.ends_with('/') || path.file_name().is_none() {
            return Err(refused(format!("{shown} names a folder; give the name of a file")));
        }
        let failed = |error| io_error("write", &shown, error);
        let path = match root.dir().metadata(&path) {
            Ok(metadata) => {
                expect_file(&metadata, &shown)?;
                // A link to a file stays a link: what it leads to is replaced.
                root.dir().canonicalize(&path).map_err(failed)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if root.dir().symlink_metadata(&path).is_ok() {
                    return Err(refused(format!("{shown} is a link that leads nowhere; write to another name")));
                }
                without_detours(root.dir(), &path)
            }
            Err(error) => return Err(failed(error)),
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(refused(format!("{shown} names a folder; give the name of a file")));
        };
        let folder = if parent.as_os_str().is_empty() {
            root.dir().try_clone()
        } else {
            root.dir().create_dir_all(parent).and_then(|()| root.dir().open_dir(parent))
        };
        let folder = folder.map_err(failed)?;
        let old = match folder.symlink_metadata(name) {
            Ok(metadata) => {
                expect_file(&metadata, &shown)?;
                // Replacing needs only the folder's permission; a file that is write-protected is meant to stay.
                let mut options = OpenOptions::new();
                options.write(true);
                without_waiting(&mut options);
                folder.open_with(name, &options).map_err(failed)?;
                Some(metadata)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { name: name.to_owned(), folder, old, shown })
    }

    /// Puts the content there in one step. With `expected`, only if the file is still what was read.
    pub(super) fn put(&self, content: &[u8], expected: Option<Stamp>) -> Result<(), ToolError> {
        let failed = |error| io_error("write", &self.shown, error);
        let temporary = Temporary::create(&self.folder, self.old.is_some()).map_err(failed)?;
        let mut file = &temporary.file;
        file.write_all(content).map_err(failed)?;
        if let Some(old) = &self.old {
            keep_owner_and_mode(file, old).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        if expected.is_some() {
            let now = self.folder.symlink_metadata(&self.name).map(|metadata| Stamp::of(&metadata)).ok();
            if now != expected {
                let shown = &self.shown;
                return Err(refused(format!("{shown} was changed by something else meanwhile; read it again")));
            }
        }
        temporary.rename(&self.name).map_err(failed)
    }
}

/// A path without the steps into folders that are not there and back out: those folders need not be made, and must not be
/// left behind when the path leads out of the root.
fn without_detours(root: &Dir, path: &Path) -> PathBuf {
    let (mut there, mut new) = (PathBuf::new(), PathBuf::new());
    for part in path.components() {
        match part {
            // A folder that is not there is no link, so that the step back undoes the step in.
            Component::ParentDir => {
                if !new.pop() {
                    there.push(part);
                }
            }
            Component::Normal(name) if new.as_os_str().is_empty() && root.metadata(there.join(name)).is_ok() => {
                there.push(name);
            }
            part => new.push(part),
        }
    }
    there.join(new)
}

/// A new file beside the old one; it is removed unless it takes the old one's place.
struct Temporary<'a> {
    folder: &'a Dir,
    name: String,
    file: std::fs::File,
    kept: bool,
}

impl<'a> Temporary<'a> {
    fn create(folder: &'a Dir, private: bool) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!(".cepa-{}-{number}.tmp", std::process::id());
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            // Until it has the mode of the file that it replaces, nobody else reads it.
            #[cfg(unix)]
            if private {
                use cap_std::fs::OpenOptionsExt;
                options.mode(0o600);
            }
            #[cfg(not(unix))]
            let _ = private;
            match folder.open_with(Path::new(&name), &options) {
                Ok(file) => return Ok(Self { folder, name, file: file.into_std(), kept: false }),
                // Left by a process that had our number and died.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn rename(mut self, name: &std::ffi::OsStr) -> io::Result<()> {
        self.folder.rename(&self.name, self.folder, name)?;
        self.kept = true;
        // The new name is safe on disk only after this; where folders cannot be synced there is nothing to be done.
        let _ = self.folder.try_clone().and_then(|folder| folder.into_std_file().sync_all());
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let _ = self.folder.remove_file(&self.name);
        }
    }
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &std::fs::File, old: &Metadata) -> io::Result<()> {
    use cap_std::fs::{MetadataExt, PermissionsExt};
    use rustix::{
        fs::{Gid, Mode, Uid, fchmod, fchown},
        process::{getegid, geteuid},
    };
    let (user, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    // Only root can give files away: for others the new file is theirs, as with any editor that replaces.
    if user != geteuid() || group != getegid() {
        let _ = fchown(file, Some(user), Some(group)).or_else(|_| fchown(file, None, Some(group)));
    }
    // Set-user-id and the like do not survive a change of content, as with an ordinary write.
    fchmod(file, Mode::from_raw_mode(old.permissions().mode() & 0o777))?;
    Ok(())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(_: &std::fs::File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
