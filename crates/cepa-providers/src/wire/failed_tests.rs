//! Errors beside the events of a stream: which are seen, and that nothing else is.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{
    sse::SseEvent,
    wire::{
        Dialect,
        anthropic::AnthropicMessages,
        caps::Caps,
        gemini::GenerateContent,
        openai_chat::{OpenAiChat, Quirks},
        openai_responses::{self, Responses},
        reply::ReplyDecoder,
    },
};
use cepa_core::{ChatResponse, EventSink};

fn origin() -> Origin {
    Origin { provider: "p".into(), model: "m".into() }
}

fn beside(lines: &str) -> Option<(ErrorKind, String)> {
    reported_beside(&origin(), lines.as_bytes()).map(|error| (error.kind(), error.message().to_owned()))
}

fn seen(kind: ErrorKind, message: &str) -> Option<(ErrorKind, String)> {
    Some((kind, message.to_owned()))
}

// W6
#[test]
fn errors_of_every_form_are_seen() {
    for text in [
        r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#,
        "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n",
        "[{\n  \"error\": {\"code\": 503, \"message\": \"busy\", \"status\": \"UNAVAILABLE\"}\n}\n]\n",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        r#"{"type":"error","code":"server_error","message":"busy"}"#,
        "  {\"error\": {\"code\": 503, \"message\": \"busy\"}} and more",
        "keep-alive\n{\"status\": \"ok\"}\n{\"broken\": \n{\"error\": {\"code\": 503, \"message\": \"busy\"}}\n{\"error\":\"later\"}\n",
    ] {
        let (kind, message) = beside(text).unwrap_or_else(|| panic!("{text}"));
        assert!(matches!(kind, ErrorKind::Overloaded | ErrorKind::Server), "{kind:?} {text}");
        assert_eq!(message, "busy", "{text}");
    }
    assert_eq!(beside(r#"{"error":"no luck"}"#), seen(ErrorKind::Provider, "no luck"));
    assert_eq!(beside(r#"{"errors":[{"message":"no luck"}]}"#), seen(ErrorKind::Provider, "no luck"));
    assert_eq!(beside(r#"{"error":{"message":"half \ud83d"}}"#), seen(ErrorKind::Provider, "half \u{fffd}"));
    assert_eq!(beside("{\"error\":{\"message\":\"bad \u{0}\"}}"), None, "no JSON");
}

// W4
#[test]
fn what_the_error_says_is_in_it() {
    let text = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slower","details":[{"retryDelay":"7s"}]},"request_id":"req-1"}"#;
    let error = reported_beside(&origin(), text.as_bytes()).unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::RateLimit, Some("RESOURCE_EXHAUSTED")));
    assert_eq!((error.retry_after(), error.request_id()), (Some(Duration::from_secs(7)), Some("req-1")));
    assert!(error.is_retryable());
}

// W6
#[test]
fn nothing_else_is_taken_for_an_error() {
    for text in [
        "",
        "\n\n",
        "error: overloaded",
        "{\"error\": {\"message\": \"cut",
        "{\"error\": null}",
        "{\"error\": {}, \"ok\": true}",
        "{\"error\": \"\"}",
        "{\"message\": \"still here\"}",
        "{\"type\": \"error\"}",
        "\"error\"",
        "[]",
        "[\"error\"]",
        "<html>\n<body>{\"error\": \"x\"}</body>\n",
        "{\n  \"results\": [\n    {\"error\": {\"message\": \"inside of something else\"}}\n  ]\n}\n",
    ] {
        assert_eq!(beside(text), None, "{text}");
    }
}

/// A stream, by the pieces that it is cut into.
fn read<'a, D: Dialect>(dialect: &D, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<ChatResponse, Error> {
    let mut reply = ReplyDecoder::new(dialect, EventSink::none());
    for piece in pieces {
        if reply.is_done() {
            break;
        }
        reply.push(piece)?;
    }
    reply.finish()
}

/// The kind and the message of how a stream ends, and its text.
fn end<D: Dialect>(dialect: &D, body: &[u8], cuts: &[usize]) -> (Option<(ErrorKind, String)>, String) {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
    places.extend([0, body.len()]);
    places.sort_unstable();
    let pieces = places.windows(2).map(|ends| &body[ends[0]..ends[1]]);
    match read(dialect, pieces) {
        Ok(response) => (None, response.message.content.map(|content| content.text().into_owned()).unwrap_or_default()),
        Err(error) => {
            (Some((error.kind(), error.message().to_owned())), error.partial_text().unwrap_or_default().to_owned())
        }
    }
}

/// A dialect's stream: text, the word for its end, and what closes it.
struct Sample<D> {
    dialect: D,
    text: &'static str,
    finish: &'static str,
    terminal: &'static str,
}

const BARE: &str =
    "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";

fn gemini() -> Sample<GenerateContent> {
    Sample {
        dialect: GenerateContent::new(origin()),
        text: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Okay\"}]}}]}\r\n\r\n",
        finish: "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n",
        terminal: "",
    }
}

fn chat() -> Sample<OpenAiChat> {
    Sample {
        dialect: OpenAiChat::new(origin(), Quirks::default()),
        text: "data: {\"choices\":[{\"delta\":{\"content\":\"Okay\"}}]}\n\n",
        finish: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        terminal: "data: [DONE]\n\n",
    }
}

fn anthropic() -> Sample<AnthropicMessages> {
    Sample {
        dialect: AnthropicMessages::new(origin()),
        text: "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"Okay\"}}\n\n",
        finish: "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        terminal: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    }
}

fn responses() -> Sample<Responses> {
    Sample {
        dialect: Responses::new(origin(), openai_responses::Quirks::default()),
        text: "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"Okay\"}\n\n",
        finish: "data: {\"type\":\"response.output_text.done\",\"item_id\":\"m\",\"text\":\"Okay\"}\n\n",
        terminal: "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
    }
}

/// Runs a check for each dialect.
macro_rules! each {
    ($sample:ident => $check:expr) => {{
        let $sample = gemini();
        $check;
        let $sample = chat();
        $check;
        let $sample = anthropic();
        $check;
        let $sample = responses();
        $check;
    }};
}

// W6: it counts as an event at its place would.
#[test]
fn an_error_beside_the_events_ends_the_reply_as_an_event_would() {
    let fails = seen(ErrorKind::Server, "busy");
    each!(sample => {
        let Sample { dialect, text, finish, terminal } = &sample;
        let is = |body: String, wanted: &Option<(ErrorKind, String)>| {
            for cut in 0..body.len() {
                assert_eq!(end(dialect, body.as_bytes(), &[cut]), (wanted.clone(), "Okay".to_owned()), "{cut} {body}");
            }
        };
        is(format!("{text}{finish}{terminal}"), &None);
        // Where it stands, how it is separated, and whether its line ends.
        for bare in [BARE, BARE.trim_end(), "{\"error\":{\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}"] {
            is(format!("{text}{bare}"), &fails);
            is(format!("{text}{finish}{bare}"), &fails);
            is(format!("{text}{bare}\n{finish}{terminal}"), &fails);
        }
        // The last event was not ended, or not even complete.
        is(format!("{}\n{BARE}", text.trim_end()), &fails);
        is(format!("{text}data: {{\"cut\": \"in the mid\n{BARE}\n"), &fails);
        // Behind the end nobody reads.
        if !terminal.is_empty() {
            is(format!("{text}{finish}{terminal}{BARE}"), &None);
        }
        // Lines that say nothing are passed over as before.
        is(format!("{text}{{\"ping\": 1}}\nhello\n{finish}{terminal}"), &None);
    });
}

// W6
#[test]
fn what_broke_a_stream_is_what_the_provider_said() {
    let network = || Error::new(ErrorKind::Network, "reset");
    let ended_by = |body: &str, error: Error| {
        let sample = gemini();
        let mut reply = ReplyDecoder::new(&sample.dialect, EventSink::none());
        reply.push(body.as_bytes()).unwrap();
        let error = reply.ended_by(error);
        (error.kind(), error.partial_text().map(str::to_owned))
    };
    let text = gemini().text;
    let okay = Some("Okay".to_owned());
    for bare in [BARE, BARE.trim_end()] {
        assert_eq!(ended_by(&format!("{text}{bare}"), network()), (ErrorKind::Server, okay.clone()));
        let cancelled = Error::new(ErrorKind::Cancelled, "enough");
        assert_eq!(ended_by(&format!("{text}{bare}"), cancelled), (ErrorKind::Cancelled, okay.clone()));
        assert_eq!(ended_by(&format!("{text}{}", &bare[..40]), network()), (ErrorKind::Network, okay.clone()));
        assert_eq!(ended_by(&format!("\u{feff}{bare}"), network()), (ErrorKind::Server, None));
    }
}

// W6: junk without end fills no memory, and an error behind it is still seen.
#[test]
fn junk_without_end_is_forgotten() {
    let sample = chat();
    for junk in ["{\n", "[1,\n", "x\n", "{\"a\": [\n", &format!("{{{}\n", "y".repeat(20_000))] {
        let mut reply = ReplyDecoder::new(&sample.dialect, EventSink::none());
        let piece = junk.repeat(1 + 50_000 / junk.len());
        for _ in 0..100 {
            reply.push(piece.as_bytes()).unwrap();
        }
        reply.push(BARE.as_bytes()).unwrap();
        assert_eq!(reply.finish().unwrap_err().kind(), ErrorKind::Server, "{junk:.10}");
    }
    let mut decoder = crate::sse::SseDecoder::new();
    for size in [1, 10, 100, 1_000, 10_000, 16_383, 16_384, 100_000].repeat(20) {
        let events: &mut Vec<SseEvent> = &mut Vec::new();
        decoder.push(format!("{}\n", "z".repeat(size)).as_bytes(), events).unwrap();
        assert!(events.is_empty() && decoder.beside().len() <= 2 * 16 * 1024);
    }
    // The bound of a reply counts them too.
    let caps = Caps { reply_bytes: 100_000, ..Caps::default() };
    let mut reply = ReplyDecoder::new(&sample.dialect, EventSink::none()).with_caps(caps);
    assert_eq!(reply.push("x\n".repeat(50_001).as_bytes()).unwrap_err().kind(), ErrorKind::Decode);
}

proptest! {
    // W6
    #[test]
    fn any_cut_gives_the_same(
        pieces in prop::collection::vec(0_usize..8, 1..8),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        each!(sample => {
            let lines = [
                sample.text, sample.finish, sample.terminal, BARE, "junk\r{\n\n", "data: {\"cut\n", ": comment\n",
                "{\"type\":\"error\",\"message\":\"busy\"}\r",
            ];
            let body: String = pieces.iter().map(|piece| lines[*piece]).collect();
            let whole = end(&sample.dialect, body.as_bytes(), &[]);
            prop_assert_eq!(&end(&sample.dialect, body.as_bytes(), &cuts), &whole);
            let bytes: Vec<usize> = (0..body.len()).collect();
            prop_assert_eq!(&end(&sample.dialect, body.as_bytes(), &bytes), &whole);
        });
    }
}

#[test]
fn what_nobody_can_read_is_told_in_one_wording() {
    each!(sample => {
        for (body, begin) in [("data: {\"a\": \n\n", "{\"a\":"), ("data: nope\n\n", "nope")] {
            let error = read(&sample.dialect, [body.as_bytes()]).unwrap_err();
            let message = error.message();
            assert_eq!((error.kind(), error.provider()), (ErrorKind::Decode, Some("p")));
            assert!(message.starts_with("the reply of p is no ") && message.ends_with(&format!(": {begin}")), "{message}");
            assert_eq!(error.message(), sample.dialect.decode(body.as_bytes()[6..].trim_ascii()).unwrap_err().message());
        }
    });
}
