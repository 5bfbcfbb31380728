//! Tools as this wire describes them.

use bytes::Bytes;
use cepa_core::{Error, ToolSet, WireKey};

use super::names;
use crate::wire::{json::Object, names::ToolNames, schema};

/// The list of tools, encoded once per set.
///
/// # Errors
/// `invalid_tool` if two tools have one name on the wire, or a schema cannot be sent.
pub(super) fn list(tools: &ToolSet) -> Result<Bytes, Error> {
    let key = WireKey::new("gemini/tools");
    if let Some(bytes) = tools.encoded().get(&key) {
        return Ok(bytes);
    }
    ToolNames::of(tools)?;
    let mut out = br#"[{"functionDeclarations":["#.to_vec();
    for (place, tool) in tools.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let spec = tool.spec();
        let mut function = Object::start(&mut out);
        function.member("name", &*names::declared(&spec.name)?)?;
        if !spec.description.is_empty() {
            function.member("description", &spec.description)?;
        }
        let schema = spec.schema.as_ref().map(|schema| schema::gemini::parameters(&spec.name, schema)).transpose()?;
        if let Some(schema) = schema.flatten() {
            function.raw("parametersJsonSchema", &schema);
        }
        function.end();
    }
    out.extend_from_slice(b"]}]");
    let bytes = Bytes::from(out);
    tools.encoded().set(&key, bytes.clone());
    Ok(bytes)
}
