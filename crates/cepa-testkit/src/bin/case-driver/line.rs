//! The lines: what is asked, and what is answered.

use cepa_core::{Error, RawJson};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// One case as it arrives.
#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) provider: String,
    input: RawJson,
}

/// What was seen, as JSON.
pub(crate) type Observed = RawJson;

/// Why nothing was seen.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The library lacks this optional feature. (None is lacking now; the word stays because the protocol has it.)
    #[expect(dead_code, reason = "the library has every optional feature that a case asks for")]
    Skip(&'static str),
    /// The driver could not do what the input says.
    Crash(String),
}

impl From<serde_json::Error> for Fail {
    fn from(error: serde_json::Error) -> Self {
        Self::Crash(format!("the input or the observation: {error}"))
    }
}

impl From<String> for Fail {
    fn from(text: String) -> Self {
        Self::Crash(text)
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::Crash(error.to_string())
    }
}

impl Line {
    /// Reads a line.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("the line: {error}"))
    }

    /// The input in the form of its kind.
    pub(crate) fn input<T: DeserializeOwned>(&self) -> Result<T, Fail> {
        Ok(serde_json::from_str(self.input.as_str())?)
    }
}

/// Something seen, as JSON.
pub(crate) fn observed(value: &impl Serialize) -> Result<Observed, Fail> {
    Ok(RawJson::of(value)?)
}

/// An error as `{class, message}`.
#[derive(Serialize)]
pub(crate) struct SmallError {
    class: &'static str,
    message: String,
}

impl From<&Error> for SmallError {
    fn from(error: &Error) -> Self {
        Self { class: error.kind().as_str(), message: error.message().to_owned() }
    }
}

/// `{"error": {class, message}}`.
#[derive(Serialize)]
pub(crate) struct Refused {
    pub(crate) error: SmallError,
}

impl From<&Error> for Refused {
    fn from(error: &Error) -> Self {
        Self { error: error.into() }
    }
}

/// The answer as a line.
pub(crate) fn write(id: &str, answer: Result<Observed, Fail>) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<Observed>,
        #[serde(skip_serializing_if = "Option::is_none")]
        skip: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        crash: Option<String>,
    }
    let (observed, skip, crash) = match answer {
        Ok(observed) => (Some(observed), None, None),
        Err(Fail::Skip(feature)) => (None, Some(feature), None),
        Err(Fail::Crash(text)) => (None, None, Some(text)),
    };
    // JSON text never has a line break outside a string, and raw parts are taken from lines.
    serde_json::to_string(&Answer { id, observed, skip, crash }).unwrap_or_default().replace('\n', " ")
}
