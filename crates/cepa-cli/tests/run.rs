//! `cepa run`: the answer, the exit code, JSON lines, standard input, and what is kept.

mod common;

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use common::{Home, feed, finished, server};
use serde_json::{Value, json};

#[test]
fn an_answer_is_printed_and_nothing_else() {
    let home = Home::new();
    std::fs::write(home.file("README.md"), "The onion is called Cepa.\n").unwrap();
    let ran = home.say("read README.md");
    assert_eq!(ran.ends(0), "read_file says:\nREADME.md: 1 line, 26 bytes\n\nThe onion is called Cepa.\n");
    // The offline model is always said to be one.
    assert!(ran.err.contains("model: offline"), "{ran:?}");
}

#[test]
fn a_conversation_goes_on_in_the_next_process() {
    let home = Home::new();
    home.say("my onion is red").ends(0);
    assert_eq!(home.say("what did I say?").ends(0), "You said:\n  my onion is red\n");
    let history = home.cepa(&["history", "talk", "--json"]);
    let roles: Vec<Value> = history.lines().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let list: Value = serde_json::from_str(home.cepa(&["conversations", "--json"]).ends(0)).unwrap();
    assert_eq!((list[0]["id"].as_str(), list[0]["messages"].as_u64()), (Some("talk"), Some(4)));
    assert!(home.cepa(&["history", "talk"]).ends(0).contains("my onion is red"));
}

#[test]
fn without_settings_everything_is_where_it_belongs() {
    let home = Home::new();
    let ran = finished(home.bare(&["run", "hello"]).output().unwrap());
    assert!(ran.ends(0).contains("offline model"));
    assert!(ran.err.contains("no key and no local model"), "{ran:?}");
    let db = home.path(".local/share/cepa/cepa.db");
    assert!(db.exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&db), mode(db.parent().unwrap())), (0o600, 0o700));
    }
    // What is no longer needed beside the database is cleared away.
    assert_eq!(std::fs::read_dir(db.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn to_look_makes_no_database() {
    let home = Home::new();
    assert_eq!(home.cepa(&["pending", "--json"]).ends(0), "[]\n");
    assert_eq!(home.cepa(&["conversations", "--json"]).ends(0), "[]\n");
    home.cepa(&["history", "talk"]).fails_with(1, "there is no conversation talk");
    home.cepa(&["recover"]).ends(0);
    home.cepa(&["doctor"]).ends(0);
    assert!(!home.db().exists());
}

#[test]
fn without_a_home_the_conversation_is_not_kept_and_that_is_said() {
    let home = Home::new();
    let ran = finished(home.bare(&["run", "hello", "--model", "offline"]).env_remove("HOME").output().unwrap());
    ran.ends(0);
    assert!(ran.err.contains("warning") && ran.err.contains("--db"), "{ran:?}");
    let ran = finished(home.bare(&["pending"]).env_remove("HOME").output().unwrap());
    ran.fails_with(2, "--db");
}

#[test]
fn events_are_json_lines_and_end_with_the_result() {
    let home = Home::new();
    let ran = home.cepa(&["run", "list files; write a to a.txt", "--json", "--conversation", "talk"]);
    ran.ends(3);
    let lines = ran.lines();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["tool_call", "tool_call", "usage", "paused", "result"]);
    let result = lines.last().unwrap();
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("paused"), &json!(3)));
    assert_eq!((&result["conversation"], &result["model"]), (&json!("talk"), &json!("offline")));
    assert_eq!(result["pending"][0]["args"], json!({"path": "a.txt", "content": "a"}));

    let pause = result["pending"][0]["pause_id"].as_str().unwrap();
    let ran = home.cepa(&["approve", pause, "--json"]);
    ran.ends(0);
    let lines = ran.lines();
    let text: String =
        lines.iter().filter_map(|line| line["text"].as_str().filter(|_| line["type"] == "text")).collect();
    let result = lines.last().unwrap();
    assert_eq!((&result["status"], &result["error"]), (&json!("completed"), &Value::Null));
    assert_eq!(result["text"], text.as_str());
    assert_eq!(result["records"][1]["outcome"], "ok");
}

#[test]
fn a_failure_is_told_in_json_too() {
    let home = Home::new();
    let ran = home.cepa(&["run", "hello", "--json", "--root", "nowhere"]);
    ran.ends(2);
    let lines = ran.lines();
    let result = lines.last().unwrap();
    assert_eq!(
        (&result["type"], &result["status"], &result["exit_code"]),
        (&json!("result"), &json!("error"), &json!(2))
    );
    assert_eq!(result["error"]["kind"], "invalid_config");
}

