//! Each dialect's reply, whole and streamed.

use std::sync::{Arc, Mutex};

use cepa_core::{ChatEvent, ChatRequest, ChatResponse, Error, ErrorKind, EventSink, Message, Origin, ToolStatus};
use cepa_providers::wire::{
    Dialect,
    anthropic::AnthropicMessages,
    caps::Caps,
    gemini::GenerateContent,
    openai_chat::{OpenAiChat, Quirks},
    openai_responses::{self, Responses},
    reply::{ReplyDecoder, whole},
};
use serde::de::IgnoredAny;

use crate::{
    rng::Rng,
    run::{corpus, fuzz},
};

fn origin() -> Origin {
    Origin { provider: "p".into(), model: "gemini-3-m".into() }
}

/// Mostly the usual bounds, sometimes close ones.
fn caps(rng: &mut Rng) -> Caps {
    match rng.below(4) {
        0 => Caps {
            event_bytes: 50 + rng.below(2_000),
            reply_bytes: 100 + rng.below(10_000),
            calls: 1 + rng.below(4),
            args_bytes: rng.below(100),
            json_depth: 1 + rng.below(20),
        },
        _ => Caps::default(),
    }
}

fn reply(dialect: &impl Dialect, body: &[u8], rng: &mut Rng) {
    let caps = caps(rng);
    if let Some(response) = checked(whole(dialect, caps, body), &caps, body.len()) {
        goes_back(dialect, &response);
    }
}

/// In which order a stream is heard.
#[derive(Clone, Copy, PartialEq)]
enum Heard {
    /// As the reply has it in the end.
    InOrder,
    /// Blocks that grow at the same time are heard as they grow.
    AsItGrows,
}

fn stream(dialect: &impl Dialect, heard_is: Heard, body: &[u8], rng: &mut Rng) {
    let caps = caps(rng);
    let (at_once, heard) = fold(dialect, caps, std::iter::once(body));
    let most = *rng.pick(&[1, 3, 20, 200]);
    let sizes: Vec<usize> = (0..body.len()).map(|_| 1 + rng.below(most)).collect();
    let mut rest = body;
    let pieces = sizes.iter().map_while(|size| {
        let (piece, tail) = rest.split_at((*size).min(rest.len()));
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    });
    let (cut, heard_cut) = fold(dialect, caps, pieces);
    let words = |result: &Result<ChatResponse, Error>| {
        without_made_ids(&match result {
            Ok(response) => serde_json::to_string(&Message::Assistant(response.message.clone())).unwrap(),
            Err(error) => format!("{error:?} {:?}", error.partial_text()),
        })
    };
    assert_eq!(words(&at_once), words(&cut), "it depends on how the body is cut");
    let words = |events: &[ChatEvent]| without_made_ids(&format!("{events:?}"));
    assert_eq!(words(&heard), words(&heard_cut), "what is heard depends on how the body is cut");
    let Some(response) = checked(at_once, &caps, body.len()) else { return };
    goes_back(dialect, &response);
    // What was heard before a reset is void.
    let from = heard.iter().rposition(|event| *event == ChatEvent::Reset).map_or(0, |reset| reset + 1);
    let (mut said, mut ready) = (String::new(), Vec::new());
    for event in &heard[from..] {
        match event {
            ChatEvent::Text(text) => said.push_str(text),
            ChatEvent::CallReady { index, call } => ready.push((*index, call)),
            _ => {}
        }
    }
    let text = Message::Assistant(response.message.clone()).text().into_owned();
    let same = match heard_is {
        Heard::InOrder => said == text,
        Heard::AsItGrows => sorted(&said) == sorted(&text),
    };
    assert!(same, "{said:?} was heard, and {text:?} was said");
    ready.sort_by_key(|(index, _)| *index);
    let calls: Vec<_> = response.message.tool_calls.iter().enumerate().collect();
    assert_eq!(ready, calls, "the calls that were heard are not those of the reply");
}

