//! The kernel: a model, tools, filters and settings behind two primitives. It knows no memory and no loop.

use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    BoxFuture, Chain, Chat, ChatModel, ChatOptions, ChatRequest, ChatResponse, Error, Filter, Origin, SharedModel,
    Tool, ToolError, ToolFailure, ToolOutput, ToolRequest, ToolResponse, ToolSet, pairing, tool::panic_text,
};

/// A model with its tools, filters and settings: immutable, shared, cheap to clone.
///
/// ```
/// use cepa_core::{Chat, ChatModel, ChatRequest, Kernel, Message, Stage};
/// async fn greet(model: impl ChatModel) -> Result<String, cepa_core::Error> {
///     let kernel = Kernel::builder(model)
///         .chat_filter(Chat::before("short", |mut request| {
///             request.options.max_tokens = Some(200);
///             Ok(request)
///         }))
///         .build()?;
///     let response = kernel.invoke_chat(ChatRequest::new(vec![Message::user("hi")])).await?;
///     Ok(Message::Assistant(response.message).text().into_owned())
/// }
/// ```
#[derive(Clone)]
pub struct Kernel(Arc<Inside>);

struct Inside {
    model: Arc<dyn ChatModel>,
    tools: ToolSet,
    settings: ChatOptions,
    chat: Chain<Chat>,
    tool: Chain<Tool>,
}

/// Collects what a kernel is made of.
pub struct KernelBuilder {
    model: Arc<dyn ChatModel>,
    tools: Vec<Tool>,
    settings: ChatOptions,
    chat: Vec<Arc<dyn Filter<Chat>>>,
    tool: Vec<Arc<dyn Filter<Tool>>>,
}

impl KernelBuilder {
    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }
    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }
    /// Adds a filter around every model call.
    pub fn chat_filter(mut self, filter: impl Filter<Chat>) -> Self {
        self.chat.push(Arc::new(filter));
        self
    }
    /// Adds a filter around every tool call.
    pub fn tool_filter(mut self, filter: impl Filter<Tool>) -> Self {
        self.tool.push(Arc::new(filter));
        self
    }
    /// Sets the options of every call that does not set its own.
    pub fn settings(mut self, settings: ChatOptions) -> Self {
        self.settings = settings;
        self
    }

    /// Sorts and links the filters.
    ///
    /// # Errors
    /// `invalid_config` for two filters of one name in a chain, `invalid_tool` for two tools of one name.
    pub fn build(self) -> Result<Kernel, Error> {
        let Self { model, tools, settings, chat, tool } = self;
        let terminal_model = model.clone();
        let defaults = settings.clone();
        let chat = Chain::new(chat, move |request| call_model(terminal_model.clone(), request, &defaults))?;
        let tool = Chain::new(tool, run_body)?;
        Ok(Kernel(Arc::new(Inside { model, tools: ToolSet::new(tools)?, settings, chat, tool })))
    }
}

impl Kernel {
    /// Begins a kernel around a model.
    pub fn builder(model: impl ChatModel) -> KernelBuilder {
        Self::builder_shared(Arc::new(model))
    }

    /// Begins a kernel around a model that others use too.
    pub fn builder_shared(model: Arc<dyn ChatModel>) -> KernelBuilder {
        KernelBuilder { model, tools: vec![], settings: ChatOptions::default(), chat: vec![], tool: vec![] }
    }

    /// A builder with everything this kernel is made of, to make another one with more.
    pub fn to_builder(&self) -> KernelBuilder {
        KernelBuilder {
            model: self.0.model.clone(),
            tools: self.0.tools.iter().cloned().collect(),
            settings: self.0.settings.clone(),
            chat: self.0.chat.filters().to_vec(),
            tool: self.0.tool.filters().to_vec(),
        }
    }

    /// Calls the model once, through the chat filters. The tools are those of the request.
    ///
    /// # Errors
    /// What the model or a filter fails with.
    pub fn invoke_chat(
        &self,
        request: ChatRequest,
    ) -> impl Future<Output = Result<ChatResponse, Error>> + Send + use<> {
        self.0.chat.run(request)
    }

    /// Runs one call, through the tool filters. Arguments are taken as they are: see [`Tool::prepare`].
    ///
    /// # Errors
    /// The failure of the body ([`ErrorKind::Tool`]) or of a filter.
    pub fn invoke_tool(
        &self,
        request: ToolRequest,
    ) -> impl Future<Output = Result<ToolResponse, Error>> + Send + use<> {
        self.0.tool.run(request)
    }

    /// The names of the filters around a model call, outermost first.
    pub fn chat_filters(&self) -> impl Iterator<Item = &str> {
        self.0.chat.filters().iter().map(|filter| filter.name())
    }
    /// The names of the filters around a tool call, outermost first.
    pub fn tool_filters(&self) -> impl Iterator<Item = &str> {
        self.0.tool.filters().iter().map(|filter| filter.name())
    }
    /// The tool of this name.
    pub fn find_tool(&self, name: &str) -> Option<&Tool> {
        self.0.tools.get(name)
    }
    /// All tools in order.
    pub fn list_tools(&self) -> &ToolSet {
        &self.0.tools
    }
    /// Which model is called.
    pub fn origin(&self) -> &Origin {
        self.0.model.origin()
    }
    /// The options of every call that does not set its own.
    pub fn settings(&self) -> &ChatOptions {
        &self.0.settings
    }
}

/// The inside of the chat onion: heals the history, calls the model, and remembers what was offered.
fn call_model(
    model: Arc<dyn ChatModel>,
    mut request: ChatRequest,
    defaults: &ChatOptions,
) -> impl Future<Output = Result<ChatResponse, Error>> + Send + use<> {
    // A filter may have chosen another one.
    let model = request.model.take().map_or(model, SharedModel::into_inner);
    request.options = request.options.or(defaults);
    request.messages = pairing::heal(&request.messages);
    async move {
        let offered = request.tools.clone();
        let context = request.context.clone();
        let mut response = model.chat(request).await?;
        response.offered = offered;
        response.context = context;
        Ok(response)
    }
}

/// The inside of the tool onion: compares the arguments with those decided on, runs the body, contains a panic.
async fn run_body(request: ToolRequest) -> Result<ToolResponse, Error> {
    let ToolRequest { tool, call, context, decided } = request;
    if decided.is_some_and(|decided| decided != call.args) {
        let message = format!("not run: the arguments of `{}` were changed after the decision on them", tool.name());
        return Err(Error::tool(ToolFailure::Semantic, message));
    }
    // The body writes into a copy: what a run that fails or is dropped has written, nobody sees, not even the next try.
    let own = context.for_body();
    let output = match catch_unwind(AssertUnwindSafe(|| tool.body().run(call.args, own.clone()))) {
        Ok(running) => CatchPanic(running).await?,
        Err(payload) => return Err(panicked(&*payload)),
    };
    Ok(ToolResponse { output, writes: own.take_writes() })
}

/// A body's future whose panic is a failure like any other.
struct CatchPanic<'a>(BoxFuture<'a, Result<ToolOutput, ToolError>>);

impl Future for CatchPanic<'_> {
    type Output = Result<ToolOutput, Error>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(poll) => poll.map_err(Error::from),
            Err(payload) => Poll::Ready(Err(panicked(&*payload))),
        }
    }
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Error {
    Error::tool(ToolFailure::Semantic, panic_text(payload))
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("model", self.origin())
            .field("tools", &self.0.tools)
            .field("chat_filters", &self.0.chat)
            .field("tool_filters", &self.0.tool)
            .finish()
    }
}

impl fmt::Debug for KernelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelBuilder").field("tools", &self.tools).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
