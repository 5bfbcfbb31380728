//! A rule of a provider: its number, what it says, and where that was read.

/// One rule that a judge enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number, which stays: `OC-28`. A rule that goes leaves a gap.
    pub id: &'static str,
    /// The name that it shares with its kin: `oa.pairing`.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub says: &'static str,
    /// Where that was read: addresses, or lines of `docs/field-reports.md`, with a blank between them.
    pub source: &'static str,
}

/// Writes a judge's rules as constants and as the list `ALL`, so that none can be enforced and not listed:
/// `NAME = id, name, sentence, source;`. `cargo xtask contracts` reads these texts for `docs/conformance.md`: they hold no
/// quotes and no escapes.
macro_rules! rules {
    ($($rule:ident = $id:literal, $name:literal, $says:literal, $source:literal;)*) => {
        $(pub(super) const $rule: &$crate::validate::Rule =
            &$crate::validate::Rule { id: $id, name: $name, says: $says, source: $source };)*

        /// Every rule of this judge.
        pub const ALL: &[&$crate::validate::Rule] = &[$($rule),*];
    };
}

pub(super) use rules;
