//! Why a reply ended, in a word of ours; and which word counts where several were said.
//!
//! Calls run only behind a word that is known to mean that the model had finished. Behind any other the last call may be
//! cut, and a call that was cut in front of its arguments reads as one without any.

use std::borrow::Cow;

use cepa_core::{Error, ErrorKind, FinishReason, Origin};

/// The word for why the reply ended.
#[derive(Debug, Default)]
pub(super) struct Ending(Option<String>);

impl Ending {
    /// Takes a word. A later one replaces an earlier one, except one that says that the reply was cut or failed: nothing
    /// that comes behind makes it whole again.
    pub(super) fn take(&mut self, word: String) {
        // Some servers write one into every chunk while there is no reason yet
        // (<https://github.com/aaif-goose/goose/pull/10258>; the text `null`:
        // <https://help.aliyun.com/zh/dashscope/developer-reference/api-details>).
        let is_none = word.trim().is_empty() || word.eq_ignore_ascii_case("null");
        if !is_none && !self.0.as_deref().is_some_and(|word| meaning(word).is_final()) {
            self.0 = Some(word);
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// The reason; `None` if no word was said.
    ///
    /// # Errors
    /// If the word says that the reply failed.
    pub(super) fn reason(&self, origin: &Origin) -> Result<Option<FinishReason>, Error> {
        let Some(word) = &self.0 else { return Ok(None) };
        match meaning(word) {
            Meaning::Ended(reason) => Ok(Some(reason)),
            Meaning::Failed(kind, what) => {
                let message = format!("{} ended the reply before it was complete: {what}", origin.provider);
                Err(Error::new(kind, message).with_provider(origin.provider.clone()).with_code(word.as_str()))
            }
        }
    }
}

enum Meaning {
    Ended(FinishReason),
    Failed(ErrorKind, &'static str),
}

impl Meaning {
    fn is_final(&self) -> bool {
        use FinishReason::{ContentFilter, Length, Refusal};
        matches!(self, Self::Failed(..) | Self::Ended(Length | ContentFilter | Refusal))
    }
}

fn meaning(word: &str) -> Meaning {
    use FinishReason::{ContentFilter, Length, Other, Refusal, Stop, ToolCalls};
    let is_lower = !word.bytes().any(|byte| byte.is_ascii_uppercase());
    let word = if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_ascii_lowercase()) };
    Meaning::Ended(match &*word {
        "stop" => Stop,
        // Together, and Hugging Face's server (<https://huggingface.co/docs/text-generation-inference/reference/launcher>).
        "eos" | "eos_token" => Stop,
        "tool_calls" | "function_call" => ToolCalls,
        // Anthropic's, passed on by gateways (<https://github.com/BerriAI/litellm/issues/12481>); what they mean:
        // <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.
        "end_turn" | "stop_sequence" => Stop,
        "tool_use" => ToolCalls,
        "max_tokens" => Length,
        "refusal" => Refusal,
        "length" => Length,
        // Mistral (<https://docs.mistral.ai/api/endpoint/chat>).
        "model_length" => Length,
        // The Responses API's, passed on (<https://platform.openai.com/docs/api-reference/responses/object>).
        "max_output_tokens" => Length,
        // Z.ai (<https://docs.z.ai/api-reference/llm/chat-completion>; what they stand for:
        // <https://github.com/mozilla-ai/any-llm/pull/1204>), the first also Anthropic.
        "model_context_window_exceeded" => Length,
        "sensitive" => ContentFilter,
        "network_error" => return Meaning::Failed(ErrorKind::Server, "an error behind it"),
        word if word.starts_with("content_filter") => ContentFilter,
        // Gemini's, passed on (<https://ai.google.dev/api/generate-content#FinishReason>).
        "safety" | "recitation" | "blocklist" | "prohibited_content" | "spii" => ContentFilter,
        // DeepSeek (<https://api-docs.deepseek.com/api/create-chat-completion>).
        "insufficient_system_resource" => return Meaning::Failed(ErrorKind::Overloaded, "it is short of resources"),
        // OpenRouter (<https://openrouter.ai/docs/api-reference/overview>) and Mistral.
        "error" => return Meaning::Failed(ErrorKind::Server, "an error that it does not explain"),
        _ => Other,
    })
}

#[cfg(test)]
#[path = "ending_tests.rs"]
mod tests;
