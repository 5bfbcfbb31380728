//! Anthropic, and every other server that speaks its Messages API, as a model.

use cepa_core::{Error, ErrorKind, Origin};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};

use crate::{
    catalog::{ANTHROPIC, AnthropicEndpoint, Auth},
    client::{Client, Target},
    http::{HttpClient, HttpRequest, HttpSettings},
    limit::Limiter,
    retry::RetryPolicy,
    secret::ApiKey,
    wire::{
        anthropic::{AnthropicMessages, ApiVersion},
        caps::Caps,
    },
};

const KEY_HEADER: &str = "x-api-key";
const VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");
const BETA_HEADER: HeaderName = HeaderName::from_static("anthropic-beta");

/// A model that speaks Anthropic's Messages API.
///
/// ```no_run
/// # async fn example() -> Result<(), cepa_core::Error> {
/// use cepa_core::{ChatModel, ChatRequest, Message};
/// use cepa_providers::anthropic::Anthropic;
///
/// let model = Anthropic::builder("claude-sonnet-4-5").build()?; // the key is in ANTHROPIC_API_KEY
/// let response = model.chat(ChatRequest::new(vec![Message::user("Hello!")])).await?;
/// println!("{:?}", response.message.content);
/// # Ok(()) }
/// ```
pub type Anthropic = Client<AnthropicMessages>;

impl Anthropic {
    /// A model of Anthropic itself, until another endpoint or address is set.
    pub fn builder(model: impl Into<String>) -> AnthropicBuilder {
        AnthropicBuilder {
            endpoint: &ANTHROPIC,
            provider: None,
            model: model.into(),
            api_key: None,
            base_url: None,
            version: ApiVersion::default(),
            auth: None,
            max_tokens: None,
            headers: HeaderMap::new(),
            http: None,
            retry: RetryPolicy::default(),
            limiter: None,
            caps: Caps::default(),
            problem: None,
        }
    }
}

/// The settings of an [`Anthropic`] model.
///
/// ```
/// use cepa_providers::{anthropic::Anthropic, catalog::Auth, wire::anthropic::ApiVersion};
///
/// let newer = Anthropic::builder("claude-opus-4-7").api_key("sk-12345678").version(ApiVersion::V2026_10_21).build()?;
/// let gateway = Anthropic::builder("MiniMax-M3")
///     .provider("minimax")
///     .base_url("https://gateway.example/anthropic")
///     .api_key("sk-12345678")
///     .auth(Auth::Bearer)
///     .build()?;
/// assert!(!format!("{newer:?} {gateway:?}").contains("12345678"));
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct AnthropicBuilder {
    endpoint: &'static AnthropicEndpoint,
    provider: Option<String>,
    model: String,
    api_key: Option<ApiKey>,
    base_url: Option<String>,
    version: ApiVersion,
    auth: Option<Auth>,
    max_tokens: Option<u32>,
    headers: HeaderMap,
    http: Option<HttpClient>,
    retry: RetryPolicy,
    limiter: Option<Limiter>,
    caps: Caps,
    /// The first setting that was not usable; told by `build`.
    problem: Option<Error>,
}

