//! The bodies of chat completion requests, kept as files that a person can read.
//!
//! `UPDATE_GOLDEN=1 cargo test -p cepa-providers --test golden_openai` writes them anew. Those under `openai_chat` are
//! judged by OpenAI's own types as well (`cargo xtask peers`); those under `openai_compatible` hold members that only other
//! servers know.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod conversations;
#[path = "../golden/mod.rs"]
mod golden;

use cepa_core::ChatRequest;
use cepa_providers::{catalog::Endpoint, wire::openai_chat::OpenAiChat};
use conversations as all;
use golden::{body, compare, origin, pretty};

fn check(folder: &str, name: &str, dialect: &OpenAiChat, request: &ChatRequest) {
    compare(folder, name, &body(dialect, request));
}

fn openai(name: &str, request: &ChatRequest) {
    check("openai_chat", name, &dialect("openai", "gpt-5.4"), request);
}

fn dialect(endpoint: &str, model: &str) -> OpenAiChat {
    OpenAiChat::new(origin(endpoint, model), (Endpoint::named(endpoint).unwrap().quirks)())
}

// W1: golden bodies. W3: what the wire has no place for is converted in the open.
#[test]
fn requests_to_openai() {
    openai("text", &all::text());
    openai("images", &all::images());
    openai("documents_and_audio", &all::documents());
    openai("parallel_calls", &all::parallel_calls());
    openai("tool_errors", &all::tool_errors());
    openai("several_system_messages", &all::several_system_messages());
    openai("damaged_history", &all::damaged_history());
    openai("blank_messages", &all::blank_messages());
    openai("tool_choice", &all::tool_choice());
    openai("options", &all::options());
    openai("streamed", &all::streamed());
    openai("provider_switch", &all::provider_switch());
    openai("broken_args", &all::broken_args());
    openai("mapped_ids", &all::mapped_ids());
    openai("media_in_results", &all::media_in_results());
    openai("foreign_reasoning", &all::own_reasoning(origin("deepseek", "deepseek-pro")));
}

#[test]
fn requests_to_others() {
    for (endpoint, model) in [
        ("deepseek", "deepseek-pro"),
        ("groq", "openai/gpt-oss-120b"),
        ("gemini-openai", "gemini-3-pro"),
        ("mistral", "mistral-large"),
        ("openrouter", "some/model"),
        ("llama.cpp", "qwen3"),
    ] {
        let dialect = dialect(endpoint, model);
        // The file of `llama.cpp` has no second ending.
        let name = endpoint.trim_end_matches(".cpp");
        check("openai_compatible", name, &dialect, &all::own_reasoning(dialect.origin().clone()));
    }
    check("openai_compatible", "mistral_after_tools", &dialect("mistral", "m"), &all::parallel_calls());
    check("openai_compatible", "mistral_media_in_results", &dialect("mistral", "m"), &all::media_in_results());
    check("openai_compatible", "one_system_message", &dialect("ollama", "m"), &all::several_system_messages());
}

#[test]
fn the_layout_changes_nothing_but_the_space() {
    let json = r#"{"a":[1,{"b":"x\" , [y]:"},[],{}],"c":null}"#;
    let laid_out = pretty::pretty(json);
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&laid_out), value(json));
    assert_eq!(laid_out.lines().count(), 11);
}
