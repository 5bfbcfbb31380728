//! A tool: what the model is told of it, and the body that runs.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
    time::Duration,
};

use crate::{
    Args, BoxFuture, Content, Error, ErrorKind, RawJson, Stage, ToolCall, ToolContext, ToolFailure, ToolStatus, Writes,
};

/// What the model is told of a tool, and what the loop must know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name; at most 64 letters, digits, `_` and `-` are understood everywhere.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments: an object schema; `None` if it takes none.
    pub schema: Option<RawJson>,
    /// What the loop must know.
    pub flags: ToolFlags,
}

/// What the loop must know of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFlags {
    /// A person must decide before it runs (where pausing is on).
    pub sensitive: bool,
    /// It changes nothing: it may run beside others and again.
    pub read_only: bool,
    /// It may run beside others.
    pub concurrent: bool,
    /// Running it twice with one idempotency key has the effect of running it once.
    pub idempotent: bool,
    /// Its result is the answer; the model is not asked again.
    pub return_direct: bool,
    /// How long the body may take.
    pub timeout: Option<Duration>,
    /// Words by which tools are selected.
    pub tags: Vec<String>,
}

impl ToolSpec {
    /// A tool without flags.
    ///
    /// # Errors
    /// `invalid_tool` if the name is blank or the schema is not a JSON object that describes an object.
    pub fn new(name: &str, description: &str, schema: Option<&str>) -> Result<Self, Error> {
        let schema = schema.map(RawJson::parse).transpose().map_err(|error| {
            Error::new(ErrorKind::InvalidTool, format!("the schema of tool `{name}` is not JSON: {error}"))
        })?;
        let flags = ToolFlags::default();
        let spec = Self { name: name.to_owned(), description: description.to_owned(), schema, flags };
        spec.check()?;
        Ok(spec)
    }

    /// Checks what every provider would refuse.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { name, schema, .. } = self;
        let invalid = |what: String| Err(Error::new(ErrorKind::InvalidTool, what));
        if name.trim().is_empty() {
            return invalid("a tool needs a name".to_owned());
        }
        let Some(schema) = schema else { return Ok(()) };
        let Ok(members) = schema.read::<serde_json::Map<String, serde_json::Value>>() else {
            return invalid(format!("the schema of tool `{name}` is not a JSON object"));
        };
        match members.get("type") {
            Some(other) if other != "object" => {
                invalid(format!("the schema of tool `{name}` must have the type object, not {other}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Sets the flags.
    pub fn with_flags(mut self, flags: ToolFlags) -> Self {
        self.flags = flags;
        self
    }
}

/// What a tool's body returned.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// What the model gets to read.
    pub content: Content,
    /// Whether this is a result or the report of a failure.
    pub status: ToolStatus,
}

impl ToolOutput {
    /// A result.
    pub fn new(content: impl Into<Content>) -> Self {
        Self { content: content.into(), status: ToolStatus::Ok }
    }

    /// The result that is a value: a text as it is, anything else as JSON.
    ///
    /// # Errors
    /// A [`ToolError`] if the value is not JSON.
    pub fn of<T: serde::Serialize>(value: &T) -> Result<Self, ToolError> {
        // Through the text, not through a `Value`: big numbers and the order of members stay.
        let json = serde_json::to_string(value)?;
        Ok(Self::new(if json.starts_with('"') { serde_json::from_str::<String>(&json)? } else { json }))
    }
}

impl<T: Into<Content>> From<T> for ToolOutput {
    fn from(content: T) -> Self {
        Self::new(content)
    }
}

/// Why a tool's body failed. Any error converts with `?` into a semantic one; an [`Error`] keeps its class.
// It must not implement `Display` or `std::error::Error`: the conversions from all other errors rest on that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// Whose fault it is.
    pub failure: ToolFailure,
    /// The text for the model.
    pub message: String,
}

impl ToolError {
    /// The call made no sense.
    pub fn semantic(message: impl Into<String>) -> Self {
        Self { failure: ToolFailure::Semantic, message: message.into() }
    }
    /// The same call may succeed in a moment.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { failure: ToolFailure::Transient, message: message.into() }
    }
    /// A person must repair something.
    pub fn environment(message: impl Into<String>) -> Self {
        Self { failure: ToolFailure::Environment, message: message.into() }
    }
}

impl<E: std::error::Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::of(error)
    }
}

impl ToolError {
    /// The failure with an error's text; ours keep their class, an error without text gives its type's name.
    pub(crate) fn of<E: fmt::Display + 'static>(error: E) -> Self {
        if let Some(ours) = (&error as &dyn Any).downcast_ref::<Error>() {
            let message = match ours.kind() {
                ErrorKind::Tool => ours.message().to_owned(),
                _ => ours.to_string(),
            };
            return Self { failure: class_of(ours), message };
        }
        // `{:#}` is the whole chain of causes for errors that have one to show.
        let text = format!("{error:#}");
        Self::semantic(if text.trim().is_empty() { std::any::type_name::<E>().to_owned() } else { text })
    }
}

fn class_of(error: &Error) -> ToolFailure {
    match (error.tool_failure(), error.kind()) {
        (Some(class), _) => class,
        (None, ErrorKind::Auth | ErrorKind::Quota | ErrorKind::Store) => ToolFailure::Environment,
        (None, _) if error.is_retryable() => ToolFailure::Transient,
        (None, _) => ToolFailure::Semantic,
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        Self::tool(error.failure, error.message)
    }
}

