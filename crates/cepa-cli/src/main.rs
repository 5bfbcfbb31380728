//! The `cepa` command.
fn main() {}
