//! Licences: everything in `Cargo.lock` can be shipped with MIT OR Apache-2.0 code.

use anyhow::{Context as _, Result};
use serde_json::Value;

const ALLOWED: &[&str] =
    &["MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "Zlib", "MPL-2.0", "Unicode-3.0"];
const EXCEPTIONS: &[&str] = &["LLVM-exception"];

/// Packages whose licence is missing, cannot be read, or is not in the list.
pub(crate) fn problems(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("no packages in cargo metadata")?;
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        match package["license"].as_str() {
            None => problems.push(format!("{name} states no licence")),
            Some(text) if !allowed(text) => {
                problems.push(format!("{name} is under {text:?}, which is not in the list of xtask/src/licences.rs"));
            }
            Some(_) => {}
        }
    }
    println!("{} packages, each under an allowed licence unless listed below", packages.len());
    Ok(problems)
}

/// Whether an SPDX expression leaves us one allowed choice. Anything that cannot be read is not allowed.
fn allowed(expression: &str) -> bool {
    // "MIT/Apache-2.0" is how old manifests say OR
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest).unwrap_or(false) && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut fine = all_of(rest)?;
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        fine |= all_of(rest)?;
    }
    Some(fine)
}

fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut fine = single(rest)?;
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        fine &= single(rest)?;
    }
    Some(fine)
}

fn single(rest: &mut &[&str]) -> Option<bool> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    if *first == "(" {
        let inner = any_of(rest)?;
        let (close, tail) = rest.split_first()?;
        *rest = tail;
        return (*close == ")").then_some(inner);
    }
    let mut fine = ALLOWED.contains(first);
    if let ["WITH", exception, tail @ ..] = *rest {
        fine &= EXCEPTIONS.contains(exception);
        *rest = tail;
    }
    Some(fine)
}

#[cfg(test)]
#[path = "licences_tests.rs"]
mod tests;
