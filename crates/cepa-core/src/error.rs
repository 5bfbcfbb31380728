//! One error model for everything: what went wrong, whose fault it is, and whether trying again can help.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

/// What went wrong, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The provider asks to slow down.
    RateLimit,
    /// The account's quota or credit is spent: trying again does not help.
    Quota,
    /// The provider is overloaded for everyone.
    Overloaded,
    /// The provider failed (HTTP 5xx).
    Server,
    /// The key is missing, wrong, or not allowed to do this.
    Auth,
    /// The provider refused the request as malformed.
    InvalidRequest,
    /// The conversation does not fit into the model's context window.
    ContextLength,
    /// A stream ended before its terminal event.
    Truncated,
    /// What came back could not be understood.
    Decode,
    /// The host could not be reached, or the connection broke.
    Network,
    /// Something took longer than it was allowed to.
    Timeout,
    /// The caller cancelled.
    Cancelled,
    /// The provider reported an error of no known kind.
    Provider,
    /// A decision was made where nothing waits for one.
    NotPaused,
    /// This pause was already decided, differently.
    AlreadyDecided,
    /// The time to decide is over.
    Expired,
    /// Another turn is running on this conversation.
    Busy,
    /// The conversation changed since it was read.
    Conflict,
    /// Something stored cannot be read back.
    Corrupt,
    /// The store failed (disk full, locked, read-only, not ours).
    Store,
    /// The caller's input is not usable.
    InvalidInput,
    /// A tool is not usable as it is declared or was called.
    InvalidTool,
    /// A setting is not usable.
    InvalidConfig,
    /// A tool's body failed; see [`Error::tool_failure`].
    Tool,
}

/// Whose fault a tool's failure is, and so who hears of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolFailure {
    /// The call made no sense: the model is told and can do better.
    #[default]
    Semantic,
    /// The same call may succeed in a moment: tried again if the tool is idempotent.
    Transient,
    /// Something a person must repair (credentials, disk, a host that is down).
    Environment,
}

impl ToolFailure {
    /// The word in JSON and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Transient => "transient",
            Self::Environment => "environment",
        }
    }
}

impl ErrorKind {
    /// The name in JSON, logs and the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Auth => "auth",
            Self::InvalidRequest => "invalid_request",
            Self::ContextLength => "context_length",
            Self::Truncated => "truncated",
            Self::Decode => "decode",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Provider => "provider",
            Self::NotPaused => "not_paused",
            Self::AlreadyDecided => "already_decided",
            Self::Expired => "expired",
            Self::Busy => "busy",
            Self::Conflict => "conflict",
            Self::Corrupt => "corrupt",
            Self::Store => "store",
            Self::InvalidInput => "invalid_input",
            Self::InvalidTool => "invalid_tool",
            Self::InvalidConfig => "invalid_config",
            Self::Tool => "tool",
        }
    }

    /// Whether the same request may succeed later, unless the error itself says otherwise.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::Overloaded
                | Self::Server
                | Self::Truncated
                | Self::Network
                | Self::Timeout
                | Self::Busy
        )
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of every fallible call in cepa.
///
/// ```
/// use cepa_core::{Error, ErrorKind};
/// let error = Error::new(ErrorKind::RateLimit, "slow down").with_status(429);
/// assert!(error.is_retryable());
/// assert_eq!(error.to_string(), "rate_limit: slow down (status 429)");
/// ```
#[derive(Clone)]
pub struct Error(Box<Details>);

#[derive(Clone)]
struct Details {
    kind: ErrorKind,
    message: Cow<'static, str>,
    retryable: bool,
    status: Option<u16>,
    provider: Option<Arc<str>>,
    code: Option<String>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    partial_text: Option<String>,
    tool_failure: Option<ToolFailure>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of this kind; retryable if its kind is.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Details {
            kind,
            message: message.into(),
            retryable: kind.is_retryable(),
            status: None,
            provider: None,
            code: None,
            request_id: None,
            retry_after: None,
            partial_text: None,
            tool_failure: None,
            source: None,
        }))
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The text for a person: what happened and, where we know it, what to do.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }
    /// The HTTP status, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }
    /// The catalog entry of the provider that failed.
    pub fn provider(&self) -> Option<&str> {
        self.0.provider.as_deref()
    }
    /// The provider's own error code or type.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }
    /// The provider's id of the request, for their support.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }
    /// How long the provider asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
    /// The text received before a stream failed. These are the model's own words, as they came: where it repeats a secret that
    /// it was told, such as a key, that is not masked, here as little as in a reply.
    pub fn partial_text(&self) -> Option<&str> {
        self.0.partial_text.as_deref()
    }

    /// The class of a tool's failure.
    pub fn tool_failure(&self) -> Option<ToolFailure> {
        self.0.tool_failure
    }

    /// The failure of a tool's body.
    pub fn tool(failure: ToolFailure, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(ErrorKind::Tool, message);
        error.0.retryable = failure == ToolFailure::Transient;
        error.0.tool_failure = Some(failure);
        error
    }

    /// Overrides whether trying again may help.
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }
    /// Sets the HTTP status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }
    /// Sets the provider's name.
    pub fn with_provider(mut self, provider: impl Into<Arc<str>>) -> Self {
        self.0.provider = Some(provider.into());
        self
    }
    /// Sets the provider's code.
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Some(code.into());
        self
    }
    /// Sets the provider's request id.
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into());
        self
    }
    /// Sets how long to wait before trying again.
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }
    /// Keeps the text that had arrived.
    pub fn with_partial_text(mut self, text: impl Into<String>) -> Self {
        self.0.partial_text = Some(text.into());
        self
    }
    /// Keeps the error that caused this one.
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }
    /// Replaces the text, keeping everything else.
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.message = message.into();
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        let mut open = false;
        let mut part = |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn fmt::Display| {
            let lead = if std::mem::replace(&mut open, true) { ", " } else { " (" };
            write!(f, "{lead}{name} {value}")
        };
        if let Some(provider) = &self.0.provider {
            part(f, "provider", provider)?;
        }
        if let Some(status) = &self.0.status {
            part(f, "status", status)?;
        }
        if let Some(code) = &self.0.code {
            part(f, "code", code)?;
        }
        if let Some(id) = &self.0.request_id {
            part(f, "request", id)?;
        }
        if open { f.write_str(")") } else { Ok(()) }
    }
}

impl fmt::Debug for Error {
    /// Only what is known: this is what a `main` that returns an error prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Error");
        shown.field("kind", &self.0.kind).field("message", &self.0.message);
        if self.0.retryable {
            shown.field("retryable", &true);
        }
        if let Some(status) = self.0.status {
            shown.field("status", &status);
        }
        for (name, text) in [("code", &self.0.code), ("request_id", &self.0.request_id)] {
            if let Some(text) = text {
                shown.field(name, text);
            }
        }
        if let Some(provider) = &self.0.provider {
            shown.field("provider", provider);
        }
        if let Some(wait) = self.0.retry_after {
            shown.field("retry_after", &wait);
        }
        shown.finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e.as_ref() as _)
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
