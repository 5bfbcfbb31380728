//! Huge results: cut for the model in the middle, kept whole beside the message, read in ranges on demand.

use cepa_core::{Content, Error, Tool, ToolError, ToolFlags, ToolOutput, ToolSpec};
use serde::Deserialize;

use crate::{
    journal::Journal,
    texts::{Texts, fill},
};

/// The name of the tool that reads a result that was cut.
pub(crate) const READ_RESULT: &str = "read_result";

/// How many characters are read at once if the model does not say.
const DEFAULT_LENGTH: usize = 4_000;

/// The head and the tail of a text that is longer than `max` characters; `None` if it is not.
pub(crate) fn cut(content: &Content, max: usize, id: &str, texts: &Texts) -> Option<Content> {
    let text = content.text();
    let length = text.chars().count();
    if length <= max {
        return None;
    }
    let tail = max / 4;
    let head = max - tail;
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (text.get(..at(head))?, text.get(at(length - tail)..)?);
    let cut = (length - max).to_string();
    let note = fill(&texts.cut_result, &[("cut", &cut), ("id", id)]);
    let short = format!("{head}{note}{tail}");
    Some(match content {
        Content::Text(_) => Content::Text(short),
        Content::Parts(parts) => {
            let media = parts.iter().filter(|part| !matches!(part, cepa_core::Part::Text(_))).cloned();
            Content::Parts(std::iter::once(cepa_core::Part::Text(short)).chain(media).collect())
        }
    })
}

#[derive(Deserialize)]
struct Range {
    id: String,
    #[serde(default)]
    start: usize,
    length: Option<usize>,
}

/// The tool that reads a result that was cut.
pub(crate) fn read_result(journal: Journal) -> Result<Tool, Error> {
    let schema = r#"{"type":"object","properties":{"id":{"type":"string","description":"The id given where the result was cut."},"start":{"type":"integer","minimum":0,"description":"The first character to read, from 0."},"length":{"type":"integer","minimum":1,"description":"How many characters to read; 4000 if left out."}},"required":["id"]}"#;
    let spec = ToolSpec::new(
        READ_RESULT,
        "Reads a part of a tool result that was cut because it was too long.",
        Some(schema),
    )?;
    let flags = ToolFlags { read_only: true, ..ToolFlags::default() };
    Ok(Tool::new(spec.with_flags(flags), move |args, _| {
        let journal = journal.clone();
        async move {
            let Range { id, start, length } = args.read().map_err(ToolError::semantic)?;
            let full = journal.full_result(&id).await.map_err(|error| ToolError::semantic(error.to_string()))?;
            let Some(full) = full else { return Err(ToolError::semantic(format!("there is no cut result `{id}`"))) };
            let content: Content = full.read()?;
            let text: String = content.text().chars().skip(start).take(length.unwrap_or(DEFAULT_LENGTH)).collect();
            Ok(ToolOutput::new(text))
        }
    }))
}
