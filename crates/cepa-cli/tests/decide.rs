//! Decisions from another process: each kind, once and again, after a crash, and from another folder.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Stdio;

use common::{Home, finished, wait_for};
use serde_json::{Value, json};

#[test]
fn an_approved_call_runs_once_however_often_it_is_approved() {
    let home = Home::new();
    let ran = home.say("write hello to notes.txt");
    assert_eq!(ran.ends(3), "");
    assert!(ran.err.contains("cepa approve"), "{ran:?}");
    assert!(!home.file("notes.txt").exists());
    let pause = home.only_pause("write_file");
    let answer = home.cepa(&["approve", &pause]).ends(0).to_owned();
    assert_eq!(answer, "write_file says:\ncreated notes.txt (5 bytes)\n");
    assert_eq!(home.text("notes.txt"), "hello");
    assert!(home.pending().is_empty());
    // H4: the same again tells the same and runs nothing.
    std::fs::remove_file(home.file("notes.txt")).unwrap();
    let again = home.cepa(&["approve", &pause]);
    assert_eq!(again.ends(0), answer);
    assert!(again.err.contains("already decided this way; this is what came of it:"), "{again:?}");
    assert!(!home.file("notes.txt").exists());
    home.cepa(&["reject", &pause]).fails_with(1, "already decided");
}

#[test]
fn a_list_of_waiting_calls_says_all_that_a_script_needs() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let pending = home.pending();
    let pause = pending[0].as_object().unwrap();
    let members: Vec<&str> = pause.keys().map(String::as_str).collect();
    assert_eq!(members, ["args", "conversation", "created", "expires", "kind", "pause_id", "reason", "tool"]);
    assert_eq!((&pause["kind"], &pause["conversation"]), (&json!("approval"), &json!("talk")));
    assert_eq!(pause["args"], json!({"path": "notes.txt", "content": "hello"}));
    let shown = home.cepa(&["pending"]);
    assert!(
        shown.ends(0).contains("write_file waits for your decision:\n    path: notes.txt\n    content: hello\n"),
        "{shown:?}"
    );
    for way in ["edit ID '{\"path\": …}'", "reply ID TEXT"] {
        assert!(shown.out.contains(way), "{shown:?}");
    }
}

#[test]
fn rejected_edited_and_answered_calls() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let ran = home.cepa(&["reject", &home.only_pause("write_file"), "not", "on a Sunday"]);
    assert!(ran.ends(0).contains("did not run") && ran.out.contains("not on a Sunday"), "{ran:?}");
    assert!(!home.file("notes.txt").exists());

    home.say("write hello to notes.txt").ends(3);
    let pause = home.only_pause("write_file");
    home.cepa(&["edit", &pause, "{\"path\": 3}"]).fails_with(1, "cannot run");
    for no_object in ["good day", "[1]", "\"a\""] {
        home.cepa(&["edit", &pause, no_object]).fails_with(1, "give an object, such as the one shown");
    }
    home.cepa(&["edit", &pause, r#"{"path": "other.txt", "content": "good day"}"#]).ends(0);
    assert_eq!(home.text("other.txt"), "good day");
    assert!(!home.file("notes.txt").exists());

    home.say("run date").ends(3);
    let ran = home.fed(&["reply", &home.only_pause("run_shell"), "-"], b"it is noon\n");
    assert_eq!(ran.ends(0), "run_shell says:\nit is noon\n");
    home.cepa(&["approve", "t0.0.0"]).fails_with(1, "see `cepa pending`");
}

#[test]
fn a_turn_goes_on_when_all_its_calls_are_decided() {
    let home = Home::new();
    home.say("write a to a.txt; write b to b.txt").ends(3);
    let pending = home.pending();
    let id = |n: usize| pending[n]["pause_id"].as_str().unwrap().to_owned();
    let ran = home.cepa(&["approve", &id(1)]);
    assert_eq!(ran.ends(3), "");
    assert!(!home.file("b.txt").exists());
    home.cepa(&["reject", &id(0)]).ends(0);
    assert_eq!(home.text("b.txt"), "b");
    assert!(!home.file("a.txt").exists());
}

#[test]
fn a_call_runs_in_the_folder_where_it_was_shown() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let pause = home.only_pause("write_file");
    let elsewhere = home.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = home.command(&["approve", &pause, "--root", "."]);
    finished(command.current_dir(&elsewhere).output().unwrap()).fails_with(2, "shown for the folder");
    let mut command = home.command(&["approve", &pause]);
    finished(command.current_dir(&elsewhere).output().unwrap()).ends(0);
    assert_eq!(home.text("notes.txt"), "hello");
    assert!(!elsewhere.join("notes.txt").exists());
}