fn fold<'a>(
    dialect: &impl Dialect,
    caps: Caps,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let sink = EventSink::new(move |event| keep.lock().unwrap().push(event));
    let mut reply = ReplyDecoder::new(dialect, sink).with_caps(caps);
    let mut pushed = Ok(());
    for piece in pieces {
        // A reader stops at the end of the reply.
        if reply.is_done() {
            break;
        }
        pushed = reply.push(piece);
        if pushed.is_err() {
            break;
        }
    }
    let result = pushed.and_then(|()| reply.finish());
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    (result, heard)
}

/// A failure of a kind that a server can cause, or a reply within its bounds that is not larger than what came.
fn checked(result: Result<ChatResponse, Error>, caps: &Caps, bytes: usize) -> Option<ChatResponse> {
    match result {
        Ok(response) => {
            caps.check(&response.message).unwrap();
            let size = serde_json::to_string(&Message::Assistant(response.message.clone())).unwrap().len();
            assert!(size <= 12 * bytes + 4_096, "{size} bytes of a body of {bytes}");
            Some(response)
        }
        Err(error) => {
            use ErrorKind::{
                Auth, ContextLength, Decode, InvalidRequest, Overloaded, Provider, Quota, RateLimit, Server, Timeout,
                Truncated,
            };
            let kinds = [
                Auth,
                ContextLength,
                Decode,
                InvalidRequest,
                Overloaded,
                Provider,
                Quota,
                RateLimit,
                Server,
                Timeout,
                Truncated,
            ];
            assert!(kinds.contains(&error.kind()), "{error:?}");
            assert!(!error.message().trim().is_empty() && error.message().len() < 10_000, "{error:?}");
            assert!(error.partial_text().is_none_or(|text| text.len() <= 3 * bytes), "{error:?}");
            None
        }
    }
}

/// Whatever was taken in can be sent back: the conversation goes on.
fn goes_back(dialect: &impl Dialect, response: &ChatResponse) {
    let message = response.message.clone();
    let results: Vec<Message> =
        message.tool_calls.iter().map(|call| Message::tool(&call.id, &call.name, ToolStatus::Ok, "ok")).collect();
    let history: Vec<Message> = [Message::user("hi"), Message::Assistant(message)].into_iter().chain(results).collect();
    let history = cepa_core::pairing::heal(&history.into());
    let body = dialect.encode(&ChatRequest::new(history)).unwrap().concat();
    serde_json::from_slice::<IgnoredAny>(&body).unwrap();
}

fn sorted(text: &str) -> Vec<char> {
    let mut characters: Vec<char> = text.chars().collect();
    characters.sort_unstable();
    characters
}

/// Ids that were made up here differ each time.
fn without_made_ids(text: &str) -> String {
    let mut rest = text;
    let mut same = String::new();
    while let Some((before, after)) = rest.split_once("call_") {
        same.push_str(before);
        same.push_str("call_");
        let made = after.bytes().take_while(u8::is_ascii_hexdigit).count() >= 24;
        rest = if made { &after[24..] } else { after };
    }
    same + rest
}

macro_rules! targets {
    ($($whole:ident, $streamed:ident: $folder:literal, $heard:ident, $dialect:expr;)*) => {$(
        // W1
        #[test]
        fn $whole() {
            let dialect = $dialect;
            fuzz(stringify!($whole), &corpus(&[$folder], ".json"), |body, rng| reply(&dialect, body, rng));
        }

        // W1, W6
        #[test]
        fn $streamed() {
            let dialect = $dialect;
            fuzz(stringify!($streamed), &corpus(&[$folder], ".sse"), |body, rng| {
                stream(&dialect, Heard::$heard, body, rng);
            });
        }
    )*};
}

targets! {
    openai_chat_reply, openai_chat_stream: "openai_chat", InOrder, OpenAiChat::new(origin(), Quirks::default());
    openai_responses_reply, openai_responses_stream: "openai_responses", InOrder,
        Responses::new(origin(), openai_responses::Quirks::default());
    anthropic_reply, anthropic_stream: "anthropic", AsItGrows, AnthropicMessages::new(origin());
    gemini_reply, gemini_stream: "gemini", InOrder, GenerateContent::new(origin());
}
