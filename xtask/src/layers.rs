//! `check-layers`: arrows between our crates point one way, and each crate stays as light as promised.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{budgets, hygiene, licences, run};

/// What a crate of ours may depend on among our crates.
struct Layer {
    name: &'static str,
    /// In its library or binary.
    uses: &'static [&'static str],
    /// Besides those, in its tests and examples.
    tests_use: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer { name: "cepa-core", uses: &[], tests_use: &[] },
    // what `#[tool]` expands to names the core, so its tests need it; the macro crate itself does not
    Layer { name: "cepa-macros", uses: &[], tests_use: &["cepa-core"] },
    Layer { name: "cepa-providers", uses: &["cepa-core"], tests_use: &["cepa-testkit"] },
    Layer { name: "cepa-agent", uses: &["cepa-core"], tests_use: &["cepa-testkit"] },
    Layer { name: "cepa-store", uses: &["cepa-agent", "cepa-core"], tests_use: &["cepa-testkit"] },
    Layer {
        name: "cepa-testkit",
        uses: &["cepa-agent", "cepa-core", "cepa-macros", "cepa-providers", "cepa-store"],
        tests_use: &[],
    },
    Layer {
        name: "cepa",
        uses: &["cepa-agent", "cepa-core", "cepa-macros", "cepa-providers", "cepa-store"],
        tests_use: &["cepa-testkit"],
    },
    Layer { name: "cepa-cli", uses: &["cepa"], tests_use: &["cepa-testkit"] },
    Layer { name: "xtask", uses: &[], tests_use: &[] },
];

/// Runs every check and names all problems at once.
pub(crate) fn command() -> Result<()> {
    let text = run::capture(&mut run::cargo(&["metadata", "--format-version", "1"])?)?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let mut problems = edges(&metadata)?;
    problems.extend(licences::problems(&metadata)?);
    problems.extend(budgets::problems()?);
    problems.extend(hygiene::problems()?);
    if problems.is_empty() {
        println!("layers, licences, budgets and files are in order");
        return Ok(());
    }
    for problem in &problems {
        println!("- {problem}");
    }
    bail!("{} problems, listed above", problems.len())
}

/// Forbidden edges between the workspace's packages.
fn edges(metadata: &Value) -> Result<Vec<String>> {
    let members = metadata["workspace_members"].as_array().context("no workspace_members in cargo metadata")?;
    let packages = metadata["packages"].as_array().context("no packages in cargo metadata")?;
    let ours: Vec<&Value> = packages.iter().filter(|package| members.contains(&package["id"])).collect();
    let name_of = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = ours.iter().map(|package| name_of(package)).collect();
    let mut problems = Vec::new();
    for package in ours {
        let name = name_of(package);
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            problems.push(format!("{name} has no place in the table of xtask/src/layers.rs: add it there"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or_default();
            let in_tests = dependency["kind"] == "dev";
            let allowed = layer.uses.contains(&on) || (in_tests && layer.tests_use.contains(&on));
            if names.iter().any(|name| name == on) && !allowed {
                let place = if in_tests { " in its tests" } else { "" };
                problems.push(format!(
                    "{name} may not depend on {on}{place}: arrows point from higher to lower layers only"
                ));
            }
        }
    }
    Ok(problems)
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
