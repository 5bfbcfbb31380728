//! What is closed is encoded once, sent as it is, and held once.

use bytes::Bytes;
use cepa_core::{Args, AssistantMessage, ChatRequest, History, Message, Origin, ToolCall, ToolStatus, WireKey};

use crate::wire::{
    Dialect,
    anthropic::AnthropicMessages,
    gemini::GenerateContent,
    json::SHARED_FROM,
    openai_chat::{OpenAiChat, Quirks},
    openai_responses::{self, Responses},
};

type Encode = Box<dyn Fn(&History) -> Vec<Bytes>>;

/// A name, the text of the key for which messages are kept, and what encodes.
fn encoders() -> [(&'static str, String, Encode); 4] {
    fn of<D: Dialect>(dialect: D) -> Encode {
        Box::new(move |history| dialect.encode(&ChatRequest::new(history.clone())).unwrap())
    }
    let origin = || Origin { provider: "p".into(), model: "m".into() };
    let (quirks, others) = (Quirks::default(), openai_responses::Quirks::default());
    [
        ("chat", format!("openai_chat\np\nm\n{quirks:?}"), of(OpenAiChat::new(origin(), quirks))),
        ("anthropic", "anthropic\np\nm".to_owned(), of(AnthropicMessages::new(origin()))),
        ("gemini", "gemini\np\nm\nBefore3".to_owned(), of(GenerateContent::new(origin()))),
        ("responses", format!("openai_responses\np\nm\n{others:?}\nWhole"), of(Responses::new(origin(), others))),
    ]
}

/// Rounds of four messages, each of about as many bytes as `text`.
fn conversation(rounds: usize, text: &str) -> History {
    let mut history = History::new();
    for round in 0..rounds {
        let id = format!("call{round}");
        history.push(Message::user(format!("{round} {text}")));
        let tool_calls = vec![ToolCall::new(&id, "add", Args::decode(r#"{"a":1}"#))];
        history.push(Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::default() }));
        history.push(Message::tool(&id, "add", ToolStatus::Ok, text));
        history.push(Message::assistant(text));
    }
    history
}

/// Whether a part of these bytes lies in one of the pieces.
fn lies_in(pieces: &[Bytes], bytes: &Bytes) -> bool {
    let (from, to) = (bytes.as_ptr().addr(), bytes.as_ptr().addr() + bytes.len());
    pieces.iter().any(|piece| {
        let start = piece.as_ptr().addr();
        start <= from && to <= start + piece.len()
    })
}

// P2: sealed pieces are coalesced, and the very same bytes are sent again.
#[test]
fn a_long_history_is_sent_as_few_pieces_that_stay_where_they_are() {
    for (name, _, encode) in encoders() {
        let mut history = conversation(500, &"x".repeat(100));
        let first = encode(&history);
        let size: usize = first.iter().map(Bytes::len).sum();
        let large: Vec<&Bytes> = first.iter().filter(|piece| piece.len() >= SHARED_FROM).collect();
        let shared: usize = large.iter().map(|piece| piece.len()).sum();
        assert!(first.len() <= size / SHARED_FROM + 2, "{name}: {size} bytes are {} pieces", first.len());
        assert!(size - shared < 2 * SHARED_FROM, "{name}: {shared} bytes of {size} are shared");
        history.push(Message::user("more"));
        let second = encode(&history);
        // The first piece also holds what stands before the messages, and may be another one each time.
        for piece in &large[1..] {
            assert!(second.iter().any(|other| other.as_ptr() == piece.as_ptr()), "{name}: a piece was made again");
        }
    }
}

// P2, P3: nothing is held twice: a message keeps its part of the shared pieces.
#[test]
fn messages_keep_parts_of_the_pieces() {
    for text in [100, 1_000, 5_000].map(|size| "x".repeat(size)) {
        for (name, key, encode) in encoders() {
            let (key, history) = (WireKey::new(key.as_str()), conversation(100, &text));
            encode(&history);
            let pieces = encode(&history);
            let apart: Vec<usize> = history
                .iter()
                .enumerate()
                .filter_map(|(place, entry)| Some((place, entry.encoded.get(&key)?)))
                .filter(|(_, bytes)| !lies_in(&pieces, bytes))
                .map(|(place, _)| place)
                .collect();
            // What is not in shared pieces yet is copied into the body.
            let few = 2 * SHARED_FROM / text.len() + 20;
            assert!(apart.len() <= few, "{name}, {}: {apart:?} are held apart", text.len());
            assert!(history.iter().all(|entry| entry.encoded.get(&key).is_some()), "{name}: all are kept");
        }
    }
}

// A conversation that is led with two models in turn, or goes on in two ways: each finds what it made.
#[test]
fn two_wires_and_two_ways_on_share_a_beginning() {
    let [chat, anthropic, ..] = encoders();
    let beginning = conversation(300, &"x".repeat(100));
    let (mut one, mut other) = (beginning.clone(), beginning.clone());
    let large = |pieces: Vec<Bytes>| -> Vec<usize> {
        pieces.iter().filter(|piece| piece.len() >= SHARED_FROM).skip(1).map(|piece| piece.as_ptr().addr()).collect()
    };
    let firsts = [large(chat.2(&beginning)), large(anthropic.2(&beginning))];
    for turn in 0..3 {
        one.push(Message::user(format!("one {turn}")));
        other.push(Message::user(format!("other {turn}")));
        for history in [&one, &other] {
            assert!(large(chat.2(history)).starts_with(&firsts[0]));
            assert!(large(anthropic.2(history)).starts_with(&firsts[1]));
        }
    }
}
