//! What the person types, or what is piped in: read on a thread of its own, one message or line when it is asked for.

use std::{
    io::{self, BufRead, IsTerminal, Read as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use cepa::{Error, ErrorKind};

use crate::stderr;

/// More than any model reads: about two million tokens.
pub(crate) const MAX_MESSAGE: usize = 8 << 20;

/// A terminal that is not asked otherwise hands on no more than this of a line.
const TERMINAL_LINE: usize = 4_095;

/// How long after a line the next one of a pasted text comes at the latest.
const PASTE_GAP: Duration = Duration::from_millis(15);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A message. Lines that a terminal has at once were pasted, and belong together.
    Message,
    /// A line.
    Line,
    /// A line that answers what was just asked: what a person typed before does not count.
    Answer,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Text(String),
    /// It was longer than [`MAX_MESSAGE`]; it is passed over.
    TooLong,
    /// There is no more.
    Over,
}

/// Standard input.
pub(crate) struct Input {
    wants: mpsc::Sender<Want>,
    heard: tokio::sync::mpsc::UnboundedReceiver<Heard>,
    /// Asked for and not yet come: a read cannot be taken back.
    is_waiting: bool,
    is_over: bool,
    /// Whether the lines of a message that is not ended are no longer meant.
    is_dropped: Arc<AtomicBool>,
    pub(crate) is_terminal: bool,
}

impl Input {
    pub(crate) fn new() -> Self {
        let (wants, asked) = mpsc::channel();
        let (tell, heard) = tokio::sync::mpsc::unbounded_channel();
        let is_terminal = io::stdin().is_terminal();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let dropped = is_dropped.clone();
        // It is left behind in a read when the process ends.
        std::thread::spawn(move || {
            for want in asked {
                let heard = read(&mut io::stdin().lock(), want, is_terminal, &dropped);
                if tell.send(heard).is_err() {
                    return;
                }
            }
        });
        Self { wants, heard, is_waiting: false, is_over: false, is_dropped, is_terminal }
    }

    /// The next message or line. Dropping the future loses nothing: the next call gets it.
    pub(crate) async fn next(&mut self, want: Want) -> Heard {
        if self.is_over {
            return Heard::Over;
        }
        if !self.is_waiting {
            self.is_waiting = self.wants.send(want).is_ok();
        }
        let heard = self.heard.recv().await.unwrap_or(Heard::Over);
        self.is_waiting = false;
        self.is_over = heard == Heard::Over;
        heard
    }

    /// What was typed or pasted of a message and not yet ended is not meant any more.
    pub(crate) fn drop_begun(&self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

fn read(stdin: &mut io::StdinLock<'_>, want: Want, is_terminal: bool, is_dropped: &AtomicBool) -> Heard {
    if want == Want::Answer && is_terminal {
        forget_typed(stdin);
    }
    let mut bytes = Vec::new();
    let mut heard = line(stdin, &mut bytes);
    if is_terminal {
        if bytes.len() >= TERMINAL_LINE {
            stderr::note(&format!(
                "note: the terminal hands on {TERMINAL_LINE} bytes of a line at most, so this one may be cut: put a long text into \
                 a file, or give it to `cepa run -`"
            ));
        }
        is_dropped.store(false, Ordering::Relaxed);
        while want == Want::Message && heard == Came::Line {
            let has_line = has_more(stdin);
            let begun = if has_line { Vec::new() } else { begun_line(stdin) };
            if !has_line && begun.is_empty() {
                break;
            }
            bytes.push(b'\n');
            bytes.extend_from_slice(&begun);
            if begun.last() == Some(&b'\n') {
                bytes.pop();
                continue;
            }
            let before = bytes.len();
            heard = line(stdin, &mut bytes);
            if is_dropped.swap(false, Ordering::Relaxed) {
                bytes.drain(..before.min(bytes.len()));
            }
        }
    }
    match heard {
        Came::TooLong => Heard::TooLong,
        Came::End if bytes.is_empty() => Heard::Over,
        Came::Line | Came::End => Heard::Text(to_text(bytes)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Line,
    TooLong,
    /// The end of the input, perhaps behind a line without its break.
    End,
}

/// Adds a line without its break; of one that is too long the rest is passed over.
fn line(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> Came {
    let mut too_long = false;
    loop {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A terminal that is gone has no more to say.
            Err(_) => &[],
        };
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..newline.unwrap_or(buffer.len())).unwrap_or_default();
        if buffer.is_empty() {
            return if too_long { Came::TooLong } else { Came::End };
        }
        too_long |= bytes.len() + part.len() > MAX_MESSAGE;
        if too_long {
            bytes.clear();
        } else {
            bytes.extend_from_slice(part);
        }
        let used = part.len() + usize::from(newline.is_some());
        reader.consume(used);
        if newline.is_some() {
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
            return if too_long { Came::TooLong } else { Came::Line };
        }
    }
}

/// Whether the terminal has another line by now. It hands on one line a read, so nothing was read ahead.
fn has_more(stdin: &mut io::StdinLock<'_>) -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let gap = Timespec { tv_sec: 0, tv_nsec: i64::from(PASTE_GAP.subsec_nanos()) };
        let mut wanted = [PollFd::new(&*stdin, PollFlags::IN)];
        poll(&mut wanted, Some(&gap)).is_ok_and(|ready| ready > 0)
    }
    #[cfg(not(unix))]
    {
        let _ = (stdin, PASTE_GAP);
        false
    }
}

/// How the terminal was, while it is set otherwise.
#[cfg(unix)]
static USUAL: Mutex<Option<rustix::termios::Termios>> = Mutex::new(None);

/// Sets the terminal to what it was, for a process that ends in the middle.
#[cfg(unix)]
pub(crate) fn restore_terminal() {
    let usual = USUAL.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(usual) = usual {
        let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, &usual);
    }
}

/// The beginning of a line that has no end yet: a pasted text often has none. The terminal hands it on only while it does not
/// wait for whole lines.
fn begun_line(stdin: &mut io::StdinLock<'_>) -> Vec<u8> {
    #[cfg(unix)]
    {
        use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
        let Ok(usual) = tcgetattr(&*stdin) else { return Vec::new() };
        if !usual.local_modes.contains(LocalModes::ICANON) {
            return Vec::new();
        }
        let mut at_once = usual.clone();
        at_once.local_modes.remove(LocalModes::ICANON);
        at_once.special_codes[SpecialCodeIndex::VMIN] = 0;
        at_once.special_codes[SpecialCodeIndex::VTIME] = 0;
        let mut begun = vec![0; TERMINAL_LINE];
        *USUAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(usual);
        let read = match tcsetattr(&*stdin, OptionalActions::Now, &at_once) {
            Ok(()) => rustix::io::read(&*stdin, &mut begun).unwrap_or(0),
            Err(_) => 0,
        };
        restore_terminal();
        begun.truncate(read);
        begun
    }
    #[cfg(not(unix))]
    {
        let _ = stdin;
        Vec::new()
    }
}

/// Throws away what was typed before.
fn forget_typed(stdin: &mut io::StdinLock<'_>) {
    #[cfg(unix)]
    let _ = rustix::termios::tcflush(&*stdin, rustix::termios::QueueSelector::IFlush);
    let _ = stdin;
}

/// Text, with a note where it was none.
fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        stderr::note("note: the input is not UTF-8; what cannot be read is replaced by \u{fffd}");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// All of standard input, for a command that reads no lines.
///
/// # Errors
/// `invalid_input` if it is too long or cannot be read.
pub(crate) fn read_to_end() -> Result<String, Error> {
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if is_done.recv_timeout(Duration::from_secs(2)) == Err(mpsc::RecvTimeoutError::Timeout) {
            stderr::note("reading standard input (end with Ctrl-D, or give </dev/null)");
        }
    });
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_MESSAGE as u64 + 1).read_to_end(&mut bytes);
    drop(done);
    match read {
        Ok(_) if bytes.len() > MAX_MESSAGE => Err(too_long()),
        Ok(_) => Ok(to_text(bytes)),
        Err(error) => {
            let text = format!("standard input cannot be read ({error}): check where it comes from");
            Err(Error::new(ErrorKind::InvalidInput, text))
        }
    }
}

/// The error for a message that is too long.
pub(crate) fn too_long() -> Error {
    let text = format!(
        "the message is larger than {} MB, more than any model reads, and was not sent: put it into a file in the folder and ask \
         about the parts that matter",
        MAX_MESSAGE >> 20
    );
    Error::new(ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut input: &[u8]) -> Vec<(Came, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let came = line(&mut input, &mut bytes);
            all.push((came, bytes));
            if came == Came::End {
                return all;
            }
        }
    }

    #[test]
    fn lines_come_without_their_breaks() {
        let found = lines(b"a\r\n\nlast");
        assert_eq!(found, [(Came::Line, b"a".to_vec()), (Came::Line, vec![]), (Came::End, b"last".to_vec())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_not() {
        let mut input = vec![b'x'; MAX_MESSAGE + 1];
        input.extend_from_slice(b"\nnext\n");
        let found = lines(&input);
        assert_eq!(found, [(Came::TooLong, vec![]), (Came::Line, b"next".to_vec()), (Came::End, vec![])]);
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        assert_eq!(to_text(b"caf\xe9".to_vec()), "caf\u{fffd}");
    }
}
