//! Which model answers: the one that was asked for, else what a key or a local server allows, else the offline model.

use std::{sync::Arc, time::Duration};

use cepa::{
    ChatModel, Error, ErrorKind,
    providers::{
        anthropic::Anthropic,
        catalog::{ENDPOINTS, Endpoint},
        gemini::Gemini,
        openai::OpenAi,
        responses::OpenAiResponses,
    },
};

use crate::{
    config::{ModelWish, nearest},
    offline::{OFFLINE, Offline},
    places::Env,
    probe::{self, LLAMA_CPP, OLLAMA},
    visible::one_line,
};

const ANTHROPIC: &str = "anthropic";
const OPENAI: &str = "openai";
/// The same provider over its newer wire.
const OPENAI_RESPONSES: &str = "openai-responses";
const GEMINI: &str = "gemini";
/// The same models over the wire of another, for which the same key counts.
const GEMINI_OPENAI: &str = "gemini-openai";
/// Its key's other name, which the catalog does not have.
const GOOGLE_KEY: &str = "GOOGLE_API_KEY";

/// The models that a key alone chooses. <https://developers.openai.com/api/docs/models>,
/// <https://platform.claude.com/docs/en/about-claude/models/overview>
const BY_KEY: [(&str, &str, &str); 2] =
    [(OPENAI, "OPENAI_API_KEY", "gpt-5.4-mini"), (ANTHROPIC, "ANTHROPIC_API_KEY", "claude-sonnet-5-5")];

/// How long a server that was asked for by name may take to say which models it has.
const ASKED_LIMIT: Duration = Duration::from_secs(3);

/// The model of this process.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn ChatModel>,
    /// As it can be asked for again.
    pub(crate) wish: ModelWish,
    /// Why this one, in a few words.
    pub(crate) why: String,
    /// Where its list of models is, and the headers to ask for it with; for `cepa doctor`.
    pub(crate) list: Option<ModelList>,
}

/// Where a provider lists its models.
#[derive(Clone)]
pub(crate) struct ModelList {
    pub(crate) url: String,
    pub(crate) target: cepa::providers::client::Target,
}

impl Chosen {
    /// `provider/name`.
    pub(crate) fn name(&self) -> String {
        one_line(&self.wish.model, 200)
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.wish.model == OFFLINE
    }

    /// The line that says which model answers.
    pub(crate) fn line(&self) -> String {
        format!("model: {} ({})", self.name(), self.why)
    }
}

/// Chooses the model.
///
/// # Errors
/// `invalid_config` for a model that cannot be meant, `auth` if its key is missing.
pub(crate) async fn choose(wish: Option<&ModelWish>, env: Env<'_>) -> Result<Chosen, Error> {
    if let Some(wish) = wish {
        let why = match &wish.base_url {
            Some(url) => format!("{}, at {}", wish.by, one_line(without_secrets(url), 200)),
            None => wish.by.clone(),
        };
        return build(&with_a_name(wish, env).await?, &why, env);
    }
    for (provider, variable, model) in BY_KEY {
        if env(variable).is_some_and(|key| !key.to_string_lossy().trim().is_empty()) {
            return build(&ModelWish { model: format!("{provider}/{model}"), ..ModelWish::default() }, variable, env);
        }
    }
    if let Some(local) = probe::find_local(probe::START_LIMIT, |endpoint| base_url(endpoint, env)).await {
        let wish = ModelWish { model: format!("{}/{}", local.provider, local.model), ..ModelWish::default() };
        return build(&wish, "it answers on this machine", env);
    }
    let mut why = "a small stand-in, because there is no key and no local model".to_owned();
    let keys = ENDPOINTS.iter().filter_map(|endpoint| Some((endpoint.name, endpoint.key_env?)));
    let keyed = keys.chain([(GEMINI, GOOGLE_KEY)]).find(|(_, variable)| env(variable).is_some());
    match keyed {
        Some((name, variable)) => {
            let name = if name == GEMINI_OPENAI { GEMINI } else { name };
            why.push_str(&format!("; {variable} is set: choose a model with --model {name}/NAME"));
        }
        None => why.push_str("; for a real one set OPENAI_API_KEY or ANTHROPIC_API_KEY, or start Ollama"),
    }
    build(&ModelWish { model: OFFLINE.to_owned(), ..ModelWish::default() }, &why, env)
}

/// An address without what stands before an `@` or behind a `?`.
fn without_secrets(url: &str) -> &str {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    url.rsplit_once('@').map_or(url, |(_, host)| host)
}

/// A provider by the name that somebody typed.
fn endpoint(provider: &str) -> Option<&'static Endpoint> {
    let name = match provider {
        "llamacpp" | "llama-cpp" | "llama_cpp" => LLAMA_CPP,
        name => name,
    };
    ENDPOINTS.iter().find(|endpoint| endpoint.name == name)
}

fn base_url(endpoint: &Endpoint, env: Env<'_>) -> Option<String> {
    let own = endpoint.base_url_env.and_then(env).and_then(|url| url.into_string().ok());
    own.or_else(|| endpoint.base_url.map(str::to_owned))
}

