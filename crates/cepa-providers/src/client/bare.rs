//! A body that was taken for a stream and is none: servers answer whole, or with an error, and do not say of which type it is.

use bytes::{Bytes, BytesMut};
use serde::de::IgnoredAny;

use crate::wire::caps::begin;

/// What came before the first event of a stream.
#[derive(Debug, Default)]
pub(super) enum Bare {
    /// Nothing, or space.
    #[default]
    Nothing,
    /// JSON or a page, for all that can be told from how it begins: no field of a stream begins so.
    Body(BytesMut),
    /// A stream.
    Stream,
}

impl Bare {
    /// Takes the next piece of the body.
    pub(super) fn push(&mut self, chunk: &Bytes) {
        match self {
            Self::Stream => {}
            Self::Body(body) => body.extend_from_slice(chunk),
            Self::Nothing => match begins(chunk) {
                Some(b'{' | b'[' | b'<') => *self = Self::Body(BytesMut::from(chunk.as_ref())),
                Some(_) => *self = Self::Stream,
                None => {}
            },
        }
    }
}

/// The first byte that is no space.
pub(super) fn begins(body: &[u8]) -> Option<u8> {
    begin(body).first().copied()
}

/// Whether this is JSON that ends before its end.
pub(super) fn is_cut(body: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(begin(body)).is_err_and(|error| error.is_eof())
}
