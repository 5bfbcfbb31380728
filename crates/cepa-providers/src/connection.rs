//! Where a model of the catalog sends, with which key and under which limits: what the builders of OpenAI's two wires share.

use std::fmt;

use cepa_core::{Error, ErrorKind, Origin};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};

use crate::{
    catalog::{Auth, Endpoint, OPENAI},
    client::{Client, Target},
    http::{HttpClient, HttpRequest},
    limit::Limiter,
    retry::RetryPolicy,
    secret::ApiKey,
    wire::{Dialect, caps::Caps},
};

/// The settings of a connection.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) endpoint: &'static Endpoint,
    pub(crate) provider: Option<String>,
    pub(crate) model: String,
    api_key: Option<ApiKey>,
    pub(crate) base_url: Option<String>,
    headers: HeaderMap,
    pub(crate) http: Option<HttpClient>,
    pub(crate) retry: RetryPolicy,
    pub(crate) limiter: Option<Limiter>,
    pub(crate) caps: Caps,
    /// The first setting that was not usable; told when the model is built.
    problem: Option<Error>,
}

impl fmt::Debug for Connection {
    /// Without the values of headers and the address's query, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base_url = self.base_url.as_ref().and_then(|url| url.split('?').next());
        f.debug_struct("Connection")
            .field("endpoint", &self.endpoint.name)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("base_url", &base_url)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("http", &self.http)
            .field("retry", &self.retry)
            .field("limiter", &self.limiter)
            .field("caps", &self.caps)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// To OpenAI itself, until another endpoint is set.
    pub(crate) fn new(model: String) -> Self {
        Self {
            endpoint: &OPENAI,
            provider: None,
            model,
            api_key: None,
            base_url: None,
            headers: HeaderMap::new(),
            http: None,
            retry: RetryPolicy::default(),
            limiter: None,
            caps: Caps::default(),
            problem: None,
        }
    }

    pub(crate) fn api_key(&mut self, key: &str) {
        match ApiKey::new(key) {
            Ok(key) => self.api_key = Some(key),
            Err(error) => self.keep(error),
        }
    }

    pub(crate) fn header(&mut self, name: &str, value: &str) {
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
    }

    fn keep(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// A client that sends there; `path` is what stands behind the address.
    ///
    /// # Errors
    /// `auth` if the endpoint needs a key and there is none, `invalid_config` for settings that cannot be used.
    pub(crate) fn client<D: Dialect>(
        self,
        path: &str,
        env: impl Fn(&str) -> Option<String>,
        dialect: impl FnOnce(Origin) -> D,
    ) -> Result<Client<D>, Error> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let endpoint = self.endpoint;
        if self.model.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidConfig, "the model has no name: give one"));
        }
        let own_url = self.base_url.or_else(|| endpoint.base_url_env.and_then(&env));
        let is_elsewhere = own_url.is_some();
        if let Some(url) = &own_url {
            HttpRequest::check_url(url)?;
        }
        let url = match own_url.as_deref().or(endpoint.base_url) {
            Some(base) => address(base, path),
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
                None => return Err(ApiKey::missing(endpoint.name, &[variable])),
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
        let dialect = dialect(origin.clone());
        let http = self.http.unwrap_or_default();
        Client::new(dialect, Target { origin, url, headers, key, http, retry: self.retry })
            .with_limiter(self.limiter)
            .map(|client| client.with_caps(self.caps))
    }
}

/// What the environment says; a blank variable says nothing.
pub(crate) fn from_env(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.trim().is_empty())
}

/// The endpoint's address; a query (Azure's `api-version`) stays at the end.
fn address(base: &str, path: &str) -> String {
    let (base, query) = base.trim().split_once('?').map_or((base.trim(), None), |(base, query)| (base, Some(query)));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(path).unwrap_or(base);
    match query {
        Some(query) => format!("{base}{path}?{query}"),
        None => format!("{base}{path}"),
    }
}
