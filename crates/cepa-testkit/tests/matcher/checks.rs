//! Checks on the JSON text at a place of the observation.

use super::{
    expect::{Difference, Differences, found},
    json::Json,
};

/// Judges `checks`: `never`, `once`, `contains`, `re`, `in_order`, `all_equal`.
pub(crate) fn judge(checks: &Json, view: &Json) -> Differences {
    checks.items().iter().flat_map(|check| judge_one(check, view)).collect()
}

fn judge_one(check: &Json, view: &Json) -> Differences {
    let places: Vec<&str> = match check.get("at") {
        Some(Json::Text(place)) => vec![place],
        Some(places) => places.items().iter().filter_map(Json::text).collect(),
        None => vec![],
    };
    let at = places.join("|");
    let values: Vec<&Json> = places.iter().filter_map(|place| get(view, place)).collect();
    if values.is_empty() {
        return vec![Difference::new(at, check, "(missing)")];
    }
    let text = values.iter().map(|value| value.to_string()).collect::<Vec<_>>().join("\n");
    let mut differences = Differences::new();
    for (word, value) in check.members() {
        // The text is JSON, and what is looked for is written as it stands there.
        let part = value.text().unwrap_or_default();
        let holds = match word.as_str() {
            "at" => true,
            "never" => !text.contains(part),
            "contains" => text.contains(part),
            "once" => text.matches(part).count() == 1,
            "re" => found(part, &text),
            "in_order" => in_order(value, &text),
            "all_equal" => match values.as_slice() {
                [Json::List(items)] => items.len() > 1 && items.windows(2).all(|pair| pair.first() == pair.last()),
                _ => false,
            },
            _ => false,
        };
        if !holds {
            differences.push(Difference::new(&at, format!("{word} {value}"), &text));
        }
    }
    differences
}

fn in_order(parts: &Json, text: &str) -> bool {
    let mut rest = text;
    parts.items().iter().filter_map(Json::text).all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

fn get<'a>(view: &'a Json, place: &str) -> Option<&'a Json> {
    place.split('.').try_fold(view, |value, step| match value {
        Json::List(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}
