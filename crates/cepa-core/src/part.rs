//! The parts of a message's content: text, media and reasoning.

use bytes::Bytes;

use crate::RawJson;

/// Where a medium's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The bytes themselves; base64 in JSON.
    Bytes(Bytes),
    /// A URL that the provider fetches.
    Url(String),
}

/// An image, a sound or a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The bytes or the URL.
    pub source: Source,
    /// The IANA media type, such as `image/png`; required beside bytes.
    pub media_type: Option<String>,
    /// A file name, where one is known.
    pub name: Option<String>,
}

impl Media {
    /// A medium from its bytes.
    pub fn bytes(media_type: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { source: Source::Bytes(bytes.into()), media_type: Some(media_type.into()), name: None }
    }

    /// A medium behind a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self { source: Source::Url(url.into()), media_type: None, name: None }
    }

    /// Gives the medium a file name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// One part of a message's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A document such as a PDF.
    Document(Media),
    /// What the model thought: shown to people, never part of the text.
    Reasoning(String),
    /// A part of a type that this version does not know: kept as it is, sent to nobody.
    Other(RawJson),
}

/// The content of a message: a text, or parts in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Parts.
    Parts(Vec<Part>),
}

impl Content {
    /// The text of all text parts, one after another.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Parts(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::Reasoning(_) | Part::Other(_) => None,
                })
                .collect::<String>()
                .into(),
        }
    }

    /// The reasoning parts' text, one after another.
    pub fn reasoning(&self) -> String {
        match self {
            Self::Text(_) => String::new(),
            Self::Parts(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Reasoning(text) => Some(text.as_str()),
                    Part::Text(_) | Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::Other(_) => None,
                })
                .collect(),
        }
    }

    /// Whether nothing in it could be shown or sent: no media, and only blank text.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Parts(parts) => parts.iter().all(|part| match part {
                Part::Text(text) => text.trim().is_empty(),
                Part::Reasoning(_) | Part::Other(_) => true,
                Part::Image(_) | Part::Audio(_) | Part::Document(_) => false,
            }),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self::Parts(parts)
    }
}
