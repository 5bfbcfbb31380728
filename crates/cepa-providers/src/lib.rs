//! Model providers of cepa: the wires, and what carries them (HTTP, server-sent events, retries, keys).

pub mod classify;
pub mod http;
pub mod retry;
pub mod secret;
pub mod sse;
