//! API keys: where they come from, and that they show up nowhere else.

mod spellings;
mod told;

use std::{fmt, sync::Arc};

use cepa_core::{Error, ErrorKind};
use http::HeaderValue;

use spellings::{End, Spellings, masked};
pub(crate) use told::without;

/// A key that leaves this crate only as a request header: `Debug` does not show it, and it has no `Display`.
///
/// ```
/// use cepa_providers::secret::ApiKey;
///
/// let key = ApiKey::new(" sk-12345678 \n")?;
/// assert_eq!(format!("{key:?}"), "ApiKey(…)");
/// assert_eq!(key.redact("no such key: sk-12345678"), "no such key: [api key]");
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// A key given as text; space around it is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Auth`] if no header can carry it: it is blank, quoted, or has spaces, line breaks or characters
    /// outside ASCII inside.
    pub fn new(text: &str) -> Result<Self, Error> {
        Self::named(text, "the API key")
    }

    /// The key in this environment variable.
    ///
    /// # Errors
    /// [`ErrorKind::Auth`] if the variable is not set, or as in [`ApiKey::new`].
    pub fn from_env(variable: &str) -> Result<Self, Error> {
        match std::env::var_os(variable) {
            None => Err(Error::new(ErrorKind::Auth, format!("no API key: set the environment variable {variable}"))),
            // What is not UTF-8 becomes a character that `named` refuses.
            Some(text) => Self::named(&text.to_string_lossy(), &format!("the API key in {variable}")),
        }
    }

    /// The error of a model that has no key: where one may be given.
    pub(crate) fn missing(provider: &str, variables: &[&str]) -> Error {
        let variables = variables.join(" or ");
        let text =
            format!("no API key for {provider}: set the environment variable {variables} (in code: `.api_key(…)`)");
        Error::new(ErrorKind::Auth, text)
    }

    fn named(text: &str, what: &str) -> Result<Self, Error> {
        let key = text.trim();
        let problem = if key.is_empty() {
            "is blank"
        } else if key.starts_with(['"', '\'']) {
            "is in quotes: remove them"
        } else if key.contains(['\n', '\r']) {
            "has a line break inside: it must be one line"
        } else if key.contains(char::is_whitespace) {
            "has a space inside: give only the key, without `Bearer` or a name"
        } else if !key.chars().all(|c| c.is_ascii_graphic()) {
            "has characters that no key has (a control character, or one outside ASCII): copy it again"
        } else {
            return Ok(Self(key.into()));
        };
        Err(Error::new(ErrorKind::Auth, format!("{what} {problem}")))
    }

    /// The text with each occurrence of the key replaced, also where it is escaped, percent-encoded, in hex or in base64:
    /// providers and the gateways before them echo keys in their error bodies. Where the text was cut and an ellipsis says so,
    /// the beginning of the key is replaced too.
    pub fn redact(&self, text: &str) -> String {
        self.masked(text, End::Clean)
    }

    /// [`redact`](Self::redact) for a text that may have ended in the middle.
    pub(crate) fn redact_cut(&self, text: &str) -> String {
        self.masked(text, End::Cut)
    }

    fn masked(&self, text: &str, end: End) -> String {
        // Keys that servers without authentication are given ("x", "none") are words of any text, and no secret.
        if self.0.len() < 8 { text.to_owned() } else { masked(text, &Spellings::of(&self.0), end) }
    }

    /// The value of `authorization: Bearer …`.
    pub fn bearer(&self) -> HeaderValue {
        sensitive(&format!("Bearer {}", self.0))
    }

    /// The value of a header that holds the bare key, such as `x-api-key`.
    pub fn header(&self) -> HeaderValue {
        sensitive(&self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// A header value that `Debug` hides and HTTP/2 does not put into its compression table.
fn sensitive(text: &str) -> HeaderValue {
    // It cannot fail: `ApiKey` holds visible ASCII only. An empty value would be answered with a plain 401.
    let mut value = HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
