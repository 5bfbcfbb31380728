//! Why a reply ended: <https://ai.google.dev/api/generate-content#FinishReason>.

use cepa_core::{Error, ErrorKind, FinishReason, Origin};

/// The reason in a word of ours; `None` for one that is not known. An error where the word says that the reply failed.
///
/// `MALFORMED_FUNCTION_CALL` and `MALFORMED_RESPONSE` come with nothing to go on with: the model wrote what nobody could read.
/// Asked again it mostly writes better (<https://github.com/pydantic/pydantic-ai/pull/3095>), so the error is one to retry.
/// `UNEXPECTED_TOOL_CALL` is the same where no call comes with it; with one it is a reply whose tool the loop does not find.
/// `FUNCTION_CALL` is no word of Gemini's own: servers that imitate it write it behind calls (npm `@copilotkit/aimock`).
/// No other word is a good end, with calls or without: nobody said that they are to run.
pub(super) fn finish(
    word: Option<&str>,
    message: Option<&str>,
    has_calls: bool,
    origin: &Origin,
) -> Result<Option<FinishReason>, Error> {
    let failed = |kind, what: &str| {
        let detail = message.map(|message| format!(": {message}")).unwrap_or_default();
        let text = format!("{} ended the reply without a usable answer: {what}{detail}", origin.provider);
        Error::new(kind, text).with_provider(origin.provider.clone()).with_code(word.unwrap_or_default())
    };
    Ok(Some(match word.unwrap_or_default() {
        "MAX_TOKENS" | "CONTINUATION" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" => {
            return Err(failed(ErrorKind::Provider, "the model wrote a call that cannot be read").with_retryable(true));
        }
        "UNEXPECTED_TOOL_CALL" if !has_calls => {
            return Err(
                failed(ErrorKind::Provider, "the model called a tool that it was not given").with_retryable(true)
            );
        }
        "MISSING_THOUGHT_SIGNATURE" => {
            return Err(failed(ErrorKind::InvalidRequest, "it misses a thought signature in the conversation"));
        }
        "STOP" | "FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" if has_calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        _ => return Ok(None),
    }))
}
