//! The two primitives: what a chat filter can change, what a tool's body can do, and what is contained.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use serde_json::json;

use crate::{
    Args, Chat, ChatEvent, ChatModel, ChatOptions, ChatRequest, Error, ErrorKind, EventSink, History, Kernel, Message,
    SharedModel, Stage, Tool, ToolChoice, ToolContext, ToolError, ToolFailure, ToolOutput, ToolRequest, ToolSet,
    ToolSpec, ToolStatus, pairing,
    toys::{calls, echo, model, request, says},
};

/// A model that keeps every request it gets, and the list of them.
fn recording() -> (impl ChatModel, Arc<Mutex<Vec<ChatRequest>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = seen.clone();
    let model = model(move |request| {
        list.lock().unwrap().push(request);
        says("ok")
    });
    (model, seen)
}

fn last(seen: &Mutex<Vec<ChatRequest>>) -> ChatRequest {
    seen.lock().unwrap().last().cloned().unwrap()
}

fn hi() -> ChatRequest {
    ChatRequest::new(vec![Message::user("hi")])
}

#[tokio::test]
async fn a_chat_filter_rewrites_everything_that_is_sent() {
    // F6
    let (model, seen) = recording();
    let filter = Chat::before("all", |mut request: ChatRequest| {
        request.messages.push(Message::user("more"));
        request.system_prompt = Some("Be brief.".into());
        request.tools = request.tools.filter(|tool| tool.name() != "a").with(echo("c"))?;
        request.tool_choice = Some(ToolChoice::Tool("c".to_owned()));
        request.options.temperature = Some(0.5);
        request.options.extra.insert("seed".to_owned(), json!(7));
        Ok(request)
    });
    let kernel = Kernel::builder(model).chat_filter(filter).build().unwrap();
    let mut request = hi();
    request.tools = ToolSet::new([echo("a"), echo("b")]).unwrap();
    let response = kernel.invoke_chat(request).await.unwrap();

    let sent = last(&seen);
    assert_eq!(sent.messages, History::from(vec![Message::user("hi"), Message::user("more")]));
    assert_eq!(
        (sent.system_prompt.as_deref(), sent.tool_choice),
        (Some("Be brief."), Some(ToolChoice::Tool("c".into())))
    );
    assert_eq!((sent.options.temperature, sent.options.extra["seed"].clone()), (Some(0.5), json!(7)));
    // A call is looked up in what was offered, so a tool that a filter added can run and one that it removed cannot.
    assert_eq!(format!("{:?} {:?}", sent.tools, response.offered), r#"["b", "c"] ["b", "c"]"#);
}

#[tokio::test]
async fn the_context_and_the_rest_pass_through() {
    let (model, seen) = recording();
    let kernel = Kernel::builder(model).build().unwrap();
    let context = ToolContext::new().with_conversation("abc");
    let response = kernel.invoke_chat(ChatRequest { context, ..hi() }).await.unwrap();
    assert_eq!((response.context.conversation_id(), response.offered.len()), (Some("abc"), 0));
    assert_eq!(Message::Assistant(response.message).text(), "ok");
    assert_eq!(last(&seen).context.conversation_id(), Some("abc"));
}

#[tokio::test]
async fn the_kernels_settings_fill_what_a_request_leaves_open() {
    let (model, seen) = recording();
    let settings = ChatOptions {
        max_tokens: Some(100),
        temperature: Some(0.1),
        stop: vec!["END".to_owned()],
        extra: json!({"seed": 1, "user": "u"}).as_object().cloned().unwrap(),
        ..ChatOptions::default()
    };
    let kernel = Kernel::builder(model).settings(settings).build().unwrap();
    let mut request = hi();
    request.options.temperature = Some(0.9);
    request.options.extra.insert("seed".to_owned(), json!(2));
    kernel.invoke_chat(request).await.unwrap();
    let options = last(&seen).options;
    assert_eq!((options.max_tokens, options.temperature, options.stop), (Some(100), Some(0.9), vec!["END".to_owned()]));
    assert_eq!(serde_json::Value::Object(options.extra), json!({"seed": 2, "user": "u"}));
}

#[tokio::test]
async fn a_filter_chooses_who_answers() {
    // F6: healed and with the kernel's settings, as for its own model.
    let ((own, seen_by_own), (other, seen)) = (recording(), recording());
    let other = SharedModel::new(other);
    let choose = Chat::before("choose", move |mut request: ChatRequest| {
        request.model = Some(other.clone());
        Ok(request)
    });
    let settings = ChatOptions { max_tokens: Some(100), ..ChatOptions::default() };
    let kernel = Kernel::builder(own).settings(settings).chat_filter(choose).build().unwrap();
    let broken = History::from(vec![Message::user("u"), calls(&["x"]), Message::user("and?")]);
    kernel.invoke_chat(ChatRequest::new(broken)).await.unwrap();
    let sent = last(&seen);
    assert_eq!((sent.options.max_tokens, sent.messages.len(), sent.model.is_none()), (Some(100), 4, true));
    assert!(seen_by_own.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_leaves_is_healed() {
    // M6: in one place, before the request leaves; what the caller holds is not changed.
    let (model, seen) = recording();
    let kernel = Kernel::builder(model).build().unwrap();
    let broken = History::from(vec![Message::user("u"), calls(&["x"]), Message::user("and?")]);
    kernel.invoke_chat(ChatRequest::new(vec![])).await.unwrap();
    kernel.invoke_chat(ChatRequest { messages: broken.clone(), ..ChatRequest::default() }).await.unwrap();
    let sent = last(&seen).messages;
    assert_eq!((pairing::validate(&sent), sent.len(), broken.len()), (Ok(()), 4, 3));
    // M6: also what a filter broke.
    let cut = Chat::before("cut", |mut request: ChatRequest| {
        request.messages = request.messages.iter_from(2).cloned().collect();
        Ok(request)
    });
    let (model, seen) = recording();
    let kernel = Kernel::builder(model).chat_filter(cut).build().unwrap();
    kernel.invoke_chat(ChatRequest { messages: sent, ..ChatRequest::default() }).await.unwrap();
    assert_eq!(last(&seen).messages, History::from(vec![Message::user("and?")]));
}

#[tokio::test]
async fn a_models_error_comes_out_as_it_is() {
    let kernel =
        Kernel::builder(model(|_| Err(Error::new(ErrorKind::Quota, "spent").with_status(429)))).build().unwrap();
    let error = kernel.invoke_chat(hi()).await.unwrap_err();
    assert_eq!((error.kind(), error.status(), error.is_retryable()), (ErrorKind::Quota, Some(429), false));
}

/// A model that streams its reply word by word to whoever listens.
fn streaming(text: &'static str) -> impl ChatModel {
    model(move |request| {
        text.split_inclusive(' ').for_each(|word| request.events.emit(ChatEvent::Text(word.to_owned())));
        says(text)
    })
}

fn listener() -> (EventSink, Arc<Mutex<Vec<ChatEvent>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = heard.clone();
    (EventSink::new(move |event| list.lock().unwrap().push(event)), heard)
}

#[tokio::test]
async fn a_filters_own_model_call_is_not_heard() {
    // F7: a filter that asks a model itself (here: to translate the question) begins with a silent request.
    let own = Kernel::builder(streaming("translated question")).build().unwrap();
    let translate = Chat::around("translate", move |mut request: ChatRequest, next| {
        let own = own.clone();
        async move {
            let question = own.invoke_chat(ChatRequest::new(vec![Message::user("translate!")])).await?;
            request.messages = vec![Message::user(Message::Assistant(question.message).text().as_ref())].into();
            next.run(request).await
        }
    });
    let kernel = Kernel::builder(streaming("the answer")).chat_filter(translate).build().unwrap();
    let (events, heard) = listener();
    kernel.invoke_chat(ChatRequest { events, ..hi() }).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [ChatEvent::Text("the ".into()), ChatEvent::Text("answer".into())]);
}

#[tokio::test]
async fn a_filter_that_rewrites_tokens_wraps_the_sink() {
    // F9: a filter that runs the inside again says so on the stream.
    let shout = Chat::before("shout", |mut request: ChatRequest| {
        let inner = request.events.clone();
        request.events = EventSink::new(move |event| {
            inner.emit(match event {
                ChatEvent::Text(text) => ChatEvent::Text(text.to_uppercase()),
                other => other,
            })
        });
        Ok(request)
    });
    let twice = Chat::around("twice", |request: ChatRequest, next| async move {
        next.clone().run(request.clone()).await?;
        request.events.emit(ChatEvent::Reset);
        next.run(request).await
    });
    let kernel = Kernel::builder(streaming("hi")).chat_filter(twice.order(1)).chat_filter(shout).build().unwrap();
    let (events, heard) = listener();
    kernel.invoke_chat(ChatRequest { events, ..hi() }).await.unwrap();
    let text = || ChatEvent::Text("HI".into());
    assert_eq!(*heard.lock().unwrap(), [text(), ChatEvent::Reset, text()]);
    // Without a listener nothing is emitted and nothing breaks.
    assert!(!EventSink::none().is_wanted());
    kernel.invoke_chat(hi()).await.unwrap();
}

fn tool<F, Fut>(body: F) -> Tool
where
    F: Fn(Args, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Tool::new(ToolSpec::new("t", "", None).unwrap(), body)
}

fn kernel_of(filters: impl IntoIterator<Item = crate::FnFilter<Tool>>) -> Kernel {
    let builder = Kernel::builder(model(|_| says("ok")));
    filters.into_iter().fold(builder, |builder, filter| builder.tool_filter(filter)).build().unwrap()
}

#[tokio::test]
async fn a_panic_is_a_failure_like_any_other() {
    // L9: before the first await, after it, with a text and without.
    let kernel = kernel_of([]);
    let at_once = tool(|args, _| {
        assert!(args.is_invalid(), "at once");
        async { Ok(ToolOutput::new("")) }
    });
    let later = tool(|_, _| async {
        tokio::task::yield_now().await;
        panic!("{}", String::from("later"))
    });
    let wordless = tool(|_, _| async { std::panic::panic_any(7) });
    for (tool, words) in
        [(at_once, "the tool panicked: at once"), (later, "the tool panicked: later"), (wordless, "the tool panicked")]
    {
        let error = kernel.invoke_tool(request(&tool, "{}")).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Tool, words));
        assert_eq!(error.tool_failure(), Some(ToolFailure::Semantic));
    }
    // Siblings are not disturbed.
    let response = kernel.invoke_tool(request(&echo("t"), r#"{"a":1}"#)).await.unwrap();
    assert_eq!(response.output, ToolOutput::new(r#"{"a":1}"#));
}

#[tokio::test]
async fn a_bodys_error_keeps_its_class() {
    // L10
    let kernel = kernel_of([]);
    for failure in [ToolFailure::Semantic, ToolFailure::Transient, ToolFailure::Environment] {
        let body = move |_, _| async move { Err(ToolError { failure, message: "no".to_owned() }) };
        let error = kernel.invoke_tool(request(&Tool::new(echo("t").spec().clone(), body), "{}")).await.unwrap_err();
        assert_eq!((error.tool_failure(), error.message()), (Some(failure), "no"));
    }
}

#[tokio::test]
async fn arguments_changed_after_the_decision_are_refused() {
    // L5: what was decided on is what runs, or nothing runs.
    let change = || {
        Tool::before("change", |mut request: ToolRequest| {
            request.call.args = Args::decode(r#"{"path":"/etc"}"#);
            Ok(request)
        })
    };
    let decided = |args: &str| ToolRequest { decided: Some(Args::decode(args)), ..request(&echo("t"), args) };
    let error = kernel_of([change()]).invoke_tool(decided(r#"{"path":"a"}"#)).await.unwrap_err();
    assert_eq!(error.message(), "not run: the arguments of `t` were changed after the decision on them");
    assert_eq!(error.tool_failure(), Some(ToolFailure::Semantic));
    // The same arguments pass; without a decision a filter may rewrite them.
    let response = kernel_of([]).invoke_tool(decided(r#"{"path":"a"}"#)).await.unwrap();
    assert_eq!(response.output.content.text(), r#"{"path":"a"}"#);
    let response = kernel_of([change()]).invoke_tool(request(&echo("t"), "{}")).await.unwrap();
    assert_eq!(response.output.content.text(), r#"{"path":"/etc"}"#);
}

#[tokio::test]
async fn a_tool_filter_can_answer_instead() {
    // F3
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let counted = tool(move |_, _| {
        counter.fetch_add(1, Relaxed);
        async { Ok(ToolOutput::new("ran")) }
    });
    let instead = Tool::around("instead", |_request: ToolRequest, _next| async {
        let output = ToolOutput { content: "refused".into(), status: ToolStatus::Rejected };
        Ok(crate::ToolResponse { output, writes: crate::Writes::new() })
    });
    let response = kernel_of([instead]).invoke_tool(request(&counted, "{}")).await.unwrap();
    assert_eq!((response.output.status, runs.load(Relaxed)), (ToolStatus::Rejected, 0));
}

#[tokio::test]
async fn writes_come_out_with_a_success_only() {
    // L8: what a failed run wrote is gone, also for the run after it.
    let runs = AtomicUsize::new(0);
    let flaky = tool(move |_, context: ToolContext| {
        let run = runs.fetch_add(1, Relaxed);
        async move {
            let before: Option<usize> = context.get("run");
            context.set("run", run)?;
            context.set(&format!("from-{run}"), true)?;
            match run {
                0 => Err(ToolError::transient("again")),
                1 => panic!("again"),
                _ => Ok(ToolOutput::new(format!("{before:?}"))),
            }
        }
    });
    let retry = Tool::around("retry", |request: ToolRequest, next| async move {
        let _first = next.clone().run(request.clone()).await.unwrap_err();
        let _second = next.clone().run(request.clone()).await.unwrap_err();
        next.run(request).await
    });
    let response = kernel_of([retry]).invoke_tool(request(&flaky, "{}")).await.unwrap();
    assert_eq!(response.output.content.text(), "None");
    assert_eq!(serde_json::Value::Object(response.writes), json!({"run": 2, "from-2": true}));
}

#[tokio::test]
async fn what_a_filter_writes_before_a_body_is_seen_by_it() {
    let reads = tool(|_, context: ToolContext| async move {
        Ok(ToolOutput::new(context.get::<String>("who").unwrap_or_default()))
    });
    let sets = Tool::before("sets", |request: ToolRequest| request.context.set("who", "filter").map(|()| request));
    let response = kernel_of([sets]).invoke_tool(request(&reads, "{}")).await.unwrap();
    assert_eq!(response.output.content.text(), "filter");
}

#[tokio::test]
async fn calls_run_beside_each_other() {
    let kernel = kernel_of([]);
    let tasks: Vec<_> = (0..50)
        .map(|index| tokio::spawn(kernel.invoke_tool(request(&echo("t"), &format!(r#"{{"n":{index}}}"#)))))
        .collect();
    for (index, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await.unwrap().unwrap().output.content.text(), format!(r#"{{"n":{index}}}"#));
    }
}

#[test]
fn what_cannot_be_built() {
    // F5: names are unique in each chain; the two chains do not know each other.
    let builder = || Kernel::builder(model(|_| says("ok")));
    let chat = || Chat::before("same", Ok);
    let tools = || Tool::before("same", Ok);
    assert!(builder().chat_filter(chat()).tool_filter(tools()).build().is_ok());
    for (builder, kind) in [
        (builder().chat_filter(chat()).chat_filter(chat().order(3)), ErrorKind::InvalidConfig),
        (builder().tool_filter(tools()).tool_filter(tools()), ErrorKind::InvalidConfig),
        (builder().tool(echo("t")).tools([echo("u"), echo("t")]), ErrorKind::InvalidTool),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains("`same`") || error.message().contains("`t`"), "{error}");
    }
}

#[tokio::test]
async fn a_kernel_knows_what_it_is_made_of_and_can_be_extended() {
    let (model, seen) = recording();
    let short = Chat::before("short", |mut request: ChatRequest| {
        request.options.max_tokens = Some(5);
        Ok(request)
    });
    let kernel = Kernel::builder(model)
        .tool(echo("a"))
        .chat_filter(short)
        .settings(ChatOptions { temperature: Some(0.2), ..ChatOptions::default() })
        .build()
        .unwrap();
    let more = kernel.to_builder().tool(echo("b")).build().unwrap();
    assert_eq!((kernel.list_tools().len(), more.list_tools().len()), (1, 2));
    assert!(kernel.find_tool("b").is_none() && more.find_tool("b").is_some());
    assert_eq!((more.origin().model.as_ref(), more.settings().temperature), ("toy-1", Some(0.2)));
    more.invoke_chat(hi()).await.unwrap();
    assert_eq!(last(&seen).options.max_tokens, Some(5));
    assert!(kernel.to_builder().chat_filter(Chat::before("short", Ok)).build().is_err());
    assert!(format!("{more:?}").contains(r#"tools: ["a", "b"], chat_filters: ["short"], tool_filters: []"#));
}
