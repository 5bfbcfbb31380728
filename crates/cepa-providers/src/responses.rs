//! OpenAI, and every other server that speaks its Responses API, as a model.

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
        openai_responses::{EncryptedReasoning, Quirks, Responses, StrictTools, Summary},
    },
};

/// A model that speaks OpenAI's Responses API. Conversations are never stored at the provider.
///
/// ```no_run
/// # async fn example() -> Result<(), cepa_core::Error> {
/// use cepa_core::{ChatModel, ChatRequest, Message};
/// use cepa_providers::responses::OpenAiResponses;
///
/// let model = OpenAiResponses::builder("gpt-5.4").build()?; // the key is in OPENAI_API_KEY
/// let response = model.chat(ChatRequest::new(vec![Message::user("Hello!")])).await?;
/// println!("{:?}", response.message.content);
/// # Ok(()) }
/// ```
pub type OpenAiResponses = Client<Responses>;

impl OpenAiResponses {
    /// A model of OpenAI itself, until another endpoint is set.
    pub fn builder(model: impl Into<String>) -> OpenAiResponsesBuilder {
        OpenAiResponsesBuilder { connection: Connection::new(model.into()), quirks: Quirks::default() }
    }
}

/// The settings of an [`OpenAiResponses`] model.
///
/// ```
/// use cepa_providers::{catalog::Endpoint, responses::OpenAiResponses, wire::openai_responses::Summary};
///
/// let local = OpenAiResponses::builder("gpt-oss").endpoint(Endpoint::named("llama.cpp")?).build()?;
/// let thinking = OpenAiResponses::builder("gpt-5.4").api_key("sk-12345678").reasoning_summary(Summary::Auto).build()?;
/// assert!(!format!("{thinking:?}").contains("12345678"));
/// # let _ = local;
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct OpenAiResponsesBuilder {
    connection: Connection,
    quirks: Quirks,
}

impl OpenAiResponsesBuilder {
    /// Sets the endpoint: address and environment variables.
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

    /// Sets the address before `/responses`; else the environment is asked, then the catalog.
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

    /// Sets whether reasoning is asked for in encrypted form; models without reasoning refuse the question.
    pub fn encrypted_reasoning(mut self, encrypted: EncryptedReasoning) -> Self {
        self.quirks.encrypted_reasoning = encrypted;
        self
    }

    /// Asks for a summary of the model's reasoning, to be shown to people.
    pub fn reasoning_summary(mut self, summary: Summary) -> Self {
        self.quirks.summary = Some(summary);
        self
    }

    /// Sets which tools are strict.
    pub fn strict_tools(mut self, strict: StrictTools) -> Self {
        self.quirks.strict_tools = strict;
        self
    }

    /// Sets all differences of the endpoint at once.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }

    /// The model. Nothing is sent, opened or looked up before its first call.
    ///
    /// # Errors
    /// `auth` if the endpoint needs a key and there is none, `invalid_config` for settings that cannot be used.
    pub fn build(self) -> Result<OpenAiResponses, Error> {
        self.build_with(connection::from_env)
    }

    fn build_with(self, env: impl Fn(&str) -> Option<String>) -> Result<OpenAiResponses, Error> {
        self.connection.client("/responses", env, |origin| Responses::new(origin, self.quirks))
    }
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
