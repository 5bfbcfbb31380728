//! What cases write for people, as the protocol has it: streams as lists of events.

use super::json::Json;

/// The case with the text of each stream (`sse`) in the place of its list of events.
pub(crate) fn spelled_out(case: &Json) -> Json {
    let named = case.get("provider").and_then(Json::text) == Some("openai-responses");
    match case.get("input") {
        Some(input) => case.clone().with("input", streams(input, named)),
        None => case.clone(),
    }
}

fn streams(value: &Json, named: bool) -> Json {
    match value {
        Json::List(items) => Json::List(items.iter().map(|item| streams(item, named)).collect()),
        Json::Object(members) => Json::Object(
            members
                .iter()
                .map(|(name, inner)| match (name.as_str(), inner) {
                    ("events", Json::List(events)) => {
                        let text = events.iter().map(|event| self::event(event, named)).collect();
                        ("sse".to_owned(), Json::Text(text))
                    }
                    _ => (name.clone(), streams(inner, named)),
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

/// An event as its server writes it: OpenAI names it in a line of its own, Google ends lines in two bytes. A text stands as it is.
fn event(event: &Json, named: bool) -> String {
    match (event.text(), event.get("type").and_then(Json::text)) {
        (Some(text), _) => text.to_owned(),
        (None, Some(kind)) if named => format!("event: {kind}\ndata: {event}\n\n"),
        (None, _) if named => format!("data: {event}\n\n"),
        (None, _) => format!("data: {event}\r\n\r\n"),
    }
}
