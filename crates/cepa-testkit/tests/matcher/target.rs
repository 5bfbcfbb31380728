//! For whom the bodies of a case are: what a judge must know beside the body.

use cepa_providers::wire::gemini::Generation;
use cepa_testkit::validate::gemini::Model;

use super::json::Json;

/// The provider of a case, and what its model knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) provider: &'a str,
    /// Of Gemini's wire: the generation of the model.
    pub(crate) generation: Model,
}

impl<'a> Target<'a> {
    /// The target of a case.
    pub(crate) fn of(case: &'a Json) -> Self {
        let provider = case.get("provider").and_then(Json::text).unwrap_or_default();
        let generation = match Generation::of(&model(case.get("input").unwrap_or(&Json::Null))) {
            Generation::Before3 => Model::Before3,
            Generation::From3 => Model::From3,
        };
        Self { provider, generation }
    }
}

/// The model of the request, else the first of Gemini's that a reply names. The body does not name it: it is in the path.
fn model(input: &Json) -> String {
    if let Some(model) = input.get("model").and_then(Json::text) {
        return model.to_owned();
    }
    let text = input.to_string();
    let Some((_, behind)) = text.split_once("gemini-") else { return String::new() };
    let rest = behind.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))).next();
    format!("gemini-{}", rest.unwrap_or_default())
}
