//! Invariants by name, from the judges of the testkit.

use cepa_testkit::validate::{
    Violation, anthropic, gemini, neutral,
    openai_chat::{self, Endpoint},
    openai_responses,
};

use super::{
    expect::{Difference, Differences},
    json::Json,
    target::Target,
};

/// Judges a value by the invariants of these names.
pub(crate) fn judge<'a>(names: impl IntoIterator<Item = &'a str>, value: &Json, at: &str) -> Differences {
    let names: Vec<&str> = names.into_iter().collect();
    let of = |family: &str| names.iter().any(|name| name.starts_with(family));
    let value = value.to_value();
    let mut violations = Vec::new();
    if of("oa.") {
        violations.extend(openai_chat::validate(&value));
    }
    if of("an.") {
        violations.extend(anthropic::validate(&value));
    }
    if of("hist.") {
        violations.extend(neutral::validate(value.as_array().map_or(&[][..], Vec::as_slice)));
    }
    let named = violations.into_iter().filter(|violation| names.contains(&violation.rule));
    differences(named, at)
}

/// Judges a body by all that its provider would refuse.
pub(crate) fn judge_body(target: Target<'_>, body: &Json, at: &str) -> Differences {
    let value = body.to_value();
    let violations = match target.provider {
        "anthropic" => anthropic::validate(&value),
        "openai-responses" => openai_responses::validate(&value),
        "gemini" => gemini::validate_for(&value, target.generation),
        "deepseek" => openai_chat::validate_for(
            &value,
            Endpoint { assistant_members: &["reasoning_content"], ..Endpoint::default() },
        ),
        "gemini-openai" => {
            openai_chat::validate_for(&value, Endpoint { call_members: &["extra_content"], ..Endpoint::default() })
        }
        _ => openai_chat::validate(&value),
    };
    // Some cases bring blocks and items of a kind that is still to come; the provider that made them gets them back.
    let still_to_come = ["an.block_type", "or.item_type"];
    differences(violations.into_iter().filter(|violation| !still_to_come.contains(&violation.rule)), at)
}

fn differences(violations: impl Iterator<Item = Violation>, at: &str) -> Differences {
    violations.map(|v| Difference::new(format!("{at} ({})", v.at), format!("invariant {}", v.rule), v.what)).collect()
}

/// The names in an expectation.
pub(crate) fn names(expected: Option<&Json>) -> impl Iterator<Item = &str> {
    expected.map_or(&[][..], Json::items).iter().filter_map(Json::text)
}
