//! Images and documents as the blocks that the API takes; what it does not take is refused (W3).
//!
//! <https://platform.claude.com/docs/en/build-with-claude/vision>,
//! <https://platform.claude.com/docs/en/build-with-claude/pdf-support>

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use cepa_core::{Error, ErrorKind, Media, Part, Source};

use super::block::{self, Block};

const PDF: &str = "application/pdf";
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// What a user said. Blank texts and reasoning give no block.
///
/// # Errors
/// `invalid_input` for a part that the API does not take.
pub(super) fn user_blocks(parts: &[Part]) -> Result<Vec<Block<'_>>, Error> {
    parts.iter().map(block).filter_map(Result::transpose).collect()
}

/// What a tool returned. What the API does not take is named: it was the tool's choice, and must not end the conversation.
pub(super) fn result_blocks(parts: &[Part]) -> Vec<Block<'_>> {
    let or_named = |part| block(part).unwrap_or_else(|_| Some(Block::text(left_out(part))));
    parts.iter().filter_map(or_named).collect()
}

fn block(part: &Part) -> Result<Option<Block<'_>>, Error> {
    Ok(Some(match part {
        Part::Text(text) if text.trim().is_empty() => return Ok(None),
        Part::Text(text) => Block::text(text),
        Part::Image(media) => Block::Image { source: image(media)? },
        Part::Document(media) => {
            let title = media.name.as_deref().filter(|name| !name.trim().is_empty());
            Block::Document { source: document(media)?, title }
        }
        Part::Audio(_) => return Err(refused("Anthropic takes no sound: send a transcript of it as text")),
        Part::Other(_) => return Err(refused(format!("Anthropic does not take {}: leave it out", describe(part)))),
        Part::Reasoning(_) => return Ok(None),
    }))
}

/// What stands in the place of a part that cannot be sent.
pub(super) fn left_out(part: &Part) -> String {
    format!("[{}: left out, it cannot be sent to this model]", describe(part))
}

/// What a part is, in words for the model.
fn describe(part: &Part) -> String {
    let (kind, media) = match part {
        Part::Text(_) => return "text".to_owned(),
        Part::Reasoning(_) => return "reasoning".to_owned(),
        Part::Other(_) => return "a part of unknown type".to_owned(),
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

fn image(media: &Media) -> Result<block::Source<'_>, Error> {
    let (place, media_type) = located(media)?;
    if let Place::Url(url) = place {
        return Ok(block::Source::Url { url });
    }
    // The short name is common and not registered.
    let name = media_type.as_deref().map_or("", |name| if name == "image/jpg" { "image/jpeg" } else { name });
    let known = IMAGES.into_iter().find(|known| *known == name);
    let known =
        known.ok_or_else(|| refused(format!("Anthropic takes images of type {}, not `{name}`", IMAGES.join(", "))))?;
    Ok(block::Source::Base64 { media_type: known, data: place.base64() })
}

fn document(media: &Media) -> Result<block::Source<'_>, Error> {
    let (place, media_type) = located(media)?;
    match (place, media_type.as_deref()) {
        (Place::Url(url), None | Some(PDF)) => Ok(block::Source::Url { url }),
        (Place::Url(_), Some(other)) => {
            Err(refused(format!("Anthropic fetches only PDF documents, not `{other}`: send the bytes")))
        }
        (place, Some(PDF)) => Ok(block::Source::Base64 { media_type: PDF, data: place.base64() }),
        (place, Some(name)) if is_text(name) => plain_text(&place),
        (_, name) => {
            let name = name.unwrap_or_default();
            Err(refused(format!(
                "Anthropic takes documents that are PDF or text, not `{name}`: convert it, or send its text"
            )))
        }
    }
}

fn plain_text<'a>(place: &Place<'a>) -> Result<block::Source<'a>, Error> {
    let not_text = || refused("Anthropic takes text documents in UTF-8 only: convert it");
    let text: Cow<'a, str> = match place {
        Place::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|_| not_text())?.into(),
        Place::Base64(data) => {
            let bytes = STANDARD.decode(data).map_err(|_| not_text())?;
            String::from_utf8(bytes).map_err(|_| not_text())?.into()
        }
        Place::Url(url) => Cow::Borrowed(url),
    };
    // A blank one is refused as a blank text block is.
    let data = if text.trim().is_empty() { "(empty document)".into() } else { text };
    Ok(block::Source::Text { media_type: "text/plain", data })
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || matches!(media_type, "application/json" | "application/xml" | "application/yaml" | "application/toml")
}

enum Place<'a> {
    Bytes(&'a [u8]),
    Base64(&'a str),
    Url(&'a str),
}

impl<'a> Place<'a> {
    fn base64(&self) -> Cow<'a, str> {
        match self {
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
            Self::Base64(text) | Self::Url(text) => Cow::Borrowed(text),
        }
    }
}

/// Where the bytes are, and their media type. A `data:` URL is bytes: the API fetches only over HTTP.
fn located(media: &Media) -> Result<(Place<'_>, Option<String>), Error> {
    let given = media.media_type.as_deref().map(essence);
    match &media.source {
        Source::Bytes(bytes) if bytes.is_empty() => {
            Err(refused("Anthropic takes no image and no document without bytes"))
        }
        Source::Bytes(bytes) => Ok((Place::Bytes(bytes), given)),
        Source::Url(url) => match url.strip_prefix("data:") {
            Some(rest) => {
                let bad = || refused("Anthropic takes `data:` URLs only as `data:<media type>;base64,<data>`");
                let (head, data) = rest.split_once(',').ok_or_else(bad)?;
                let name = head.strip_suffix(";base64").ok_or_else(bad)?;
                if data.is_empty() || STANDARD.decode(data).is_err() {
                    return Err(bad());
                }
                Ok((Place::Base64(data), Some(essence(name)).filter(|name| !name.is_empty()).or(given)))
            }
            None if url.starts_with("https://") || url.starts_with("http://") => Ok((Place::Url(url), given)),
            None => Err(refused("Anthropic fetches only http and https URLs: send the bytes")),
        },
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// An error that says what this provider cannot take.
pub(super) fn refused(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
