//! Edges between crates that are allowed and that are not.

use serde_json::{Value, json};

use super::edges;

/// A package's name, and for each dependency its name and kind.
type Package<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

fn workspace(packages: &[Package<'_>]) -> Value {
    let package = |(name, dependencies): &Package<'_>| {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        json!({"id": name, "name": name, "dependencies": dependencies})
    };
    let ids: Vec<&str> = packages.iter().map(|(name, _)| *name).collect();
    json!({"workspace_members": ids, "packages": packages.iter().map(package).collect::<Vec<_>>()})
}

#[test]
fn edges_downwards_and_to_other_peoples_crates_are_fine() {
    let metadata = workspace(&[
        ("cepa-core", &[("serde", None), ("proptest", Some("dev"))]),
        ("cepa-agent", &[("cepa-core", None), ("cepa-testkit", Some("dev"))]),
        ("cepa-testkit", &[("cepa-agent", None)]),
    ]);
    assert_eq!(edges(&metadata).unwrap(), Vec::<String>::new());
}

#[test]
fn edges_upwards_are_named() {
    let metadata = workspace(&[
        ("cepa-core", &[("cepa-agent", None)]),
        ("cepa-agent", &[("cepa-core", Some("build"))]),
        ("cepa-cli", &[("cepa-core", None), ("cepa-agent", Some("dev"))]),
    ]);
    let problems = edges(&metadata).unwrap();
    let starts: Vec<&str> = problems.iter().map(|problem| problem.split(':').next().unwrap()).collect();
    assert_eq!(
        starts,
        [
            "cepa-core may not depend on cepa-agent",
            "cepa-cli may not depend on cepa-core",
            "cepa-cli may not depend on cepa-agent in its tests",
        ]
    );
}

#[test]
fn the_testkit_stays_out_of_what_users_build() {
    let metadata = workspace(&[("cepa-testkit", &[]), ("cepa-providers", &[("cepa-testkit", None)])]);
    assert_eq!(edges(&metadata).unwrap().len(), 1);
}

#[test]
fn a_crate_without_a_place_is_a_problem() {
    let problems = edges(&workspace(&[("cepa-extra", &[])])).unwrap();
    assert_eq!(problems, ["cepa-extra has no place in the table of xtask/src/layers.rs: add it there"]);
}
