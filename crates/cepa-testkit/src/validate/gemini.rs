//! Judge of Gemini `generateContent` requests.
//!
//! Sources: the reference <https://ai.google.dev/api/generate-content> and <https://ai.google.dev/api/caching> (contents, parts,
//! tools), the guides on function calling <https://ai.google.dev/gemini-api/docs/function-calling> and on thought signatures
//! <https://ai.google.dev/gemini-api/docs/thought-signatures>, and the messages of the 400s that the server answers where they
//! are silent. A rule without a link of its own is the reference's.

mod part;
pub mod rules;
mod tools;
mod turns;

use serde_json::{Map, Value};

use super::{
    Report, Violation,
    shape::{ANYTHING, BOOL, FULL_TEXT, Kind, LIST, Member, OBJECT, Rules, TEXT, list, may, need},
};

/// What a request may hold depends on the model's generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Up to Gemini 2.5.
    Before3,
    /// From Gemini 3 on: "you must pass back thought signatures", levels of thinking, media inside responses.
    #[default]
    From3,
}

const RULES: Rules = Rules { shape: rules::SHAPE, unknown_member: rules::UNKNOWN_MEMBER };

const BODY: &[Member] = &[
    need("contents", LIST).by(rules::CONTENTS),
    may("systemInstruction", OBJECT),
    may("tools", LIST),
    may("toolConfig", OBJECT),
    may("generationConfig", OBJECT),
    may("safetySettings", LIST),
    may("cachedContent", FULL_TEXT),
    may("serviceTier", TEXT),
    may("store", BOOL),
    // The path names it; here it may stand as well.
    may("model", FULL_TEXT),
];

const TEMPERATURE: Kind = Kind::new("a number from 0 to 2", |v| v.as_f64().is_some_and(|n| (0.0..=2.0).contains(&n)));
const SHARE: Kind = Kind::new("a number from 0 to 1", |v| v.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)));
const COUNT: Kind = Kind::new("a positive integer", |v| v.as_u64().is_some_and(|n| n > 0));
/// "The set of character sequences (up to 5) that will stop output generation."
const STOPS: Kind = Kind::new("a list of 1 to 5 texts that are not empty", |v| {
    v.as_array().is_some_and(|all| {
        (1..=5).contains(&all.len()) && all.iter().all(|one| one.as_str().is_some_and(|text| !text.is_empty()))
    })
});

const GENERATION: &[Member] = &[
    may("maxOutputTokens", COUNT).by(rules::RANGES),
    may("temperature", TEMPERATURE).by(rules::RANGES),
    may("topP", SHARE).by(rules::RANGES),
    may("topK", COUNT).by(rules::RANGES),
    may("candidateCount", COUNT),
    may("stopSequences", STOPS).by(rules::STOPS),
    may("seed", Kind::new("an integer", |v| v.is_i64())),
    may("presencePenalty", Kind::new("a number", Value::is_number)),
    may("frequencyPenalty", Kind::new("a number", Value::is_number)),
    may("responseMimeType", TEXT),
    may("responseSchema", OBJECT),
    may("responseJsonSchema", ANYTHING),
    may("responseLogprobs", BOOL),
    may("logprobs", COUNT),
    may("responseModalities", LIST),
    may("speechConfig", OBJECT),
    may("imageConfig", OBJECT),
    may("mediaResolution", TEXT),
    may("enableEnhancedCivicAnswers", BOOL),
    may("thinkingConfig", OBJECT),
];
const THINKING: &[Member] = &[
    may("includeThoughts", BOOL),
    may("thinkingBudget", Kind::new("an integer from -1 on", |v| v.as_i64().is_some_and(|n| n >= -1))),
    may("thinkingLevel", FULL_TEXT),
];
const CONTENT: &[Member] = &[may("role", TEXT), need("parts", LIST).by(rules::CONTENTS)];

/// What is wrong with a request to a model from Gemini 3 on.
///
/// ```
/// use cepa_testkit::validate::gemini::validate;
/// let body = serde_json::json!({"contents": [{"role": "user", "parts": [{"text": ""}]}]});
/// let rules: Vec<&str> = validate(&body).iter().map(|violation| violation.rule).collect();
/// assert_eq!(rules, ["ge.no_empty_part"]);
/// ```
pub fn validate(body: &Value) -> Vec<Violation> {
    validate_for(body, Model::default())
}

/// What is wrong with a request to a model of this generation.
pub fn validate_for(body: &Value, model: Model) -> Vec<Violation> {
    let mut report = Report::default();
    if let Some(body) = RULES.check(&mut report, body, "body", BODY, &[]) {
        generation(&mut report, body, model);
        system(&mut report, body);
        tools::check(&mut report, body);
        let contents = list(body, "contents");
        for (index, content) in contents.iter().enumerate() {
            let at = format!("body.contents[{index}]");
            let Some(content) = RULES.check(&mut report, content, &at, CONTENT, &[]) else { continue };
            for (place, one) in list(content, "parts").iter().enumerate() {
                part::check(&mut report, one, &format!("{at}.parts[{place}]"), model);
            }
        }
        turns::check(&mut report, contents, model);
    }
    report.0
}

fn generation(report: &mut Report, body: &Map<String, Value>, model: Model) {
    const AT: &str = "body.generationConfig";
    let Some(config) = body.get("generationConfig") else { return };
    RULES.check(report, config, AT, GENERATION, &[]);
    let Some(thinking) = config.get("thinkingConfig") else { return };
    let at = format!("{AT}.thinkingConfig");
    let Some(thinking) = RULES.check(report, thinking, &at, THINKING, &[]) else { return };
    // "You cannot use both thinking_level and the legacy thinking_budget parameter in the same request"; older models know no
    // level.
    if let Some(level) = thinking.get("thinkingLevel") {
        if thinking.contains_key("thinkingBudget") {
            report.add(rules::LEVEL_OR_BUDGET, &at, "a level and a budget");
        }
        if model == Model::Before3 {
            report.add(rules::LEVELS, &at, format!("the level {level} for a model that has none"));
        }
    }
}

/// "Currently, text only."
fn system(report: &mut Report, body: &Map<String, Value>) {
    const AT: &str = "body.systemInstruction";
    let Some(system) = body.get("systemInstruction") else { return };
    let Some(system) = RULES.check(report, system, AT, CONTENT, &[]) else { return };
    for (place, one) in list(system, "parts").iter().enumerate() {
        let at = format!("{AT}.parts[{place}]");
        match one.get("text").and_then(Value::as_str) {
            Some(text) if text.trim().is_empty() => report.add(rules::EMPTY_TEXT, at, "the text is blank"),
            Some(_) => {}
            None => report.add(rules::SYSTEM_TEXT, at, "is no text"),
        }
    }
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
