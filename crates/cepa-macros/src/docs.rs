//! The text of doc comments.

use syn::{Attribute, Lit, Meta};

use crate::settings::literal;

/// The text of all doc comments, without the signs of the comment; `None` if there is none.
pub(crate) fn text(attributes: &[Attribute]) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for attribute in attributes.iter().filter(|attribute| is_doc(attribute)) {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Some(Lit::Str(text)) = literal(&pair.value) else { continue };
        let text = text.value();
        if text.contains('\n') {
            lines.extend(text.lines().map(block_line));
        } else {
            lines.push(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned());
        }
    }
    let text = lines.join("\n").trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// A line of `/** … */`, with or without a star before it.
fn block_line(line: &str) -> String {
    let line = line.trim();
    let line = line.strip_prefix('*').unwrap_or(line);
    line.strip_prefix(' ').unwrap_or(line).to_owned()
}