/// The inside of a tool, for authors who need more than a closure.
pub trait ToolBody: Send + Sync + 'static {
    /// Runs one call. Arguments were checked before.
    fn run(&self, args: Args, context: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;

    /// Checks the arguments before anybody decides on them; the text of the error is for the model.
    /// `None` leaves the check to the tool's schema.
    fn check(&self, _args: &Args) -> Option<Result<(), String>> {
        None
    }

    /// Rewrites checked arguments into their usual form (paths resolved, defaults filled in) before anybody decides
    /// on them: what is shown to a person is what runs.
    ///
    /// # Errors
    /// The text of the error is for the model.
    fn normalise(&self, args: Args) -> Result<Args, String> {
        Ok(args)
    }
}

/// A function that the model may call; also the stage of one tool call.
///
/// ```
/// use cepa_core::{Stage, Tool, ToolOutput, ToolSpec};
/// let spec = ToolSpec::new("shout", "Makes a text loud.", Some(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#))?;
/// let shout = Tool::new(spec, |args, _context| async move {
///     let text = args.to_value()["text"].as_str().unwrap_or_default().to_uppercase();
///     Ok(ToolOutput::new(text))
/// });
/// let audit = Tool::before("audit", |request| { println!("{}", request.call.name); Ok(request) });
/// # let _ = (shout, audit);
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Tool(Arc<Inside>);

struct Inside {
    spec: ToolSpec,
    body: Arc<dyn ToolBody>,
    /// The schema as it is checked with: read at the first call.
    schema: OnceLock<Option<serde_json::Value>>,
    fingerprint: OnceLock<Arc<str>>,
}

impl Inside {
    fn new(spec: ToolSpec, body: Arc<dyn ToolBody>) -> Self {
        Self { spec, body, schema: OnceLock::new(), fingerprint: OnceLock::new() }
    }
}

struct FnBody<F>(F);

impl<F, Fut> ToolBody for FnBody<F>
where
    F: Fn(Args, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    fn run(&self, args: Args, context: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(self.0(args, context))
    }
}

impl Tool {
    /// A tool whose body is an async closure.
    pub fn new<F, Fut>(spec: ToolSpec, body: F) -> Self
    where
        F: Fn(Args, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self::with_body(spec, FnBody(body))
    }

    /// A tool with a body of the author's own type.
    pub fn with_body(spec: ToolSpec, body: impl ToolBody) -> Self {
        Self(Arc::new(Inside::new(spec, Arc::new(body))))
    }

    /// The same tool with other flags: what an operator decides about somebody else's tool.
    pub fn with_flags(&self, flags: ToolFlags) -> Self {
        let spec = self.0.spec.clone().with_flags(flags);
        Self(Arc::new(Inside::new(spec, self.0.body.clone())))
    }

    /// What is told of it.
    pub fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }
    /// Its flags.
    pub fn flags(&self) -> &ToolFlags {
        &self.0.spec.flags
    }
    /// Its body, without filters.
    pub fn body(&self) -> &dyn ToolBody {
        &*self.0.body
    }

    /// Arguments as they will run: valid for the schema, then normalised.
    ///
    /// # Errors
    /// The text of the error is for the model.
    pub fn prepare(&self, args: &Args) -> Result<Args, String> {
        if let Args::Invalid { why, .. } = args {
            return Err(format!("the arguments are {why}"));
        }
        let prepare = || {
            match self.0.body.check(args) {
                Some(checked) => checked?,
                None => self.check_schema(args)?,
            }
            self.0.body.normalise(args.clone())
        };
        catch_unwind(AssertUnwindSafe(prepare)).unwrap_or_else(|payload| Err(panic_text(&*payload)))
    }
}

impl Tool {
    fn check_schema(&self, args: &Args) -> Result<(), String> {
        // A schema that is no JSON object was refused when the tool was made.
        let read = || self.0.spec.schema.as_ref().and_then(|schema| schema.read().ok());
        self.0.schema.get_or_init(read).as_ref().map_or(Ok(()), |schema| crate::schema::check(schema, args))
    }

    /// A text by which a change of the tool is found out: made of its spec by whoever asks first, and kept.
    pub fn fingerprint(&self, make: impl FnOnce(&ToolSpec) -> String) -> &Arc<str> {
        self.0.fingerprint.get_or_init(|| make(&self.0.spec).into())
    }
}

/// What the model is told of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "the tool panicked".to_owned(), |text| format!("the tool panicked: {text}"))
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.0.spec).finish()
    }
}

/// One call on its way through the tool filters.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    /// The tool.
    pub tool: Tool,
    /// The call.
    pub call: ToolCall,
    /// The call's context.
    pub context: ToolContext,
    /// The arguments that somebody decided on; a filter that changed them since gets a refusal.
    pub decided: Option<Args>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResponse {
    /// The result.
    pub output: ToolOutput,
    /// What the body wrote to the context.
    pub writes: Writes,
}

impl Stage for Tool {
    type Request = ToolRequest;
    type Response = ToolResponse;
    type Error = Error;
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
