//! `list_files`: what is in a folder, with sizes; some levels deep if asked.

use std::{fmt::Write as _, ops::ControlFlow, time::Instant};

use cepa::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Stop,
    glob::Glob,
    root::{Root, kind_of, refused},
    text::{count, show_path, size},
    walk::{Ignoring, MAX_TIME, Met, Walk},
};

/// How many entries one call returns.
const MAX_ENTRIES: u64 = 500;

// The arguments of `list_files`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFiles {
    /// The folder, relative to the working folder. Default: the working folder itself.
    #[serde(default)]
    path: Option<String>,
    /// How many levels to list: 1 (the default) is the folder only, 2 also what is in its folders, and so on.
    #[serde(default)]
    depth: Option<u32>,
    /// Only files that match, for example `*.rs` or `src/**/*.md`.
    #[serde(default)]
    glob: Option<String>,
    /// Also go into caches, .git, node_modules and what .gitignore names. Default false.
    #[serde(default)]
    include_ignored: Option<bool>,
    /// Pass over this many entries: to read on where an earlier result ended.
    #[serde(default)]
    skip: Option<u64>,
}

/// Lists a folder.
pub(super) fn list_files(root: &Root, args: &ListFiles, stop: &Stop) -> Result<String, ToolError> {
    let base = root.relative(args.path.as_deref().unwrap_or("."))?;
    let glob = args.glob.as_deref().map(Glob::new).transpose()?;
    // A pattern is a search: without a depth it looks everywhere.
    let depth = args.depth.unwrap_or(if glob.is_some() { u32::MAX } else { 1 });
    let ignoring = if args.include_ignored == Some(true) { Ignoring::Nothing } else { Ignoring::AsGitDoes };
    let skip = args.skip.unwrap_or(0);
    let walk = Walk { depth: depth.max(1) as usize, ignoring, until: Instant::now() + MAX_TIME, stop };
    let mut entries = 0_u64;
    let mut closed = 0_u64;
    let mut listed = String::new();
    let passed = walk.run(root, &base, &mut |met| {
        if met.ignored && met.kind.is_dir() && depth > 1 {
            closed += 1;
        }
        let wanted = match &glob {
            Some(glob) => !met.kind.is_dir() && glob.matches_below(&base, met.path),
            None => true,
        };
        if wanted {
            entries += 1;
            if entries > skip && entries - skip <= MAX_ENTRIES {
                write_entry(&mut listed, met);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if entries > 0 && skip >= entries {
        return Err(refused(format!("there are only {}", count(entries, "entry", "entries"))));
    }
    let folder = if base.as_os_str() == "." { "the working folder".to_owned() } else { show_path(&base) };
    let mut notes = passed.notes();
    if closed > 0 {
        notes.push(format!("{} not entered: include_ignored does", count(closed, "ignored folder", "ignored folders")));
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    if entries == 0 {
        let what = if glob.is_some() { "nothing matches in" } else { "nothing is in" };
        return Ok(format!("{what} {folder}{notes}"));
    }
    let mut result = format!("{folder}: {}{notes}\n\n{listed}", count(entries, "entry", "entries"));
    if entries - skip > MAX_ENTRIES {
        let next = skip + MAX_ENTRIES;
        let _ = writeln!(result, "[{} more: list_files with skip={next}, or a narrower path or glob]", entries - next);
    }
    Ok(result)
}

fn write_entry(listed: &mut String, met: &Met<'_>) {
    let shown = show_path(met.path);
    // Writing to a string cannot fail.
    let _ = if met.kind.is_dir() {
        writeln!(listed, "{shown}/")
    } else if met.kind.is_symlink() {
        let target = met.parent.read_link_contents(met.name);
        writeln!(listed, "{shown} -> {}", target.map_or_else(|_| "?".to_owned(), |target| show_path(&target)))
    } else if met.kind.is_file() {
        let length = met.parent.symlink_metadata(met.name).map(|metadata| size(metadata.len()));
        writeln!(listed, "{shown} ({})", length.as_deref().unwrap_or("?"))
    } else {
        writeln!(listed, "{shown} ({})", kind_of(met.kind))
    };
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
