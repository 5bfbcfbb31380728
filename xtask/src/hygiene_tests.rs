//! What the file rules see and what they leave alone.

use super::{LINES, NOT_IN_CORE, problems_of};

#[test]
fn a_long_source_file_is_a_problem_and_its_tests_do_not_count() {
    let long = "x\n".repeat(LINES + 1);
    assert_eq!(problems_of("crates/cepa-core/src/a.rs", &long).len(), 1);
    assert_eq!(problems_of("crates/cepa-core/src/a_tests.rs", &long), Vec::<String>::new());
    assert_eq!(problems_of("crates/cepa-core/tests/a.rs", &long), Vec::<String>::new());
    let short = format!("{}#[cfg(test)]\nmod tests {{\n{long}", "x\n".repeat(LINES));
    assert_eq!(problems_of("crates/cepa-core/src/a.rs", &short), Vec::<String>::new());
}

#[test]
fn the_core_does_not_say_the_word() {
    let line = format!("/// like {NOT_IN_CORE}");
    assert_eq!(problems_of("crates/cepa-core/README.md", &line).len(), 1);
    assert_eq!(problems_of("crates/cepa-agent/src/lib.rs", &line), Vec::<String>::new());
}

#[test]
fn absolute_paths_of_a_machine_are_found_and_urls_are_not() {
    for start in super::MACHINE_PATHS {
        for bad in
            [format!("see {start}x"), format!("\"{start}x\""), format!("file://{start}x").replace("file://", "=")]
        {
            assert_eq!(problems_of("README.md", &bad).len(), 1, "{bad}");
        }
        for fine in
            [format!("https://host{start}x"), format!("a{start}x"), format!("{start}…"), format!("$HOME{start}x")]
        {
            assert_eq!(problems_of("README.md", &fine), Vec::<String>::new(), "{fine}");
        }
    }
}