#[test]
fn what_is_piped_in_is_part_of_the_message() {
    let home = Home::new();
    home.fed(&["run", "sum this up:", "--conversation", "talk"], b"one\ntwo\n").ends(0);
    home.fed(&["run", "-", "--conversation", "talk"], b"three\n").ends(0);
    home.fed(&["run", "--conversation", "talk"], b"four\n").ends(0);
    let said = home.say("what did I say");
    let expected = "You said:\n  sum this up:\n\nFrom standard input:\none\ntwo\n  three\n  four\n";
    assert_eq!(said.ends(0), expected);
}

#[test]
fn a_read_that_takes_long_says_how_it_ends() {
    let home = Home::new();
    let mut child = home.command(&["run", "hello"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    while !told.contains("reading standard input") {
        assert!(err.read_line(&mut told).unwrap() > 0, "{told}");
    }
    assert!(told.contains("Ctrl-D") && told.contains("</dev/null"), "{told}");
    drop(child.stdin.take());
    assert!(finished(child.wait_with_output().unwrap()).ends(0).contains("offline model"));
}

#[test]
fn input_that_is_not_utf8_is_replaced_and_that_is_said() {
    let home = Home::new();
    let ran = home.fed(&["run", "--conversation", "talk"], b"caf\xe9 au lait");
    ran.ends(0);
    assert!(ran.err.contains("not UTF-8"), "{ran:?}");
    assert!(home.say("what did I say").ends(0).contains("caf\u{fffd} au lait"));
}

#[test]
fn wrong_usage_is_code_2() {
    let home = Home::new();
    home.cepa(&["run"]).fails_with(2, "nothing to say");
    home.cepa(&["run", " "]).fails_with(2, "nothing to say");
    home.cepa(&["walk"]).ends(2);
    let none = home.cepa(&["conversations", "-n", "0"]);
    none.ends(2);
    assert!(none.err.contains("give at least 1"), "{none:?}");
    home.cepa(&["edit", "p"]).ends(2);
    assert!(home.cepa(&["--help"]).ends(0).contains("opens a chat"));
    assert!(home.cepa(&["run", "--help"]).ends(0).contains("130"));
}

// L4: the budget of a turn, as a script sees it.
#[test]
fn tool_calls_that_are_used_up_are_code_4() {
    let home = Home::new();
    let again = r#"{"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "current_time", "arguments": "{}"}}]}}]}"#;
    let url = server("200 OK", again);
    std::fs::write(home.file("cepa.toml"), format!("model = \"openai/x\"\nbase_url = \"{url}\"\nmax_batches = 2"))
        .unwrap();
    let ran = finished(home.bare(&["run", "what time is it", "--json"]).output().unwrap());
    ran.ends(4);
    assert!(ran.err.contains("max_batches"), "{ran:?}");
    let outcomes: Vec<Value> = ran.lines().last().unwrap()["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["ok", "ok", "cancelled"]);
}

#[test]
fn settings_are_read_from_the_folder() {
    let home = Home::new();
    std::fs::write(home.file("cepa.toml"), "model = \"offline\"\ndb = \"talk.db\"").unwrap();
    let ran = finished(home.bare(&["run", "hello"]).output().unwrap());
    ran.ends(0);
    assert!(ran.err.contains("offline (cepa.toml)"), "{ran:?}");
    assert!(home.file("talk.db").exists());
    std::fs::write(home.file("cepa.toml"), "modle = \"offline\"").unwrap();
    finished(home.bare(&["run", "hello"]).output().unwrap()).fails_with(2, "do you mean model?");
}

#[test]
fn nobody_reading_is_no_panic() {
    let home = Home::new();
    for _ in 0..3 {
        home.say("hello").ends(0);
    }
    for words in [
        &["history", "talk"][..],
        &["conversations"],
        &["pending", "--json"],
        &["doctor"],
        &["run", "hello"],
        &["run", "hello", "--json"],
        &["chat"],
    ] {
        let mut child = home.command(words).stdin(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        drop(child.stdin.take());
        let ran = finished(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(141), "{words:?}: {ran:?}");
        assert!(!ran.err.contains("panic") && !ran.err.contains("cepa: "), "{words:?}: {ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_is_full_is_an_error() {
    let home = Home::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = finished(home.command(&["run", "hello"]).stdout(full).output().unwrap());
    ran.fails_with(1, "the output cannot be written");
}

#[test]
fn a_message_that_is_too_large_is_refused_and_nothing_is_stored() {
    let home = Home::new();
    home.say("hello").ends(0);
    let ran = home.fed(&["run", "-", "--conversation", "talk"], &vec![b'x'; 50 << 20]);
    ran.fails_with(1, "put it into a file");
    assert_eq!(home.cepa(&["history", "talk", "--json"]).lines().len(), 2);
    // Large, and just allowed.
    let large = feed(home.command(&["run", "-", "--conversation", "talk"]), &vec![b'x'; 7 << 20]);
    large.ends(0);
    assert_eq!(home.cepa(&["history", "talk", "--json"]).lines().len(), 4);
}
