//! The tools of a request: encoded once per set.

use std::borrow::Cow;

use bytes::Bytes;
use cepa_core::{Error, ErrorKind, Extra, RawJson, ToolSet, ToolSpec, WireKey};

use crate::wire::{
    json::Object,
    names::{ToolNames, wire_name},
};

const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// The tools as JSON with commas between them; empty if there are none.
pub(super) fn encode(tools: &ToolSet) -> Result<Bytes, Error> {
    // The tools of a set are the same for each model and provider of this wire.
    let key = WireKey::new("anthropic/tools");
    if let Some(bytes) = tools.encoded().get(&key) {
        return Ok(bytes);
    }
    ToolNames::of(tools)?;
    let mut out = Vec::new();
    for tool in tools {
        if !out.is_empty() {
            out.push(b',');
        }
        encode_one(&mut out, tool.spec())?;
    }
    let bytes = Bytes::from(out);
    tools.encoded().set(&key, bytes.clone());
    Ok(bytes)
}

fn encode_one(out: &mut Vec<u8>, spec: &ToolSpec) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("name", &wire_name(&spec.name))?;
    if !spec.description.trim().is_empty() {
        object.member("description", &spec.description)?;
    }
    object.raw("input_schema", &schema(spec)?);
    object.end();
    Ok(())
}

/// The schema as it is, with the `type` that the API wants in every one. Its own text is kept: an order of members that
/// changes would cost the prompt cache.
fn schema(spec: &ToolSpec) -> Result<Cow<'_, str>, Error> {
    let refused = |what: &str| {
        let message = format!("Anthropic does not take the schema of tool `{}`: {what}", spec.name);
        Error::new(ErrorKind::InvalidTool, message)
    };
    let Some(schema) = &spec.schema else { return Ok(NO_PARAMETERS.into()) };
    let members: Extra = schema.read().map_err(|error| refused(&format!("it is no JSON object ({error})")))?;
    // "input_schema does not support oneOf, allOf, or anyOf at the top level"
    if ["oneOf", "anyOf", "allOf"].iter().any(|name| members.contains_key(*name)) {
        return Err(refused("it has oneOf, anyOf or allOf at the top; put the alternatives into a property"));
    }
    match members.get("type").map(RawJson::as_str) {
        Some(r#""object""#) => Ok(schema.as_str().into()),
        Some(_) => Err(refused("its type is not `object`; arguments are always a JSON object")),
        None if members.is_empty() => Ok(NO_PARAMETERS.into()),
        None => {
            let text = schema.as_str();
            Ok(format!(r#"{{"type":"object",{}"#, text.strip_prefix('{').unwrap_or(text)).into())
        }
    }
}