/// Completes a wish that names only a provider.
async fn with_a_name(wish: &ModelWish, env: Env<'_>) -> Result<ModelWish, Error> {
    let wished = wish.model.as_str();
    if wished == OFFLINE
        || wished.split_once('/').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty())
    {
        return Ok(wish.clone());
    }
    let provider = wished.trim_end_matches('/');
    if let Some((_, _, model)) = BY_KEY.iter().find(|(name, _, _)| *name == provider) {
        return Ok(ModelWish { model: format!("{provider}/{model}"), ..wish.clone() });
    }
    match endpoint(provider) {
        None if [GEMINI, OPENAI_RESPONSES].contains(&provider) => {
            Err(invalid(format!("which model of {provider}? say --model {provider}/NAME")))
        }
        Some(endpoint) if [OLLAMA, LLAMA_CPP].contains(&endpoint.name) => {
            let url = wish.base_url.clone().or_else(|| base_url(endpoint, env)).unwrap_or_default();
            let models = probe::models_at(&url, ASKED_LIMIT).await.unwrap_or_default();
            let Some(model) = models.into_iter().next() else {
                let url = one_line(without_secrets(&url), 200);
                let text = format!("no {provider} with a model answers at {url}: start it, or name another model");
                return Err(Error::new(ErrorKind::Network, text));
            };
            Ok(ModelWish { model: format!("{}/{}", endpoint.name, model.id), ..wish.clone() })
        }
        Some(_) => Err(invalid(format!("which model of {provider}? say --model {provider}/NAME"))),
        None => Err(unknown(wished)),
    }
}

fn build(wish: &ModelWish, why: &str, env: Env<'_>) -> Result<Chosen, Error> {
    let chosen = |model, list| Chosen { model, wish: wish.clone(), why: why.to_owned(), list };
    if wish.model == OFFLINE {
        return Ok(chosen(Arc::new(Offline::new()), None));
    }
    let Some((provider, name)) = wish.model.split_once('/') else { return Err(unknown(&wish.model)) };
    let key = wish.api_key_env.as_deref().map(|variable| key_in(variable, env)).transpose()?;
    if provider == ANTHROPIC {
        let mut builder = Anthropic::builder(name);
        if let Some(url) = &wish.base_url {
            builder = builder.base_url(url);
        }
        if let Some(key) = &key {
            builder = builder.api_key(key);
        }
        let client = builder.build()?;
        let list = list_beside(client.target(), "/v1/messages", "/v1/models");
        return Ok(chosen(Arc::new(client), list));
    }
    if provider == GEMINI {
        let mut builder = Gemini::builder(name);
        if let Some(url) = &wish.base_url {
            builder = builder.base_url(url);
        }
        if let Some(key) = &key {
            builder = builder.api_key(key);
        }
        // Its list of models has another form than those that the doctor reads.
        return Ok(chosen(Arc::new(builder.build()?), None));
    }
    if provider == OPENAI_RESPONSES {
        let mut builder = OpenAiResponses::builder(name);
        if let Some(url) = &wish.base_url {
            builder = builder.base_url(url);
        }
        if let Some(key) = &key {
            builder = builder.api_key(key);
        }
        let client = builder.build()?;
        let list = list_beside(client.target(), "/responses", "/models");
        return Ok(chosen(Arc::new(client), list));
    }
    let endpoint = endpoint(provider).ok_or_else(|| unknown(&wish.model))?;
    let mut builder = OpenAi::builder(name).endpoint(endpoint);
    if let Some(url) = &wish.base_url {
        builder = builder.base_url(url);
    }
    if let Some(key) = &key {
        builder = builder.api_key(key);
    }
    let client = builder.build()?;
    let list = list_beside(client.target(), "/chat/completions", "/models");
    Ok(chosen(Arc::new(client), list))
}

fn list_beside(target: &cepa::providers::client::Target, chat: &str, models: &str) -> Option<ModelList> {
    target.url.contains(chat).then(|| ModelList { url: target.url.replacen(chat, models, 1), target: target.clone() })
}

fn key_in(variable: &str, env: Env<'_>) -> Result<String, Error> {
    let value = env(variable).and_then(|value| value.into_string().ok()).filter(|value| !value.trim().is_empty());
    value.ok_or_else(|| {
        let variable = one_line(variable, 100);
        Error::new(ErrorKind::Auth, format!("api_key_env names {variable}, which is not set: put the key into it"))
    })
}

fn unknown(wished: &str) -> Error {
    let mut names: Vec<&str> = vec![OFFLINE, OPENAI, OPENAI_RESPONSES, ANTHROPIC, GEMINI, OLLAMA, LLAMA_CPP];
    names.extend(
        ENDPOINTS.iter().map(|endpoint| endpoint.name).filter(|name| ![OPENAI, OLLAMA, LLAMA_CPP].contains(name)),
    );
    let (provider, name) = wished.split_once('/').unwrap_or((wished, ""));
    let shown = one_line(wished, 100);
    // A provider without its name is a slip; a name without its provider says which company to look at.
    let hint = match nearest(provider, names.iter().copied()) {
        Some(near) if name.is_empty() => format!("do you mean {near}?"),
        Some(near) => format!("do you mean {near}/{}?", one_line(name, 100)),
        None if provider.starts_with("gpt") => format!("do you mean openai/{shown}?"),
        None if provider.starts_with("gemini-") => format!("do you mean gemini/{shown}?"),
        None if provider.starts_with("claude") => format!("do you mean anthropic/{shown}?"),
        None => format!("write PROVIDER/NAME, with one of {}", names.join(", ")),
    };
    invalid(format!("no model can be meant by `{shown}`: {hint}"))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, message.into())
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
