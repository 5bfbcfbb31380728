//! The parts that we write, in the API's words: <https://ai.google.dev/api/caching#Part>.

use bytes::Bytes;
use cepa_core::{Error, Extra, RawJson};

use super::media::Sendable;
use crate::wire::json::Object;

/// Parts as JSON, with commas between them.
#[derive(Default)]
pub(super) struct Parts(Vec<u8>);

/// What stands beside a part's own member: nothing.
pub(super) static NOTHING: Extra = Extra::new();

impl Parts {
    pub(super) fn text(&mut self, text: &str, extra: &Extra) -> Result<(), Error> {
        self.part(extra, |part| part.member("text", text))
    }

    pub(super) fn media(&mut self, media: &Sendable<'_>, extra: &Extra) -> Result<(), Error> {
        self.part(extra, |part| media.write(part))
    }

    pub(super) fn call(&mut self, id: Option<&str>, name: &str, args: &str, extra: &Extra) -> Result<(), Error> {
        self.part(extra, |part| {
            let mut call = Object::start(part.key("functionCall"));
            if let Some(id) = id {
                call.member("id", id)?;
            }
            call.member("name", name)?;
            call.raw("args", args);
            call.end();
            Ok(())
        })
    }

    /// Adds a part as the text that it is.
    pub(super) fn raw(&mut self, part: &RawJson) {
        self.comma();
        self.0.extend_from_slice(part.as_str().as_bytes());
    }

    /// Adds a part whose own member `fill` writes.
    pub(super) fn part(
        &mut self,
        extra: &Extra,
        fill: impl FnOnce(&mut Object<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.comma();
        let mut part = Object::start(&mut self.0);
        fill(&mut part)?;
        for (name, value) in extra {
            part.foreign(name, value.as_str())?;
        }
        part.end();
        Ok(())
    }

    fn comma(&mut self) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}

/// One text as a part.
pub(super) fn text(text: &str) -> Result<Bytes, Error> {
    let mut parts = Parts::default();
    parts.text(text, &NOTHING)?;
    Ok(parts.into_bytes())
}
