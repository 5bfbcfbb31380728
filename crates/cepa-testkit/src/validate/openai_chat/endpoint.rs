//! What one endpoint takes: more than OpenAI's own schema here, less there.

use cepa_providers::wire::{
    ids::IdRule,
    openai_chat::{
        AfterTools, MaxTokensName, NullContent, Quirks, ReplayReasoning, Roles, StreamUsage, SystemPlace, ThinkingName,
    },
};

/// In what an endpoint differs from OpenAI's own schema; the default is what every server takes that follows it closely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// More members of the body.
    pub body_members: &'static [&'static str],
    /// Members of the body that OpenAI takes, and this endpoint does not.
    pub refused_members: &'static [&'static str],
    /// More members of an assistant message, such as `reasoning_content`.
    pub assistant_members: &'static [&'static str],
    /// More members of a call, such as `extra_content`.
    pub call_members: &'static [&'static str],
    /// Whether system messages may stand behind the first message, as OpenAI itself allows.
    pub system_anywhere: bool,
    /// Whether user and assistant must take turns, as templates of open models want it.
    pub roles_in_turn: bool,
    /// Whether behind results only the assistant may speak, as at Mistral.
    pub assistant_after_results: bool,
    /// Which ids of calls it takes.
    pub call_ids: CallIds,
    /// Whether `null` for the text beside calls is refused, as by Ollama.
    pub no_null_content: bool,
    /// The member in which reasoning must come back beside calls, as at DeepSeek.
    pub reasoning_back: Option<&'static str>,
}

/// Which ids of calls an endpoint takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallIds {
    /// Up to 40 characters, as OpenAI.
    #[default]
    Forty,
    /// Nine letters and digits, as Mistral.
    Nine,
    /// Any, as the servers that make long ones themselves.
    Any,
}

impl Endpoint {
    /// What a server takes for which requests are made with these settings.
    ///
    /// ```
    /// use cepa_providers::catalog;
    /// use cepa_testkit::validate::openai_chat::{CallIds, Endpoint};
    /// let known = catalog::Endpoint::named("mistral")?;
    /// assert_eq!(Endpoint::of(&(known.quirks)()).call_ids, CallIds::Nine);
    /// # Ok::<(), cepa_core::Error>(())
    /// ```
    pub fn of(quirks: &Quirks) -> Self {
        let names = ["reasoning_content", "reasoning"];
        Self {
            body_members: match quirks.thinking {
                ThinkingName::ReasoningEffort => &[],
                ThinkingName::ReasoningObject => &["reasoning"],
                ThinkingName::ThinkingSwitch => &["thinking"],
                ThinkingName::EnableThinking => &["enable_thinking", "thinking_budget"],
            },
            refused_members: match (quirks.max_tokens, quirks.stream_usage) {
                (MaxTokensName::MaxTokens, StreamUsage::Told) => &["max_completion_tokens", "stream_options"],
                (MaxTokensName::MaxTokens, StreamUsage::Asked) => &["max_completion_tokens"],
                (MaxTokensName::MaxCompletionTokens, StreamUsage::Told) => &["stream_options"],
                (MaxTokensName::MaxCompletionTokens, StreamUsage::Asked) => &[],
            },
            system_anywhere: quirks.system == SystemPlace::Anywhere,
            roles_in_turn: quirks.roles == Roles::InTurn,
            assistant_after_results: quirks.after_tools == AfterTools::Assistant,
            call_ids: match quirks.call_ids {
                IdRule::ALNUM_9 => CallIds::Nine,
                IdRule::VISIBLE => CallIds::Any,
                _ => CallIds::Forty,
            },
            no_null_content: quirks.null_content == NullContent::EmptyString,
            reasoning_back: match &quirks.replay_reasoning {
                ReplayReasoning::As(name) => names.into_iter().find(|known| known == name),
                ReplayReasoning::Never => None,
            },
            ..Self::default()
        }
    }
}
