//! Endpoints that speak chat completions ([`ENDPOINTS`]) or Anthropic's Messages ([`ANTHROPIC_ENDPOINTS`]): where they are,
//! how they want the key, and in what they differ.
//!
//! Tables of data; each difference has the page that says so, and what has no page is left as OpenAI has it.

mod anthropic;

use cepa_core::{Error, ErrorKind};

use crate::wire::{
    ids::IdRule,
    openai_chat::{
        AfterTools, MaxTokensName, NullContent, Quirks, ReplayReasoning, Roles, StreamUsage, SystemPlace, ThinkingName,
    },
};

pub use anthropic::{ANTHROPIC, ANTHROPIC_ENDPOINTS, AnthropicEndpoint};

/// One endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// The catalog name: what `provider/model` begins with, and what messages remember.
    pub name: &'static str,
    /// The address before `/chat/completions`; `None` where everybody has their own.
    pub base_url: Option<&'static str>,
    /// The environment variable that holds another address.
    pub base_url_env: Option<&'static str>,
    /// The environment variable that holds the key.
    pub key_env: Option<&'static str>,
    /// How the key is sent.
    pub auth: Auth,
    /// The differences.
    pub quirks: fn() -> Quirks,
}

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// The bare key in this header.
    Header(&'static str),
    /// As [`Auth::Bearer`] if there is a key; the server does not need one.
    Optional,
}

/// OpenAI itself: <https://platform.openai.com/docs/api-reference/chat>.
pub const OPENAI: Endpoint = Endpoint {
    name: "openai",
    base_url: Some("https://api.openai.com/v1"),
    base_url_env: Some("OPENAI_BASE_URL"),
    key_env: Some("OPENAI_API_KEY"),
    auth: Auth::Bearer,
    quirks: Quirks::default,
};

