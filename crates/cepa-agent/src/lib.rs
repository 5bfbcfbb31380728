//! cepa-agent
