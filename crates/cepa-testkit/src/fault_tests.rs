//! Faults strike where they are told to, and nowhere else.

use std::sync::Mutex;

use cepa_core::{CancellationToken, ChatEvent, ToolContext};

use super::*;
use crate::scripted::{Reply, ScriptedModel};

fn lost() -> Error {
    Error::new(ErrorKind::Network, "lost")
}

#[tokio::test]
async fn after_the_model_was_asked_the_answer_is_lost() {
    let model = ScriptedModel::new([Reply::text("a"), Reply::text("b")]);
    let faulty = FaultyModel::new(model.clone()).at(1, Fault::After(lost()));
    assert!(faulty.chat(ChatRequest::default()).await.is_ok());
    assert_eq!(faulty.chat(ChatRequest::default()).await.unwrap_err().kind(), ErrorKind::Network);
    assert_eq!(model.calls(), 2);
}

#[tokio::test]
async fn a_stream_is_cut_behind_so_many_events() {
    for (events, text) in [(0, ""), (1, "a "), (2, "a b "), (9, "a b c")] {
        let heard = Arc::new(Mutex::new(String::new()));
        let keep = heard.clone();
        let sink = EventSink::new(move |event| {
            if let ChatEvent::Text(text) = event {
                keep.lock().unwrap().push_str(&text);
            }
        });
        let model = ScriptedModel::new([Reply::text("a b c")]);
        let faulty = FaultyModel::new(model).at(0, Fault::Streaming { events, error: lost() });
        let outcome = faulty.chat(ChatRequest { events: sink, ..ChatRequest::default() }).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Network);
        assert_eq!(*heard.lock().unwrap(), text, "after {events} events");
    }
}

#[tokio::test]
async fn a_silence_ends_when_the_request_is_cancelled() {
    let faulty = FaultyModel::new(ScriptedModel::new([])).at(0, Fault::Silence);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let context = ToolContext::new().with_cancel(cancel);
    let outcome = faulty.chat(ChatRequest { context, ..ChatRequest::default() }).await;
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Cancelled);
}
