//! cepa

pub use cepa_core::*;
