//! Any conversation, whole or damaged, becomes a request that the API takes, and the next one begins with its bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod arbitrary;
mod rules;

use std::collections::BTreeMap;

use cepa_core::{ChatRequest, ErrorKind, History, Message, Origin, RawJson, Role, pairing};
use cepa_providers::wire::{
    Dialect,
    openai_chat::{OpenAiChat, Quirks, SystemPlace},
};
use cepa_testkit::{
    arbitrary as arbitrary_kit,
    validate::{self, openai_chat::Endpoint},
};
use proptest::prelude::*;

fn body(dialect: &OpenAiChat, messages: &[Message]) -> Result<String, cepa_core::Error> {
    encode(dialect, &ChatRequest::new(messages.to_vec()))
}

fn encode(dialect: &OpenAiChat, request: &ChatRequest) -> Result<String, cepa_core::Error> {
    Ok(String::from_utf8(dialect.encode(request)?.concat()).expect("the body is UTF-8"))
}

/// The exact text of the messages array.
fn messages_of(body: &str) -> String {
    serde_json::from_str::<BTreeMap<String, RawJson>>(body).unwrap()["messages"].as_str().to_owned()
}

/// Whether a request that ends here is one that a conversation passes through: everything in it is as it will stay.
fn is_settled(prefix: &[Message], whole: &[Message], dialect: &OpenAiChat) -> bool {
    let heal = |messages: &[Message]| pairing::heal(&History::from(messages.to_vec()));
    let (before, after) = (heal(prefix), heal(whole));
    let system_moves = dialect.quirks().system == SystemPlace::Single
        || before.messages().all(|message| message.role() == Role::System);
    let adds_system = whole.iter().skip(prefix.len()).any(|message| message.role() == Role::System);
    before.messages().eq(after.messages().take(before.len())) && !(system_moves && adds_system)
}

proptest! {
    // W1, W3: what leaves is legal for the API, whatever the history holds.
    #[test]
    fn any_history_becomes_a_legal_request(dialect in arbitrary::dialect(), messages in arbitrary::history()) {
        match body(&dialect, &messages) {
            Ok(body) => prop_assert_eq!(rules::broken(&body, dialect.quirks()), Vec::<String>::new(), "{}", body),
            Err(error) => prop_assert!(messages.iter().all(|m| m.role() == Role::System || m.role() == Role::Tool), "{error}"),
        }
    }

    #[test]
    fn encoding_is_idempotent(dialect in arbitrary::dialect(), other in arbitrary::dialect(), messages in arbitrary::history()) {
        let request = ChatRequest::new(messages.clone());
        let first = encode(&dialect, &request).ok();
        // What another dialect keeps beside the messages in between changes nothing.
        let _ = encode(&other, &request);
        prop_assert_eq!(encode(&dialect, &request).ok(), first.clone());
        prop_assert_eq!(encode(&dialect, &request).ok(), first.clone());
        let healed: Vec<Message> = pairing::heal(&request.messages).messages().cloned().collect();
        prop_assert_eq!(body(&dialect, &healed).ok(), first);
    }

    // W1: a window over the same entries is encoded as if nothing had been kept beside them.
    #[test]
    fn what_is_kept_beside_messages_is_right_in_every_window(
        dialect in arbitrary::dialect(),
        messages in arbitrary::history(),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = History::from(messages.clone());
        let _ = encode(&dialect, &ChatRequest::new(whole.clone()));
        let start = cut.index(messages.len() + 1);
        let window: History = whole.iter_from(start).cloned().collect();
        let fresh = body(&dialect, &messages[start..]).ok();
        prop_assert_eq!(encode(&dialect, &ChatRequest::new(window)).ok(), fresh);
    }

    // W2: the messages of a request are the beginning of the next one's, byte for byte.
    #[test]
    fn the_next_request_begins_with_the_bytes_of_this_one(
        dialect in arbitrary::dialect(),
        messages in arbitrary::history(),
        cut in any::<prop::sample::Index>(),
    ) {
        let prefix = &messages[..cut.index(messages.len() + 1)];
        if !is_settled(prefix, &messages, &dialect) {
            return Ok(());
        }
        let (Ok(before), Ok(after)) = (body(&dialect, prefix), body(&dialect, &messages)) else { return Ok(()) };
        let (before, after) = (messages_of(&before), messages_of(&after));
        let open = before.strip_suffix(']').unwrap();
        prop_assert!(after.starts_with(open), "{before}\nis not the beginning of\n{after}");
    }

    // W2, as a conversation really grows: the same entries, pushed one by one, with what was encoded kept beside them.
    #[test]
    fn a_growing_conversation_keeps_its_bytes(dialect in arbitrary::dialect(), turns in arbitrary::turns()) {
        let mut history = History::new();
        let mut before = String::from("[");
        for turn in turns {
            turn.into_iter().for_each(|message| history.push(message));
            let body = encode(&dialect, &ChatRequest::new(history.clone())).unwrap();
            prop_assert_eq!(rules::broken(&body, dialect.quirks()), Vec::<String>::new(), "{}", body);
            let messages = messages_of(&body);
            prop_assert!(messages.starts_with(&before), "{before}\nis not the beginning of\n{messages}");
            before = messages.strip_suffix(']').unwrap().to_owned();
        }
    }
}

// W1, W3: the same by another judge and over other conversations, with OpenAI itself.
#[test]
fn the_testkits_judge_agrees() {
    let dialect = OpenAiChat::new(Origin { provider: "openai".into(), model: "m".into() }, Quirks::default());
    // OpenAI itself takes system messages anywhere.
    let endpoint = Endpoint { system_anywhere: true, ..Endpoint::default() };
    let property = |messages: &[Message], _: &mut arbitrary_kit::Rng| match body(&dialect, messages) {
        Ok(body) => {
            let body = serde_json::from_str(&body).map_err(|error| error.to_string())?;
            match validate::openai_chat::validate_for(&body, endpoint) {
                none if none.is_empty() => Ok(()),
                found => Err(validate::list(&found)),
            }
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    for plan in [arbitrary_kit::Plan::VALID, arbitrary_kit::Plan::WILD] {
        arbitrary_kit::for_all(0..1000, plan, property).unwrap();
    }
    // What every wire takes is never refused.
    let taken = |messages: &[Message], _: &mut arbitrary_kit::Rng| match body(&dialect, messages) {
        Err(error) if !messages.is_empty() => Err(error.to_string()),
        _ => Ok(()),
    };
    arbitrary_kit::for_all(0..1000, arbitrary_kit::Plan::VALID, taken).unwrap();
}
