//! What stands on the terminal after a turn's events.

use cepa::Args;

use super::*;

fn shown(events: &[AgentEvent]) -> String {
    let mut terminal = Terminal::new(Vec::new(), Style::none());
    for event in events {
        terminal.event(event).unwrap();
    }
    terminal.line_start().unwrap();
    String::from_utf8(terminal.out).unwrap()
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text(text.into())
}

#[test]
fn calls_stand_on_lines_of_their_own() {
    let args = Args::decode("{\"path\":\"a\"}");
    let shown = shown(&[
        text("Let me "),
        text("look."),
        AgentEvent::ToolCallReady { id: "1".into(), name: "read_file".into(), args },
        AgentEvent::ToolFinished {
            id: "1".into(),
            name: "read_file".into(),
            status: ToolStatus::Ok,
            content: "a: 1 line\n\n\u{1b}[31mred".into(),
        },
        text("Done.\n"),
    ]);
    assert_eq!(shown, "Let me look.\n→ read_file {\"path\":\"a\"}\n✓ read_file a: 1 line ␛[31mred\nDone.\n");
}

#[test]
fn a_line_break_cut_in_two_stays_one() {
    assert_eq!(shown(&[text("a\r"), text("\nb")]), "a\nb\n");
    assert_eq!(shown(&[text("a\r"), text("b")]), "a␍b\n");
    assert_eq!(shown(&[text("a\r")]), "a␍\n");
}

#[test]
fn reasoning_and_text_do_not_run_together() {
    assert_eq!(shown(&[AgentEvent::Reasoning("hm".into()), text("yes")]), "hm\nyes\n");
}

#[test]
fn an_answer_that_was_not_streamed_is_shown_once() {
    let mut terminal = Terminal::new(Vec::new(), Style::none());
    let mut result = TurnResult {
        status: cepa::TurnStatus::Completed,
        cancelled: None,
        turn: "t".into(),
        conversation: None,
        text: "whole".into(),
        message: None,
        finish_reason: None,
        records: Vec::new(),
        usage: cepa::Usage::default(),
        context: cepa::ToolContext::new(),
        pending: Vec::new(),
        state: None,
    };
    terminal.event(&text("who")).unwrap();
    terminal.event(&text("le")).unwrap();
    terminal.end(&result).unwrap();
    result.text = "direct".into();
    terminal.end(&result).unwrap();
    assert_eq!(String::from_utf8(terminal.out).unwrap(), "whole\ndirect\n");
}
