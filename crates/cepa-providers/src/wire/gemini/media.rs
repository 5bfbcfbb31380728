//! Images, sounds and documents as the API takes them; what it does not take is refused (W3).
//!
//! <https://ai.google.dev/gemini-api/docs/image-understanding>, <https://ai.google.dev/gemini-api/docs/audio>,
//! <https://ai.google.dev/gemini-api/docs/document-processing>, <https://ai.google.dev/gemini-api/docs/video-understanding>

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use cepa_core::{Error, ErrorKind, Media, Part, RawJson, Source};

use crate::wire::json::Object;

const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
const SOUNDS: [&str; 6] = ["audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"];
const VIDEOS: [&str; 9] = [
    "video/mp4",
    "video/mpeg",
    "video/mov",
    "video/avi",
    "video/x-flv",
    "video/mpg",
    "video/webm",
    "video/wmv",
    "video/3gpp",
];
const PDF: &str = "application/pdf";
const PLAIN: &str = "text/plain";
/// What may stand inside a function's response. <https://ai.google.dev/gemini-api/docs/function-calling#multimodal>
const IN_RESPONSES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", PDF, PLAIN];

/// A medium that can be sent.
pub(super) enum Sendable<'a> {
    Inline {
        media_type: String,
        data: Cow<'a, str>,
    },
    /// The API fetches http and https URLs, and its own files and those in Google's cloud.
    /// <https://ai.google.dev/gemini-api/docs/file-input-methods>
    File {
        media_type: Option<String>,
        uri: &'a str,
    },
}

impl Sendable<'_> {
    /// Writes the part's member.
    pub(super) fn write(&self, part: &mut Object<'_>) -> Result<(), Error> {
        match self {
            Self::Inline { media_type, data } => {
                let mut blob = Object::start(part.key("inlineData"));
                blob.member("mimeType", media_type)?;
                blob.member("data", data)?;
                blob.end();
            }
            Self::File { media_type, uri } => {
                let mut file = Object::start(part.key("fileData"));
                if let Some(media_type) = media_type {
                    file.member("mimeType", media_type)?;
                }
                file.member("fileUri", uri)?;
                file.end();
            }
        }
        Ok(())
    }

    pub(super) fn fits_a_response(&self) -> bool {
        matches!(self, Self::Inline { media_type, .. } if IN_RESPONSES.contains(&&**media_type))
    }
}

/// The medium of a part; `None` if the part is none.
///
/// # Errors
/// `invalid_input` for what the API does not take.
pub(super) fn of(part: &Part) -> Result<Option<Sendable<'_>>, Error> {
    let (media, normal, takes): (_, fn(&str) -> Option<String>, _) = match part {
        Part::Text(_) | Part::Reasoning(_) => return Ok(None),
        Part::Other(_) => return Err(refused(format!("Gemini does not take {}: leave it out", describe(part)))),
        Part::Image(media) => (media, image, IMAGES.join(", ")),
        Part::Audio(media) => (media, sound, SOUNDS.join(", ")),
        Part::Document(media) => (media, document, "PDF, texts and videos".to_owned()),
    };
    let (place, given) = located(media)?;
    let wrong = |name: &str| refused(format!("Gemini takes {takes}, not `{name}`: convert it"));
    let media_type = match (&given, &place) {
        (Some(name), _) => Some(normal(name).ok_or_else(|| wrong(name))?),
        (None, Place::Url(url)) => guessed(url).and_then(normal),
        (None, Place::Bytes(_) | Place::Base64(_)) => {
            return Err(refused("Gemini needs the media type beside the bytes, such as `image/png`"));
        }
    };
    Ok(Some(match (place, media_type) {
        (Place::Url(uri), media_type) => Sendable::File { media_type, uri },
        (Place::Bytes(bytes), Some(media_type)) => Sendable::Inline { media_type, data: STANDARD.encode(bytes).into() },
        (Place::Base64(data), Some(media_type)) => Sendable::Inline { media_type, data: data.into() },
        (Place::Bytes(_) | Place::Base64(_), None) => return Ok(None),
    }))
}

