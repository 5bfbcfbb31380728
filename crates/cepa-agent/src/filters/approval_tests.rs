//! The question on the terminal.

use cepa_core::{Args, ToolCall};

use super::{Answer, ask_on};

fn ask(args: &str, typed: &str) -> (String, Answer) {
    let mut shown = Vec::new();
    let call = ToolCall::new("c1", "shell", Args::decode(args));
    let answer = ask_on(&call, &mut shown, &mut typed.as_bytes()).unwrap();
    (String::from_utf8(shown).unwrap(), answer)
}

#[test]
fn only_a_clear_yes_is_a_yes() {
    // F10
    let refuse = |reason: Option<&str>| Answer::Refuse { reason: reason.map(str::to_owned) };
    for (typed, answer) in [
        ("y\n", Answer::Allow),
        ("  YES \r\n", Answer::Allow),
        ("y", Answer::Allow),
        ("\n", refuse(None)),
        ("", refuse(None)),
        ("n\n", refuse(None)),
        ("no, too risky\n", refuse(None)),
        ("n too risky\n", refuse(Some("too risky"))),
        ("yes but not now\n", refuse(None)),
        ("yep\n", refuse(None)),
    ] {
        let (shown, said) = ask(r#"{"command":"ls"}"#, typed);
        assert_eq!(said, answer, "`{typed}`");
        assert_eq!(shown, r#"Run shell {"command":"ls"}? [y/N] "#);
    }
}

#[test]
fn what_is_approved_is_what_is_seen() {
    // C1 controls, direction marks and invisible characters pass through JSON unescaped.
    let (shown, _) = ask("{\"command\":\"rm\u{9b}2K\u{202e}\u{200b} 北京\"}", "n\n");
    assert_eq!(shown, "Run shell {\"command\":\"rm\\u{9b}2K\\u{202e}\\u{200b} 北京\"}? [y/N] ");
}
