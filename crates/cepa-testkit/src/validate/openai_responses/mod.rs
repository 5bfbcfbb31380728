//! Judge of Responses requests that keep their state themselves.
//!
//! Sources: OpenAI's own description of the interface, <https://github.com/openai/openai-openapi> (schema `CreateResponse`
//! and what it refers to), its reference <https://platform.openai.com/docs/api-reference/responses/create>, and the messages
//! of the 400s that the server answers where the schema is silent. A rule without a link of its own is the schema's.

mod items;
mod members;
pub mod rules;
mod tools;

use serde_json::{Map, Value};

use super::{
    Report, Violation,
    shape::{Rules, brief, list, text, text_of},
};
use members::{BODY, REASONING_SETTINGS};

const RULES: Rules = Rules { shape: rules::SHAPE, unknown_member: rules::UNKNOWN_MEMBER };

/// What is wrong with a request that OpenAI and the servers that follow it closely shall take.
///
/// ```
/// use cepa_testkit::validate::openai_responses::validate;
/// let body = serde_json::json!({"model": "m", "input": "hi", "stop": ["END"]});
/// let rules: Vec<&str> = validate(&body).iter().map(|violation| violation.rule).collect();
/// assert_eq!(rules, ["or.unknown_member"]);
/// ```
pub fn validate(body: &Value) -> Vec<Violation> {
    let mut judge = Judge { report: Report::default(), stored: false };
    if let Some(body) = RULES.check(&mut judge.report, body, "body", BODY, &[]) {
        // By default everything is stored.
        judge.stored = body.get("store") != Some(&Value::Bool(false));
        judge.settings(body);
        judge.tools(body);
        judge.input(list(body, "input"));
    }
    judge.report.0
}

struct Judge {
    report: Report,
    stored: bool,
}

impl Judge {
    fn settings(&mut self, body: &Map<String, Value>) {
        let is_true = |name: &str| body.get(name) == Some(&Value::Bool(true));
        // "Only set this when you set `stream: true`."
        if body.get("stream_options").is_some_and(Value::is_object) && !is_true("stream") {
            self.report.add(rules::STREAM_OPTIONS, "body.stream_options", "stands without `stream: true`");
        }
        // "Background mode requires `store=true`."
        if is_true("background") && !self.stored {
            self.report.add(rules::BACKGROUND, "body.background", "stands beside `store: false`");
        }
        // "Cannot be used in conjunction with `conversation`."
        if body.contains_key("previous_response_id") && body.contains_key("conversation") {
            self.report.add(rules::ONE_STATE, "body", "previous_response_id and conversation are both set");
        }
        if let Some(settings) = body.get("reasoning").filter(|settings| !settings.is_null()) {
            RULES.check(&mut self.report, settings, "body.reasoning", REASONING_SETTINGS, &[]);
        }
    }
}

#[cfg(test)]
#[path = "../openai_responses_tests.rs"]
mod tests;
