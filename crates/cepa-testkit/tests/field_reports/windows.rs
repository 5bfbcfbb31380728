//! Windows over a conversation: what a cut may do.

use std::sync::Arc;

use cepa_agent::{ChatMemory, InMemory, TokenEstimate, Version, Window, Windowed, load_whole};
use cepa_core::{Entry, History, Message, Role, pairing};

use super::{
    story::{calls, story},
    wires::{Seen, all, request},
};

/// What a window shows of these messages.
fn view(messages: &[Message], window: Window) -> History {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let memory = Windowed::new(InMemory::new(), window);
        let entries = messages.iter().map(|message| Arc::new(Entry::new(message.clone()))).collect();
        memory.append("c", Version::default(), entries).await.unwrap();
        load_whole(&memory, "c").await.unwrap().1
    })
}

#[test]
fn a_cut_never_parts_a_call_from_its_result() {
    for words in [
        // FR-001, FR-003, FR-004: wherever the cut falls, a call and its results stay or go together.
        "u c:a r:a a u c:b,c r:b r:c a u",
        "u c:a r:a c:b r:b c:c r:c u",
        // FR-002: no orphan at either end, on any path into the window.
        "u c:a,b,c r:a r:b r:c u",
        // FR-005: what is still open stays with its call.
        "u a u c:a,b r:a r:b",
    ] {
        let messages = story(words);
        for limit in 1..=10 {
            let shown = view(&messages, Window::messages(limit).unwrap());
            assert_eq!(pairing::validate(&shown), Ok(()), "`{words}` through {limit}: {shown:?}");
            assert_eq!(shown.last().map(|entry| &entry.message), messages.last(), "`{words}` through {limit}");
            // FR-006: it begins with the user.
            let first = shown.messages().find(|message| message.role() != Role::System).unwrap();
            assert_eq!(first.role(), Role::User, "`{words}` through {limit}");
            let shown: Vec<Message> = shown.messages().cloned().collect();
            for wire in all() {
                let seen = Seen::of(&wire.sent(&shown));
                assert_eq!(seen.calls.len(), seen.results.len(), "{} of `{words}` through {limit}", wire.name);
            }
        }
    }
}

// FR-133: calls, their arguments, results and system text count, not only what was said.
#[test]
fn all_that_is_sent_is_counted() {
    let args = format!(r#"{{"text":"{}"}}"#, "word ".repeat(400));
    let mut messages = story("u a u");
    messages.push(calls([super::story::call("a", &args)]));
    messages.extend([Message::tool("a", "look", cepa_core::ToolStatus::Ok, "word ".repeat(400))]);
    messages.extend(story("a u"));
    assert_eq!(view(&messages, Window::tokens(3000, TokenEstimate).unwrap()).len(), messages.len());
    let small = view(&messages, Window::tokens(200, TokenEstimate).unwrap());
    assert!(small.messages().all(|message| message.tool_calls().is_empty()), "{small:?}");
}

// FR-140, FR-141: the beginning moves in steps, not with every message, so that what a provider has cached is used.
#[test]
fn the_beginning_moves_rarely() {
    let mut messages = Vec::new();
    let mut beginnings = Vec::new();
    for turn in 0..60 {
        messages.push(Message::user(format!("question {turn}")));
        let shown = view(&messages, Window::messages(20).unwrap());
        let first = shown.messages().next().unwrap().text().into_owned();
        if beginnings.last() != Some(&first) {
            beginnings.push(first);
        }
        messages.push(Message::assistant(format!("answer {turn}")));
    }
    // 120 messages through a window of 20 that is cut to 15.
    assert!((2..=24).contains(&beginnings.len()), "{beginnings:?}");
}

// FR-139, FR-141: between two steps each request begins with the bytes of the one before it.
#[test]
fn what_was_sent_stays_as_it_was() {
    for wire in all() {
        let mut before = String::new();
        let mut messages = Vec::new();
        for turn in 0..8 {
            messages.extend(story(if turn % 2 == 0 { "u c:a r:a" } else { "c:a,b r:b r:a a u" }));
            let body = wire.text(&request(&messages));
            let lists = [r#""messages":["#, r#""contents":["#, r#""input":["#];
            let start = lists.iter().find_map(|list| body.find(list)).unwrap();
            let sent = body[start..].split(r#","store""#).next().unwrap().trim_end_matches([']', '}']).to_owned();
            assert!(sent.starts_with(&before), "{}: not a beginning:\n{before}\n{sent}", wire.name);
            before = sent;
        }
    }
}
