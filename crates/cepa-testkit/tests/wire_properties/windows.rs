//! Any valid conversation through any window is legal for every wire.

use std::sync::Arc;

use cepa_agent::{ChatMemory, InMemory, TokenEstimate, Version, Window, Windowed, load_whole};
use cepa_core::{ChatRequest, Entry, History, Message, Role, pairing};
use cepa_testkit::arbitrary::{Plan, Rng, for_all};

use super::wires::Wire;

fn window(rng: &mut Rng) -> Window {
    let window = match rng.below(3) {
        0 => Window::messages(1 + rng.below(12) as u64),
        1 => Window::tokens(1 + rng.below(400) as u64, TokenEstimate),
        _ => Window::tokens(1 + rng.below(300) as u64, |message: &Message| 1 + message.text().len() as u64 / 4),
    };
    window.expect("more than nothing")
}

/// What the window shows after each append, in the order of a conversation.
async fn views(messages: &[Message], window: Window, at_once: usize) -> Vec<History> {
    let memory = Windowed::new(InMemory::new(), window);
    let mut version = Version::default();
    let mut views = Vec::new();
    for some in messages.chunks(at_once.max(1)) {
        let entries = some.iter().map(|message| Arc::new(Entry::new(message.clone()))).collect();
        version = memory.append("c", version, entries).await.expect("an append");
        views.push(load_whole(&memory, "c").await.expect("a view").1);
    }
    views
}

// M5: whole groups, a user message first, the newest always there, and nothing that a provider would refuse.
#[test]
fn any_window_shows_what_every_wire_takes() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let property = |messages: &[Message], rng: &mut Rng| {
        let at_once = 1 + rng.below(4);
        for view in runtime.block_on(views(messages, window(rng), at_once)) {
            let first = view.messages().find(|message| message.role() != Role::System);
            let anybody_spoke = view.messages().any(|message| message.role() == Role::User);
            if anybody_spoke && first.is_some_and(|message| message.role() != Role::User) {
                return Err(format!("it begins with {first:?}"));
            }
            let is_over = view.last().is_some_and(|last| last.message.role() == Role::User);
            if !is_over {
                continue;
            }
            // A view that ends with a question has every batch answered, as the conversation has.
            pairing::validate(&view).map_err(|(index, problem)| format!("{problem:?} at {index}: {view:?}"))?;
            for wire in [
                Wire::openai("m"),
                Wire::strict("m"),
                Wire::named("mistral", "m"),
                Wire::anthropic("m"),
                Wire::gemini("gemini-3-m"),
                Wire::responses("m"),
            ] {
                let body = wire.encode(&ChatRequest::new(view.clone())).map_err(|error| error.to_string())?;
                wire.judge(&body)?;
            }
        }
        let all = runtime.block_on(views(messages, window(rng), messages.len()));
        match (all.last().and_then(History::last), messages.last()) {
            (Some(shown), Some(last)) if shown.message == *last => Ok(()),
            (None, None) => Ok(()),
            (shown, last) => Err(format!("the newest is {last:?}, and {shown:?} is shown")),
        }
    };
    for_all(0..600, Plan::VALID, property).unwrap_or_else(|failure| panic!("{failure}"));
}
