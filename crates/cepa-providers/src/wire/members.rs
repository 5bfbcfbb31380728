//! The members of a request's body, one after another; what the caller passes through takes the place of ours.

use cepa_core::{ChatOptions, Error};

use super::json::{self, Object, Pieces};

/// Members of the body in their order, each with a comma in front.
pub(super) struct Members<'a> {
    pub(super) pieces: &'a mut Pieces,
    pub(super) options: &'a ChatOptions,
}

impl Members<'_> {
    /// Where to write a member's value; `None` if the caller sets it.
    pub(super) fn open(&mut self, name: &'static str) -> Option<&mut Vec<u8>> {
        if self.options.extra.contains_key(name) {
            return None;
        }
        let out = self.pieces.tail();
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        Some(out)
    }

    /// A member with a value.
    pub(super) fn value<T: serde::Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.open(name).map_or(Ok(()), |out| json::write(out, value))
    }

    /// A member that is an object.
    pub(super) fn object(
        &mut self,
        name: &'static str,
        fill: impl FnOnce(&mut Object<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(out) = self.open(name) else { return Ok(()) };
        let mut object = Object::start(out);
        fill(&mut object)?;
        object.end();
        Ok(())
    }

    /// What the caller passes through, but for these members, which are written already.
    pub(super) fn extra(&mut self, written: &[&str]) -> Result<(), Error> {
        for (name, value) in self.options.extra.iter().filter(|(name, _)| !written.contains(&&***name)) {
            let out = self.pieces.tail();
            out.push(b',');
            json::write(out, name)?;
            out.push(b':');
            json::write(out, value)?;
        }
        Ok(())
    }
}
