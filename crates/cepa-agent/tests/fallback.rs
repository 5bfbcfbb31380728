//! Other models that answer when the first cannot: which errors count, what is heard, and that it is the same streamed and not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cepa_agent::{Agent, AgentEvent, InMemory, TurnOptions, filters::Fallback};
use cepa_core::{
    CancellationToken, ChatEvent, ChatRequest, Error, ErrorKind, EventSink, Kernel, Message, Tool, ToolContext,
    ToolOutput, ToolSpec,
};
use cepa_testkit::scripted::{Reply, ScriptedModel};

fn model(name: &str, replies: impl IntoIterator<Item = Reply>) -> ScriptedModel {
    ScriptedModel::new(replies).named("fake", name)
}

fn failure(kind: ErrorKind) -> Reply {
    Reply::error(Error::new(kind, "no"))
}

/// Some text, and then a broken stream.
fn broken(text: &str) -> Reply {
    let error = Error::new(ErrorKind::Truncated, "it broke").with_partial_text(text);
    Reply::error(error).streaming([ChatEvent::Text(text.to_owned())])
}

fn who(message: &Message) -> String {
    match message {
        Message::Assistant(message) => message.origin.as_ref().unwrap().model.to_string(),
        _ => panic!("not a reply"),
    }
}

async fn ask(first: &ScriptedModel, filter: Fallback, request: ChatRequest) -> Result<(String, String), Error> {
    let kernel = Kernel::builder(first.clone()).chat_filter(filter).build().unwrap();
    let reply = Message::Assistant(kernel.invoke_chat(request).await?.message);
    Ok((who(&reply), reply.text().into_owned()))
}

fn hi() -> ChatRequest {
    ChatRequest::new(vec![Message::user("hi")])
}

#[tokio::test]
async fn another_model_answers_where_that_can_help() {
    // F11: after what another provider may do better, and after nothing else.
    use ErrorKind::{
        Auth, Cancelled, ContextLength, Decode, InvalidInput, InvalidRequest, Network, Overloaded, Provider, Quota,
        RateLimit, Server, Timeout, Truncated,
    };
    for kind in [RateLimit, Quota, Overloaded, Server, Auth, Network, Timeout, Truncated] {
        let (first, second) = (model("first", [failure(kind)]), model("second", [Reply::text("ok")]));
        let (who, text) = ask(&first, Fallback::to(second), hi()).await.unwrap();
        assert_eq!((&*who, &*text), ("second", "ok"), "{kind}");
    }
    for kind in [InvalidRequest, ContextLength, Cancelled, Decode, Provider, InvalidInput] {
        let (first, second) = (model("first", [failure(kind)]), model("second", [Reply::text("ok")]));
        let error = ask(&first, Fallback::to(second.clone()), hi()).await.unwrap_err();
        assert_eq!((error.kind(), error.message(), second.calls()), (kind, "no", 0), "{kind}");
    }
    // Its user knows better.
    let (first, second) = (model("first", [failure(ContextLength)]), model("second", [Reply::text("ok")]));
    let larger = Fallback::to(second).when(|error| error.kind() == ContextLength);
    assert_eq!(ask(&first, larger, hi()).await.unwrap().0, "second");
    // A model that answers is the only one that is called.
    let (first, second) = (model("first", [Reply::text("ok")]), model("second", []));
    assert_eq!(ask(&first, Fallback::to(second.clone()), hi()).await.unwrap().0, "first");
    assert_eq!(second.calls(), 0);
}

#[tokio::test]
async fn models_are_called_in_order_and_all_failures_are_told() {
    // F11
    let (first, second) =
        (model("first", [failure(ErrorKind::RateLimit)]), model("second", [failure(ErrorKind::Auth)]));
    let third = model("third", [Reply::text("ok")]);
    let fallback = Fallback::to(second).then(third);
    assert_eq!(format!("{fallback:?}").matches("Origin").count(), 2);
    assert_eq!(ask(&first, fallback, hi()).await.unwrap().0, "third");

    let (first, second) =
        (model("first", [failure(ErrorKind::RateLimit)]), model("second", [failure(ErrorKind::Auth)]));
    let third = model("third", [failure(ErrorKind::InvalidRequest)]);
    let fourth = model("fourth", []);
    let fallback = Fallback::to(second).then(third).then(fourth.clone());
    let error = ask(&first, fallback, hi()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable(), fourth.calls()), (ErrorKind::RateLimit, true, 0));
    assert_eq!(error.message(), "no; then fake/second failed: auth: no; then fake/third failed: invalid_request: no");
}

