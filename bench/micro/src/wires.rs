//! The four dialects, each by its name and with an answer of its own.

use cepa::{
    Origin,
    providers::wire::{
        Dialect, anthropic::AnthropicMessages, gemini::GenerateContent, openai_chat::OpenAiChat,
        openai_responses::Responses,
    },
};

use crate::answers;

/// A dialect, as the measurements need it.
pub trait Wire: Dialect + Sized {
    /// Its name.
    const NAME: &'static str;

    /// For this model: one that nobody has encoded anything for has everything to encode.
    fn of(model: &str) -> Self;

    /// The body of an answer of so many words.
    fn answer(words: usize) -> String;
}

fn origin(provider: &str, model: &str) -> Origin {
    Origin { provider: provider.into(), model: model.into() }
}

impl Wire for OpenAiChat {
    const NAME: &'static str = "openai_chat";

    fn of(model: &str) -> Self {
        Self::new(origin("openai", model), Default::default())
    }

    fn answer(words: usize) -> String {
        answers::openai_chat(words)
    }
}

impl Wire for Responses {
    const NAME: &'static str = "openai_responses";

    fn of(model: &str) -> Self {
        Self::new(origin("openai-responses", model), Default::default())
    }

    fn answer(words: usize) -> String {
        answers::openai_responses(words)
    }
}

impl Wire for AnthropicMessages {
    const NAME: &'static str = "anthropic";

    fn of(model: &str) -> Self {
        Self::new(origin("anthropic", model))
    }

    fn answer(words: usize) -> String {
        answers::anthropic(words)
    }
}

impl Wire for GenerateContent {
    const NAME: &'static str = "gemini";

    fn of(model: &str) -> Self {
        Self::new(origin("gemini", model))
    }

    fn answer(words: usize) -> String {
        answers::gemini(words)
    }
}
