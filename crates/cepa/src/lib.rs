//! cepa
