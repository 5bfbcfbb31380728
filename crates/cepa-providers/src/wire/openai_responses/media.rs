//! Parts of a message's content as this wire writes them.

use cepa_core::{Error, Media, Part, Source};

use crate::wire::{
    json::Object,
    openai_chat::media::{data_url, default_name, describe, exact_type, image_type, is_text, refused},
};

/// Writes one part of a user's message or of a tool's result.
///
/// # Errors
/// `invalid_input` for a part that the wire cannot take.
pub(super) fn part(out: &mut Vec<u8>, part: &Part) -> Result<(), Error> {
    match part {
        Part::Text(text) | Part::Reasoning(text) => text_part(out, text),
        Part::Image(media) => image(out, media),
        Part::Document(media) => document(out, media),
        Part::Audio(_) | Part::Other(_) => {
            let what = describe(part);
            Err(refused(format!("the Responses API takes texts, images and documents only, not {what}: convert it")))
        }
    }
}

/// Whether the wire takes this part.
pub(super) fn is_sendable(part: &Part) -> bool {
    match part {
        Part::Text(_) => true,
        Part::Reasoning(_) | Part::Audio(_) | Part::Other(_) => false,
        Part::Image(media) => matches!(media.source, Source::Url(_)) || image_type(media).is_some(),
        Part::Document(media) => matches!(media.source, Source::Url(_)) || exact_type(media).is_some(),
    }
}

pub(super) fn text_part(out: &mut Vec<u8>, text: &str) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("type", "input_text")?;
    object.member("text", text)?;
    object.end();
    Ok(())
}

fn image(out: &mut Vec<u8>, media: &Media) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("type", "input_image")?;
    object.member("detail", "auto")?;
    match &media.source {
        Source::Url(url) => object.member("image_url", url)?,
        Source::Bytes(bytes) => {
            let media_type = image_type(media)
                .ok_or_else(|| refused("an image needs an exact media type beside its bytes, such as `image/png`"))?;
            data_url(object.key("image_url"), media_type, bytes);
        }
    }
    object.end();
    Ok(())
}

fn document(out: &mut Vec<u8>, media: &Media) -> Result<(), Error> {
    let bytes = match &media.source {
        Source::Bytes(bytes) => bytes,
        Source::Url(url) => {
            let mut object = Object::start(out);
            object.member("type", "input_file")?;
            object.member("file_url", url)?;
            object.end();
            return Ok(());
        }
    };
    let media_type = exact_type(media)
        .ok_or_else(|| refused("a document needs an exact media type beside its bytes, such as `application/pdf`"))?;
    if let Some(text) = is_text(media_type).then(|| std::str::from_utf8(bytes).ok()).flatten() {
        let name = media.name.as_deref().unwrap_or("document");
        return text_part(out, &format!("{name}:\n\n{text}"));
    }
    let mut object = Object::start(out);
    object.member("type", "input_file")?;
    object.member("filename", media.name.as_deref().unwrap_or_else(|| default_name(media_type)))?;
    data_url(object.key("file_data"), media_type, bytes);
    object.end();
    Ok(())
}
