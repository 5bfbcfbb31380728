//! What can go wrong outside: one line that says what to do, and nothing lost.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Home, Ran, finished, server};

/// A turn with a provider at this address.
fn ask(home: &Home, model: &str, url: &str) -> Ran {
    let mut command =
        home.bare(&["run", "hello", "--conversation", "talk", "--model", model, "--base-url", url, "--db"]);
    command
        .arg(home.db())
        .env("OPENAI_API_KEY", "sk-secret-1234567890")
        .env("ANTHROPIC_API_KEY", "sk-secret-1234567890");
    finished(command.output().unwrap())
}

#[test]
fn a_wrong_key_is_one_line_without_the_key() {
    let home = Home::new();
    let url = server("401 Unauthorized", r#"{"error": {"message": "bad key sk-secret-1234567890"}}"#);
    for model in ["openai/x", "anthropic/x"] {
        let ran = ask(&home, model, &url);
        ran.fails_with(1, "check the API key");
        assert!(!ran.err.contains("sk-secret"), "{ran:?}");
    }
    // M3: nothing was stored, so it can be said again.
    home.cepa(&["history", "talk"]).fails_with(1, "there is no conversation");
}

#[test]
fn a_missing_key_names_its_variable() {
    let home = Home::new();
    for (model, told) in [
        ("anthropic/x", "no API key for anthropic: set the environment variable ANTHROPIC_API_KEY"),
        ("openai/x", "no API key for openai: set the environment variable OPENAI_API_KEY"),
        ("openai-responses/x", "no API key for openai: set the environment variable OPENAI_API_KEY"),
        ("gemini/x", "no API key for gemini: set the environment variable GEMINI_API_KEY or GOOGLE_API_KEY"),
    ] {
        finished(home.bare(&["run", "hello", "--model", model]).output().unwrap()).fails_with(2, told);
    }
}

#[test]
fn an_unknown_model_and_an_unreachable_host() {
    let home = Home::new();
    let url = server("404 Not Found", r#"{"error": {"message": "no such model"}}"#);
    ask(&home, "openai/x", &url).fails_with(1, "check the model's name and the base URL");
    ask(&home, "openai/x", "http://127.0.0.1:1/v1").fails_with(1, "nothing listens at 127.0.0.1:1");
    for model in ["openai/x", "openai-responses/x", "anthropic/x", "gemini/x"] {
        ask(&home, model, "127.0.0.1:1").fails_with(2, r#"the base URL "127.0.0.1:1" cannot be used"#);
    }
    ask(&home, "opnai/x", "http://127.0.0.1:1/v1").fails_with(2, "do you mean openai/x?");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let home = Home::new();
    let letter = "a letter to my aunt, which is no database at all, but long enough to be one; ".repeat(20);
    std::fs::write(home.db(), &letter).unwrap();
    for words in [&["run", "hello"][..], &["pending"], &["conversations"], &["recover"]] {
        home.cepa(words).fails_with(1, "name another file");
    }
    assert_eq!(std::fs::read_to_string(home.db()).unwrap(), letter);
    let doctor = home.cepa(&["doctor"]);
    assert!(doctor.ends(1).contains("PROBLEM database"), "{doctor:?}");
}

#[test]
fn a_damaged_database_says_so() {
    let home = Home::new();
    for _ in 0..20 {
        home.say("list files").ends(0);
    }
    let mut bytes = std::fs::read(home.db()).unwrap();
    for byte in bytes.iter_mut().skip(4096) {
        *byte = 0x5a;
    }
    std::fs::write(home.db(), &bytes).unwrap();
    home.say("hello").fails_with(1, "damaged");
}

#[test]
#[cfg(unix)]
fn a_database_at_the_limit_for_files_says_so_and_loses_nothing() {
    let home = Home::new();
    home.say("what time is it").ends(0);
    let mut limited = std::process::Command::new("sh");
    let cepa = home.command(&["run", "hello"]);
    limited.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""]).arg(cepa.get_program()).args(cepa.get_args());
    limited.current_dir(cepa.get_current_dir().unwrap());
    finished(limited.output().unwrap()).fails_with(1, "ulimit -f");
    assert!(home.cepa(&["history", "talk"]).ends(0).contains("what time is it"));
}

#[test]
fn a_database_in_no_folder_says_what_to_do() {
    let home = Home::new();
    let mut command = home.bare(&["run", "hello", "--model", "offline", "--db", "no/where/cepa.db"]);
    finished(command.output().unwrap()).fails_with(1, "make the folder first");
}

#[test]
fn words_that_are_not_utf8_are_refused() {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let home = Home::new();
        let mut command = home.command(&["run"]);
        command.arg(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        finished(command.output().unwrap()).ends(2);
    }
}

#[test]
fn a_message_row_that_cannot_be_read_does_not_hide_the_others() {
    let home = Home::new();
    home.say("first").ends(0);
    home.say("second").ends(0);
    // Without Python there is nobody to break it.
    if !home.sql("update messages set body = '{' where seq = 2") {
        return;
    }
    let ran = home.cepa(&["history", "talk"]);
    assert!(ran.ends(1).contains("first") && ran.out.contains("second"), "{ran:?}");
    assert!(ran.err.contains("message 2 is left out"), "{ran:?}");
}

/// Nobody reads the output, so that writing it holds up the only thread of the runtime.
#[cfg(unix)]
#[test]
fn a_second_ctrl_c_leaves_whatever_holds_the_process_up() {
    use std::{io::Read, process::Stdio, time::Duration};

    let home = Home::new();
    let text = "word ".repeat(1 << 18);
    let body = format!(r#"{{"choices": [{{"message": {{"content": "{text}"}}, "finish_reason": "stop"}}]}}"#);
    let url = server("200 OK", Box::leak(body.into_boxed_str()));
    let mut command = home.bare(&["run", "hello", "--model", "openai/x", "--base-url", &url, "--db"]);
    command.arg(home.db()).env("OPENAI_API_KEY", "sk-secret-1234567890");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 4]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    common::interrupt(&child);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(child.try_wait().unwrap(), None, "one Ctrl-C asks");
    common::interrupt(&child);
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        assert!(std::time::Instant::now() < end, "it does not leave");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