#[test]
fn the_model_goes_on_that_began() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let pause = home.only_pause("write_file");
    // A key alone would choose another one, and send it all there.
    let mut command = home.bare(&["approve", &pause, "--db"]);
    let ran = finished(command.arg(home.db()).env("OPENAI_API_KEY", "sk-1234567890").output().unwrap());
    assert!(ran.ends(0).contains("created notes.txt"), "{ran:?}");
    assert!(ran.err.contains("offline (as the turn began)"), "{ran:?}");
}

#[test]
fn a_new_message_cancels_what_waits() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let pause = home.only_pause("write_file");
    let ran = home.say("hello");
    ran.ends(0);
    assert!(ran.err.contains(&format!("this message cancelled the waiting call {pause}: write_file")), "{ran:?}");
    assert!(!home.say("hello").err.contains("cancelled"));
    assert!(home.cepa(&["run", "--help"]).ends(0).contains("cancelled by the new message"));
    assert!(home.pending().is_empty());
    home.cepa(&["approve", &pause]).fails_with(1, "cancelled");
    assert!(!home.file("notes.txt").exists());
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_the_turn_and_keeps_the_conversation() {
    let home = Home::new();
    home.say("run touch began; sleep 60; touch ended").ends(3);
    let child = home.command(&["approve", &home.only_pause("run_shell"), "--json"]).spawn().unwrap();
    wait_for(&home.file("began"));
    common::interrupt(&child);
    let ran = finished(child.wait_with_output().unwrap());
    ran.ends(130);
    assert_eq!(ran.lines().last().unwrap()["status"], "cancelled");
    assert!(!home.file("ended").exists());
    // The history is whole: the next turn finds it.
    assert!(home.say("what did I say").ends(0).contains("run touch began"));
}

// D2: a call that started and whose end nobody saw is not run again, and nobody claims to know.
#[cfg(unix)]
#[test]
fn a_process_killed_in_a_call_leaves_a_question() {
    let home = Home::new();
    home.say("run echo $$ >> ran.txt; sleep 60").ends(3);
    let pause = home.only_pause("run_shell");
    let mut child = home.command(&["approve", &pause]).spawn().unwrap();
    wait_for(&home.file("ran.txt"));
    while home.text("ran.txt").is_empty() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    end_group(&home.text("ran.txt"));

    // The dead process's claim runs out first; that we wait is said.
    let ran = home.cepa(&["approve", &pause]);
    ran.ends(3);
    assert!(ran.err.contains("another process"), "{ran:?}");
    assert_eq!(home.text("ran.txt").lines().count(), 1);
    let pending = home.pending();
    assert_eq!((pending.len(), &pending[0]["kind"]), (1, &json!("unknown")));
    let unknown = pending[0]["pause_id"].as_str().unwrap();
    assert!(home.cepa(&["reply", unknown, "nobody knows"]).ends(0).contains("nobody knows"));
    assert_eq!(home.text("ran.txt").lines().count(), 1);
}

/// Ends what a killed process had started: the group whose leader this is.
#[cfg(unix)]
fn end_group(leader: &str) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let leader = Pid::from_raw(leader.trim().parse().unwrap()).unwrap();
    kill_process_group(leader, Signal::KILL).unwrap();
}

#[cfg(unix)]
#[test]
fn a_turn_that_another_process_works_on_is_no_crash() {
    let home = Home::new();
    home.say("run touch began; sleep 60").ends(3);
    let child = home.command(&["approve", &home.only_pause("run_shell")]).spawn().unwrap();
    wait_for(&home.file("began"));
    let ran = home.cepa(&["recover"]);
    assert_eq!(ran.ends(0), "");
    assert!(ran.err.contains("conversation talk: another process is working on it, left alone"), "{ran:?}");
    common::interrupt(&child);
    finished(child.wait_with_output().unwrap()).ends(130);
    assert!(home.cepa(&["recover"]).err.contains("no turn was interrupted"));
}

