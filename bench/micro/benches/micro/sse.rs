//! Streams: from bytes to events, and from events to a response. The column of bytes is the speed.

use cepa::{
    EventSink,
    providers::{
        sse::SseDecoder,
        wire::{Accumulator, Dialect, openai_chat::OpenAiChat},
    },
};
use divan::{Bencher, black_box, counter::BytesCount};
use micro::{answers, wires::Wire};

const WORDS: usize = 2_000;

/// Bytes in pieces of this size.
#[divan::bench(args = [100, 8 * 1024, 1024 * 1024])]
fn events(bencher: Bencher<'_, '_>, piece: usize) {
    let body = answers::openai_chat_stream(WORDS);
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let (mut decoder, mut events) = (SseDecoder::new(), Vec::new());
        for bytes in body.as_bytes().chunks(piece) {
            decoder.push(bytes, &mut events).expect("events");
            black_box(&events);
            events.clear();
        }
    });
}

/// Events to a response, with each of them shown to somebody.
#[divan::bench]
fn fold_openai_chat(bencher: Bencher<'_, '_>) {
    let (body, wire) = (answers::openai_chat_stream(WORDS), OpenAiChat::of("model"));
    let mut events = Vec::new();
    SseDecoder::new().push(body.as_bytes(), &mut events).expect("events");
    let sink = EventSink::new(|event| {
        black_box(event);
    });
    let bytes = BytesCount::new(body.len());
    bencher.with_inputs(|| events.clone()).input_counter(move |_| bytes).bench_values(|events| {
        let mut fold = wire.accumulator();
        for event in events {
            fold.event(event.lend(), &sink).expect("an event");
        }
        fold.finish(&sink).expect("a response")
    });
}
