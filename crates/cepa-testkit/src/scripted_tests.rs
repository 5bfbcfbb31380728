//! The scripted model does what a provider's would: it streams, waits, fails and is cancelled.

use std::sync::Mutex;

use cepa_core::{CancellationToken, Part, ToolContext};

use super::*;

fn request(events: EventSink) -> ChatRequest {
    ChatRequest { events, ..ChatRequest::new(vec![cepa_core::Message::user("hi")]) }
}

fn listening() -> (EventSink, Arc<Mutex<Vec<ChatEvent>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = heard.clone();
    (EventSink::new(move |event| keep.lock().unwrap().push(event)), heard)
}

#[tokio::test]
async fn it_streams_what_the_reply_holds_and_signs_it() {
    let content = Content::Parts(vec![Part::Reasoning("let me think".into()), Part::Text("one two".into())]);
    let message = AssistantMessage { content: Some(content), ..AssistantMessage::default() };
    let usage = Usage { input: 3, output: 2, ..Usage::default() };
    let model = ScriptedModel::new([Reply::message(message).call("c1", "f", "{\"a\":1}").usage(usage)]);
    let (sink, heard) = listening();
    let response = model.chat(request(sink)).await.unwrap();
    let call = ToolCall::new("c1", "f", Args::decode("{\"a\":1}"));
    assert_eq!(
        *heard.lock().unwrap(),
        [
            ChatEvent::Reasoning("let ".into()),
            ChatEvent::Reasoning("me ".into()),
            ChatEvent::Reasoning("think".into()),
            ChatEvent::Text("one ".into()),
            ChatEvent::Text("two".into()),
            ChatEvent::CallBegun { index: 0, id: "c1".into(), name: "f".into() },
            ChatEvent::CallArguments { index: 0, delta: "{\"a\":1}".into() },
            ChatEvent::CallReady { index: 0, call },
            ChatEvent::Usage(usage),
        ]
    );
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    assert_eq!(response.message.origin.as_ref(), Some(model.origin()));
    assert_eq!(response.message.finish_reason, Some(FinishReason::ToolCalls));
}

#[tokio::test]
async fn nothing_is_streamed_where_nobody_listens_and_scripted_events_win() {
    let model = ScriptedModel::new([Reply::text("a"), Reply::text("b").streaming([ChatEvent::Reset])]);
    model.chat(request(EventSink::none())).await.unwrap();
    let (sink, heard) = listening();
    model.chat(request(sink)).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [ChatEvent::Reset]);
    assert_eq!(model.calls(), 2);
}

#[tokio::test]
async fn a_failure_streams_its_partial_text_and_the_script_ends_with_an_error() {
    let error = Error::new(ErrorKind::Truncated, "cut").with_partial_text("so far");
    let model = ScriptedModel::new([Reply::error(error)]);
    let (sink, heard) = listening();
    assert_eq!(model.chat(request(sink)).await.unwrap_err().kind(), ErrorKind::Truncated);
    assert_eq!(*heard.lock().unwrap(), [ChatEvent::Text("so ".into()), ChatEvent::Text("far".into())]);
    assert_eq!(model.chat(request(EventSink::none())).await.unwrap_err().kind(), ErrorKind::Provider);
    model.push(Reply::text("more"));
    assert!(model.chat(request(EventSink::none())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_wait_and_a_silence_end_when_the_request_is_cancelled() {
    for reply in [Reply::text("late").after(Duration::from_secs(60)), Reply::silence()] {
        let model = ScriptedModel::new([reply]);
        let cancel = CancellationToken::new();
        let context = ToolContext::new().with_cancel(cancel.clone());
        let call = model.chat(ChatRequest { context, ..ChatRequest::default() });
        let (outcome, ()) = tokio::join!(call, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        });
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_passes_and_the_hook_sees_each_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    let model = ScriptedModel::choosing(|call, _| Reply::text(call.to_string()).after(Duration::from_secs(9)))
        .named("openai", "gpt")
        .on_call(move |call, request| keep.lock().unwrap().push((call, request.messages.len())));
    let start = tokio::time::Instant::now();
    for _ in 0..2 {
        model.chat(request(EventSink::none())).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::from_secs(18));
    assert_eq!(*seen.lock().unwrap(), [(0, 1), (1, 1)]);
    assert_eq!(&*model.origin().provider, "openai");
}
