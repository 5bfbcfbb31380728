//! Looks for a model server on this machine: Ollama and llama.cpp, both at once, and not for long.

use std::time::Duration;

use cepa::{
    CancellationToken,
    providers::{
        catalog::Endpoint,
        http::{HttpClient, HttpRequest, HttpSettings},
    },
};
use serde::Deserialize;

/// How long a start waits for a local server that may not be there.
pub(crate) const START_LIMIT: Duration = Duration::from_millis(300);

/// A server that answered, and a model that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// The catalog name.
    pub(crate) provider: &'static str,
    pub(crate) model: String,
}

/// The first of the local servers that has a model; Ollama goes before llama.cpp.
pub(crate) async fn find_local(limit: Duration, base_url: impl Fn(&Endpoint) -> Option<String>) -> Option<Local> {
    let look = |name: &'static str| {
        let endpoint = Endpoint::named(name).ok();
        let url = endpoint.and_then(&base_url);
        async move {
            let models = models_at(&url?, limit).await?;
            let model = models.into_iter().find(|model| model.is_of(name))?;
            Some(Local { provider: name, model: model.id })
        }
    };
    let (ollama, llama) = tokio::join!(look(OLLAMA), look(LLAMA_CPP));
    ollama.or(llama)
}

pub(crate) const OLLAMA: &str = "ollama";
pub(crate) const LLAMA_CPP: &str = "llama.cpp";

/// A model in a server's list.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Listed {
    pub(crate) id: String,
    #[serde(default)]
    owned_by: String,
}

impl Listed {
    /// Whether this is a model to talk with, on a server of that kind.
    fn is_of(&self, provider: &str) -> bool {
        // 8080 is everybody's port: only a server that says it is llama.cpp gets to read what is said.
        let right_server = provider != LLAMA_CPP || self.owned_by == "llamacpp";
        right_server && !self.id.is_empty() && !self.id.to_lowercase().contains("embed")
    }
}

#[derive(Deserialize)]
struct List {
    data: Vec<Listed>,
}

/// What a server that speaks chat completions has at its address, if it answers in time.
pub(crate) async fn models_at(base_url: &str, limit: Duration) -> Option<Vec<Listed>> {
    let mut settings = HttpSettings::default();
    settings.connect_timeout = limit;
    settings.response_timeout = limit;
    settings.max_body_bytes = 4 << 20;
    let request = HttpRequest::get(&format!("{}/models", base_url.trim().trim_end_matches('/'))).ok()?;
    let ask = async {
        let response = HttpClient::new(settings).send(request, &CancellationToken::new()).await.ok()?;
        if !response.is_success() {
            return None;
        }
        let body = response.collect().await.ok()?;
        serde_json::from_slice::<List>(&body).ok()
    };
    Some(tokio::time::timeout(limit, ask).await.ok()??.data)
}
