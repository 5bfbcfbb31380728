//! What a walk leaves out: version control's own folders, caches that say so, and what `.gitignore` names.

use std::{
    io::Read,
    path::{Component, Path, PathBuf},
    rc::Rc,
};

use cap_std::fs::Dir;

use super::{glob::Glob, root::open_file_in, text::slashed};

/// Rules of one `.gitignore` are read up to this size.
const MAX_RULES: u64 = 256 * 1024;

/// Folders that hold no work of their own.
const NEVER: [&str; 5] = [".git", ".hg", ".svn", ".jj", "node_modules"];

#[derive(Debug)]
struct Rule {
    glob: Glob,
    keep: bool,
    folders_only: bool,
}

/// The rules that hold in a folder: its own, then those of the folders above.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored(Option<Rc<Level>>);

#[derive(Debug)]
struct Level {
    rules: Vec<Rule>,
    /// The length of the path (with its `/`) of the folder that the rules are in.
    depth: usize,
    above: Ignored,
}

impl Ignored {
    /// The rules of the folders above `path`, from the root down.
    pub(super) fn above(root: &Dir, path: &Path) -> Self {
        let mut rules = Self::default();
        let mut folder = PathBuf::new();
        for part in path.components() {
            // With a `..` in it, what is above is not what the path says.
            let Component::Normal(name) = part else { return Self::default() };
            let opened = if folder.as_os_str().is_empty() { root.try_clone() } else { root.open_dir(&folder) };
            if let Ok(dir) = opened {
                rules = rules.enter(&dir, &folder);
            }
            folder.push(name);
        }
        rules
    }

    /// The rules inside `dir`, which the walk reaches by `path`.
    pub(super) fn enter(&self, dir: &Dir, path: &Path) -> Self {
        let rules = read_rules(dir);
        if rules.is_empty() {
            return self.clone();
        }
        let depth = match path.as_os_str().len() {
            0 => 0,
            length => length + 1,
        };
        Self(Some(Rc::new(Level { rules, depth, above: self.clone() })))
    }

    /// Whether a rule leaves this path out; the last rule that speaks about it decides, the nearest file first.
    pub(super) fn leaves_out(&self, path: &Path, is_folder: bool) -> bool {
        let path = slashed(path);
        let mut level = self;
        while let Self(Some(here)) = level {
            let below = path.get(here.depth..).unwrap_or_default();
            let said =
                here.rules.iter().rev().find(|rule| (is_folder || !rule.folders_only) && rule.glob.matches(below));
            if let Some(rule) = said {
                return !rule.keep;
            }
            level = &here.above;
        }
        false
    }
}

/// Whether a folder is never walked into unless it is asked for by name.
pub(super) fn never_walked(parent: &Dir, name: &Path) -> bool {
    NEVER.iter().any(|never| name == Path::new(never))
        // https://bford.info/cachedir/: cargo, ccache, pytest and many others mark their folders.
        || parent.open_dir(name).is_ok_and(|dir| dir.symlink_metadata("CACHEDIR.TAG").is_ok())
}

fn read_rules(dir: &Dir) -> Vec<Rule> {
    let mut text = Vec::new();
    // A file that cannot be read ignores nothing.
    let read = open_file_in(dir, Path::new(".gitignore"), ".gitignore")
        .ok()
        .and_then(|open| open.file.take(MAX_RULES).read_to_end(&mut text).ok());
    if read.is_none() {
        return Vec::new();
    }
    String::from_utf8_lossy(&text).lines().filter_map(rule).collect()
}

/// One line of a `.gitignore`: <https://git-scm.com/docs/gitignore>.
fn rule(line: &str) -> Option<Rule> {
    let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (keep, pattern) = match line.strip_prefix('!') {
        Some(pattern) => (true, pattern),
        None => (false, line),
    };
    let (folders_only, pattern) = match pattern.strip_suffix('/') {
        Some(pattern) => (true, pattern),
        None => (false, pattern),
    };
    let anchored = pattern.contains('/');
    // Braces are ordinary characters here.
    let pattern = pattern.replace('{', "\\{").replace('}', "\\}");
    Some(Rule { glob: Glob::compile(&pattern, anchored)?, keep, folders_only })
}

#[cfg(test)]
#[path = "ignored_tests.rs"]
mod tests;
