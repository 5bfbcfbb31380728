//! cepa-store
