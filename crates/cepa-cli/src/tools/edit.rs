//! `edit_file`: replaces a text that occurs exactly once (or everywhere, if asked), and says where it looked when not.

use std::{io::Read, ops::Range};

use cepa::ToolError;
use memchr::memmem;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Stop,
    nearest::nearest,
    read::binary_kind,
    root::{Root, io_error, refused, too_large},
    text::{count, digits},
    write::{Place, Stamp},
};

/// A larger file is not edited.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// How many places a message names.
const NAMED_LINES: usize = 10;

// The arguments of `edit_file`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// The file, relative to the working folder.
    path: String,
    /// The text to replace, copied exactly, with its white space. It must occur exactly once: take enough lines.
    old_text: String,
    /// What to put in its place; may be empty.
    new_text: String,
    /// Replace every occurrence instead of the only one. Default false.
    #[serde(default)]
    replace_all: Option<bool>,
}

/// Edits a file.
pub(super) fn edit_file(root: &Root, args: &EditFile, stop: &Stop) -> Result<String, ToolError> {
    stop.check()?;
    if args.old_text.is_empty() {
        return Err(refused("old_text is empty: give the text to replace; write_file makes a new file"));
    }
    if args.old_text == args.new_text {
        return Err(refused("old_text and new_text are the same: nothing would change"));
    }
    let open = root.open_file(&args.path)?;
    let shown = open.shown;
    if open.metadata.len() > MAX_FILE {
        return Err(too_large(&shown, open.metadata.len(), MAX_FILE, "edit it with run_shell, for example with sed"));
    }
    let mut bytes = Vec::new();
    open.file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|error| io_error("read", &shown, error))?;
    if let Some(kind) = binary_kind(&bytes) {
        return Err(refused(format!("{shown} is {kind}; only text files are edited")));
    }
    let text = Text::new(&bytes, args);
    let places = text.places(args.replace_all == Some(true));
    match places.as_slice() {
        [] => return Err(refused(not_found(&shown, &bytes, &args.old_text))),
        [_] => {}
        _ if args.replace_all == Some(true) => {}
        many => return Err(refused(ambiguous(&shown, &bytes, many))),
    }
    let edited = text.replace(&places);
    stop.check()?;
    Place::find(root, &args.path)?.put(&edited, Some(Stamp::of(&open.metadata)))?;
    Ok(match places.as_slice() {
        [place] => format!("edited {shown} at line {}", digits(line_of(&bytes, place.start))),
        places => format!("edited {shown} at {}", count(places.len() as u64, "place", "places")),
    })
}

/// A file and what is looked for in it. Where the file has CRLF and the model writes LF, a line break is a line break.
struct Text<'a> {
    bytes: &'a [u8],
    old: &'a str,
    new: &'a str,
    /// The file with LF only, and where in that text each CRLF was; `None` if bytes are compared as they are.
    folded: Option<(Vec<u8>, Vec<usize>)>,
}

impl<'a> Text<'a> {
    fn new(bytes: &'a [u8], args: &'a EditFile) -> Self {
        let fold = !args.old_text.contains('\r') && memmem::find(bytes, b"\r\n").is_some();
        Self { bytes, old: &args.old_text, new: &args.new_text, folded: fold.then(|| fold_line_breaks(bytes)) }
    }

    /// Where the old text is. To find that it occurs only once, occurrences that overlap count; to replace them all,
    /// they do not.
    fn places(&self, apart: bool) -> Vec<Range<usize>> {
        let text = self.folded.as_ref().map_or(self.bytes, |(folded, _)| folded);
        let finder = memmem::Finder::new(self.old);
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| finder.find(rest)) {
            let start = from + found;
            let end = start + self.old.len();
            places.push(self.unfold(start)..self.unfold(end));
            from = if apart { end } else { start + 1 };
        }
        places
    }

    fn unfold(&self, position: usize) -> usize {
        let Some((_, breaks)) = &self.folded else { return position };
        position + breaks.partition_point(|at| *at < position)
    }

    fn replace(&self, places: &[Range<usize>]) -> Vec<u8> {
        let mut edited = Vec::with_capacity(self.bytes.len() + self.new.len());
        let mut from = 0;
        for place in places {
            edited.extend_from_slice(self.bytes.get(from..place.start).unwrap_or_default());
            edited.extend_from_slice(self.new_at(place).as_bytes());
            from = place.end;
        }
        edited.extend_from_slice(self.bytes.get(from..).unwrap_or_default());
        edited
    }

    /// The new text with the line breaks of the place that it goes to.
    fn new_at(&self, place: &Range<usize>) -> String {
        if self.folded.is_none() || self.new.contains('\r') {
            return self.new.to_owned();
        }
        let here = self.bytes.get(place.clone()).unwrap_or_default();
        let (sample, any) = if here.contains(&b'\n') { (here, true) } else { (self.bytes, false) };
        let all = memchr::memchr_iter(b'\n', sample).count();
        let crlf = memmem::find_iter(sample, b"\r\n").count();
        // In a place with both, or without any in a file with both, the more frequent one.
        let use_crlf = crlf * 2 >= all && (crlf > 0 || !any);
        if use_crlf { self.new.replace('\n', "\r\n") } else { self.new.to_owned() }
    }
}

fn fold_line_breaks(bytes: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let mut folded = Vec::with_capacity(bytes.len());
    let mut breaks = Vec::new();
    let mut from = 0;
    for at in memmem::find_iter(bytes, b"\r\n") {
        folded.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        breaks.push(folded.len());
        from = at + 1;
    }
    folded.extend_from_slice(bytes.get(from..).unwrap_or_default());
    (folded, breaks)
}

fn line_of(bytes: &[u8], position: usize) -> u64 {
    memchr::memchr_iter(b'\n', bytes.get(..position).unwrap_or(bytes)).count() as u64 + 1
}

fn ambiguous(shown: &str, bytes: &[u8], places: &[Range<usize>]) -> String {
    let mut lines: Vec<String> =
        places.iter().take(NAMED_LINES).map(|place| line_of(bytes, place.start).to_string()).collect();
    if places.len() > NAMED_LINES {
        lines.push("…".to_owned());
    }
    format!(
        "old_text is in {shown} {} times (at lines {}); nothing was changed. Add the lines around the one you mean, or \
         set replace_all",
        places.len(),
        lines.join(", ")
    )
}

fn not_found(shown: &str, bytes: &[u8], old: &str) -> String {
    let Some(near) = nearest(bytes, old) else {
        return format!("old_text is not in {shown}, and nothing like it; read the file again");
    };
    let how = if near.only_white_space { "the same but for white space" } else { "the nearest place" };
    format!(
        "old_text is not in {shown}; nothing was changed. {how} is at line {}:\n{}\nCopy the text exactly as it is there",
        near.line, near.text
    )
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
