//! Model providers of cepa: the wires, and what carries them (HTTP, server-sent events, retries, keys).

pub mod anthropic;
pub mod catalog;
pub mod classify;
pub mod client;
mod connection;
pub mod gemini;
pub mod http;
pub mod limit;
pub mod openai;
pub mod responses;
pub mod retry;
pub mod secret;
pub mod sse;
pub mod wire;
