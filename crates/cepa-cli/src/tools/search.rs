//! `search_files`: lines that contain a text or match a regular expression.

use std::{collections::VecDeque, fmt::Write as _, io::Read, ops::ControlFlow, time::Instant};

use cepa::ToolError;
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Stop,
    glob::Glob,
    read::binary_kind,
    root::{OpenFile, Root, io_error, open_file_in, refused, too_large},
    text::{count, head, lossy, show_path, tail},
    walk::{Ignoring, MAX_TIME, Passed, Walk},
};

/// How many matching lines one call returns.
const MAX_MATCHES: u64 = 200;
/// How much text one call returns.
const MAX_BYTES: usize = 32_000;
/// A longer line is shown around its match.
const MAX_LINE: usize = 300;
/// Larger files are passed over.
const MAX_FILE: u64 = 64 * 1024 * 1024;
const MAX_CONTEXT: u32 = 10;

// The arguments of `search_files`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchFiles {
    /// The text to look for in each line; with `regex` a regular expression (Rust syntax, no look-around).
    pattern: String,
    /// The folder or file to search, relative to the working folder. Default: the whole working folder.
    #[serde(default)]
    path: Option<String>,
    /// Whether the pattern is a regular expression. Default false.
    #[serde(default)]
    regex: Option<bool>,
    /// Whether upper and lower case are the same. Default false.
    #[serde(default)]
    ignore_case: Option<bool>,
    /// Only files that match, for example `*.rs` or `src/**/*.md`.
    #[serde(default)]
    glob: Option<String>,
    /// How many lines to show before and after each match, 0 to 10. Default 0.
    #[serde(default)]
    context: Option<u32>,
    /// Also search caches, .git, node_modules and what .gitignore names. Default false.
    #[serde(default)]
    include_ignored: Option<bool>,
    /// Pass over this many matching lines: to read on where an earlier result ended.
    #[serde(default)]
    skip: Option<u64>,
}

/// Searches files.
pub(super) fn search_files(root: &Root, args: &SearchFiles, stop: &Stop) -> Result<String, ToolError> {
    let regex = compile(args)?;
    let base = root.relative(args.path.as_deref().unwrap_or("."))?;
    let glob = args.glob.as_deref().map(Glob::new).transpose()?;
    let mut search = Search::new(&regex, args);
    let metadata = root.dir().metadata(&base).map_err(|error| io_error("search", &show_path(&base), error))?;
    let mut passed = Passed::default();
    if metadata.is_dir() {
        let ignoring = if args.include_ignored == Some(true) { Ignoring::Nothing } else { Ignoring::AsGitDoes };
        passed = Walk { depth: usize::MAX, ignoring, until: search.until, stop }.run(root, &base, &mut |met| {
            if met.ignored {
                search.ignored += 1;
            } else if met.kind.is_file() && glob.as_ref().is_none_or(|glob| glob.matches_below(&base, met.path)) {
                match open_file_in(met.parent, met.name, &show_path(met.path)) {
                    Ok(open) => search.file(open, stop)?,
                    Err(_) => search.unreadable += 1,
                }
            }
            Ok(search.go_on())
        })?;
    } else {
        let open = root.open_file(&show_path(&base))?;
        if open.metadata.len() > MAX_FILE {
            return Err(too_large(&open.shown, open.metadata.len(), MAX_FILE, "read a part of it with read_file"));
        }
        search.file(open, stop)?;
        if search.binary > 0 {
            return Err(refused(format!("{} is not a text file; it is not searched", show_path(&base))));
        }
    }
    passed.out_of_time |= search.out_of_time;
    search.report(passed.notes())
}

fn compile(args: &SearchFiles) -> Result<Regex, ToolError> {
    if args.pattern.is_empty() {
        return Err(refused("pattern is empty: say what to look for"));
    }
    let is_regex = args.regex == Some(true);
    if !is_regex && args.pattern.contains('\n') {
        return Err(refused("pattern holds a line break, but lines are searched one by one: look for one line of it"));
    }
    let pattern = if is_regex { args.pattern.clone() } else { regex::escape(&args.pattern) };
    RegexBuilder::new(&pattern)
        .case_insensitive(args.ignore_case == Some(true))
        .size_limit(4 << 20)
        .build()
        .map_err(|error| refused(format!("pattern is not a usable regular expression: {error}")))
}

/// One search: what it looks for, what it has found, why it ended.
struct Search<'a> {
    regex: &'a Regex,
    context: usize,
    skip: u64,
    until: Instant,
    found: String,
    matches: u64,
    files: u64,
    files_with: u64,
    ignored: u64,
    binary: u64,
    large: u64,
    unreadable: u64,
    full: bool,
    out_of_time: bool,
}

