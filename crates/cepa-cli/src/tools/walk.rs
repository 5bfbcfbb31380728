//! Going through a folder and those below it in a fixed order, by open handles, following no link.

use std::{
    ffi::OsString,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cap_std::fs::{Dir, FileType};
use cepa::ToolError;

use super::{
    Stop,
    ignored::{Ignored, never_walked},
    root::{Root, io_error},
    text::{count, show_path},
};

/// Every level holds an open folder; no sane tree is deeper.
const MAX_DEPTH: usize = 64;

/// Something met on the way.
#[derive(Debug)]
pub(super) struct Met<'a> {
    /// The open folder that holds it.
    pub(super) parent: &'a Dir,
    pub(super) name: &'a Path,
    /// Its path from the root.
    pub(super) path: &'a Path,
    pub(super) kind: FileType,
    /// Whether it is one of the things that are left out; what is in such a folder is not visited.
    pub(super) ignored: bool,
}

/// How to walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'a> {
    /// How many levels below the start; 1 is the folder itself.
    pub(super) depth: usize,
    pub(super) ignoring: Ignoring,
    /// When to end with what was met until then.
    pub(super) until: Instant,
    pub(super) stop: &'a Stop,
}

/// How long a tool walks.
pub(super) const MAX_TIME: Duration = Duration::from_secs(30);

/// What becomes of caches, version control's folders and what `.gitignore` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ignoring {
    /// They are visited like all others.
    Nothing,
    /// They are met, and not entered.
    AsGitDoes,
}

/// What a walk did not look into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) unreadable: u64,
    pub(super) too_deep: u64,
    pub(super) out_of_time: bool,
}

type Visit<'v> = dyn FnMut(&Met<'_>) -> Result<ControlFlow<()>, ToolError> + 'v;

/// What the levels of one walk share.
struct Course<'w, 'v> {
    walk: Walk<'w>,
    path: PathBuf,
    passed: Passed,
    visit: &'v mut Visit<'v>,
}

impl Walk<'_> {
    /// Visits everything below the folder at `base`: names in byte order, a folder before what is in it.
    pub(super) fn run<'v>(self, root: &Root, base: &Path, visit: &'v mut Visit<'v>) -> Result<Passed, ToolError> {
        let start = root.open_dir(base)?;
        let entries = names(&start).map_err(|error| io_error("list", &show_path(base), error))?;
        let path = if base == Path::new(".") { PathBuf::new() } else { base.to_path_buf() };
        let above = match self.ignoring {
            Ignoring::Nothing => Ignored::default(),
            Ignoring::AsGitDoes => Ignored::above(root.dir(), &path),
        };
        let mut course = Course { walk: self, path, passed: Passed::default(), visit };
        let _ = course.level(&start, entries, 1, &above)?;
        Ok(course.passed)
    }
}

impl Course<'_, '_> {
    fn level(
        &mut self,
        dir: &Dir,
        entries: Vec<(OsString, FileType)>,
        depth: usize,
        above: &Ignored,
    ) -> Result<ControlFlow<()>, ToolError> {
        let by_git = self.walk.ignoring == Ignoring::AsGitDoes;
        let rules = if by_git { above.enter(dir, &self.path) } else { Ignored::default() };
        for (name, kind) in entries {
            self.walk.stop.check()?;
            if Instant::now() > self.walk.until {
                self.passed.out_of_time = true;
                return Ok(ControlFlow::Break(()));
            }
            let name = Path::new(&name);
            self.path.push(name);
            let ignored =
                by_git && (rules.leaves_out(&self.path, kind.is_dir()) || (kind.is_dir() && never_walked(dir, name)));
            let met = Met { parent: dir, name, path: &self.path, kind, ignored };
            let mut went = (self.visit)(&met)?;
            if kind.is_dir() && !ignored && went.is_continue() && depth < self.walk.depth {
                went = self.enter(dir, name, depth + 1, &rules)?;
            }
            if went.is_break() {
                return Ok(went);
            }
            self.path.pop();
        }
        Ok(ControlFlow::Continue(()))
    }

    fn enter(
        &mut self,
        parent: &Dir,
        name: &Path,
        depth: usize,
        rules: &Ignored,
    ) -> Result<ControlFlow<()>, ToolError> {
        if depth > MAX_DEPTH {
            self.passed.too_deep += 1;
            return Ok(ControlFlow::Continue(()));
        }
        // Opened by the parent's handle: what was swapped in meanwhile is at worst another folder below that one.
        match parent.open_dir(name).and_then(|dir| names(&dir).map(|entries| (dir, entries))) {
            Ok((dir, entries)) => self.level(&dir, entries, depth, rules),
            Err(_) => {
                self.passed.unreadable += 1;
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

fn names(dir: &Dir) -> std::io::Result<Vec<(OsString, FileType)>> {
    let mut names = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        // What vanished since it was listed is not there.
        if let Ok(kind) = entry.file_type() {
            names.push((entry.file_name(), kind));
        }
    }
    names.sort_unstable_by(|a, b| a.0.as_encoded_bytes().cmp(b.0.as_encoded_bytes()));
    Ok(names)
}

impl Passed {
    /// What was left out, in words.
    pub(super) fn notes(self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unreadable > 0 {
            notes.push(format!("{} not readable", count(self.unreadable, "folder", "folders")));
        }
        if self.too_deep > 0 {
            notes.push(format!("{} deeper than {MAX_DEPTH} levels", count(self.too_deep, "folder", "folders")));
        }
        if self.out_of_time {
            notes.push("the rest, after 30 seconds: give a narrower path".to_owned());
        }
        notes
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
