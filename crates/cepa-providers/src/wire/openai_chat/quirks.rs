//! In what the servers that speak chat completions differ, as settings of an endpoint.

use std::borrow::Cow;

use crate::wire::ids::IdRule;

/// The differences that one endpoint has from OpenAI's own; the default is OpenAI's.
///
/// [`catalog`](crate::catalog) has them for endpoints that are known, each with its source.
///
/// ```
/// use cepa_providers::wire::openai_chat::{MaxTokensName, Quirks, SystemPlace};
/// let vllm = Quirks { max_tokens: MaxTokensName::MaxTokens, system: SystemPlace::Single, ..Quirks::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quirks {
    /// What the limit of the reply is called.
    pub max_tokens: MaxTokensName,
    /// What stands for the text of a message that only calls tools.
    pub null_content: NullContent,
    /// Where system messages may stand.
    pub system: SystemPlace,
    /// Whether reasoning is sent back, and under which name.
    pub replay_reasoning: ReplayReasoning,
    /// Which call ids are taken.
    pub call_ids: IdRule,
    /// How thinking is asked for.
    pub thinking: ThinkingName,
    /// How a stream is asked to end with its usage.
    pub stream_usage: StreamUsage,
    /// What may stand behind the results of tools.
    pub after_tools: AfterTools,
    /// Whether user and assistant must take turns.
    pub roles: Roles,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            max_tokens: MaxTokensName::MaxCompletionTokens,
            null_content: NullContent::Null,
            system: SystemPlace::Anywhere,
            replay_reasoning: ReplayReasoning::Never,
            call_ids: IdRule::VISIBLE_40,
            thinking: ThinkingName::ReasoningEffort,
            stream_usage: StreamUsage::Asked,
            after_tools: AfterTools::Anyone,
            roles: Roles::AsTheyCome,
        }
    }
}

/// What the limit of the reply is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaxTokensName {
    /// `max_completion_tokens`: the only one that reasoning models of OpenAI take.
    MaxCompletionTokens,
    /// `max_tokens`: the older name, and the only one of many compatible servers.
    MaxTokens,
}

/// What stands for the text of a message that only calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NullContent {
    /// `null`.
    Null,
    /// `""`, for servers that refuse `null`.
    EmptyString,
}

/// Where system messages may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemPlace {
    /// Those at the start are one message; later ones stay where they are.
    Anywhere,
    /// All become one message at the start, for chat templates that take only that. A system message that is added
    /// later changes the start of the request, so the provider's prompt cache begins anew.
    Single,
}

/// Whether reasoning is sent back to the provider that it came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplayReasoning {
    /// It is left out.
    Never,
    /// It goes back under this member of its message. A message with calls has the member even where no reasoning is
    /// known: providers that want it check each such message.
    As(Cow<'static, str>),
}

/// How thinking is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThinkingName {
    /// `reasoning_effort: "low"`; `"none"` is off. A budget of tokens becomes the nearest word.
    ReasoningEffort,
    /// `reasoning: {effort}` or `reasoning: {max_tokens}`.
    ReasoningObject,
    /// `thinking: {type: "enabled"}` or `{type: "disabled"}`, and `reasoning_effort`.
    ThinkingSwitch,
    /// `enable_thinking: true` or `false`, and `thinking_budget`. The words `low`, `medium` and `high` become budgets.
    EnableThinking,
}

/// How a stream is asked to end with its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamUsage {
    /// `stream_options: {include_usage: true}`.
    Asked,
    /// Not at all, for servers that tell it anyway and refuse the question.
    Told,
}

/// What may stand behind the results of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterTools {
    /// A user may speak.
    Anyone,
    /// The assistant must speak first: where a turn was cut, a short message of it is put in.
    Assistant,
}

/// Whether user and assistant must take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Roles {
    /// Either may speak twice.
    AsTheyCome,
    /// The user begins, then they take turns, and the assistant speaks behind results: where that is not so, a short message
    /// is put in. (Two messages joined into one would change bytes that were sent before.)
    InTurn,
}