impl<'a> Search<'a> {
    fn new(regex: &'a Regex, args: &SearchFiles) -> Self {
        Self {
            regex,
            context: args.context.unwrap_or(0).min(MAX_CONTEXT) as usize,
            skip: args.skip.unwrap_or(0),
            until: Instant::now() + MAX_TIME,
            found: String::new(),
            matches: 0,
            files: 0,
            files_with: 0,
            ignored: 0,
            binary: 0,
            large: 0,
            unreadable: 0,
            full: false,
            out_of_time: false,
        }
    }

    fn go_on(&mut self) -> ControlFlow<()> {
        self.out_of_time |= Instant::now() > self.until;
        if self.full || self.out_of_time { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn file(&mut self, open: OpenFile, stop: &Stop) -> Result<(), ToolError> {
        let OpenFile { file, metadata, shown } = open;
        if metadata.len() > MAX_FILE {
            self.large += 1;
            return Ok(());
        }
        let mut bytes = Vec::new();
        if file.take(MAX_FILE).read_to_end(&mut bytes).is_err() {
            self.unreadable += 1;
            return Ok(());
        }
        if binary_kind(&bytes).is_some() {
            self.binary += 1;
            return Ok(());
        }
        self.files += 1;
        self.text(&shown, &bytes, stop)
    }

    fn text(&mut self, shown: &str, bytes: &[u8], stop: &Stop) -> Result<(), ToolError> {
        let mut any = false;
        // Lines that may turn out to be the context of a match, and how many after one are still to be shown.
        let mut before: VecDeque<(usize, &[u8])> = VecDeque::new();
        let mut after = 0;
        let mut gap = false;
        for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').map(trim_ending).enumerate() {
            if at.is_multiple_of(4096) {
                stop.check()?;
                if self.go_on().is_break() {
                    break;
                }
            }
            let found = self.regex.find(line).filter(|_| {
                self.matches += 1;
                self.matches > self.skip
            });
            let Some(found) = found else {
                if after > 0 {
                    after -= 1;
                    self.line(shown, at, '-', line, 0..0);
                } else {
                    before.push_back((at, line));
                    if before.len() > self.context {
                        before.pop_front();
                        gap = true;
                    }
                }
                continue;
            };
            if self.matches - self.skip > MAX_MATCHES || self.found.len() > MAX_BYTES {
                self.matches -= 1;
                self.full = true;
                break;
            }
            if self.context > 0 && (gap || !any) && !self.found.is_empty() {
                self.found.push_str("--\n");
            }
            for (at, line) in before.drain(..) {
                self.line(shown, at, '-', line, 0..0);
            }
            self.line(shown, at, ':', line, found.range());
            self.files_with += u64::from(!any);
            (any, gap, after) = (true, false, self.context);
        }
        Ok(())
    }

    fn line(&mut self, shown: &str, at: usize, mark: char, line: &[u8], found: std::ops::Range<usize>) {
        let text = around(line, found);
        // Writing to a string cannot fail.
        let _ = writeln!(self.found, "{shown}{mark}{}{mark} {text}", at + 1);
    }

    fn report(self, mut notes: Vec<String>) -> Result<String, ToolError> {
        let told = [
            (self.ignored, "ignored (include_ignored searches them)"),
            (self.binary, "not text"),
            (self.large, "larger than 64 MB"),
            (self.unreadable, "not readable"),
        ];
        notes.extend(told.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
        let searched = count(self.files, "file", "files");
        let notes = if notes.is_empty() { String::new() } else { format!("; passed over: {}", notes.join(", ")) };
        if self.matches == 0 {
            return Ok(format!("no match in {searched}{notes}"));
        }
        let Some(shown) = self.matches.checked_sub(self.skip).filter(|shown| *shown > 0) else {
            let there_are = count(self.matches, "matching line", "matching lines");
            return Err(refused(format!("there are only {there_are}; set skip lower")));
        };
        let lines = count(shown, "matching line", "matching lines");
        let with = count(self.files_with, "file", "files");
        let mut result = format!("{lines} in {with} ({searched} searched{notes})\n\n{}", self.found);
        if self.full {
            let next = self.matches;
            let _ = writeln!(result, "[more: search_files with skip={next}, or a narrower pattern, path or glob]");
        }
        Ok(result)
    }
}

fn trim_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as text; of a long one only what is around the match.
fn around(line: &[u8], found: std::ops::Range<usize>) -> String {
    if line.len() <= MAX_LINE {
        return lossy(line).0;
    }
    let (before, rest) = line.split_at_checked(found.start.min(line.len())).unwrap_or((line, b""));
    let before = tail(before, MAX_LINE / 3);
    let rest = head(rest, MAX_LINE - before.len());
    let start = if found.start > before.len() { "…" } else { "" };
    let end = if found.start + rest.len() < line.len() { "…" } else { "" };
    format!("{start}{}{}{end}", lossy(before).0, lossy(rest).0)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
