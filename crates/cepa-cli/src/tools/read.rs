//! `read_file`: a text file, or a range of its lines, with its size told and a hint how to read on.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use cepa::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Stop,
    root::{OpenFile, Root, io_error, refused},
    text::{count, digits, head, lossy, size},
};

/// How much text one call returns.
const MAX_BYTES: usize = 32_000;
/// A longer line is cut.
const MAX_LINE: usize = 4_000;
/// Up to this size the lines of a file are counted to its end.
const COUNT_UP_TO: u64 = 64 * 1024 * 1024;
/// Text has no NUL; this much is looked at.
const LOOK_AT: u64 = 8_192;

// The arguments of `read_file`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// The file, relative to the working folder.
    path: String,
    /// The first line to read, counted from 1. Default 1.
    #[serde(default)]
    start_line: Option<u64>,
    /// How many lines to read. Default: as many as fit into one result.
    #[serde(default)]
    lines: Option<u64>,
    /// Read from this byte instead of a line: for files with very long lines.
    #[serde(default)]
    start_byte: Option<u64>,
}

/// Reads a text file.
pub(super) fn read_file(root: &Root, args: &ReadFile, stop: &Stop) -> Result<String, ToolError> {
    let mut open = root.open_file(&args.path)?;
    refuse_binary(&mut open)?;
    match args.start_byte {
        Some(_) if args.start_line.is_some() || args.lines.is_some() => {
            Err(refused("give start_line and lines, or start_byte, not both"))
        }
        Some(start) => read_bytes(open, start),
        None => read_lines(open, args.start_line.unwrap_or(1).max(1), args.lines.unwrap_or(u64::MAX), stop),
    }
}

/// Says what a file is when it is not text, and leaves the file at its start.
fn refuse_binary(open: &mut OpenFile) -> Result<(), ToolError> {
    let failed = |error| io_error("read", &open.shown, error);
    let mut start = Vec::new();
    (&open.file).take(LOOK_AT).read_to_end(&mut start).map_err(failed)?;
    (&open.file).seek(SeekFrom::Start(0)).map_err(failed)?;
    match binary_kind(&start) {
        Some(kind) => {
            Err(refused(format!("{} is {kind} ({}); it is not shown", open.shown, size(open.metadata.len()))))
        }
        None => Ok(()),
    }
}

/// What the start of a file says it is, if not text in an encoding that extends ASCII.
pub(super) fn binary_kind(start: &[u8]) -> Option<&'static str> {
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        Some("text in UTF-16")
    } else if start.iter().take(LOOK_AT as usize).any(|byte| *byte == 0) {
        Some("a binary file")
    } else {
        None
    }
}

fn read_bytes(open: OpenFile, start: u64) -> Result<String, ToolError> {
    let OpenFile { mut file, metadata, shown } = open;
    let total = metadata.len();
    if start >= total {
        return Err(refused(format!("{shown} has only {}", count(total, "byte", "bytes"))));
    }
    let failed = |error| io_error("read", &shown, error);
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 4).read_to_end(&mut bytes).map_err(failed)?;
    let kept = head(&bytes, MAX_BYTES);
    let end = start + kept.len() as u64;
    let (text, replaced) = lossy(kept);
    let mut said = format!("{shown}: bytes {start} to {end} of {total}");
    say_replaced(&mut said, replaced);
    let mut result = format!("{said}\n\n{text}");
    if end < total {
        result.push_str(&format!("\n[more: read_file with start_byte={end}]"));
    }
    Ok(result)
}

/// What was seen of a file while its lines went by.
#[derive(Default)]
struct Seen {
    /// Lines that began.
    lines: u64,
    bytes: u64,
    crlf: u64,
    lf: u64,
    ends_with_newline: bool,
    to_the_end: bool,
}

/// The lines of the range, as they will be shown.
#[derive(Default)]
struct Shown {
    text: Vec<u8>,
    last: u64,
    full: bool,
    /// The first line that was cut: its number, and the byte where the rest begins.
    cut: Option<(u64, u64)>,
    cuts: u64,
}

