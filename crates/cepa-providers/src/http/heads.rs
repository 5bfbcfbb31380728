//! Interim answers (1xx) before the head of a response: counted, because hyper reads them as long as they come and lets nothing
//! else run in between, no timeout and no cancelling.

use std::{
    error::Error as StdError,
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::stream::Stream;

/// So many bytes of interim answers are read for one request. A server that says each few seconds that it is still at work
/// (`102 Processing`) needs hours for them.
const MOST: usize = 256 * 1024;

/// More came.
#[derive(Debug)]
pub(super) struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {MOST} bytes of interim answers")
    }
}

impl StdError for Endless {}

/// Where in the answers of a connection the next byte stands. HTTP/2 never leaves [`Place::Behind`] for long: what its frames
/// begin with is no interim head.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Behind a head that is none of an interim answer.
    Behind,
    /// In a head of which so many characters fit an interim one.
    Begin(usize),
    /// In an interim head, and whether nothing stands in this line yet.
    Interim { is_blank: bool },
}

#[derive(Debug)]
struct Heads {
    place: Place,
    /// What was read since the request.
    bytes: usize,
}

impl Heads {
    /// A request is on its way, so that an answer follows. (Or the rest of one, while its answer comes: that begins with no head
    /// of an interim answer then.)
    fn sent(&mut self) {
        if self.place == Place::Behind {
            *self = Self { place: Place::Begin(0), bytes: 0 };
        }
    }

    fn received(&mut self, bytes: &[u8]) -> Result<(), Endless> {
        for byte in bytes {
            self.place = match (self.place, byte) {
                (Place::Behind, _) => return Ok(()),
                // Blank lines before a head are passed over, as hyper does.
                (Place::Begin(0), b'\r' | b'\n') => Place::Begin(0),
                (Place::Begin(9), b'1') => Place::Interim { is_blank: false },
                (Place::Begin(at), byte) if fits(at, *byte) => Place::Begin(at + 1),
                (Place::Begin(_), _) => Place::Behind,
                (Place::Interim { is_blank: true }, b'\n') => Place::Begin(0),
                (Place::Interim { .. }, b'\n') => Place::Interim { is_blank: true },
                (Place::Interim { is_blank }, b'\r') => Place::Interim { is_blank },
                (Place::Interim { .. }, _) => Place::Interim { is_blank: false },
            };
            self.bytes += 1;
            if self.bytes > MOST {
                return Err(Endless);
            }
        }
        Ok(())
    }
}

/// Whether a status line begins so: `HTTP/1.1 `.
fn fits(at: usize, byte: u8) -> bool {
    match b"HTTP/1.".get(at) {
        Some(expected) => byte == *expected,
        None => (at == 7 && byte.is_ascii_digit()) || (at == 8 && byte == b' '),
    }
}

/// A connection whose interim answers are counted.
#[derive(Debug)]
pub(super) struct Counted {
    stream: Stream,
    heads: Heads,
}

impl Counted {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, heads: Heads { place: Place::Behind, bytes: 0 } }
    }
}

impl Connection for Counted {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let received = buf.filled().get(before..).unwrap_or_default();
        Poll::Ready(self.heads.received(received).map_err(io::Error::other))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.heads.sent();
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.heads.sent();
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
