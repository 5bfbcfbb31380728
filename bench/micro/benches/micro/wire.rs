//! Encoding requests and decoding answers, each dialect.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use cepa::{
    Message,
    providers::wire::{
        anthropic::AnthropicMessages, gemini::GenerateContent, openai_chat::OpenAiChat, openai_responses::Responses,
    },
};
use divan::{Bencher, counter::BytesCount};
use micro::{talks, wires::Wire};

/// A conversation that nothing is encoded of yet: after a restart, or for another model.
#[divan::bench(types = [OpenAiChat, Responses, AnthropicMessages, GenerateContent], args = [10, 100, 1_000])]
fn encode_first<W: Wire>(bencher: Bencher<'_, '_>, messages: usize) {
    static MODELS: AtomicUsize = AtomicUsize::new(0);
    let request = talks::request(messages).expect("a request");
    bencher
        .with_inputs(|| W::of(&format!("model{}", MODELS.fetch_add(1, Relaxed))))
        .bench_refs(|wire| wire.encode(&request).expect("a body"));
}

/// The next request of a conversation: one message is new.
#[divan::bench(types = [OpenAiChat, Responses, AnthropicMessages, GenerateContent], args = [10, 100, 1_000])]
fn encode_next<W: Wire>(bencher: Bencher<'_, '_>, messages: usize) {
    let (wire, before) = (W::of("model"), talks::request(messages).expect("a request"));
    wire.encode(&before).expect("a body");
    let next = || {
        let mut request = before.clone();
        request.messages.push(Message::user("And what do 3 and 4 make?"));
        request
    };
    bencher.with_inputs(next).bench_refs(|request| wire.encode(request).expect("a body"));
}

/// An answer of so many words and a call.
#[divan::bench(types = [OpenAiChat, Responses, AnthropicMessages, GenerateContent], args = [10, 100, 1_000])]
fn decode<W: Wire>(bencher: Bencher<'_, '_>, words: usize) {
    let (wire, body) = (W::of("model"), W::answer(words));
    let bytes = BytesCount::new(body.len());
    bencher.counter(bytes).bench(|| wire.decode(body.as_bytes()).expect("an answer"));
}
