//! What may stand in a part of a content.

use serde_json::{Map, Value};

use super::{
    super::{
        Report,
        shape::{BOOL, FULL_TEXT, Kind, Member, OBJECT, TEXT, is_base64, list, may, need, text, text_of},
    },
    Model, RULES, rules,
};

/// Bytes are base64 in JSON, of the common or of the URL's alphabet.
const BYTES: Kind =
    Kind::new("base64", |v| v.as_str().is_some_and(|text| is_base64(&text.replace('-', "+").replace('_', "/"))));

/// A part "must only contain one of the accepted types in `data`".
const DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
const PART: &[Member] = &[
    may("text", TEXT),
    may("inlineData", OBJECT),
    may("fileData", OBJECT),
    may("functionCall", OBJECT),
    may("functionResponse", OBJECT),
    may("executableCode", OBJECT),
    may("codeExecutionResult", OBJECT),
    may("toolCall", OBJECT),
    may("toolResponse", OBJECT),
    may("thought", BOOL),
    may("thoughtSignature", BYTES).by(rules::BYTES),
    may("partMetadata", OBJECT),
    may("mediaResolution", OBJECT),
    may("videoMetadata", OBJECT),
];
const BLOB: &[Member] = &[need("mimeType", FULL_TEXT), need("data", BYTES).by(rules::BYTES), may("displayName", TEXT)];
const FILE: &[Member] = &[need("fileUri", FULL_TEXT), may("mimeType", FULL_TEXT), may("displayName", TEXT)];
const CALL: &[Member] = &[may("id", FULL_TEXT), need("name", FULL_TEXT), may("args", OBJECT).by(rules::ARGS)];
const RESPONSE: &[Member] = &[
    may("id", FULL_TEXT),
    need("name", FULL_TEXT),
    need("response", OBJECT).by(rules::ARGS),
    may("parts", super::LIST),
    may("willContinue", BOOL),
    may("scheduling", TEXT),
];
const RESPONSE_PART: &[Member] = &[need("inlineData", OBJECT)];

pub(super) fn check(report: &mut Report, part: &Value, at: &str, model: Model) -> Option<()> {
    let part = RULES.check(report, part, at, PART, &[])?;
    let data: Vec<&str> = DATA.into_iter().filter(|name| part.contains_key(*name)).collect();
    if data.len() != 1 {
        // "contents.parts must not be empty", "required oneof field 'data' must have one initialized field"
        report.add(rules::ONE_DATUM, at, format!("it holds {data:?} where one is due"));
    }
    // "Unable to submit request because it must have a text parameter"; a signature may come and go with an empty text.
    if part.get("text").is_some_and(|text| text == "") && !part.contains_key("thoughtSignature") {
        report.add(rules::EMPTY_TEXT, at, "the text is empty");
    }
    if let Some(blob) = part.get("inlineData") {
        inline(report, blob, &format!("{at}.inlineData"));
    }
    if let Some(file) = part.get("fileData") {
        file_data(report, file, &format!("{at}.fileData"));
    }
    if let Some(call) = part.get("functionCall") {
        let at = format!("{at}.functionCall");
        let call = RULES.check(report, call, &at, CALL, &[])?;
        name(report, call, &at);
    }
    if let Some(response) = part.get("functionResponse") {
        let at = format!("{at}.functionResponse");
        let response = RULES.check(report, response, &at, RESPONSE, &[])?;
        name(report, response, &at);
        for (place, inner) in list(response, "parts").iter().enumerate() {
            let at = format!("{at}.parts[{place}]");
            // "Multimodal function responses: this feature is available for Gemini 3 series models."
            if model == Model::Before3 {
                report.add(rules::RESPONSE_MEDIA_MODEL, &at, "this model takes no media in a response");
            }
            let inner = RULES.check(report, inner, &at, RESPONSE_PART, &[])?;
            let blob = inner.get("inlineData")?;
            inline(report, blob, &format!("{at}.inlineData"));
            let kind = text_of(blob, "mimeType");
            if !matches!(kind, "image/png" | "image/jpeg" | "image/webp" | "application/pdf" | "text/plain") {
                report.add(rules::RESPONSE_MEDIA, &at, format!("the type `{kind}`"));
            }
        }
    }
    Some(())
}

/// Of images, sounds, videos, PDF and plain text.
fn inline(report: &mut Report, blob: &Value, at: &str) {
    let Some(blob) = RULES.check(report, blob, at, BLOB, &[]) else { return };
    media_type(report, text(blob, "mimeType"), at);
}

fn file_data(report: &mut Report, file: &Value, at: &str) {
    let Some(file) = RULES.check(report, file, at, FILE, &[]) else { return };
    if let Some(kind) = file.get("mimeType").and_then(Value::as_str) {
        media_type(report, kind, at);
    }
    let uri = text(file, "fileUri");
    if !["https://", "http://", "gs://"].iter().any(|scheme| uri.starts_with(scheme)) {
        report.add(rules::ADDRESS, at, "the address is none that is fetched");
    }
}

fn media_type(report: &mut Report, kind: &str, at: &str) {
    let known = match kind.split_once('/') {
        Some(("image", name)) => matches!(name, "png" | "jpeg" | "webp" | "heic" | "heif"),
        Some(("audio", name)) => matches!(name, "wav" | "mp3" | "aiff" | "aac" | "ogg" | "flac"),
        Some(("video", name)) => {
            matches!(name, "mp4" | "mpeg" | "mov" | "avi" | "x-flv" | "mpg" | "webm" | "wmv" | "3gpp")
        }
        Some(("text", name)) => name == "plain",
        Some(("application", name)) => name == "pdf",
        Some(_) | None => false,
    };
    if !known {
        report.add(rules::MEDIA, at, format!("the type `{kind}`"));
    }
}

fn name(report: &mut Report, object: &Map<String, Value>, at: &str) {
    super::tools::name(report, text(object, "name"), &format!("{at}.name"));
}
