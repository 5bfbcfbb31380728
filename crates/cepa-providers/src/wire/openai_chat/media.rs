//! Parts of a message's content as this wire writes them.

use base64::{Engine, engine::general_purpose::STANDARD};
use cepa_core::{Content, Error, ErrorKind, Media, Part, RawJson, Source};

use crate::wire::json::{self, Object};

/// Writes what a user said: a text as a string, anything else as a list of parts.
///
/// # Errors
/// `invalid_input` for a part that the wire cannot take.
pub(super) fn user_content(out: &mut Vec<u8>, content: &Content) -> Result<(), Error> {
    let parts = match content {
        Content::Text(text) => return json::write(out, text),
        Content::Parts(parts) => parts,
    };
    // Empty texts are refused inside a list.
    let mut sent = parts.iter().filter(|part| !matches!(part, Part::Reasoning(_)) && !is_empty_text(part));
    match (sent.next(), sent.next()) {
        (None, _) => json::write(out, ""),
        (Some(Part::Text(text)), None) => json::write(out, text),
        (Some(first), second) => {
            out.push(b'[');
            part(out, first)?;
            for each in second.into_iter().chain(sent) {
                out.push(b',');
                part(out, each)?;
            }
            out.push(b']');
            Ok(())
        }
    }
}

fn is_empty_text(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.is_empty())
}

/// Writes one part of a user's message.
///
/// # Errors
/// `invalid_input` for a part that the wire cannot take.
pub(super) fn part(out: &mut Vec<u8>, part: &Part) -> Result<(), Error> {
    match part {
        Part::Text(text) | Part::Reasoning(text) => text_part(out, text),
        Part::Image(media) => image(out, media),
        Part::Audio(media) => audio(out, media),
        Part::Document(media) => document(out, media),
        Part::Other(raw) => Err(refused(format!("a part of type {} is not known here: leave it out", other_type(raw)))),
    }
}

/// Whether a user's message can hold this part.
pub(super) fn is_sendable(part: &Part) -> bool {
    match part {
        Part::Text(_) => true,
        Part::Reasoning(_) | Part::Other(_) => false,
        Part::Image(media) => matches!(media.source, Source::Url(_)) || image_type(media).is_some(),
        Part::Audio(media) => matches!(media.source, Source::Bytes(_)) && audio_format(media).is_some(),
        Part::Document(media) => matches!(media.source, Source::Bytes(_)) && exact_type(media).is_some(),
    }
}

/// What a part is, in words for the model.
pub(in crate::wire) fn describe(part: &Part) -> String {
    let (kind, media) = match part {
        Part::Text(_) => return "text".to_owned(),
        Part::Reasoning(_) => return "reasoning".to_owned(),
        Part::Other(raw) => return format!("a part of type {}", other_type(raw)),
        Part::Image(media) => ("image", media),
        Part::Audio(media) => ("audio", media),
        Part::Document(media) => ("document", media),
    };
    match (&media.name, &media.media_type, &media.source) {
        (Some(name), _, _) => format!("{kind} `{name}`"),
        (None, _, Source::Url(url)) => format!("{kind} {url}"),
        (None, Some(media_type), Source::Bytes(_)) => format!("{kind} ({media_type})"),
        (None, None, Source::Bytes(_)) => kind.to_owned(),
    }
}

fn other_type(raw: &RawJson) -> String {
    let kind = raw.read::<serde_json::Value>().ok().and_then(|part| Some(part.get("type")?.as_str()?.to_owned()));
    format!("`{}`", kind.unwrap_or_default())
}

pub(super) fn text_part(out: &mut Vec<u8>, text: &str) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("type", "text")?;
    object.member("text", text)?;
    object.end();
    Ok(())
}

fn image(out: &mut Vec<u8>, media: &Media) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("type", "image_url")?;
    let mut inner = Object::start(object.key("image_url"));
    match &media.source {
        Source::Url(url) => inner.member("url", url)?,
        Source::Bytes(bytes) => {
            let media_type = image_type(media)
                .ok_or_else(|| refused("an image needs an exact media type beside its bytes, such as `image/png`"))?;
            data_url(inner.key("url"), media_type, bytes);
        }
    }
    inner.end();
    object.end();
    Ok(())
}

pub(in crate::wire) fn image_type(media: &Media) -> Option<&str> {
    exact_type(media).filter(|name| name.starts_with("image/"))
}

fn audio(out: &mut Vec<u8>, media: &Media) -> Result<(), Error> {
    let Source::Bytes(bytes) = &media.source else {
        return Err(refused("chat completions take a sound as bytes only: load it and pass its bytes"));
    };
    let format = audio_format(media)
        .ok_or_else(|| refused("chat completions take sounds as `audio/wav` or `audio/mpeg` only: convert it"))?;
    let mut object = Object::start(out);
    object.member("type", "input_audio")?;
    let mut inner = Object::start(object.key("input_audio"));
    quoted_base64(inner.key("data"), "", bytes);
    inner.member("format", format)?;
    inner.end();
    object.end();
    Ok(())
}

fn audio_format(media: &Media) -> Option<&'static str> {
    match exact_type(media)? {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

fn document(out: &mut Vec<u8>, media: &Media) -> Result<(), Error> {
    let Source::Bytes(bytes) = &media.source else {
        return Err(refused("chat completions take a document as bytes only: load it and pass its bytes"));
    };
    let media_type = exact_type(media)
        .ok_or_else(|| refused("a document needs an exact media type beside its bytes, such as `application/pdf`"))?;
    if let Some(text) = is_text(media_type).then(|| std::str::from_utf8(bytes).ok()).flatten() {
        let name = media.name.as_deref().unwrap_or("document");
        return text_part(out, &format!("{name}:\n\n{text}"));
    }
    let mut object = Object::start(out);
    object.member("type", "file")?;
    let mut inner = Object::start(object.key("file"));
    match &media.name {
        Some(name) => inner.member("filename", name)?,
        None => inner.member("filename", default_name(media_type))?,
    }
    data_url(inner.key("file_data"), media_type, bytes);
    inner.end();
    object.end();
    Ok(())
}

/// Servers tell the format by the name's ending, so there must be one.
pub(in crate::wire) fn default_name(media_type: &str) -> &'static str {
    match media_type {
        "application/pdf" => "document.pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "document.docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "document.xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "document.pptx",
        _ => "document",
    }
}

pub(in crate::wire) fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || matches!(media_type, "application/json" | "application/xml" | "application/yaml")
}

/// The media type without parameters, unless it is missing or a pattern such as `image/*`.
pub(in crate::wire) fn exact_type(media: &Media) -> Option<&str> {
    let name = media.media_type.as_deref()?.split(';').next()?.trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || "/+-._".contains(c);
    (name.contains('/') && name.chars().all(legal)).then_some(name)
}

pub(in crate::wire) fn data_url(out: &mut Vec<u8>, media_type: &str, bytes: &[u8]) {
    quoted_base64(out, &format!("data:{media_type};base64,"), bytes);
}

/// Base64 straight into the body: an image is large, and nothing in base64 needs escaping. (Nor is there in an
/// exact media type.)
fn quoted_base64(out: &mut Vec<u8>, prefix: &str, bytes: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, b'=');
    let written = out.get_mut(start..).and_then(|space| STANDARD.encode_slice(bytes, space).ok()).unwrap_or_default();
    out.truncate(start + written);
    out.push(b'"');
}

pub(in crate::wire) fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
