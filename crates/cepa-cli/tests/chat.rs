//! The chat: decisions in place, killed and started again, slash commands, Ctrl-C.

mod common;

use common::{Home, wait_for};

#[test]
fn a_call_is_decided_in_place() {
    let home = Home::new();
    let mut chat = home.chat();
    let welcome = chat.until("/help for help\n");
    assert!(welcome.contains("model: offline") && welcome.contains("conversation: talk"), "{welcome}");
    chat.say("write hello to notes.txt");
    let shown = chat.until(" > ");
    assert!(shown.contains("write_file waits for your decision:\n  path: notes.txt\n  content: hello\n"), "{shown}");
    assert!(!home.file("notes.txt").exists());
    chat.say("what?");
    chat.until("nothing was decided");
    chat.until(" > ");
    chat.say("a");
    chat.until("created notes.txt (5 bytes)\n");
    assert_eq!(home.text("notes.txt"), "hello");
    assert_eq!(chat.leave().1, Some(0));
}

#[test]
fn killed_while_it_waits_it_goes_on_when_it_is_started_again() {
    let home = Home::new();
    let mut chat = home.chat();
    chat.say("write hello to notes.txt; run echo hi");
    chat.until(" > ");
    chat.say("a");
    chat.until("run_shell waits");
    chat.kill();

    // What was decided stays decided; the rest is asked before anything else.
    let mut chat = home.chat();
    let shown = chat.until(" > ");
    assert!(shown.contains("run_shell waits for your decision:\n  command: echo hi\n"), "{shown}");
    assert!(!shown.contains("write_file waits"), "{shown}");
    assert!(!home.file("notes.txt").exists());
    chat.say("a");
    chat.until("run_shell says:\nhi\n");
    assert_eq!(home.text("notes.txt"), "hello");
    assert_eq!(chat.leave().1, Some(0));
}

#[test]
fn every_kind_of_answer() {
    let home = Home::new();
    let mut chat = home.chat();
    chat.say("write hello to notes.txt");
    chat.until(" > ");
    chat.say("r");
    chat.until("reason");
    chat.say("not on a Sunday");
    chat.until("write_file did not run. Rejected");
    chat.until("not on a Sunday");

    chat.say("write hello to notes.txt");
    chat.until(" > ");
    chat.say("e {\"path\": 3}");
    chat.until("cannot run");
    chat.until(" > ");
    chat.say("e {\"path\": \"other.txt\", \"content\": \"good day\"}");
    chat.until("created other.txt");
    assert_eq!(home.text("other.txt"), "good day");

    chat.say("run date");
    chat.until(" > ");
    chat.say("l it is noon");
    chat.until("run_shell says:\nit is noon");

    chat.say("write hello to notes.txt");
    chat.until(" > ");
    chat.say("d");
    chat.until("goes on waiting");
    chat.say("/pending");
    chat.until("write_file waits");
    chat.until(" > ");
    let (rest, code) = chat.leave();
    assert_eq!(code, Some(0));
    assert!(rest.contains("still waits: write_file") && rest.contains("cepa approve"), "{rest}");
    assert!(!home.file("notes.txt").exists());
}

#[test]
fn what_a_tool_writes_does_not_reach_the_terminal_as_commands() {
    let home = Home::new();
    std::fs::write(home.file("evil.txt"), "\u{1b}]0;owned\u{7}\u{1b}[2J \u{202e}txt").unwrap();
    let mut chat = home.chat();
    chat.say("read evil.txt");
    let shown = chat.until("read_file says");
    let (rest, _) = chat.leave();
    let shown = shown + &rest;
    assert!(shown.contains("␛]0;owned␇␛[2J <U+202E>txt"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown:?}");
}

#[test]
fn slash_commands() {
    let home = Home::new();
    home.say("my onion is red").ends(0);
    let mut chat = home.chat();
    chat.say("/help");
    let help = chat.until("/pending");
    assert!(help.contains("\n  /new "), "{help}");
    chat.say("/history");
    chat.until("my onion is red");
    chat.say("/tools");
    chat.until("run_shell (asks first)");
    chat.say("/retry");
    chat.until("Nothing was said yet");
    chat.say("/histroy");
    chat.until("Do you mean /history?");
    chat.say("/new");
    chat.until("conversation: c");
    chat.say("what did I say");
    chat.until("Nothing yet");
    chat.say("/retry");
    chat.until("You said:\n  what did I say\n");
    chat.say("/open nope");
    chat.until("conversation: nope (new");
    chat.say("/open talk");
    chat.until("conversation: talk\n");
    chat.say("what did I say");
    chat.until("You said:\n  my onion is red\n");
    chat.say("two lines \\");
    chat.say("of one message");
    chat.until("offline model");
    chat.say("what did I say");
    chat.until("two lines \nof one message");
    chat.say("/quit");
    assert_eq!(chat.leave().1, Some(0));
}

#[test]
fn a_new_chat_says_what_waits_elsewhere() {
    let home = Home::new();
    home.say("write hello to notes.txt").ends(3);
    let ran = home.fed(&["chat"], b"/open talk\na\n");
    let shown = ran.ends(0);
    assert!(shown.contains("1 call waits for a decision elsewhere: /open talk"), "{shown}");
    assert!(shown.contains("created notes.txt"), "{shown}");
}

#[test]
fn an_error_does_not_end_the_chat() {
    let home = Home::new();
    std::fs::write(home.db(), "this is no database, but a letter to my aunt").unwrap();
    let ran = home.fed(&["chat"], b"hello\n/retry\n/quit\n");
    ran.ends(0);
    assert_eq!(ran.err.matches("name another file").count(), 2, "{ran:?}");
    assert_eq!(std::fs::read_to_string(home.db()).unwrap(), "this is no database, but a letter to my aunt");
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_the_turn_and_twice_leaves() {
    let home = Home::new();
    let mut chat = home.chat();
    chat.say("run touch began; sleep 60");
    chat.until(" > ");
    chat.say("a");
    wait_for(&home.file("began"));
    common::interrupt(&chat.child);
    chat.until("cancelled; the conversation is kept");
    chat.say("what did I say");
    chat.until("run touch began");
    // At the prompt, not in the turn.
    chat.say("/help");
    chat.until("Ctrl-C cancels");
    chat.until("next one.\n");
    common::interrupt(&chat.child);
    chat.until("Ctrl-C again");
    common::interrupt(&chat.child);
    assert_eq!(chat.child.wait().unwrap().code(), Some(130));
}
