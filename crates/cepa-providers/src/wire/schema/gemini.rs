//! A tool's schema as Gemini takes it in `parametersJsonSchema`.
//!
//! That member takes JSON Schema (<https://ai.google.dev/api/caching#FunctionDeclaration>), of which these keywords are known
//! (<https://ai.google.dev/gemini-api/docs/structured-output>): `type`, `format`, `title`, `description`, `enum` of texts and
//! numbers, `items`, `prefixItems`, `minItems`, `maxItems`, `minimum`, `maximum`, `anyOf`, `oneOf`, `properties`,
//! `additionalProperties`, `required`. The older `parameters` knows less and refuses the rest
//! (<https://github.com/decolua/9router/pull/3018>). So:
//!
//! * `$ref` is replaced by what it points to, because beside a reference nothing else may stand
//!   (<https://github.com/su-kaka/gcli2api/pull/374>); a schema that contains itself is cut where it begins for the third time.
//! * `const` becomes an `enum` of one, `oneOf` becomes `anyOf`, `allOf` becomes one schema, a list in `items` `prefixItems`.
//! * A list of types becomes `anyOf`, each type with the keywords that are its own
//!   (`properties: only allowed for OBJECT type`, <https://github.com/anomalyco/opencode/pull/43495>); a plain type that may be
//!   null stays a list.
//! * `required` names only members that there are (`property is not defined`, <https://github.com/vercel/ai/pull/11319>).
//! * Every other rule (`pattern`, `minLength`, other formats, other values in `enum`, …) is told in the description: the model
//!   reads it, and the loop checks the arguments against the whole schema.
//! * A tool without arguments has no schema at all (`should be non-empty for OBJECT type`,
//!   <https://github.com/pipecat-ai/pipecat-flows/issues/110>).
//!
//! The order of members is kept.

mod alternatives;

use cepa_core::{Error, ErrorKind, RawJson};
use serde_json::Value;

pub use super::Members;

/// How often a schema may contain itself.
const MAX_TIMES: usize = 2;
/// How deep schemas may lie in each other.
const MAX_DEPTH: usize = 48;
/// A schema with more parts than this is no help to a model.
const MAX_NODES: usize = 5_000;

const FORMATS: [&str; 8] = ["float", "double", "int32", "int64", "enum", "date-time", "date", "time"];
/// What tells nothing to a model, or was used up.
const SILENT: [&str; 13] = [
    "$schema",
    "$id",
    "$anchor",
    "$defs",
    "$ref",
    "$comment",
    "$vocabulary",
    "definitions",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "propertyOrdering",
];

/// The schema of a tool's arguments; `None` if it takes none.
///
/// # Errors
/// `invalid_tool` if the schema is no object, or larger than any model could use.
///
/// ```
/// use cepa_core::RawJson;
/// use cepa_providers::wire::schema::gemini::parameters;
///
/// let schema = RawJson::parse(r##"{"$schema":"x","type":"object","properties":{"to":{"$ref":"#/$defs/Mail"}},
///     "$defs":{"Mail":{"type":"string","format":"email"}}}"##)?;
/// assert_eq!(
///     parameters("send", &schema)?.as_deref(),
///     Some(r#"{"type":"object","properties":{"to":{"type":"string","description":"(format: \"email\")"}}}"#),
/// );
/// assert_eq!(parameters("now", &RawJson::parse(r#"{"type":"object","properties":{}}"#)?)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parameters(tool: &str, schema: &RawJson) -> Result<Option<String>, Error> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidTool, format!("the schema of tool `{tool}` {what}"));
    let root: Value = schema.read().map_err(|error| invalid(format!("is no JSON: {error}")))?;
    if !root.is_object() {
        return Err(invalid("is no JSON object".to_owned()));
    }
    let mut adapter = Adapter { root: schema.clone(), refs: Vec::new(), nodes: 0 };
    let mut adapted = adapter.node(schema, 0).map_err(invalid)?;
    let takes_nothing = !adapted.has("anyOf")
        && adapted.get("properties").is_none_or(is_empty)
        && adapted.get("additionalProperties").is_none_or(|more| more.as_str() == "false");
    if takes_nothing {
        return Ok(None);
    }
    if !adapted.has("type") {
        adapted.put_first("type", "\"object\"".to_owned());
    }
    Ok(Some(adapted.to_string()))
}

fn is_empty(properties: &RawJson) -> bool {
    Members::of(properties).is_none_or(|members| members.is_empty())
}

struct Adapter {
    root: RawJson,
    /// The references that are being replaced, from the outside in.
    refs: Vec<String>,
    nodes: usize,
}

