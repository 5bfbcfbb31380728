//! OpenAI, and every other server that speaks chat completions, as a model.

use cepa_core::Error;

use crate::{
    catalog::Endpoint,
    client::Client,
    connection::{self, Connection},
    http::{HttpClient, HttpSettings},
    limit::Limiter,
    retry::RetryPolicy,
    wire::{
        caps::Caps,
        openai_chat::{OpenAiChat, Quirks},
    },
};

/// A model that speaks chat completions.
///
/// ```no_run
/// # async fn example() -> Result<(), cepa_core::Error> {
/// use cepa_core::{ChatModel, ChatRequest, Message};
/// use cepa_providers::openai::OpenAi;
///
/// let model = OpenAi::builder("gpt-5.4-mini").build()?; // the key is in OPENAI_API_KEY
/// let response = model.chat(ChatRequest::new(vec![Message::user("Hello!")])).await?;
/// println!("{:?}", response.message.content);
/// # Ok(()) }
/// ```
pub type OpenAi = Client<OpenAiChat>;

impl OpenAi {
    /// A model of OpenAI itself, until another endpoint is set.
    pub fn builder(model: impl Into<String>) -> OpenAiBuilder {
        OpenAiBuilder { connection: Connection::new(model.into()), quirks: None }
    }
}

/// The settings of an [`OpenAi`] model.
///
/// ```
/// use cepa_providers::{catalog::Endpoint, openai::OpenAi};
///
/// let local = OpenAi::builder("qwen3").endpoint(Endpoint::named("ollama")?).build()?;
/// let gateway = OpenAi::builder("big-model")
///     .endpoint(Endpoint::named("openai-compatible")?)
///     .base_url("https://gateway.example/v1")
///     .api_key("sk-…".replace('…', "12345678").as_str())
///     .header("x-team", "search")
///     .build()?;
/// assert!(!format!("{gateway:?}").contains("12345678"));
/// # let _ = local;
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct OpenAiBuilder {
    connection: Connection,
    quirks: Option<Quirks>,
}

impl OpenAiBuilder {
    /// Sets the endpoint: address, environment variables and quirks.
    pub fn endpoint(mut self, endpoint: &'static Endpoint) -> Self {
        self.connection.endpoint = endpoint;
        self
    }

    /// Gives the provider another name than the endpoint's: two servers of one kind are two providers, and what one of them
    /// made for itself is not sent to the other.
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.connection.provider = Some(name.into());
        self
    }

    /// Sets the key; else the environment is asked.
    pub fn api_key(mut self, key: &str) -> Self {
        self.connection.api_key(key);
        self
    }

    /// Sets the address before `/chat/completions`; else the environment is asked, then the catalog.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.connection.base_url = Some(url.into());
        self
    }

    /// Adds a header to every request; `authorization` takes the place of the key's own.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.connection.header(name, value);
        self
    }

    /// Sets time limits, proxy and trusted certificates.
    pub fn http(mut self, settings: HttpSettings) -> Self {
        self.connection.http = Some(HttpClient::new(settings));
        self
    }

    /// Shares another model's connections and limits.
    pub fn http_client(mut self, client: HttpClient) -> Self {
        self.connection.http = Some(client);
        self
    }

    /// Sets how often a request is tried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.connection.retry = policy;
        self
    }

    /// Shares a limit with other models that use the same key.
    pub fn limiter(mut self, limiter: Limiter) -> Self {
        self.connection.limiter = Some(limiter);
        self
    }

    /// Sets how much of a reply is taken.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.connection.caps = caps;
        self
    }

    /// Sets the endpoint's differences, in place of the catalog's.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = Some(quirks);
        self
    }

    /// The model. Nothing is sent, opened or looked up before its first call.
    ///
    /// # Errors
    /// `auth` if the endpoint needs a key and there is none, `invalid_config` for settings that cannot be used.
    pub fn build(self) -> Result<OpenAi, Error> {
        self.build_with(connection::from_env)
    }

    fn build_with(self, env: impl Fn(&str) -> Option<String>) -> Result<OpenAi, Error> {
        let quirks = self.quirks.unwrap_or_else(self.connection.endpoint.quirks);
        self.connection.client("/chat/completions", env, |origin| OpenAiChat::new(origin, quirks))
    }
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
