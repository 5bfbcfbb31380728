//! A command ends when it should, with all that it started, and its output never stops it.

use std::{fs, time::Duration};

use serde_json::json;

use super::{
    super::testing::{Sandbox, args, failure},
    *,
};

async fn run(sandbox: &Sandbox, call: serde_json::Value) -> Result<String, ToolError> {
    run_shell(sandbox.root.path(), &args(call), &CancellationToken::new()).await
}

/// What was printed, and how it ended without the time it took.
async fn ran(sandbox: &Sandbox, command: &str) -> (String, String) {
    let said = run(sandbox, json!({"command": command})).await.unwrap();
    let (output, how) = said.rsplit_once('[').unwrap();
    let how = how.strip_suffix(']').unwrap();
    let seconds = how.split(", ").nth(1).and_then(|rest| rest.split_once(" s")).unwrap().0;
    assert!(seconds.parse::<f64>().unwrap() < 30.0);
    (output.to_owned(), how.replace(&format!(", {seconds} s"), ""))
}

/// The processes that a command said it started (one number a line) are gone, or will be within a moment.
async fn assert_gone(sandbox: &Sandbox, file: &str) {
    let numbers = sandbox.text(file);
    assert!(!numbers.is_empty());
    for number in numbers.lines() {
        let pid = rustix::process::Pid::from_raw(number.trim().parse().unwrap()).unwrap();
        let mut tries = 0;
        while alive(pid) {
            tries += 1;
            assert!(tries < 100, "process {number} still runs");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A process that has ended but was not collected (by a container's first process, say) does not run.
fn alive(pid: rustix::process::Pid) -> bool {
    if rustix::process::test_kill_process(pid).is_err() {
        return false;
    }
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    !state.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])))
}

