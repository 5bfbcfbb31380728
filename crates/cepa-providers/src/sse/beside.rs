//! What a body holds beside its events: lines that the standard passes over, because they are none of its fields.
//!
//! Servers that fail in the middle of a stream write their error there, as the JSON body that they would have answered with.

/// How much is kept, so that whoever writes such lines without end fills no memory. Error bodies are far smaller.
pub(super) const MOST: usize = 16 * 1024;

/// The last such lines.
#[derive(Debug, Default)]
pub(super) struct Beside {
    lines: Vec<u8>,
}

impl Beside {
    /// Keeps a line, if need be in the place of earlier ones: an error is what comes last.
    pub(super) fn line(&mut self, line: &[u8]) {
        if line.len() >= MOST {
            // Too large, and what was before it is torn from what follows.
            self.lines.clear();
            return;
        }
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        // At twice the bound, so that moving the rest costs each line once and not each time.
        if self.lines.len() > 2 * MOST {
            let torn = self.lines.len() - MOST;
            let whole = self.lines.iter().skip(torn).position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.lines.drain(..torn + whole);
        }
    }

    /// The lines, each with a line feed behind it.
    pub(super) fn lines(&self) -> &[u8] {
        &self.lines
    }
}
