//! A hash whose values are part of what is sent, so it must never change: not the standard library's.

/// 64 bits of FNV-1a (<https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>), stirred once more because the low
/// bits of short texts are poor.
pub(super) fn stable(text: &str, salt: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::stable;

    // W2: an id that was mapped once is mapped the same by every later version, or the prompt cache is lost.
    #[test]
    fn values_are_fixed_for_ever() {
        assert_eq!(stable("", 0), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(stable("call_1", 0), 0xd11c_4e28_803a_9b3e);
        assert_eq!(stable("call_1", 1), 0x37dc_3ced_c8a3_7e10);
    }
}
