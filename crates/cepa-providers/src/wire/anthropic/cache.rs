//! Where the prompt cache's breakpoints stand, and how they are put between pieces that are shared.
//!
//! <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>: at most 4. One behind the tools, one behind the
//! system text, and one behind each of the last two user turns: the older of them is where the request before this one
//! wrote the cache.

use bytes::Bytes;

use super::turns::Turn;
use crate::wire::json::Pieces;

const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}}"#;
const USER_TURNS: usize = 2;

/// The turns that get a breakpoint behind them.
pub(super) fn marked_turns(turns: &[Turn<'_>]) -> Vec<usize> {
    let users = turns.iter().enumerate().rev().filter(|(_, turn)| turn.is_user());
    users.map(|(at, _)| at).take(USER_TURNS).collect()
}

/// Appends blocks whose last one ends in a breakpoint.
pub(super) fn marked(out: &mut Pieces, blocks: &Bytes) {
    // A piece ends with the brace of its last block.
    let end = blocks.len().saturating_sub(1);
    out.share(blocks.slice(..end));
    out.tail().extend_from_slice(MARK);
}
