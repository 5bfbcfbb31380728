//! The tools of a request: encoded once per set.

use bytes::Bytes;
use cepa_core::{Error, ErrorKind, RawJson, ToolSet, ToolSpec, WireKey};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use crate::wire::{
    json::{Object, write},
    names::{ToolNames, wire_name},
};

/// The tools as JSON with commas between them; empty if there are none.
pub(super) fn encode(tools: &ToolSet) -> Result<Bytes, Error> {
    // The tools of a set are the same for each model and provider of this wire.
    let key = WireKey::new("anthropic tools");
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
    schema(object.key("input_schema"), spec)?;
    object.end();
    Ok(())
}

#[derive(Deserialize)]
struct Top {
    #[serde(rename = "type")]
    kind: Option<Value>,
    properties: Option<IgnoredAny>,
    #[serde(rename = "oneOf")]
    one_of: Option<IgnoredAny>,
    #[serde(rename = "anyOf")]
    any_of: Option<IgnoredAny>,
    #[serde(rename = "allOf")]
    all_of: Option<IgnoredAny>,
}

/// The schema with its own bytes; what the API demands of every schema and is missing is put in front.
fn schema(out: &mut Vec<u8>, spec: &ToolSpec) -> Result<(), Error> {
    let empty = RawJson::empty_object();
    let raw = spec.schema.as_ref().unwrap_or(&empty);
    let refused = |what: String| {
        Error::new(
            ErrorKind::InvalidTool,
            format!("Anthropic does not take the schema of tool `{}`: {what}", spec.name),
        )
    };
    let top: Top = raw.read().map_err(|error| refused(error.to_string()))?;
    // "input_schema does not support oneOf, allOf, or anyOf at the top level"
    if top.one_of.is_some() || top.any_of.is_some() || top.all_of.is_some() {
        let what = "it has oneOf, anyOf or allOf at the top; put the alternatives into a property".to_owned();
        return Err(refused(what));
    }
    match top.kind {
        Some(kind) if kind != "object" => return Err(refused(format!("its type is {kind}; it must be \"object\""))),
        Some(_) if top.properties.is_some() => {
            write(out, raw)?;
        }
        kind => {
            let mut object = Object::start(out);
            if kind.is_none() {
                object.member("type", "object")?;
            }
            if top.properties.is_none() {
                object.raw("properties", "{}");
            }
            for (name, value) in raw.read::<cepa_core::Extra>().map_err(|error| refused(error.to_string()))? {
                object.foreign(&name, value.as_str())?;
            }
            object.end();
        }
    }
    Ok(())
}