/// All endpoints.
pub const ENDPOINTS: &[Endpoint] = &[
    OPENAI,
    // The v1 address `https://RESOURCE.openai.azure.com/openai/v1`; the model is the deployment's name.
    // <https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle>
    Endpoint {
        name: "azure-openai",
        base_url: None,
        base_url_env: Some("AZURE_OPENAI_BASE_URL"),
        key_env: Some("AZURE_OPENAI_API_KEY"),
        auth: Auth::Header("api-key"),
        quirks: Quirks::default,
    },
    Endpoint {
        name: "deepseek",
        base_url: Some("https://api.deepseek.com"),
        base_url_env: Some("DEEPSEEK_BASE_URL"),
        key_env: Some("DEEPSEEK_API_KEY"),
        auth: Auth::Bearer,
        quirks: || Quirks {
            // <https://api-docs.deepseek.com/guides/thinking_mode>: reasoning of messages with calls must come back, and
            // thinking has a switch of its own.
            replay_reasoning: ReplayReasoning::As("reasoning_content".into()),
            thinking: ThinkingName::ThinkingSwitch,
            // <https://api-docs.deepseek.com/api/create-chat-completion>
            max_tokens: MaxTokensName::MaxTokens,
            ..Quirks::default()
        },
    },
    // <https://console.groq.com/docs/api-reference#chat-create>: `max_tokens` is deprecated here too; reasoning in a request
    // is refused, which is the default.
    Endpoint {
        name: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        base_url_env: Some("GROQ_BASE_URL"),
        key_env: Some("GROQ_API_KEY"),
        auth: Auth::Bearer,
        quirks: Quirks::default,
    },
    // <https://ai.google.dev/gemini-api/docs/openai>
    Endpoint {
        name: "gemini-openai",
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        base_url_env: Some("GEMINI_BASE_URL"),
        key_env: Some("GEMINI_API_KEY"),
        auth: Auth::Bearer,
        quirks: Quirks::default,
    },
    Endpoint {
        name: "mistral",
        base_url: Some("https://api.mistral.ai/v1"),
        base_url_env: Some("MISTRAL_BASE_URL"),
        key_env: Some("MISTRAL_API_KEY"),
        auth: Auth::Bearer,
        quirks: || Quirks {
            // Unknown members are refused, `max_completion_tokens` by name
            // (<https://github.com/editor-code-assistant/eca/issues/231>), and `stream_options` is none of the known ones
            // (<https://docs.mistral.ai/api/#tag/chat>); its streams tell their usage anyway
            // (<https://docs.mistral.ai/resources/release-note/2024-01-16-token-usage-in-streaming-requests>).
            max_tokens: MaxTokensName::MaxTokens,
            stream_usage: StreamUsage::Told,
            // <https://docs.vllm.ai/en/v0.15.0/api/vllm/tool_parsers/mistral_tool_parser/>
            call_ids: IdRule::ALNUM_9,
            // "Unexpected role 'user' after role 'tool'" (<https://github.com/zed-industries/zed/issues/37021>).
            after_tools: AfterTools::Assistant,
            // "conversation roles must alternate user and assistant roles" (<https://github.com/charmbracelet/crush/issues/279>).
            roles: Roles::InTurn,
            ..Quirks::default()
        },
    },
    // GLM, for the world: <https://docs.z.ai/guides/develop/openai/python>; its coding plan has an address of its own
    // (<https://docs.z.ai/devpack/quick-start>).
    Endpoint {
        name: "zai",
        base_url: Some("https://api.z.ai/api/paas/v4"),
        base_url_env: Some("ZAI_BASE_URL"),
        key_env: Some("ZAI_API_KEY"),
        auth: Auth::Bearer,
        quirks: glm,
    },
    // GLM, in China: <https://docs.bigmodel.cn/cn/guide/develop/openai/introduction>.
    Endpoint {
        name: "zhipu",
        base_url: Some("https://open.bigmodel.cn/api/paas/v4"),
        base_url_env: Some("BIGMODEL_BASE_URL"),
        key_env: Some("BIGMODEL_API_KEY"),
        auth: Auth::Bearer,
        quirks: glm,
    },
    // Qwen, from Singapore; keys are for one region, and newer workspaces have an address of their own
    // (<https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope>): set the base URL.
    Endpoint {
        name: "dashscope",
        base_url: Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        base_url_env: Some("DASHSCOPE_BASE_URL"),
        key_env: Some("DASHSCOPE_API_KEY"),
        auth: Auth::Bearer,
        quirks: || Quirks {
            // <https://www.alibabacloud.com/help/en/model-studio/deep-thinking>; what a budget may be:
            // <https://www.alibabacloud.com/help/model-studio/error-code>.
            thinking: ThinkingName::EnableThinking,
            // <https://help.aliyun.com/zh/dashscope/developer-reference/api-details>
            max_tokens: MaxTokensName::MaxTokens,
            ..Quirks::default()
        },
    },
    Endpoint {
        name: "openrouter",
        base_url: Some("https://openrouter.ai/api/v1"),
        base_url_env: Some("OPENROUTER_BASE_URL"),
        key_env: Some("OPENROUTER_API_KEY"),
        auth: Auth::Bearer,
        quirks: || Quirks {
            // <https://openrouter.ai/docs/use-cases/reasoning-tokens>
            thinking: ThinkingName::ReasoningObject,
            // <https://openrouter.ai/docs/api-reference/parameters>
            max_tokens: MaxTokensName::MaxTokens,
            ..Quirks::default()
        },
    },
    Endpoint {
        name: "ollama",
        base_url: Some("http://127.0.0.1:11434/v1"),
        base_url_env: Some("OLLAMA_BASE_URL"),
        key_env: Some("OLLAMA_API_KEY"),
        auth: Auth::Optional,
        // <https://docs.ollama.com/api/openai-compatibility>: `max_tokens` is the one it lists. Templates that refuse `null`
        // for a text: <https://github.com/Dicklesworthstone/pi_agent_rust/issues/45>.
        // Its own templates take any order of roles.
        quirks: || Quirks { null_content: NullContent::EmptyString, roles: Roles::AsTheyCome, ..local() },
    },
    Endpoint {
        name: "llama.cpp",
        base_url: Some("http://127.0.0.1:8080/v1"),
        base_url_env: Some("LLAMA_CPP_BASE_URL"),
        key_env: Some("LLAMA_CPP_API_KEY"),
        auth: Auth::Optional,
        // <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>
        quirks: local,
    },
    // <https://docs.vllm.ai/en/stable/serving/openai_compatible_server/>; the variable is the one from which the server takes
    // its own key (<https://docs.vllm.ai/en/stable/configuration/env_vars/>).
    Endpoint {
        name: "vllm",
        base_url: Some("http://127.0.0.1:8000/v1"),
        base_url_env: Some("VLLM_BASE_URL"),
        key_env: Some("VLLM_API_KEY"),
        auth: Auth::Optional,
        quirks: local,
    },
    // Any other server: LM Studio, a gateway.
    Endpoint {
        name: "openai-compatible",
        base_url: None,
        base_url_env: Some("OPENAI_COMPATIBLE_BASE_URL"),
        key_env: Some("OPENAI_COMPATIBLE_API_KEY"),
        auth: Auth::Optional,
        quirks: local,
    },
];

