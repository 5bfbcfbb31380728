//! The dialects under test, each with its judge.

use cepa_core::{ChatRequest, ChatResponse, Error, Origin, RawJson};
use cepa_providers::{
    catalog,
    wire::{
        Dialect,
        anthropic::AnthropicMessages,
        gemini::{GenerateContent, Generation},
        openai_chat::{OpenAiChat, Quirks, SystemPlace},
        openai_responses::{self as responses, Responses},
    },
};
use cepa_testkit::validate::{
    Violation, anthropic, gemini,
    openai_chat::{self, Endpoint},
    openai_responses,
};
use serde::Deserialize;
use serde_json::Value;

/// A dialect for one provider and model.
pub(crate) enum Wire {
    OpenAi(Box<OpenAiChat>, Endpoint),
    Anthropic(AnthropicMessages),
    Gemini(GenerateContent),
    Responses(Responses),
}

impl Wire {
    /// OpenAI itself.
    pub(crate) fn openai(model: &str) -> Self {
        Self::chat("openai", model, Quirks::default())
    }

    /// A server of the catalog that speaks chat completions.
    pub(crate) fn named(provider: &str, model: &str) -> Self {
        let endpoint = catalog::Endpoint::named(provider).expect("the catalog knows it");
        Self::chat(provider, model, (endpoint.quirks)())
    }

    /// A server that wants reasoning back.
    pub(crate) fn deepseek(model: &str) -> Self {
        Self::named("deepseek", model)
    }

    /// A server whose chat template takes one system message at the start, and user and assistant in turn behind it.
    pub(crate) fn strict(model: &str) -> Self {
        Self::named("llama.cpp", model)
    }

    fn chat(provider: &str, model: &str, quirks: Quirks) -> Self {
        let endpoint = Endpoint::of(&quirks);
        Self::OpenAi(Box::new(OpenAiChat::new(origin(provider, model), quirks)), endpoint)
    }

    /// Anthropic.
    pub(crate) fn anthropic(model: &str) -> Self {
        Self::Anthropic(AnthropicMessages::new(origin("anthropic", model)))
    }

    /// Gemini; the model's name tells its generation.
    pub(crate) fn gemini(model: &str) -> Self {
        Self::Gemini(GenerateContent::new(origin("gemini", model)))
    }

    /// OpenAI's Responses API.
    pub(crate) fn responses(model: &str) -> Self {
        Self::Responses(Responses::new(origin("openai", model), responses::Quirks::default()))
    }

    pub(crate) fn is_responses(&self) -> bool {
        matches!(self, Self::Responses(_))
    }

    pub(crate) fn is_gemini(&self) -> bool {
        matches!(self, Self::Gemini(_))
    }

    pub(crate) fn is_anthropic(&self) -> bool {
        matches!(self, Self::Anthropic(_))
    }

    /// Whether a later system message leaves the start as it was: it cannot where all of them are one message.
    pub(crate) fn keeps_its_start(&self) -> bool {
        match self {
            Self::OpenAi(dialect, _) => dialect.quirks().system == SystemPlace::Anywhere,
            Self::Anthropic(_) | Self::Gemini(_) | Self::Responses(_) => true,
        }
    }

    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::OpenAi(dialect, _) => dialect.origin(),
            Self::Anthropic(dialect) => dialect.origin(),
            Self::Gemini(dialect) => dialect.origin(),
            Self::Responses(dialect) => dialect.origin(),
        }
    }

    /// The body as text.
    pub(crate) fn encode(&self, request: &ChatRequest) -> Result<String, Error> {
        let pieces = match self {
            Self::OpenAi(dialect, _) => dialect.encode(request)?,
            Self::Anthropic(dialect) => dialect.encode(request)?,
            Self::Gemini(dialect) => dialect.encode(request)?,
            Self::Responses(dialect) => {
                // It has no stop sequences, and refuses a request with some.
                let mut request = request.clone();
                request.options.stop.clear();
                dialect.encode(&request)?
            }
        };
        Ok(String::from_utf8(pieces.concat()).expect("a body is UTF-8"))
    }

    pub(crate) fn decode(&self, body: &Value) -> Result<ChatResponse, Error> {
        let body = body.to_string();
        match self {
            Self::OpenAi(dialect, _) => dialect.decode(body.as_bytes()),
            Self::Anthropic(dialect) => dialect.decode(body.as_bytes()),
            Self::Gemini(dialect) => dialect.decode(body.as_bytes()),
            Self::Responses(dialect) => dialect.decode(body.as_bytes()),
        }
    }

    /// What the provider would refuse of a body.
    pub(crate) fn violations(&self, body: &str) -> Vec<Violation> {
        let body: Value = serde_json::from_str(body).expect("a body is JSON");
        match self {
            Self::OpenAi(_, endpoint) => openai_chat::validate_for(&body, *endpoint),
            Self::Anthropic(_) => anthropic::validate(&body),
            Self::Responses(_) => openai_responses::validate(&body),
            Self::Gemini(dialect) => {
                let model = match dialect.generation() {
                    Generation::Before3 => gemini::Model::Before3,
                    Generation::From3 => gemini::Model::From3,
                };
                gemini::validate_for(&body, model)
            }
        }
    }

    /// Every body that is made is taken; the error lists what would be refused.
    pub(crate) fn judge(&self, body: &str) -> Result<(), String> {
        let violations = self.violations(body);
        if violations.is_empty() {
            return Ok(());
        }
        Err(format!("{:?}:\n{}\n{body}", self.origin(), cepa_testkit::validate::list(&violations)))
    }
}

fn origin(provider: &str, model: &str) -> Origin {
    Origin { provider: provider.into(), model: model.into() }
}

/// The exact text of the array of messages in a body.
pub(crate) fn messages(body: &str) -> String {
    #[derive(Deserialize)]
    struct Body {
        #[serde(alias = "contents", alias = "input")]
        messages: RawJson,
    }
    serde_json::from_str::<Body>(body).expect("a body has messages").messages.as_str().to_owned()
}