/// The part that inline data of a reply is; `None` if its bytes cannot be read.
pub(super) fn received(media_type: &str, data: &str) -> Option<Part> {
    let bytes = STANDARD.decode(data).ok().filter(|bytes| !bytes.is_empty())?;
    let media = Media::bytes(media_type, bytes);
    Some(match media_type.split('/').next() {
        Some("image") => Part::Image(media),
        Some("audio") => Part::Audio(media),
        Some(_) | None => Part::Document(media),
    })
}

fn image(name: &str) -> Option<String> {
    // The short name is common and not registered.
    let name = if name == "image/jpg" { "image/jpeg" } else { name };
    IMAGES.contains(&name).then(|| name.to_owned())
}

fn sound(name: &str) -> Option<String> {
    let name = match name {
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        "audio/mpeg" => "audio/mp3",
        "audio/x-aiff" => "audio/aiff",
        "audio/x-flac" => "audio/flac",
        other => other,
    };
    SOUNDS.contains(&name).then(|| name.to_owned())
}

/// "Only PDFs are understood as such; the others are text": texts of any kind go as plain text.
fn document(name: &str) -> Option<String> {
    let is_text = name.starts_with("text/")
        || matches!(name, "application/json" | "application/xml" | "application/yaml" | "application/toml");
    match name {
        PDF => Some(PDF.to_owned()),
        "video/quicktime" => Some("video/mov".to_owned()),
        _ if is_text => Some(PLAIN.to_owned()),
        _ => VIDEOS.contains(&name).then(|| name.to_owned()),
    }
}

fn guessed(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit('/').next()?.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => PDF,
        "txt" | "md" | "csv" | "html" => PLAIN,
        "wav" => "audio/wav",
        "mp3" => "audio/mp3",
        "ogg" => "audio/ogg",
        "flac" => "audio/flac",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => return None,
    })
}

enum Place<'a> {
    Bytes(&'a [u8]),
    Base64(&'a str),
    Url(&'a str),
}

/// Where the bytes are, and their media type. A `data:` URL is bytes.
fn located(media: &Media) -> Result<(Place<'_>, Option<String>), Error> {
    let given = media.media_type.as_deref().map(essence);
    match &media.source {
        Source::Bytes(bytes) if bytes.is_empty() => Err(refused("Gemini takes no media without bytes")),
        Source::Bytes(bytes) => Ok((Place::Bytes(bytes), given)),
        Source::Url(url) => match url.strip_prefix("data:") {
            Some(rest) => {
                let bad = || refused("Gemini takes `data:` URLs only as `data:<media type>;base64,<data>`");
                let (head, data) = rest.split_once(',').ok_or_else(bad)?;
                let name = head.strip_suffix(";base64").ok_or_else(bad)?;
                if data.is_empty() || STANDARD.decode(data).is_err() {
                    return Err(bad());
                }
                Ok((Place::Base64(data), Some(essence(name)).filter(|name| !name.is_empty()).or(given)))
            }
            None if ["https://", "http://", "gs://"].iter().any(|scheme| url.starts_with(scheme)) => {
                Ok((Place::Url(url), given))
            }
            None => Err(refused("Gemini fetches only https, http and gs URLs: send the bytes")),
        },
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// What stands in the place of a part that cannot be sent.
pub(super) fn left_out(part: &Part) -> String {
    format!("[{}: left out, it cannot be sent to this model]", describe(part))
}

/// What a part is, in words for the model.
pub(super) fn describe(part: &Part) -> String {
    let (kind, media) = match part {
        Part::Text(_) => return "text".to_owned(),
        Part::Reasoning(_) => return "reasoning".to_owned(),
        Part::Other(raw) => return format!("a part of type `{}`", other_type(raw)),
        Part::Image(media) => ("image", media),
        Part::Audio(media) => ("audio", media),
        Part::Document(media) => ("document", media),
    };
    match (&media.name, &media.media_type) {
        (Some(name), _) => format!("{kind} `{name}`"),
        (None, Some(media_type)) => format!("{kind} ({media_type})"),
        (None, None) => kind.to_owned(),
    }
}

fn other_type(raw: &RawJson) -> String {
    let kind = raw.read::<serde_json::Value>().ok().and_then(|part| Some(part.get("type")?.as_str()?.to_owned()));
    kind.unwrap_or_default()
}

/// An error that says what this provider cannot take.
pub(super) fn refused(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
