//! A request as pieces of JSON: settings first, then the contents, whose bytes never change once they are sent (W2).

use bytes::Bytes;
use cepa_core::{ChatRequest, Error, pairing};
use serde_json::Value;

use super::{
    GenerateContent, contents, params,
    part::{NOTHING, Parts},
    tools,
};
use crate::wire::json::{self, Pieces};

/// The body of a request.
pub(super) fn encode(dialect: &GenerateContent, request: &ChatRequest) -> Result<Vec<Bytes>, Error> {
    let options = &request.options;
    let history = pairing::heal(&request.messages);
    let conversation = contents::of(dialect, request, &history)?;
    let config = params::generation_config(options, dialect.generation)?;
    let choice = params::tool_config(request)?;
    // What the caller puts into the body himself replaces ours; settings of the generation are joined.
    let ours = |name: &str| !options.extra.contains_key(name);

    let mut body = Body { pieces: Pieces::new(), lead: '{' };
    if !config.is_empty() {
        json::write(body.open("generationConfig")?, &config)?;
    }
    for (name, value) in &options.extra {
        if name != "generationConfig" || !value.is_object() {
            json::write(body.open(name)?, value)?;
        }
    }
    if let Some(choice) = choice.filter(|_| ours("toolConfig")) {
        json::write(body.open("toolConfig")?, &choice)?;
    }
    if ours("tools") && !request.tools.is_empty() {
        body.open("tools")?;
        body.pieces.share(tools::list(&request.tools)?);
    }
    if ours("systemInstruction") && !conversation.system.is_empty() {
        let mut parts = Parts::default();
        conversation.system.iter().try_for_each(|text| parts.text(text, &NOTHING))?;
        let out = body.open("systemInstruction")?;
        out.extend_from_slice(b"{\"parts\":[");
        out.extend_from_slice(&parts.into_bytes());
        out.extend_from_slice(b"]}");
    }
    if ours("contents") {
        body.open("contents")?.push(b'[');
        body.pieces.share_all(&conversation.contents);
        body.pieces.tail().push(b']');
    }
    body.pieces.tail().push(b'}');
    Ok(body.pieces.finish())
}

/// Members of the body, whose values may be shared.
struct Body {
    pieces: Pieces,
    /// What stands before the next member.
    lead: char,
}

impl Body {
    /// Where to write a member's value.
    fn open(&mut self, name: &str) -> Result<&mut Vec<u8>, Error> {
        let out = self.pieces.tail();
        out.extend_from_slice(self.lead.to_string().as_bytes());
        self.lead = ',';
        json::write(out, &Value::from(name))?;
        out.push(b':');
        Ok(out)
    }
}