impl Adapter {
    /// One schema; the error says what is wrong with it.
    fn node(&mut self, schema: &RawJson, depth: usize) -> Result<Members, String> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return Err("is too large for Gemini: make it flatter, or leave parts of it out".to_owned());
        }
        let Some(mut members) = Members::of(schema) else {
            // `true` is anything; `false` is nothing, which only words can say.
            let mut anything = Members::default();
            if schema.as_str() == "false" {
                anything.say("must not be given");
            }
            return Ok(anything);
        };
        let target = members.text("$ref").and_then(|path| Some((self.resolve(&path)?, path)));
        let Some((target, path)) = target else { return self.plain(members, depth) };
        if self.refs.iter().filter(|open| **open == path).count() >= MAX_TIMES {
            let mut cut = Members::default();
            let whole = Members::of(&target).unwrap_or_default();
            cut.extend(["type", "description"].into_iter().filter_map(|name| Some((name, whole.get(name)?.clone()))));
            cut.say("the same again");
            return Ok(cut);
        }
        members.remove("$ref");
        members.fill_from(Members::of(&target).unwrap_or_default());
        self.refs.push(path);
        // What the target points to in turn is looked at with it.
        let adapted = match RawJson::parse(&members.to_string()) {
            Ok(merged) => self.node(&merged, depth + 1),
            Err(error) => Err(format!("cannot be read: {error}")),
        };
        self.refs.pop();
        adapted
    }

    /// A schema without a reference.
    fn plain(&mut self, mut members: Members, depth: usize) -> Result<Members, String> {
        alternatives::merge_all_of(&mut members, |schema| self.unfolded(schema));
        alternatives::only_known_values(&mut members);
        alternatives::bounds(&mut members);
        let mut out = Members::default();
        let mut told = Vec::new();
        for (name, value) in members.iter() {
            match name {
                "enum" | "minItems" | "maxItems" | "minimum" | "maximum" => out.put(name, value.as_str().to_owned()),
                "title" | "description" | "type" if value.read::<String>().is_ok() => {
                    out.put(name, value.as_str().to_owned());
                }
                "type" if value.read::<Vec<String>>().is_ok() => out.put(name, value.as_str().to_owned()),
                "format" if value.read::<String>().is_ok_and(|format| FORMATS.contains(&&*format)) => {
                    out.put(name, value.as_str().to_owned());
                }
                "properties" => {
                    let mut inner = Members::default();
                    for (property, schema) in Members::of(value).unwrap_or_default().iter() {
                        inner.put(property, self.node(schema, depth + 1)?.to_string());
                    }
                    out.put(name, inner.to_string());
                }
                "items" if value.as_str().starts_with('[') => {
                    let list = self.list(value, depth)?;
                    out.put("prefixItems", list);
                }
                "prefixItems" => {
                    let list = self.list(value, depth)?;
                    out.put(name, list);
                }
                "items" => out.put(name, self.node(value, depth + 1)?.to_string()),
                "additionalProperties" if value.is_object() => {
                    out.put(name, self.node(value, depth + 1)?.to_string());
                }
                "additionalProperties" if matches!(value.as_str(), "true" | "false") => {
                    out.put(name, value.as_str().to_owned());
                }
                "anyOf" | "oneOf" => {
                    let list = self.list(value, depth)?;
                    // Both at once have no place: the second is told.
                    if out.has("anyOf") { told.push((name, value.clone())) } else { out.put("anyOf", list) }
                }
                "required" => {}
                name if SILENT.contains(&name) => {}
                name => told.push((name, value.clone())),
            }
        }
        alternatives::required(&members, &mut out);
        alternatives::one_type_each(&mut out);
        for (name, value) in told {
            out.say(&format!("{name}: {value}"));
        }
        Ok(out)
    }

    fn list(&mut self, schemas: &RawJson, depth: usize) -> Result<String, String> {
        let schemas: Vec<RawJson> = schemas.read().map_err(|_| "has alternatives that are no list".to_owned())?;
        let adapted: Vec<String> = schemas
            .iter()
            .map(|schema| Ok(self.node(schema, depth + 1)?.to_string()))
            .collect::<Result<_, String>>()?;
        Ok(format!("[{}]", adapted.join(",")))
    }

    /// The members of a schema, behind its reference if it is one.
    fn unfolded(&self, schema: &RawJson) -> Members {
        let mut members = Members::of(schema).unwrap_or_default();
        for _ in 0..MAX_TIMES {
            let Some(target) = members.text("$ref").and_then(|path| self.resolve(&path)) else { break };
            members.remove("$ref");
            members.fill_from(Members::of(&target).unwrap_or_default());
        }
        members
    }

    /// What a reference into this schema points to.
    fn resolve(&self, path: &str) -> Option<RawJson> {
        let mut found = self.root.clone();
        for step in path.strip_prefix('#')?.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            found = match found.as_str().starts_with('[') {
                true => found.read::<Vec<RawJson>>().ok()?.into_iter().nth(step.parse().ok()?)?,
                false => Members::of(&found)?.get(&step)?.clone(),
            };
        }
        Some(found)
    }
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
