//! Gemini, and every other server that speaks `generateContent`, as a model.

use cepa_core::{Error, ErrorKind, Origin};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};

use crate::{
    client::{Client, Target},
    http::{HttpClient, HttpRequest, HttpSettings},
    limit::Limiter,
    retry::RetryPolicy,
    secret::ApiKey,
    wire::{
        caps::Caps,
        gemini::{GenerateContent, Generation},
    },
};

const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
/// As Google's own packages have it: <https://github.com/googleapis/python-genai>.
const BASE_URL_ENV: &str = "GOOGLE_GEMINI_BASE_URL";
/// <https://ai.google.dev/gemini-api/docs/api-key>. The second is asked first there; here the more exact name is.
const KEY_ENVS: [&str; 2] = ["GEMINI_API_KEY", "GOOGLE_API_KEY"];
const KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

/// A model that speaks Gemini's `generateContent`.
///
/// ```no_run
/// # async fn example() -> Result<(), cepa_core::Error> {
/// use cepa_core::{ChatModel, ChatRequest, Message};
/// use cepa_providers::gemini::Gemini;
///
/// let model = Gemini::builder("gemini-3.8-flash").build()?; // the key is in GEMINI_API_KEY
/// let response = model.chat(ChatRequest::new(vec![Message::user("Hello!")])).await?;
/// println!("{:?}", response.message.content);
/// # Ok(()) }
/// ```
pub type Gemini = Client<GenerateContent>;

impl Gemini {
    /// A model of Google's Gemini API, until another address is set.
    pub fn builder(model: impl Into<String>) -> GeminiBuilder {
        GeminiBuilder {
            provider: "gemini".to_owned(),
            model: model.into(),
            api_key: None,
            base_url: None,
            generation: None,
            headers: HeaderMap::new(),
            http: None,
            retry: RetryPolicy::default(),
            limiter: None,
            caps: Caps::default(),
            problem: None,
        }
    }
}

/// The settings of a [`Gemini`] model.
///
/// ```
/// use cepa_providers::{gemini::Gemini, wire::gemini::Generation};
///
/// let gateway = Gemini::builder("our-flash")
///     .provider("gateway")
///     .base_url("https://gateway.example/gemini/v1beta")
///     .api_key("AIza12345678")
///     .generation(Generation::From3)
///     .build()?;
/// assert!(!format!("{gateway:?}").contains("12345678"));
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct GeminiBuilder {
    provider: String,
    model: String,
    api_key: Option<ApiKey>,
    base_url: Option<String>,
    generation: Option<Generation>,
    headers: HeaderMap,
    http: Option<HttpClient>,
    retry: RetryPolicy,
    limiter: Option<Limiter>,
    caps: Caps,
    /// The first setting that was not usable; told by `build`.
    problem: Option<Error>,
}

impl GeminiBuilder {
    /// Gives the provider another name: two servers are two providers, and what one of them signed is not sent to the other.
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = name.into();
        self
    }

    /// Sets the key; else `GEMINI_API_KEY` is asked, then `GOOGLE_API_KEY`.
    pub fn api_key(mut self, key: &str) -> Self {
        match ApiKey::new(key) {
            Ok(key) => self.api_key = Some(key),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the address before `/models/…`; else `GOOGLE_GEMINI_BASE_URL` is asked, else it is Google's own. An address
    /// without a version gets `/v1beta`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets what the model knows, where its name does not tell it; see [`Generation::of`].
    pub fn generation(mut self, generation: Generation) -> Self {
        self.generation = Some(generation);
        self
    }

    /// Adds a header to every request; `authorization` and `x-goog-api-key` take the place of the key's own.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok()) {
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

    /// Sets how much of a reply is taken.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    fn keep(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// The model. Nothing is sent, opened or looked up before its first call.
    ///
    /// # Errors
    /// `auth` if there is no key for Google itself, `invalid_config` for settings that cannot be used.
    pub fn build(self) -> Result<Gemini, Error> {
        self.build_with(|variable| std::env::var(variable).ok().filter(|value| !value.trim().is_empty()))
    }

    fn build_with(mut self, env: impl Fn(&str) -> Option<String>) -> Result<Gemini, Error> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let own_url = self.base_url.take().or_else(|| env(BASE_URL_ENV));
        if let Some(url) = &own_url {
            HttpRequest::check_url(url)?;
        }
        let url = model_url(own_url.as_deref().unwrap_or(BASE_URL), &self.model)?;
        let has_own_auth = self.headers.contains_key(AUTHORIZATION) || self.headers.contains_key(&KEY_HEADER);
        let found = KEY_ENVS.iter().find_map(|variable| Some((*variable, env(variable)?)));
        let key = match (self.api_key.take(), found) {
            (Some(key), _) => Some(key),
            (None, Some((variable, text))) => Some(ApiKey::new(&text).map_err(|error| {
                let message = error.message().replace("the API key", &format!("the API key in {variable}"));
                error.with_message(message)
            })?),
            // A server of one's own may need none.
            (None, None) if own_url.is_some() || has_own_auth => None,
            (None, None) => return Err(ApiKey::missing("gemini", &KEY_ENVS)),
        };
        let mut headers = self.headers;
        if let Some(key) = key.as_ref().filter(|_| !has_own_auth) {
            headers.insert(KEY_HEADER, key.header());
        }
        let origin = Origin { provider: self.provider.into(), model: self.model.into() };
        let mut dialect = GenerateContent::new(origin.clone());
        if let Some(generation) = self.generation {
            dialect = dialect.with_generation(generation);
        }
        let http = self.http.unwrap_or_default();
        Client::new(dialect, Target { origin, url, headers, key, http, retry: self.retry })
            .with_limiter(self.limiter)
            .map(|client| client.with_caps(self.caps))
    }
}

/// The model's address, to which the dialect adds the method. A query stays at the end.
fn model_url(base: &str, model: &str) -> Result<String, Error> {
    let model = model.trim();
    let model = model.strip_prefix("models/").unwrap_or(model);
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.~@/".contains(c);
    if model.is_empty() || !model.chars().all(legal) || model.split('/').any(|step| matches!(step, "" | "." | "..")) {
        let message = format!("`{model}` is no name of a Gemini model: give one such as `gemini-3.8-flash`");
        return Err(Error::new(ErrorKind::InvalidConfig, message));
    }
    let (base, query) = base.trim().split_once('?').map_or((base.trim(), None), |(base, query)| (base, Some(query)));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/models").unwrap_or(base);
    let last = base.rsplit('/').next().unwrap_or_default();
    let has_version = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let version = if has_version { "" } else { "/v1beta" };
    // Tuned models and those of the cloud have a folder of their own.
    let folder = if model.contains('/') { "" } else { "models/" };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Ok(format!("{base}{version}/{folder}{model}{query}"))
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
