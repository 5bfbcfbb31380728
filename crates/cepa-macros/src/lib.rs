//! cepa-macros
