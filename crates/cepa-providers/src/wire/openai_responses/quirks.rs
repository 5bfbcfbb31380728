//! In what the servers that speak this wire differ, and what a caller may choose.

use crate::wire::ids::IdRule;

/// The differences that one endpoint or model has; the default is OpenAI's with a reasoning model.
///
/// ```
/// use cepa_providers::wire::openai_responses::{EncryptedReasoning, Quirks};
/// let gpt_4o = Quirks { encrypted_reasoning: EncryptedReasoning::NotAsked, ..Quirks::default() };
/// # let _ = gpt_4o;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quirks {
    /// Whether reasoning is asked for in the form in which it can be sent back.
    pub encrypted_reasoning: EncryptedReasoning,
    /// Which summary of its reasoning the model shall write; none is written unless it is asked for.
    pub summary: Option<Summary>,
    /// Which tools are strict.
    pub strict_tools: StrictTools,
    /// Which call ids are taken.
    pub call_ids: IdRule,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            encrypted_reasoning: EncryptedReasoning::Asked,
            summary: None,
            strict_tools: StrictTools::Fitting,
            call_ids: IdRule::WORD_64,
        }
    }
}

/// Whether reasoning is asked for in encrypted form (`include`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EncryptedReasoning {
    /// It is: without it a stateless conversation loses the reasoning of each turn.
    Asked,
    /// It is not, for models without reasoning: `Encrypted content is not supported with this model.`
    /// (<https://github.com/pydantic/pydantic-ai/issues/2865>)
    NotAsked,
}

/// How much of its reasoning the model tells people.
/// <https://platform.openai.com/docs/guides/reasoning#reasoning-summaries>
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Summary {
    /// As much as the model can.
    Auto,
    /// Little.
    Concise,
    /// Much.
    Detailed,
}

impl Summary {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Concise => "concise",
            Self::Detailed => "detailed",
        }
    }
}

/// Which tools are sent as strict: the model can then only write arguments that fit the schema.
/// <https://platform.openai.com/docs/guides/function-calling#strict-mode>
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StrictTools {
    /// Those whose schema keeps all rules of strict mode as it is.
    Fitting,
    /// Those, and those whose schema can be [narrowed](crate::wire::schema::openai_strict::narrowed) to the rules.
    Narrowed,
    /// None.
    Never,
}
