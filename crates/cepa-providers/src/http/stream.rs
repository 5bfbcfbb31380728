//! A connection to a server, plain or under TLS, as one type.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// What the connector gives to the pool.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    /// Plain, to a proxy that wants the whole address in the request.
    ViaProxy(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Plain(tcp) => tcp.connected(),
            Self::ViaProxy(tcp) => tcp.connected().proxy(true),
            Self::Tls(tls) => {
                let (tcp, session) = tls.get_ref();
                match session.alpn_protocol() {
                    Some(b"h2") => tcp.connected().negotiated_h2(),
                    _ => tcp.connected(),
                }
            }
        }
    }
}

/// Runs the same call on whichever stream it is.
macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Self::Plain($inner) | Self::ViaProxy($inner) => $call,
            Self::Tls($inner) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, inner => Pin::new(inner).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(&mut *self, inner => Pin::new(inner).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(&mut *self, inner => Pin::new(inner).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        either!(self, inner => inner.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, inner => Pin::new(inner).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, inner => Pin::new(inner).poll_shutdown(cx))
    }
}