fn read_lines(open: OpenFile, first: u64, lines: u64, stop: &Stop) -> Result<String, ToolError> {
    let OpenFile { file, metadata, shown } = open;
    let last = first.saturating_add(lines.max(1) - 1);
    let count_all = metadata.len() <= COUNT_UP_TO;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut seen = Seen::default();
    let mut kept = Shown::default();
    let mut line = Vec::new();
    loop {
        stop.check()?;
        let start = seen.bytes;
        let wanted = seen.lines + 1 >= first && seen.lines < last && !kept.full;
        if !wanted && !count_all && (kept.full || seen.lines >= last) {
            break;
        }
        let length = next_line(&mut reader, if wanted { MAX_LINE } else { 0 }, &mut line, &mut seen, stop)
            .map_err(|error| io_error("read", &shown, error))?;
        if length == 0 {
            seen.to_the_end = true;
            break;
        }
        seen.lines += 1;
        if wanted {
            kept.push(&line, length, start, seen.lines);
        }
    }
    if seen.lines == 0 {
        return Ok(format!("{shown} is empty"));
    }
    if kept.last == 0 {
        return Err(refused(format!("{shown} has only {}", count(seen.lines, "line", "lines"))));
    }
    Ok(describe(&shown, metadata.len(), first, last, &seen, &kept))
}

/// Reads one line, keeping at most `keep` bytes of it (without its ending); its whole length, 0 at the end of the file.
fn next_line(
    reader: &mut impl BufRead,
    keep: usize,
    line: &mut Vec<u8>,
    seen: &mut Seen,
    stop: &Stop,
) -> std::io::Result<u64> {
    line.clear();
    let mut length = 0_u64;
    let mut last_byte = 0;
    while !stop.is_set() {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            break;
        }
        let newline = memchr::memchr(b'\n', buffer);
        let part = buffer.get(..newline.unwrap_or(buffer.len())).unwrap_or(buffer);
        let room = (keep + 4).saturating_sub(line.len());
        if keep > 0 {
            line.extend_from_slice(part.get(..room).unwrap_or(part));
        }
        last_byte = part.last().copied().unwrap_or(last_byte);
        let used = part.len() + usize::from(newline.is_some());
        length += used as u64;
        reader.consume(used);
        if newline.is_some() {
            let crlf = last_byte == b'\r';
            seen.crlf += u64::from(crlf);
            seen.lf += u64::from(!crlf);
            if crlf && line.len() as u64 == length - 1 {
                line.pop();
            }
            seen.ends_with_newline = true;
            seen.bytes += length;
            return Ok(length);
        }
    }
    if length > 0 {
        seen.ends_with_newline = false;
    }
    seen.bytes += length;
    Ok(length)
}

impl Shown {
    fn push(&mut self, line: &[u8], length: u64, start: u64, number: u64) {
        let kept = head(line, MAX_LINE);
        if self.last > 0 && self.text.len() + kept.len() + 1 > MAX_BYTES {
            self.full = true;
            return;
        }
        self.text.extend_from_slice(kept);
        if kept.len() < line.len() {
            self.text.extend_from_slice(format!(" [cut: the line has {}]", size(length)).as_bytes());
            self.cut.get_or_insert((number, start + kept.len() as u64));
            self.cuts += 1;
        }
        self.text.push(b'\n');
        self.last = number;
    }
}

fn describe(shown: &str, bytes: u64, first: u64, last: u64, seen: &Seen, kept: &Shown) -> String {
    let (mut text, replaced) = lossy(&kept.text);
    let mut said = format!("{shown}: ");
    let whole = first == 1 && seen.to_the_end && kept.last == seen.lines;
    if whole {
        said.push_str(&count(seen.lines, "line", "lines"));
    } else if seen.to_the_end {
        said.push_str(&format!("lines {first} to {} of {}", kept.last, digits(seen.lines)));
    } else {
        said.push_str(&format!("lines {first} to {} (too large to count them all)", kept.last));
    }
    said.push_str(&format!(", {}", size(bytes)));
    if first == 1 && text.starts_with('\u{FEFF}') {
        text.remove(0);
        said.push_str(", begins with a byte order mark");
    }
    match (seen.crlf, seen.lf) {
        (0, _) => {}
        (_, 0) => said.push_str(", lines end with CRLF"),
        (..) => said.push_str(", line endings are mixed (CRLF and LF)"),
    }
    if seen.to_the_end && !seen.ends_with_newline {
        said.push_str(", no newline at the end");
    }
    say_replaced(&mut said, replaced);
    let mut result = format!("{said}\n\n{text}");
    if !seen.to_the_end || kept.last < seen.lines {
        let asked_for = if kept.last >= last { "" } else { " the result is full;" };
        result.push_str(&format!("[more:{asked_for} read_file with start_line={}]\n", kept.last + 1));
    }
    if let Some((number, rest)) = kept.cut {
        let which = if kept.cuts == 1 { "line" } else { "the first cut line," };
        result.push_str(&format!("[to read the rest of {which} {number}: read_file with start_byte={rest}]\n"));
    }
    result
}

fn say_replaced(said: &mut String, replaced: u64) {
    if replaced > 0 {
        said.push_str(&format!(", not UTF-8: {} shown as U+FFFD", count(replaced, "place is", "places are")));
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
