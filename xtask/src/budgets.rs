//! How many packages each crate may bring into a user's build.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::run;

/// One row of the budget table.
struct Budget {
    package: &'static str,
    /// Unique packages of `cargo tree -e normal`, the crate itself included.
    at_most: usize,
}

/// The one place where the numbers are written down. Raising one is a decision: say why in the commit.
const BUDGETS: &[Budget] = &[
    Budget { package: "cepa-core", at_most: 24 },
    // with its default features: HTTP, SQLite and `#[tool]`
    Budget { package: "cepa", at_most: 80 },
];

/// Prints each crate's count beside its budget and returns what is over.
pub(crate) fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for Budget { package, at_most } in BUDGETS {
        let args = ["tree", "--edges", "normal", "--prefix", "none", "--package", package];
        let tree = run::capture(&mut run::cargo(&args)?)?;
        let packages = unique(&tree);
        println!("{package}: {} packages of at most {at_most}", packages.len());
        if packages.len() > *at_most {
            let list = packages.into_iter().collect::<Vec<_>>().join(", ");
            problems.push(format!(
                "{package} brings more than {at_most} packages: drop a dependency or one of its features. It brings {list}"
            ));
        }
    }
    Ok(problems)
}

/// `name vX.Y.Z` of each line, whatever cargo adds to it: a path, `(proc-macro)`, `(*)`.
fn unique(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    tree.lines().filter(|line| !line.trim().is_empty()).map(name).collect()
}

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