impl AnthropicBuilder {
    /// Sets the endpoint: name, address, environment variables, and how the key is sent.
    pub fn endpoint(mut self, endpoint: &'static AnthropicEndpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Gives the provider another name: two servers are two providers, and what one of them signed is not sent to the other.
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// Sets the key; else the endpoint's environment variable is asked (`ANTHROPIC_API_KEY`).
    pub fn api_key(mut self, key: &str) -> Self {
        match ApiKey::new(key) {
            Ok(key) => self.api_key = Some(key),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the address before `/v1/messages`; else the environment is asked (`ANTHROPIC_BASE_URL`), else it is the endpoint's.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets the API version. The newer one takes no sampling parameters and wants the key as [`Auth::Bearer`].
    pub fn version(mut self, version: ApiVersion) -> Self {
        self.version = version;
        self
    }

    /// Sets how the key is sent; else the endpoint decides, or the version: as `x-api-key`, or as a bearer token.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Sets the most tokens of a reply for requests that do not say it; else it is
    /// [`DEFAULT_MAX_TOKENS`](crate::wire::anthropic::DEFAULT_MAX_TOKENS).
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Asks for a beta feature (`anthropic-beta`); each call adds one.
    /// <https://platform.claude.com/docs/en/api/beta-headers>
    pub fn beta(mut self, name: &str) -> Self {
        let before = self.headers.get(&BETA_HEADER).and_then(|value| value.to_str().ok());
        let value = before.map_or_else(|| name.to_owned(), |before| format!("{before},{name}"));
        self.put(BETA_HEADER.as_str(), &value, false);
        self
    }

    /// Adds a header to every request; `authorization` and `x-api-key` take the place of the key's own.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.put(name, value, true);
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

    /// Sets how much of a reply is taken.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    fn put(&mut self, name: &str, value: &str, may_be_secret: bool) {
        match HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok()) {
            Some((name, mut value)) => {
                value.set_sensitive(may_be_secret);
                self.headers.insert(name, value);
            }
            None => {
                let message = format!("the header {name:?} has a name or a value that HTTP does not allow");
                self.keep(Error::new(ErrorKind::InvalidConfig, message));
            }
        }
    }

    fn keep(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// The model. Nothing is sent, opened or looked up before its first call.
    ///
    /// # Errors
    /// `auth` if there is no key for the endpoint itself, `invalid_config` for settings that cannot be used.
    pub fn build(self) -> Result<Anthropic, Error> {
        self.build_with(|variable| std::env::var(variable).ok().filter(|value| !value.trim().is_empty()))
    }

    fn build_with(mut self, env: impl Fn(&str) -> Option<String>) -> Result<Anthropic, Error> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        if self.model.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidConfig, "the model has no name: give one"));
        }
        if self.max_tokens == Some(0) {
            return Err(Error::new(ErrorKind::InvalidConfig, "max_tokens must be at least 1"));
        }
        let endpoint = self.endpoint;
        let own_url = self.base_url.take().or_else(|| env(endpoint.base_url_env));
        if let Some(url) = &own_url {
            HttpRequest::check_url(url)?;
        }
        let url = messages_url(own_url.as_deref().unwrap_or(endpoint.base_url));
        let has_own_auth = self.headers.contains_key(AUTHORIZATION) || self.headers.contains_key(KEY_HEADER);
        let key = match (self.api_key.take(), env(endpoint.key_env)) {
            (Some(key), _) => Some(key),
            (None, Some(text)) => Some(ApiKey::new(&text).map_err(|error| {
                let message = error.message().replace("the API key", &format!("the API key in {}", endpoint.key_env));
                error.with_message(message)
            })?),
            // A server of one's own may need none.
            (None, None) if own_url.is_some() || has_own_auth => None,
            (None, None) => return Err(ApiKey::missing(endpoint.name, &[endpoint.key_env])),
        };
        let auth = self.auth.or(endpoint.auth).unwrap_or(match self.version {
            ApiVersion::V2023_06_01 => Auth::Header(KEY_HEADER),
            ApiVersion::V2026_10_21 => Auth::Bearer,
        });
        let mut headers = self.headers;
        if let Some(key) = key.as_ref().filter(|_| !has_own_auth) {
            match auth {
                Auth::Bearer | Auth::Optional => headers.insert(AUTHORIZATION, key.bearer()),
                Auth::Header(name) => headers.insert(HeaderName::from_static(name), key.header()),
            };
        }
        headers.entry(VERSION_HEADER).or_insert(HeaderValue::from_static(self.version.as_str()));
        let provider = self.provider.unwrap_or_else(|| endpoint.name.to_owned());
        let origin = Origin { provider: provider.into(), model: self.model.into() };
        let mut dialect = AnthropicMessages::new(origin.clone()).with_version(self.version);
        if let Some(tokens) = self.max_tokens {
            dialect = dialect.with_default_max_tokens(tokens);
        }
        let http = self.http.unwrap_or_default();
        Client::new(dialect, Target { origin, url, headers, key, http, retry: self.retry })
            .with_limiter(self.limiter)
            .map(|client| client.with_caps(self.caps))
    }
}

/// The endpoint's address. Addresses with and without `/v1` are both common.
fn messages_url(base: &str) -> String {
    const PATH: &str = "/v1/messages";
    let (base, query) = base.trim().split_once('?').map_or((base.trim(), None), |(base, query)| (base, Some(query)));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(PATH).or_else(|| base.strip_suffix("/v1")).unwrap_or(base);
    match query {
        Some(query) => format!("{base}{PATH}?{query}"),
        None => format!("{base}{PATH}"),
    }
}

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
