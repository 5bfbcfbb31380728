//! cepa-testkit