#[tokio::test]
async fn a_request_is_prepared_for_each() {
    let first = model("first", [failure(ErrorKind::Server)]);
    let second = model("second", [Reply::text("ok")]);
    let fallback = Fallback::to(second.clone()).preparing(|origin, mut request| {
        request.options.extra.clear();
        request.system_prompt = Some(format!("You are {}.", origin.model).into());
        request
    });
    let mut request = hi();
    request.options.extra.insert("only_first".to_owned(), true.into());
    ask(&first, fallback, request).await.unwrap();
    let (first, second) = (first.requests()[0].clone(), second.requests()[0].clone());
    assert_eq!((first.options.extra.len(), second.options.extra.len()), (1, 0));
    assert_eq!(second.system_prompt.as_deref(), Some("You are second."));
}

#[tokio::test]
async fn what_was_heard_of_a_broken_reply_is_void() {
    // F11
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = heard.clone();
    let listening = || {
        let keep = keep.clone();
        ChatRequest { events: EventSink::new(move |event| keep.lock().unwrap().push(event)), ..hi() }
    };
    // Before anything was heard nothing is void; after something it is, once for each.
    let (first, second) = (model("first", [failure(ErrorKind::Server)]), model("second", [broken("half")]));
    let third = model("third", [Reply::text("ok")]);
    ask(&first, Fallback::to(second).then(third), listening()).await.unwrap();
    let text = |text: &str| ChatEvent::Text(text.to_owned());
    assert_eq!(std::mem::take(&mut *heard.lock().unwrap()), [text("half"), ChatEvent::Reset, text("ok")]);
    // What is kept with the error is what a listener has.
    let (first, second) = (model("first", [broken("one")]), model("second", [broken("two")]));
    let error = ask(&first, Fallback::to(second), listening()).await.unwrap_err();
    assert_eq!((error.kind(), error.partial_text()), (ErrorKind::Truncated, Some("two")));
    assert_eq!(*heard.lock().unwrap(), [text("one"), ChatEvent::Reset, text("two")]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_calls_nobody_else() {
    // F11, L11
    let cancel = CancellationToken::new();
    let context = ToolContext::new().with_cancel(cancel.clone());
    let first = model("first", [Reply::silence()]);
    let second = model("second", [Reply::text("ok")]);
    let call = tokio::spawn({
        let (first, filter) = (first.clone(), Fallback::to(second.clone()).when(|_| true));
        async move { ask(&first, filter, ChatRequest { context, ..hi() }).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel.cancel();
    assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!((first.calls(), second.calls()), (1, 0));
}

/// A turn with a tool, in which the first model breaks at each call; what was said, sent and stored.
async fn turn(streamed: bool) -> (String, Vec<String>, usize) {
    let first = ScriptedModel::choosing(|_, _| broken("I will")).named("fake", "first");
    let second = model("second", [Reply::text("I look.").call("c1", "look", "{}"), Reply::text("It is there.")]);
    let look = Tool::new(ToolSpec::new("look", "Looks.", None).unwrap(), |_, _| async { Ok(ToolOutput::new("there")) });
    let agent = Agent::builder(first)
        .tool(look)
        .memory(InMemory::new())
        .conversation_id("c")
        .chat_filter(Fallback::to(second.clone()))
        .build()
        .unwrap();
    let conversation = agent.own_conversation();
    let text = if streamed {
        let mut events = conversation.chat_stream_with("where?", TurnOptions::new());
        let mut text = String::new();
        let mut done = None;
        while let Some(event) = events.next().await {
            match event.unwrap() {
                AgentEvent::Text(piece) => text.push_str(&piece),
                AgentEvent::Reset => text = text.strip_suffix("I will").unwrap().to_owned(),
                AgentEvent::Done(result) => done = Some(result.text.clone()),
                _ => {}
            }
        }
        assert_eq!(text, "I look.It is there.");
        done.unwrap()
    } else {
        conversation.chat("where?").await.unwrap().text
    };
    let history = conversation.history().await.unwrap();
    let stored = history.messages().map(|message| serde_json::to_string(message).unwrap()).collect();
    (text, stored, second.requests().iter().map(|request| request.messages.len()).sum())
}

#[tokio::test]
async fn a_turn_is_the_same_streamed_and_not() {
    // F8: result, store, and what the other model was sent (the whole conversation each time).
    let (whole, streamed) = (turn(false).await, turn(true).await);
    assert_eq!(whole, streamed);
    let (text, stored, sent) = whole;
    assert_eq!((&*text, stored.len(), sent), ("It is there.", 4, 1 + 3));
    assert!(stored[1].contains(r#""model":"second""#) && stored[3].contains(r#""model":"second""#), "{stored:#?}");
    assert!(!stored.concat().contains("I will"), "{stored:#?}");
}
