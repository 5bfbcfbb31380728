//! OpenAI, and every other server that speaks chat completions, as a model.

use std::fmt;

use cepa_core::{Error, ErrorKind, Origin};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};

use crate::{
    catalog::{Auth, Endpoint, OPENAI},
    client::{Client, Target},
    http::{HttpClient, HttpRequest, HttpSettings},
    limit::Limiter,
    retry::RetryPolicy,
    secret::ApiKey,
    wire::openai_chat::{OpenAiChat, Quirks},
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
        OpenAiBuilder {
            endpoint: &OPENAI,
            provider: None,
            model: model.into(),
            api_key: None,
            base_url: None,
            headers: HeaderMap::new(),
            http: None,
            retry: RetryPolicy::default(),
            limiter: None,
            quirks: None,
            problem: None,
        }
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
#[derive(Clone)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct OpenAiBuilder {
    endpoint: &'static Endpoint,
    provider: Option<String>,
    model: String,
    api_key: Option<ApiKey>,
    base_url: Option<String>,
    headers: HeaderMap,
    http: Option<HttpClient>,
    retry: RetryPolicy,
    limiter: Option<Limiter>,
    quirks: Option<Quirks>,
    /// The first setting that was not usable; told by `build`.
    problem: Option<Error>,
}

impl fmt::Debug for OpenAiBuilder {
    /// Without the values of headers and the address's query, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base_url = self.base_url.as_ref().and_then(|url| url.split('?').next());
        f.debug_struct("OpenAiBuilder")
            .field("endpoint", &self.endpoint.name)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("base_url", &base_url)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("http", &self.http)
            .field("retry", &self.retry)
            .field("limiter", &self.limiter)
            .field("quirks", &self.quirks)
            .finish_non_exhaustive()
    }
}

impl OpenAiBuilder {
    /// Sets the endpoint: address, environment variables and quirks.
    pub fn endpoint(mut self, endpoint: &'static Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Gives the provider another name than the endpoint's: two servers of one kind are two providers, and what one of them
    /// made for itself is not sent to the other.
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// Sets the key; else the environment is asked.
    pub fn api_key(mut self, key: &str) -> Self {
        match ApiKey::new(key) {
            Ok(key) => self.api_key = Some(key),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the address before `/chat/completions`; else the environment is asked, then the catalog.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Adds a header to every request; `authorization` takes the place of the key's own.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        match header {
            Some((name, mut value)) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            None => {
                let message = format!("the header {name:?} has a name or a value that HTTP does not allow");
                self.keep(Error::new(ErrorKind::InvalidConfig, message));
            }
        }
        self
    }

    /// Sets time limits, proxy and trusted certificates.
    pub fn http(mut self, settings: HttpSettings) -> Self {
        self.http = Some(HttpClient::new(settings));
        self
    }

    /// Shares another model's connections and limits.
    pub fn http_client(mut self, client: HttpClient) -> Self {
        self.http = Some(client);
        self
    }

    /// Sets how often a request is tried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Shares a limit with other models that use the same key.
    pub fn limiter(mut self, limiter: Limiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Sets the endpoint's differences, in place of the catalog's.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = Some(quirks);
        self
    }

    fn keep(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// The model. Nothing is sent, opened or looked up before its first call.
    ///
    /// # Errors
    /// `auth` if the endpoint needs a key and there is none, `invalid_config` for settings that cannot be used.
    pub fn build(self) -> Result<OpenAi, Error> {
        self.build_with(|variable| std::env::var(variable).ok().filter(|value| !value.trim().is_empty()))
    }

    fn build_with(self, env: impl Fn(&str) -> Option<String>) -> Result<OpenAi, Error> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let endpoint = self.endpoint;
        if self.model.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidConfig, "the model has no name: give one"));
        }
        let own_url = self.base_url.or_else(|| endpoint.base_url_env.and_then(&env));
        let is_elsewhere = own_url.is_some();
        let url = match own_url.as_deref().or(endpoint.base_url) {
            Some(base) => chat_url(base),
            None => {
                let variable = endpoint.base_url_env.unwrap_or_default();
                let message = format!("{} has no common address: set the base URL or {variable}", endpoint.name);
                return Err(Error::new(ErrorKind::InvalidConfig, message));
            }
        };
        // An address that cannot be used is told now and not at the first call.
        HttpRequest::post(&url, Vec::new())?;
        let mut headers = self.headers;
        let has_own_auth = headers.contains_key(AUTHORIZATION);
        let key = match (self.api_key, endpoint.key_env) {
            (Some(key), _) => Some(key),
            (None, Some(variable)) => match env(variable) {
                Some(text) => Some(ApiKey::new(&text).map_err(|error| {
                    let message = error.message().replace("the API key", &format!("the API key in {variable}"));
                    error.with_message(message)
                })?),
                // A server of one's own may need none; a provider answers without one only that it is missing.
                None if is_elsewhere || has_own_auth || endpoint.auth == Auth::Optional => None,
                None => {
                    let message = format!("no API key for {}: set the environment variable {variable}", endpoint.name);
                    return Err(Error::new(ErrorKind::Auth, message));
                }
            },
            (None, None) => None,
        };
        if let Some(key) = &key {
            match endpoint.auth {
                Auth::Bearer | Auth::Optional if has_own_auth => {}
                Auth::Bearer | Auth::Optional => {
                    headers.insert(AUTHORIZATION, key.bearer());
                }
                Auth::Header(name) => {
                    headers.insert(HeaderName::from_static(name), key.header());
                }
            }
        }
        let provider = self.provider.unwrap_or_else(|| endpoint.name.to_owned());
        let origin = Origin { provider: provider.into(), model: self.model.into() };
        let dialect = OpenAiChat::new(origin.clone(), self.quirks.unwrap_or_else(endpoint.quirks));
        let http = self.http.unwrap_or_default();
        Client::new(dialect, Target { origin, url, headers, key, http, retry: self.retry }).with_limiter(self.limiter)
    }
}

/// The endpoint's address; a query (Azure's `api-version`) stays at the end.
fn chat_url(base: &str) -> String {
    const PATH: &str = "/chat/completions";
    let (base, query) = base.trim().split_once('?').map_or((base.trim(), None), |(base, query)| (base, Some(query)));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(PATH).unwrap_or(base);
    match query {
        Some(query) => format!("{base}{PATH}?{query}"),
        None => format!("{base}{PATH}"),
    }
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
