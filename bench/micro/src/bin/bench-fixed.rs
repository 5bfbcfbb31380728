//! Fixed work for counting instructions: `bench-fixed CASE SERVER [turns=N]` does it N times. What differs between two
//! lengths is the work alone: everything else is done once.

use std::hint::black_box;

use cepa::{
    ChatRequest, EventSink, Version,
    prelude::*,
    providers::{
        sse::SseDecoder,
        wire::{
            Accumulator, anthropic::AnthropicMessages, gemini::GenerateContent, openai_chat::OpenAiChat,
            openai_responses::Responses,
        },
    },
};
use meter::{Result, Work};
use micro::{answers, talks, wires::Wire};

/// Messages of the conversations here.
const MESSAGES: usize = 1_000;
/// Messages before the turns of a long conversation, and events of a stream.
const LONG: usize = 2_000;
/// Bytes that the network delivers at once.
const READ: usize = 8 * 1024;

fn main() -> Result<()> {
    let work = Work::from_args()?;
    match work.scenario.as_str() {
        "encode-openai_chat" => encode::<OpenAiChat>(&work),
        "encode-openai_responses" => encode::<Responses>(&work),
        "encode-anthropic" => encode::<AnthropicMessages>(&work),
        "encode-gemini" => encode::<GenerateContent>(&work),
        "decode-openai_chat" => decode::<OpenAiChat>(&work),
        "decode-openai_responses" => decode::<Responses>(&work),
        "decode-anthropic" => decode::<AnthropicMessages>(&work),
        "decode-gemini" => decode::<GenerateContent>(&work),
        "fold-openai_chat" => fold(&work),
        "turn-at-2000" => {
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(turn_at_length(&work))
        }
        other => Err(format!("no case is called {other}").into()),
    }
}

/// The whole conversation encoded for a model that it was not encoded for before.
fn encode<W: Wire>(work: &Work) -> Result<()> {
    let request: ChatRequest = talks::request(MESSAGES)?;
    for turn in 0..work.turns {
        black_box(W::of(&format!("model{turn}")).encode(&request)?);
    }
    Ok(())
}

fn decode<W: Wire>(work: &Work) -> Result<()> {
    let (wire, body) = (W::of("model"), W::answer(MESSAGES));
    for _ in 0..work.turns {
        black_box(wire.decode(body.as_bytes())?);
    }
    Ok(())
}

/// A streamed answer from its bytes to the response.
fn fold(work: &Work) -> Result<()> {
    let (wire, body) = (OpenAiChat::of("model"), answers::openai_chat_stream(LONG));
    let sink = EventSink::new(|event| {
        black_box(event);
    });
    for _ in 0..work.turns {
        let (mut decoder, mut fold, mut events) =
            (SseDecoder::new(), cepa::providers::wire::Dialect::accumulator(&wire), Vec::new());
        for piece in body.as_bytes().chunks(READ) {
            decoder.push(piece, &mut events)?;
            for event in events.drain(..) {
                fold.event(event.lend(), &sink)?;
            }
        }
        black_box(fold.finish(&sink)?);
    }
    Ok(())
}

/// Turns of one conversation that already has [`LONG`] messages.
async fn turn_at_length(work: &Work) -> Result<()> {
    let model = OpenAi::builder("say-3").base_url(work.base_url()).api_key("sk-none").build()?;
    let memory = InMemory::new();
    memory.append("long", Version::default(), talks::entries(LONG)).await?;
    let agent = Agent::builder(model).system_prompt(meter::SYSTEM).tool(talks::idle_tool(0)?).memory(memory).build()?;
    let talk = agent.conversation("long");
    for _ in 0..=work.turns {
        black_box(talk.chat("hello there").await?);
    }
    Ok(())
}
