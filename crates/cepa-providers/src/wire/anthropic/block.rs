//! The blocks that we write: one enum with the API's members in the API's words.

use std::borrow::Cow;

use bytes::Bytes;
use cepa_core::{Error, Extra, RawJson};
use serde::Serialize;

use crate::wire::json;

/// A content block of a request.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<&'a RawJson>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a RawJson,
        /// What the API put beside a call (`caller`) and wants back.
        #[serde(flatten)]
        extra: &'a Extra,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Results::is_empty")]
        content: Results<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The content of a tool result.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Results<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

impl Results<'_> {
    /// Whether it is left out: "content" is optional, and an empty text block is refused.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// Where the bytes of an image or a document are.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'static str, data: Cow<'a, str> },
    Url { url: &'a str },
    Text { media_type: &'static str, data: Cow<'a, str> },
}

impl<'a> Block<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), citations: None }
    }
}

/// Blocks as JSON, with commas between them.
#[derive(Default)]
pub(super) struct Blocks(Vec<u8>);

impl Blocks {
    pub(super) fn push(&mut self, block: &Block<'_>) -> Result<(), Error> {
        self.comma();
        json::write(&mut self.0, block)
    }

    /// Adds a block as the text that it is.
    pub(super) fn push_raw(&mut self, block: &RawJson) {
        self.comma();
        self.0.extend_from_slice(block.as_str().as_bytes());
    }

    fn comma(&mut self) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}

/// One block as JSON.
pub(super) fn bytes(block: &Block<'_>) -> Result<Bytes, Error> {
    let mut blocks = Blocks::default();
    blocks.push(block)?;
    Ok(blocks.into_bytes())
}
