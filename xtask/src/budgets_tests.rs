//! What counts as one package.

use super::unique;

#[test]
fn a_package_counts_once_per_version() {
    let tree = "cepa-core v0.1.0 (/somewhere/crates/cepa-core)\nserde v1.0.1\nserde_derive v1.0.1 (proc-macro)\n\
                syn v2.0.0\nsyn v3.0.0\nserde v1.0.1 (*)\nserde_derive v1.0.1 (proc-macro) (*)\n\n";
    let names: Vec<String> = unique(tree).into_iter().collect();
    assert_eq!(names, ["cepa-core v0.1.0", "serde v1.0.1", "serde_derive v1.0.1", "syn v2.0.0", "syn v3.0.0"]);
}
