//! A walk has a fixed order and an end, whatever the tree is.

use super::{
    super::testing::{Sandbox, failure, on},
    *,
};

fn walked(sandbox: &Sandbox, base: &str, ignoring: Ignoring) -> Vec<String> {
    let mut paths = Vec::new();
    let walk = Walk { depth: usize::MAX, ignoring, until: Instant::now() + MAX_TIME, stop: &on() };
    walk.run(&sandbox.root, Path::new(base), &mut |met| {
        paths.push(format!("{}{}", show_path(met.path), if met.ignored { " ignored" } else { "" }));
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    paths
}

#[test]
fn the_order_is_by_name_and_folders_come_before_what_is_in_them() {
    let sandbox = Sandbox::new().with("b/2", "").with("b/1", "").with("a", "").with("B", "").with("b-c", "");
    assert_eq!(walked(&sandbox, ".", Ignoring::Nothing), ["B", "a", "b", "b/1", "b/2", "b-c"]);
    assert_eq!(walked(&sandbox, "b", Ignoring::Nothing), ["b/1", "b/2"]);
}

#[test]
fn rules_of_the_folders_above_hold_in_a_folder_that_is_asked_for() {
    let sandbox = Sandbox::new()
        .with(".gitignore", "*.log\n/a/b/x\nskip/\n")
        .with("a/b/x", "")
        .with("a/b/y.log", "")
        .with("a/b/z", "");
    assert_eq!(walked(&sandbox, "a/b", Ignoring::AsGitDoes), ["a/b/x ignored", "a/b/y.log ignored", "a/b/z"]);
    // What is asked for by name is walked even if a rule names it.
    sandbox.put("skip/in", "");
    assert_eq!(walked(&sandbox, "skip", Ignoring::AsGitDoes), ["skip/in"]);
    assert!(walked(&sandbox, ".", Ignoring::AsGitDoes).contains(&"skip ignored".to_owned()));
}

#[test]
fn a_tree_that_is_deeper_than_any_sane_one_ends() {
    let sandbox = Sandbox::new();
    sandbox.put(&format!("{}f", "d/".repeat(200)), "x");
    let walk = Walk { depth: usize::MAX, ignoring: Ignoring::AsGitDoes, until: Instant::now() + MAX_TIME, stop: &on() };
    let passed = walk.run(&sandbox.root, Path::new("."), &mut |_| Ok(ControlFlow::Continue(()))).unwrap();
    assert_eq!(passed, Passed { too_deep: 1, ..Passed::default() });
    assert_eq!(passed.notes(), ["1 folder deeper than 64 levels"]);
}

#[test]
fn a_walk_ends_when_it_is_told_to() {
    let sandbox = Sandbox::new().with("a/1", "").with("a/2", "").with("b", "");
    let mut met = 0;
    let walk = Walk { depth: 9, ignoring: Ignoring::Nothing, until: Instant::now() + MAX_TIME, stop: &on() };
    walk.run(&sandbox.root, Path::new("."), &mut |_| {
        met += 1;
        Ok(if met == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
    .unwrap();
    assert_eq!(met, 2);
    let stop = on();
    stop.0.cancel();
    let walk = Walk { depth: 9, ignoring: Ignoring::Nothing, until: Instant::now() + MAX_TIME, stop: &stop };
    assert_eq!(failure(walk.run(&sandbox.root, Path::new("."), &mut |_| Ok(ControlFlow::Continue(())))), "cancelled");
}

#[test]
fn a_walk_ends_when_its_time_is_over() {
    let sandbox = Sandbox::new().with("a", "").with("b", "");
    let walk = Walk { depth: 9, ignoring: Ignoring::Nothing, until: Instant::now() - MAX_TIME, stop: &on() };
    let passed = walk.run(&sandbox.root, Path::new("."), &mut |_| Ok(ControlFlow::Continue(()))).unwrap();
    assert!(passed.out_of_time && passed.notes()[0].starts_with("the rest, after 30 seconds"));
}

#[test]
fn only_folders_are_walked() {
    let sandbox = Sandbox::new().with("file", "");
    let walk = Walk { depth: 1, ignoring: Ignoring::Nothing, until: Instant::now() + MAX_TIME, stop: &on() };
    let said = failure(walk.run(&sandbox.root, Path::new("file"), &mut |_| Ok(ControlFlow::Continue(()))));
    assert_eq!(said, "file is a file, not a folder");
}
