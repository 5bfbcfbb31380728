//! Tools as this wire describes them: flat, and each with a word on whether it is strict.

use bytes::Bytes;
use cepa_core::{Error, Tool, ToolSet, WireKey};

use super::quirks::StrictTools;
use crate::wire::{
    json::Object,
    names::{ToolNames, wire_name},
    openai_chat::tools::{NO_PARAMETERS, parameters},
    schema::openai_strict,
};

/// The list of tools, encoded once per set.
///
/// # Errors
/// `invalid_tool` if two tools have one name on the wire, or the schema of one describes no object.
pub(super) fn list(tools: &ToolSet, strict: StrictTools) -> Result<Bytes, Error> {
    let key = WireKey::new(format!("openai_responses/tools/{strict:?}"));
    if let Some(bytes) = tools.encoded().get(&key) {
        return Ok(bytes);
    }
    ToolNames::of(tools)?;
    let mut out = vec![b'['];
    for (place, tool) in tools.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        one(&mut out, tool, strict)?;
    }
    out.push(b']');
    let bytes = Bytes::from(out);
    tools.encoded().set(&key, bytes.clone());
    Ok(bytes)
}

fn one(out: &mut Vec<u8>, tool: &Tool, strict: StrictTools) -> Result<(), Error> {
    let spec = tool.spec();
    let mut parameters = match &spec.schema {
        Some(schema) => parameters(&spec.name, schema)?,
        None => NO_PARAMETERS.to_owned(),
    };
    let strict = match strict {
        StrictTools::Never => false,
        StrictTools::Fitting => openai_strict::keeps_the_rules(&parameters),
        StrictTools::Narrowed => match openai_strict::narrowed(&parameters) {
            Some(narrowed) => {
                parameters = narrowed;
                true
            }
            None => false,
        },
    };
    let mut object = Object::start(out);
    object.member("type", "function")?;
    object.member("name", &*wire_name(&spec.name))?;
    if !spec.description.is_empty() {
        object.member("description", &spec.description)?;
    }
    object.raw("parameters", &parameters);
    // Left out it means true here, and a schema that breaks the rules is refused
    // (<https://platform.openai.com/docs/guides/migrate-to-responses>).
    object.member("strict", &strict)?;
    object.end();
    Ok(())
}
