//! Calls that nobody said to be complete: kept, told to the model, never run.

use cepa_core::Args;

/// The arguments of a call that the provider did not finish, whatever came of them: blank ones would be an object without
/// members, and even a whole object may be the beginning of another text.
pub(super) fn unfinished(so_far: &str) -> Args {
    let why = "incomplete: the provider did not finish this call. Send it again, whole".to_owned();
    Args::Invalid { raw: so_far.to_owned(), why }
}
