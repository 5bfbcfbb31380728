//! cepa-providers
