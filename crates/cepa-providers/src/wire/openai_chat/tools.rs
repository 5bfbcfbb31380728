//! Tools as this wire describes them.

use bytes::Bytes;
use cepa_core::{Error, ErrorKind, Extra, RawJson, Tool, ToolSet, WireKey};

use crate::wire::{
    json::Object,
    names::{ToolNames, wire_name},
};

pub(in crate::wire) const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// The list of tools, encoded once per set.
///
/// # Errors
/// `invalid_tool` if two tools have one name on the wire, or the schema of one describes no object.
pub(super) fn list(tools: &ToolSet) -> Result<Bytes, Error> {
    let key = WireKey::new("openai_chat/tools");
    if let Some(bytes) = tools.encoded().get(&key) {
        return Ok(bytes);
    }
    ToolNames::of(tools)?;
    let mut out = vec![b'['];
    for (place, tool) in tools.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        one(&mut out, tool)?;
    }
    out.push(b']');
    let bytes = Bytes::from(out);
    tools.encoded().set(&key, bytes.clone());
    Ok(bytes)
}

fn one(out: &mut Vec<u8>, tool: &Tool) -> Result<(), Error> {
    let spec = tool.spec();
    let mut object = Object::start(out);
    object.member("type", "function")?;
    let mut function = Object::start(object.key("function"));
    function.member("name", &*wire_name(&spec.name))?;
    if !spec.description.is_empty() {
        function.member("description", &spec.description)?;
    }
    match &spec.schema {
        Some(schema) => function.raw("parameters", &parameters(&spec.name, schema)?),
        None => function.raw("parameters", NO_PARAMETERS),
    }
    function.end();
    object.end();
    Ok(())
}

/// The schema as it is, with the `type` and the `properties` that OpenAI wants in every schema of arguments. Its own text
/// is kept: an order of members that changes would cost the prompt cache.
pub(in crate::wire) fn parameters(tool: &str, schema: &RawJson) -> Result<String, Error> {
    let invalid = |what: &str| Error::new(ErrorKind::InvalidTool, format!("the schema of tool `{tool}` {what}"));
    let members: Extra = schema.read().map_err(|error| invalid(&format!("is no JSON object: {error}")))?;
    let mut added = String::new();
    // A type that there is, is `object`: the set of tools takes no other.
    if !members.contains_key("type") {
        added.push_str(r#""type":"object","#);
    }
    match members.get("properties") {
        Some(properties) if properties.is_object() => {}
        Some(_) => return Err(invalid("has `properties` that are no object")),
        None => added.push_str(r#""properties":{},"#),
    }
    if members.is_empty() {
        return Ok(NO_PARAMETERS.to_owned());
    }
    let text = schema.as_str();
    Ok(format!("{{{added}{}", text.strip_prefix('{').unwrap_or(text)))
}
