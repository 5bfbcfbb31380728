//! What an error body says, in the many shapes that providers and gateways give it.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{wait, words};

/// The parts of an error body that mean something.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) message: Option<String>,
    /// The member `code`: a word or a number.
    pub(super) code: Option<String>,
    /// Other words for what happened: `type`, `status`, the reasons in `details`.
    other_words: Vec<String>,
    pub(super) request_id: Option<String>,
    pub(super) retry_after: Option<Duration>,
}

/// How long a text may be that is read as an error: what providers say is far shorter, and its tree takes many times its
/// bytes.
const MOST: usize = 256 * 1024;

/// Reads a body; one that is not JSON, is longer than any error, or says nothing, gives an empty `Told`.
pub(super) fn read(body: &str) -> Told {
    if body.len() > MOST {
        return Told::default();
    }
    let Ok(value) = serde_json::from_str::<Value>(body) else { return Told::default() };
    let value = unwrapped(&value);
    let outer = match value {
        Value::Object(outer) => outer,
        Value::String(text) => return Told { message: some_text(text), ..Told::default() },
        _ => return Told::default(),
    };
    let mut told = match outer.get("error").filter(|error| !error.is_null()) {
        Some(Value::Object(error)) => read_object(error),
        Some(Value::String(error)) => read_word(error, outer),
        Some(other) => Told { message: Some(other.to_string()), ..Told::default() },
        None => match outer.get("errors").and_then(|errors| errors.get(0)) {
            Some(Value::Object(error)) => read_object(error),
            Some(Value::String(error)) => Told { message: some_text(error), ..Told::default() },
            _ => read_object(outer),
        },
    };
    told.request_id = text_of(outer, "request_id").map(str::to_owned);
    told
}

/// Gemini wraps its error into an array.
fn unwrapped(value: &Value) -> &Value {
    match value {
        Value::Array(items) => items.first().unwrap_or(&Value::Null),
        value => value,
    }
}

/// Whether JSON that stands where nothing says what it is reports an error: it has to say so itself. [`read`] takes more
/// for one, where a status has said it already.
pub(crate) fn reports(value: &Value) -> bool {
    let Value::Object(outer) = unwrapped(value) else { return false };
    let says = |value: &Value| match value {
        Value::Object(error) => !error.is_empty(),
        Value::String(error) => !error.trim().is_empty(),
        _ => false,
    };
    let is_marked = ["type", "object"].iter().any(|name| text_of(outer, name) == Some("error"));
    outer.get("error").is_some_and(says)
        || outer.get("errors").and_then(|errors| errors.get(0)).is_some_and(says)
        || (is_marked && message_of(outer).is_some())
}

/// `{"error": "text"}`, and `{"error": "word", "message": "text"}`.
fn read_word(error: &str, outer: &Map<String, Value>) -> Told {
    match text_of(outer, "message").or_else(|| text_of(outer, "error_description")) {
        Some(message) => {
            Told { message: some_text(message), code: some_text(error), ..read_object(outer).without_message() }
        }
        None => Told { message: some_text(error), ..read_object(outer).without_message() },
    }
}

fn read_object(error: &Map<String, Value>) -> Told {
    let code = match error.get("code") {
        Some(Value::String(code)) => some_text(code),
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => None,
    };
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let mut told = Told { message: message_of(error), code, ..Told::default() };
    // `"type": "error"` marks the envelope and says nothing.
    told.other_words.extend(text_of(error, "type").filter(|word| *word != "error").map(str::to_owned));
    told.other_words.extend(text_of(error, "status").map(str::to_owned));
    for detail in details.filter_map(Value::as_object) {
        told.other_words.extend(text_of(detail, "reason").map(str::to_owned));
        told.retry_after =
            told.retry_after.or_else(|| wait::seconds(text_of(detail, "retryDelay")?.strip_suffix('s')?));
    }
    told
}

fn message_of(error: &Map<String, Value>) -> Option<String> {
    let message = ["message", "detail", "msg", "Message"].iter().find_map(|name| sentence(error.get(*name)?))?;
    // Routers say "Provider returned error" and put what that provider said beside it, often as JSON in a text.
    let raw = error.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(sentence);
    match raw.map(|raw| read(&raw).message.unwrap_or(raw)) {
        Some(raw) if !message.contains(&raw) => Some(format!("{message}: {raw}")),
        _ => Some(message),
    }
}

/// A text; or what a validator lists (`[{"loc": ["body", "model"], "msg": "field required"}]`) in one line.
fn sentence(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => some_text(text),
        Value::Array(items) => {
            let lines: Vec<String> = items.iter().filter_map(validation_line).collect();
            (!lines.is_empty()).then(|| lines.join("; "))
        }
        Value::Object(object) => message_of(object).or_else(|| Some(value.to_string())),
        _ => None,
    }
}

fn validation_line(item: &Value) -> Option<String> {
    let Value::Object(object) = item else { return sentence(item) };
    let message = message_of(object)?;
    let place: Vec<String> = object
        .get("loc")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned))
        .collect();
    Some(if place.is_empty() { message } else { format!("{}: {message}", place.join(".")) })
}

fn text_of<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

fn some_text(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

impl Told {
    fn without_message(self) -> Self {
        Self { message: None, ..self }
    }

    /// The words that say what happened, the most exact first.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.code.iter().chain(&self.other_words).map(String::as_str)
    }

    /// The code to report: the provider's own, or its type. A number that only repeats the status, or stands for it behind a
    /// 200, says less than a type.
    pub(super) fn code(&self, status: Option<u16>) -> Option<String> {
        let status = status.filter(|status| *status >= 300).or_else(|| self.status_in_code());
        let repeats_status = |code: &String| status.is_some_and(|status| code.parse() == Ok(status));
        self.code
            .as_ref()
            .filter(|code| !repeats_status(code))
            .or(self.other_words.first())
            .or(self.code.as_ref())
            .cloned()
    }

    /// The HTTP status that a code is, for errors that came behind a 200.
    pub(super) fn status_in_code(&self) -> Option<u16> {
        self.code.as_ref()?.parse().ok().filter(|status| (400..600).contains(status))
    }

    pub(super) fn speaks_of_context_length(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        words::CONTEXT_LENGTH.iter().any(|phrase| message.contains(phrase))
    }
}
