//! The library's own model of a provider, pointed at a local server.

use std::{sync::Arc, time::Duration};

use cepa_core::{ChatModel, Error};
use cepa_providers::{
    anthropic::Anthropic,
    gemini::Gemini,
    http::{HttpSettings, Proxy},
    openai::OpenAi,
    responses::OpenAiResponses,
    retry::RetryPolicy,
};
use serde::Deserialize;

use crate::{
    API_KEY,
    wire::{GEMINI, OPENAI_RESPONSES, endpoint},
};

/// How often a request is tried.
#[derive(Clone, Deserialize)]
pub(crate) struct RetryWords {
    max_attempts: u32,
    base_ms: Option<u64>,
    #[serde(default)]
    retry_timeouts: bool,
}

/// Time limits.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct LimitWords {
    timeout_ms: Option<u64>,
    idle_timeout_ms: Option<u64>,
}

/// A model of this provider behind this address.
pub(crate) fn model(
    provider: &str,
    model: &str,
    url: &str,
    retry: Option<&RetryWords>,
    limits: &LimitWords,
) -> Result<Arc<dyn ChatModel>, Error> {
    let mut http = HttpSettings::default();
    http.proxy = Proxy::None;
    if let Some(limit) = limits.timeout_ms {
        http.response_timeout = Duration::from_millis(limit);
    }
    if let Some(limit) = limits.idle_timeout_ms {
        http.idle_timeout = Duration::from_millis(limit);
    }
    let policy = match retry {
        None => RetryPolicy::none(),
        Some(words) => {
            let default = RetryPolicy::default();
            RetryPolicy {
                max_attempts: words.max_attempts,
                base: words.base_ms.map_or(default.base, Duration::from_millis),
                retry_timeouts: words.retry_timeouts,
                ..default
            }
        }
    };
    Ok(match provider {
        "anthropic" => {
            let builder = Anthropic::builder(model).base_url(url).api_key(API_KEY);
            Arc::new(builder.http(http).retry(policy).build()?)
        }
        OPENAI_RESPONSES => {
            let builder = OpenAiResponses::builder(model).provider(provider).base_url(url).api_key(API_KEY);
            Arc::new(builder.http(http).retry(policy).build()?)
        }
        GEMINI => {
            let builder = Gemini::builder(model).base_url(url).api_key(API_KEY);
            Arc::new(builder.http(http).retry(policy).build()?)
        }
        // A name of one's own keeps what the endpoint made for itself apart; here it is the protocol's.
        _ => {
            let builder = OpenAi::builder(model).endpoint(endpoint(provider)?).provider(provider).base_url(url);
            Arc::new(builder.api_key(API_KEY).http(http).retry(policy).build()?)
        }
    })
}
