//! Endpoints that speak Anthropic's Messages.

use cepa_core::{Error, ErrorKind};

use super::Auth;

/// One endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnthropicEndpoint {
    /// The catalog name: what messages remember, so that what one provider signed is not sent to another.
    pub name: &'static str,
    /// The address before `/v1/messages`.
    pub base_url: &'static str,
    /// The environment variable that holds another address.
    pub base_url_env: &'static str,
    /// The environment variable that holds the key.
    pub key_env: &'static str,
    /// How the key is sent; `None` where the API's version decides.
    pub auth: Option<Auth>,
}

/// Anthropic itself: <https://platform.claude.com/docs/en/api/overview>.
pub const ANTHROPIC: AnthropicEndpoint = AnthropicEndpoint {
    name: "anthropic",
    base_url: "https://api.anthropic.com",
    base_url_env: "ANTHROPIC_BASE_URL",
    key_env: "ANTHROPIC_API_KEY",
    auth: None,
};

/// All endpoints.
pub const ANTHROPIC_ENDPOINTS: &[AnthropicEndpoint] = &[
    ANTHROPIC,
    // <https://api-docs.deepseek.com/guides/anthropic_api>: `x-api-key` is fully supported, the version is ignored.
    AnthropicEndpoint {
        name: "deepseek-anthropic",
        base_url: "https://api.deepseek.com/anthropic",
        base_url_env: "DEEPSEEK_ANTHROPIC_BASE_URL",
        key_env: "DEEPSEEK_API_KEY",
        auth: Some(Auth::Header("x-api-key")),
    },
    // `ANTHROPIC_AUTH_TOKEN`, which is a bearer token: <https://www.developersdigest.tech/reference/api-compatibility/zai>,
    // read from <https://docs.z.ai/scenario-example/develop-tools/claude>.
    AnthropicEndpoint {
        name: "zai-anthropic",
        base_url: "https://api.z.ai/api/anthropic",
        base_url_env: "ZAI_ANTHROPIC_BASE_URL",
        key_env: "ZAI_API_KEY",
        auth: Some(Auth::Bearer),
    },
    // <https://platform.minimax.io/docs/api-reference/text-anthropic-api>: the packages of Anthropic with `ANTHROPIC_API_KEY`,
    // so `x-api-key`.
    AnthropicEndpoint {
        name: "minimax-anthropic",
        base_url: "https://api.minimax.io/anthropic",
        base_url_env: "MINIMAX_ANTHROPIC_BASE_URL",
        key_env: "MINIMAX_API_KEY",
        auth: Some(Auth::Header("x-api-key")),
    },
];

impl AnthropicEndpoint {
    /// The endpoint of this catalog name.
    ///
    /// # Errors
    /// `invalid_config` if there is none.
    ///
    /// ```
    /// use cepa_providers::{anthropic::Anthropic, catalog::AnthropicEndpoint};
    /// let endpoint = AnthropicEndpoint::named("deepseek-anthropic")?;
    /// let model = Anthropic::builder("deepseek-flash").endpoint(endpoint).api_key("sk-12345678").build()?;
    /// # let _ = model;
    /// # Ok::<(), cepa_core::Error>(())
    /// ```
    pub fn named(name: &str) -> Result<&'static Self, Error> {
        ANTHROPIC_ENDPOINTS.iter().find(|endpoint| endpoint.name == name).ok_or_else(|| {
            let known: Vec<&str> = ANTHROPIC_ENDPOINTS.iter().map(|endpoint| endpoint.name).collect();
            let known = known.join(", ");
            let message = format!("no provider of Anthropic's wire is called `{name}`: choose one of {known}");
            Error::new(ErrorKind::InvalidConfig, message)
        })
    }
}