/// The models of Z.AI.
fn glm() -> Quirks {
    Quirks {
        // "Thinking blocks should be explicitly preserved and returned together with the tool results", and the switch:
        // <https://docs.z.ai/guides/capabilities/thinking-mode>.
        replay_reasoning: ReplayReasoning::As("reasoning_content".into()),
        thinking: ThinkingName::ThinkingSwitch,
        // <https://docs.z.ai/guides/overview/concept-param>
        max_tokens: MaxTokensName::MaxTokens,
        ..Quirks::default()
    }
}

/// Servers that put the messages through a model's own chat template.
fn local() -> Quirks {
    Quirks {
        // The one that all of them list (<https://docs.ollama.com/api/openai-compatibility>,
        // <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>).
        max_tokens: MaxTokensName::MaxTokens,
        // "System message must be at the beginning" (<https://github.com/ggml-org/llama.cpp/issues/27367>).
        system: SystemPlace::Single,
        // "conversation roles must alternate user/assistant/user/assistant/..." (<https://github.com/vllm-project/vllm/issues/6862>).
        roles: Roles::InTurn,
        // Their own ids are longer than OpenAI allows (<https://github.com/vllm-project/vllm/issues/22966>).
        call_ids: IdRule::VISIBLE,
        ..Quirks::default()
    }
}

impl Endpoint {
    /// The endpoint of this catalog name.
    ///
    /// # Errors
    /// `invalid_config` if there is none.
    ///
    /// ```
    /// use cepa_providers::catalog::Endpoint;
    /// assert_eq!(Endpoint::named("groq")?.key_env, Some("GROQ_API_KEY"));
    /// # Ok::<(), cepa_core::Error>(())
    /// ```
    pub fn named(name: &str) -> Result<&'static Self, Error> {
        ENDPOINTS.iter().find(|endpoint| endpoint.name == name).ok_or_else(|| {
            let known: Vec<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.name).collect();
            let known = known.join(", ");
            Error::new(ErrorKind::InvalidConfig, format!("no provider is called `{name}`: choose one of {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_variables_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for endpoint in ENDPOINTS {
            let words = [Some(endpoint.name), endpoint.key_env, endpoint.base_url_env];
            assert!(words.into_iter().flatten().all(|word| seen.insert(word)), "{}", endpoint.name);
        }
        // A key serves both wires of its provider; names and addresses are of one wire.
        for endpoint in ANTHROPIC_ENDPOINTS {
            let words = [endpoint.name, endpoint.base_url_env];
            assert!(words.into_iter().all(|word| seen.insert(word)), "{}", endpoint.name);
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let error = Endpoint::named("openia").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().contains("openai, azure-openai"), "{error}");
    }
}
