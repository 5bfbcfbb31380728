//! Where the prompt cache's breakpoints stand, and how they are put between pieces that are shared.
//!
//! <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>: at most 4. One behind the tools, one behind the
//! system text, and one behind each of the last two user turns: the older of them is where the request before this one
//! wrote the cache.

use bytes::Bytes;

use crate::wire::json::Pieces;

const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}}"#;

/// Appends blocks whose last one ends in a breakpoint.
pub(super) fn marked(out: &mut Pieces, blocks: &Bytes) {
    marked_at(out, vec![blocks.clone()], &[blocks.len()]);
}

/// Appends pieces in which the blocks that end at these places, in order, get a breakpoint.
pub(super) fn marked_at(out: &mut Pieces, pieces: Vec<Bytes>, mut ends: &[usize]) {
    let mut passed = 0;
    for mut piece in pieces {
        while let Some((end, rest)) = ends.split_first().filter(|(end, _)| **end <= passed + piece.len()) {
            // The mark ends with the brace of the block.
            let block = piece.split_to(end - passed);
            out.share(block.slice(..block.len().saturating_sub(1)));
            out.tail().extend_from_slice(MARK);
            (passed, ends) = (*end, rest);
        }
        passed += piece.len();
        out.share(piece);
    }
}
