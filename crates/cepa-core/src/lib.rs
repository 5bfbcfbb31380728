//! The core of cepa: messages, history, the onion of filters, tools and the kernel.
//!
//! No I/O, no timers, no database: everything here is data and the rules that hold for it.

mod error;

pub use error::{Error, ErrorKind};
