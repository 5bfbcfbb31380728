//! Reading SPDX expressions.

use super::allowed;

#[test]
fn one_allowed_side_of_an_or_is_enough() {
    for text in [
        "MIT",
        "MIT/Apache-2.0",
        "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
        "Unlicense OR MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
        "GPL-2.0-only OR (ISC AND (Zlib OR GPL-3.0-only))",
    ] {
        assert!(allowed(text), "{text}");
    }
}

#[test]
fn everything_else_is_refused() {
    for text in [
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "GPL-3.0-only OR MIT AND AGPL-3.0-only",
        "Apache-2.0 WITH Other-exception",
        "",
        "MIT OR",
        "(MIT",
        "MIT Apache-2.0",
        "MIT)",
    ] {
        assert!(!allowed(text), "{text:?}");
    }
}
