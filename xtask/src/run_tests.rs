//! Programs that end, fail, and have to be stopped.

use std::time::{Duration, Instant};

use super::{capture, command, shown};

const LONG: Duration = Duration::from_secs(60);

fn shell(script: &str) -> std::process::Command {
    let mut shell = command("sh").unwrap();
    shell.args(["-c", script]);
    shell
}

#[test]
fn output_is_returned_and_failures_carry_what_was_said() {
    assert_eq!(capture(&mut shell("echo out; echo err >&2")).unwrap(), "out\n");
    let error = capture(&mut shell("echo why >&2; exit 3")).unwrap_err().to_string();
    assert!(error.contains("why") && error.contains('3'), "{error}");
}

#[test]
fn an_exit_code_is_an_error() {
    assert!(shown(&mut shell("exit 0"), LONG).is_ok());
    assert!(shown(&mut shell("exit 1"), LONG).is_err());
    assert!(shown(&mut command("no-such-program-here").unwrap(), LONG).is_err());
}

#[test]
fn a_program_over_its_limit_is_asked_to_end_and_can_clean_up() {
    let started = Instant::now();
    let cleaned = std::env::temp_dir().join(format!("xtask-cleaned-{}", std::process::id()));
    let script = format!("trap 'touch {}; exit 0' TERM; while :; do sleep 0.05; done", cleaned.display());
    let error = shown(&mut shell(&script), Duration::from_millis(300)).unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(14));
    std::fs::remove_file(cleaned).unwrap();
}