// H8: the error for another tool names the way to accept it, where there is one.
#[test]
fn a_call_whose_tool_has_changed_since_it_was_shown() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let pause = home.only_pause("write_file");
    // Without Python there is nobody to change it.
    if !home.sql("update pauses set tool = 'gone_tool'") {
        return;
    }
    for flags in [&[][..], &["--accept-changed-tools"]] {
        let ran = home.cepa(&[&["approve", &pause], flags].concat());
        ran.fails_with(1, "is gone");
        assert!(!ran.err.contains("accept"), "{ran:?}");
    }
    home.sql("update pauses set tool = 'write_file', schema_hash = 'of another day'");
    home.cepa(&["approve", &pause]).fails_with(1, "--accept-changed-tools");
    home.cepa(&["reject", &pause, "--accept-changed-tools"]).ends(2);
    home.cepa(&["approve", &pause, "--accept-changed-tools"]).ends(0);
    assert_eq!(home.text("notes.txt"), "hello");
}

#[test]
fn a_call_that_nobody_decided_in_time_says_how_to_go_on() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let pause = home.only_pause("write_file");
    if !home.sql("update pauses set expires = 1") {
        return;
    }
    home.cepa(&["approve", &pause]).fails_with(1, "say something new, or `recover`");
    assert!(home.cepa(&["recover"]).ends(0).contains("did not run"));
    assert!(!home.file("notes.txt").exists());
}

#[test]
fn two_that_approve_at_once_run_it_once() {
    let home = Home::new();
    home.say("run echo once >> ran.txt").ends(3);
    let pause = home.only_pause("run_shell");
    let start = || home.command(&["approve", &pause]).stdout(Stdio::piped()).spawn().unwrap();
    let children = [start(), start(), start()];
    let ran = children.map(|child| finished(child.wait_with_output().unwrap()));
    for ran in &ran {
        assert!(ran.ends(0).contains("run_shell says"), "{ran:?}");
    }
    assert_eq!(home.text("ran.txt"), "once\n");
    let history = home.cepa(&["history", "talk", "--json"]).lines();
    let roles: Vec<&Value> = history.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[test]
fn the_audit_trail_tells_what_was_shown_decided_and_run() {
    // H1
    let home = Home::new();
    assert_eq!(home.cepa(&["audit"]).ends(0), "nobody was asked anything\n");
    assert_eq!(home.cepa(&["audit", "--json"]).ends(0), "");
    home.say("write hello to notes.txt").ends(3);
    let pause = home.only_pause("write_file");
    home.cepa(&["edit", &pause, r#"{"path": "other.txt", "content": "a\u001b[2Jb"}"#]).ends(0);
    home.say("write hello to notes.txt").ends(3);
    home.cepa(&["reject", &home.only_pause("write_file"), "not", "on a Sunday"]).ends(0);
    let json = home.cepa(&["audit", "--json"]).ends(0).to_owned();
    let trail: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let what: Vec<&str> = trail.iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["shown", "edited", "ran", "finished", "shown", "rejected"]);
    assert_eq!(trail[0]["pause_id"], json!(pause));
    assert_eq!(trail[2]["args"], json!(r#"{"path": "other.txt", "content": "a\u001b[2Jb"}"#));
    assert_eq!((&trail[3]["status"], &trail[5]["reason"]), (&json!("ok"), &json!("not on a Sunday")));
    assert!(trail[1]["actor"].as_str().is_some_and(|actor| !actor.is_empty()), "{json}");
    let shown = home.cepa(&["audit"]);
    assert!(shown.ends(0).contains("rejected") && !shown.out.contains('\u{1b}'), "{shown:?}");
    // 2030-01-31 12:00:07+00:00
    let (at, zone) = shown.out.get(..25).unwrap().split_at(19);
    assert!(at.matches(':').count() == 2 && zone.matches(':').count() == 1, "{shown:?}");
    assert_eq!(home.cepa(&["audit", "--conversation", "nope"]).ends(0), "nothing in conversation nope\n");
    // By whom: the one who is named, or who is logged in.
    home.say("write hello to notes.txt").ends(3);
    home.cepa(&["reject", &home.only_pause("write_file"), "--as", "anna"]).ends(0);
    assert!(home.cepa(&["audit"]).ends(0).trim_end().lines().last().unwrap().contains("by anna"));
}