async fn wait_for(sandbox: &Sandbox, file: &str) {
    for _ in 0..200 {
        if sandbox.work.join(file).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{file} did not appear");
}

#[tokio::test]
async fn output_and_exit_code() {
    let sandbox = Sandbox::new().with("f", "hello\n");
    assert_eq!(ran(&sandbox, "cat f").await, ("hello\n".into(), "exit code 0".into()));
    assert_eq!(ran(&sandbox, "printf out; echo err >&2; exit 3").await, ("outerr\n".into(), "exit code 3".into()));
    assert_eq!(ran(&sandbox, "nothing-of-that-name").await.1, "exit code 127");
    assert_eq!(ran(&sandbox, "printf 'no newline'").await.0, "no newline\n");
    assert_eq!(ran(&sandbox, "true").await, (String::new(), "exit code 0; no output".into()));
    assert_eq!(ran(&sandbox, "pwd -P").await.0, format!("{}\n", sandbox.work.display()));
}

#[tokio::test]
async fn the_end_by_a_signal_is_told() {
    let sandbox = Sandbox::new();
    assert_eq!(ran(&sandbox, "kill -SEGV $$").await.1, "killed by signal 11 (SIGSEGV); no output");
    assert_eq!(ran(&sandbox, "echo x; kill -KILL $$").await, ("x\n".into(), "killed by signal 9 (SIGKILL)".into()));
    // Only the leader's end counts.
    assert_eq!(ran(&sandbox, "sh -c 'kill -TERM $$'; echo $?").await.0.lines().last(), Some("143"));
}

#[tokio::test]
async fn a_command_gets_no_input() {
    let sandbox = Sandbox::new();
    assert_eq!(ran(&sandbox, "cat; wc -c").await.0.trim(), "0");
}

/// Runs itself again with keys in its environment, which a test cannot set for itself.
#[tokio::test]
async fn a_command_gets_no_keys() {
    if std::env::var_os("CEPA_TEST_API_KEY").is_none() {
        let name = std::thread::current().name().unwrap().to_owned();
        let again = Command::new(std::env::current_exe().unwrap())
            .args([name.as_str(), "--exact"])
            .env("CEPA_TEST_API_KEY", "the key")
            .env("CEPA_TEST_URL", "postgres://me:the-password@host/")
            .env("CEPA_TEST_PLAIN", "plain")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let printed = ran(&Sandbox::new(), "env").await.0;
    assert!(!printed.contains("the key") && !printed.contains("the-password"), "{printed}");
    for kept in ["CEPA_TEST_PLAIN=plain\n", "PATH=", "TERM=dumb\n", "PAGER=cat\n"] {
        assert!(printed.contains(kept), "{kept} in {printed}");
    }
}

#[tokio::test]
async fn a_flood_is_drained_and_capped() {
    let sandbox = Sandbox::new();
    let (output, how) = ran(&sandbox, "echo first; yes | head -c 50000000; echo last").await;
    assert_eq!(how, "exit code 0");
    assert!(output.starts_with("first\ny\n") && output.ends_with("y\nlast\n"), "{}", output.len());
    assert!(output.contains("left out") && output.len() < MAX_OUTPUT + 100, "{}", output.len());
}

#[tokio::test]
async fn a_flood_without_end_meets_the_time_limit() {
    let sandbox = Sandbox::new();
    let started = Instant::now();
    let said = run(&sandbox, json!({"command": "yes & yes", "timeout_seconds": 1})).await.unwrap();
    assert!(said.starts_with("y\ny\n") && said.ends_with("[timed out after 1 second and was killed]"));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test]
async fn at_the_time_limit_the_whole_group_is_killed() {
    let sandbox = Sandbox::new();
    let started = Instant::now();
    let command =
        "echo $$ > pids; sleep 100 & echo $! >> pids; (sleep 100 & echo $! >> pids; wait) & echo started; sleep 100";
    let said = run(&sandbox, json!({"command": command, "timeout_seconds": 1})).await.unwrap();
    assert_eq!(said, "started\n[timed out after 1 second and was killed]");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert_gone(&sandbox, "pids").await;
}

#[tokio::test]
async fn a_command_that_will_not_end_is_made_to() {
    let sandbox = Sandbox::new();
    let command = "trap '' TERM INT HUP; echo $$ > pids; while :; do sleep 0.05; done";
    let started = Instant::now();
    run(&sandbox, json!({"command": command, "timeout_seconds": 1})).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert_gone(&sandbox, "pids").await;
}

#[tokio::test]
async fn a_command_is_given_the_moment_to_clean_up() {
    let sandbox = Sandbox::new();
    let command = "touch lock; trap 'rm lock; echo cleaned; exit' TERM; while :; do sleep 0.05; done";
    let said = run(&sandbox, json!({"command": command, "timeout_seconds": 1})).await.unwrap();
    assert!(said.ends_with("cleaned\n[timed out after 1 second and was killed]"), "{said}");
    assert!(!sandbox.work.join("lock").exists());
}

#[tokio::test]
async fn what_is_left_in_the_background_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let started = Instant::now();
    let (output, how) = ran(&sandbox, "sleep 100 & echo $! > pids; echo done").await;
    assert_eq!(output, "done\n");
    assert_eq!(how, "exit code 0; what it left running in the background was killed");
    assert!(started.elapsed() < Duration::from_secs(4));
    assert_gone(&sandbox, "pids").await;
    // Also when it does not hold the output.
    let (output, how) = ran(&sandbox, "sleep 100 >/dev/null 2>&1 & echo $! > pids; echo done").await;
    assert_eq!((output.as_str(), how.as_str()), ("done\n", "exit code 0"));
    assert_gone(&sandbox, "pids").await;
    // What is about to be written still comes.
    assert_eq!(ran(&sandbox, "(sleep 0.2; echo late) &").await, ("late\n".into(), "exit code 0".into()));
}

#[tokio::test]
async fn a_process_in_a_session_of_its_own_is_not_waited_for() {
    let sandbox = Sandbox::new();
    if ran(&sandbox, "command -v setsid").await.1 != "exit code 0" {
        return;
    }
    let started = Instant::now();
    // It leaves the group and holds the output: out of our reach, but no reason to hang.
    let (_, how) = ran(&sandbox, "setsid sleep 7 & sleep 0.1; echo done").await;
    assert_eq!(how, "exit code 0; something that it started in a session of its own still runs");
    let said = run(&sandbox, json!({"command": "setsid sleep 7 & sleep 100", "timeout_seconds": 1})).await.unwrap();
    assert!(said.starts_with("[timed out after 1 second and was killed; something"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
}

#[tokio::test]
async fn cancelling_kills_the_group() {
    let sandbox = Sandbox::new();
    let cancel = CancellationToken::new();
    let call = args(json!({"command": "echo $$ > pids; sleep 100 & echo $! >> pids; touch ready; sleep 100"}));
    let running = run_shell(sandbox.root.path(), &call, &cancel);
    let cancelling = async {
        wait_for(&sandbox, "ready").await;
        cancel.cancel();
    };
    let started = Instant::now();
    let (result, ()) = tokio::join!(running, cancelling);
    assert_eq!(failure(result), "cancelled: the command was killed");
    assert!(started.elapsed() < Duration::from_secs(6));
    assert_gone(&sandbox, "pids").await;
    // Once cancelled, nothing begins.
    let call = args(json!({"command": "touch begun"}));
    run_shell(sandbox.root.path(), &call, &cancel).await.unwrap_err();
    assert!(!sandbox.work.join("begun").exists());
}

#[tokio::test]
async fn dropping_the_call_kills_the_group() {
    let sandbox = Sandbox::new();
    let command = "trap '' TERM; echo $$ > pids; sleep 100 & echo $! >> pids; touch ready; sleep 100";
    {
        let running = run(&sandbox, json!({"command": command}));
        tokio::select! {
            _ = running => panic!("it should still run"),
            () = wait_for(&sandbox, "ready") => {}
        }
    }
    assert_gone(&sandbox, "pids").await;
}

#[test]
fn a_runtime_that_ends_takes_the_command_with_it() {
    let sandbox = Sandbox::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = sandbox.work.clone();
    runtime.spawn(async move {
        let call = args(json!({"command": "echo $$ > pids; touch ready; sleep 100"}));
        run_shell(&folder, &call, &CancellationToken::new()).await
    });
    runtime.block_on(wait_for(&sandbox, "ready"));
    let started = Instant::now();
    drop(runtime);
    assert!(started.elapsed() < Duration::from_secs(4));
    tokio::runtime::Runtime::new().unwrap().block_on(assert_gone(&sandbox, "pids"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_zombie_and_no_open_file_is_left() {
    let sandbox = Sandbox::new();
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    let call = || run(&sandbox, json!({"command": "echo $$ >> pids; exit 1"}));
    call().await.unwrap();
    let before = open();
    for _ in 0..30 {
        call().await.unwrap();
    }
    // Other tests of this process open files meanwhile: a leak would be one for each run.
    assert!(open() < before + 25, "{before} then {}", open());
    for number in sandbox.text("pids").lines() {
        let path = format!("/proc/{number}");
        for _ in 0..100 {
            if !std::path::Path::new(&path).exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(!std::path::Path::new(&path).exists(), "process {number} was not collected");
    }
}

#[tokio::test]
async fn calls_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    for seconds in [0_u64, 601, u64::MAX] {
        let call = json!({"command": "true", "timeout_seconds": seconds});
        let error = serde_json::from_value::<RunShell>(call).unwrap_err();
        assert_eq!(error.to_string(), "must be 1 to 600 seconds");
    }
    assert!(failure(run(&sandbox, json!({"command": " \n"})).await).contains("empty"));
    assert!(failure(run(&sandbox, json!({"command": "echo \0"})).await).contains("NUL"));
    fs::remove_dir_all(&sandbox.work).unwrap();
    let error = run(&sandbox, json!({"command": "true"})).await.unwrap_err();
    assert_eq!(error.failure, cepa::ToolFailure::Environment);
    assert!(error.message.starts_with("cannot start sh: "), "{}", error.message);
}
