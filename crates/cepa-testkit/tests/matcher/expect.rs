//! What is expected against what was seen: subsets, wild cards, alternatives.

use std::{collections::HashMap, fmt};

use fancy_regex::Regex;

use super::json::Json;

/// One difference.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) at: String,
    pub(crate) expected: String,
    pub(crate) observed: String,
}

impl Difference {
    pub(crate) fn new(at: impl Into<String>, expected: impl fmt::Display, observed: impl fmt::Display) -> Self {
        Self { at: at.into(), expected: brief(&expected), observed: brief(&observed) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, observed {}", self.at, self.expected, self.observed)
    }
}

fn brief(value: &impl fmt::Display) -> String {
    let text = value.to_string();
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

pub(crate) type Differences = Vec<Difference>;

/// What labels stand for: `$same` values and `$diff` values seen so far.
#[derive(Clone, Default)]
pub(crate) struct Labels {
    same: HashMap<String, Json>,
    different: HashMap<String, Vec<Json>>,
}

/// Where a comparison stands.
#[derive(Clone)]
struct Place<'a> {
    at: String,
    /// The member's name, if this is one.
    key: Option<&'a str>,
    /// Objects have exactly the members that are expected.
    exact: bool,
}

/// Whether a member is compared as a whole: the arguments of calls. (`input` is a list in requests of Responses.)
fn is_exact(name: &str, value: &Json) -> bool {
    name == "args" || (name == "input" && value.is_object())
}

/// Compares; `None` is a member that is not there.
pub(crate) fn matches(expected: &Json, observed: Option<&Json>, at: &str) -> Differences {
    compare(expected, observed, &mut Labels::default(), &Place { at: at.to_owned(), key: None, exact: false })
}

/// Compares a member, whose name can matter.
pub(crate) fn matches_member(expected: &Json, observed: Option<&Json>, at: &str, key: &str) -> Differences {
    compare(expected, observed, &mut Labels::default(), &Place { at: at.to_owned(), key: Some(key), exact: false })
}

/// Compares as a whole: no member may be there that is not expected.
pub(crate) fn equals(expected: &Json, observed: &Json, at: &str) -> Differences {
    compare(expected, Some(observed), &mut Labels::default(), &Place { at: at.to_owned(), key: None, exact: true })
}

/// Nothing if one alternative holds, else the differences of the nearest.
pub(crate) fn one_of(alternatives: &[Json], at: &str, judge: impl Fn(&Json) -> Differences) -> Differences {
    let mut nearest: Option<Differences> = None;
    for alternative in alternatives {
        let found = judge(alternative);
        if found.is_empty() {
            return found;
        }
        if nearest.as_ref().is_none_or(|best| found.len() < best.len()) {
            nearest = Some(found);
        }
    }
    let mut nearest = nearest.unwrap_or_default();
    nearest.push(Difference::new(at, format!("one of {} alternatives", alternatives.len()), "none holds"));
    nearest
}

fn is_wildcard(value: &Json) -> bool {
    !value.members().is_empty() && value.members().iter().all(|(name, _)| name.starts_with('$'))
}

fn may_be_missing(expected: &Json) -> bool {
    let inside = |alternatives: &Json| alternatives.items().iter().any(may_be_missing);
    expected.is_null()
        || is_wildcard(expected)
            && (expected.get("$absent").is_some()
                || expected.get("$empty").is_some()
                || expected.get("$one_of").is_some_and(inside))
}

fn compare(expected: &Json, observed: Option<&Json>, labels: &mut Labels, place: &Place<'_>) -> Differences {
    if is_wildcard(expected) {
        return wildcard(expected, observed, labels, place);
    }
    let Some(seen) = observed else { return vec![Difference::new(&place.at, expected, "(missing)")] };
    let differ = || vec![Difference::new(&place.at, expected, seen)];
    match expected {
        Json::List(texts) if place.key == Some("deltas") => {
            let all_full =
                matches!(seen, Json::List(_)) && seen.items().iter().all(|d| d.text().is_some_and(|t| !t.is_empty()));
            let join = |list: &[Json]| list.iter().filter_map(Json::text).collect::<String>();
            if all_full && join(texts) == join(seen.items()) { vec![] } else { differ() }
        }
        Json::Object(members) if is_pick(members) && matches!(seen, Json::List(_)) => members
            .iter()
            .flat_map(|(index, value)| {
                let inner = Place { at: format!("{}[{index}]", place.at), key: None, exact: false };
                let item = index.parse().ok().and_then(|index: usize| seen.items().get(index));
                compare(value, item, labels, &inner)
            })
            .collect(),
        Json::Object(members) => {
            if !seen.is_object() {
                return differ();
            }
            let mut found = Differences::new();
            for (name, value) in members {
                let at = format!("{}.{name}", place.at);
                let exact = place.exact || is_exact(name, value);
                let inner = Place { at, key: Some(name), exact };
                found.extend(compare(value, seen.get(name), labels, &inner));
            }
            if place.exact {
                let extra = seen.members().iter().filter(|(name, _)| expected.get(name).is_none());
                found.extend(
                    extra.map(|(name, value)| Difference::new(format!("{}.{name}", place.at), "no such member", value)),
                );
            }
            found
        }
        Json::List(items) => {
            if !matches!(seen, Json::List(_)) {
                return differ();
            }
            let mut found = Differences::new();
            for (index, item) in items.iter().enumerate() {
                let inner = Place { at: format!("{}[{index}]", place.at), key: None, exact: place.exact };
                found.extend(compare(item, seen.items().get(index), labels, &inner));
            }
            if items.len() != seen.items().len() {
                let observed = format!("{}: {seen}", seen.items().len());
                found.push(Difference::new(&place.at, format!("{} elements", items.len()), observed));
            }
            found
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {
            if expected == seen {
                vec![]
            } else {
                differ()
            }
        }
    }
}

/// An object whose names are numbers picks elements of a list.
fn is_pick(members: &[(String, Json)]) -> bool {
    !members.is_empty() && members.iter().all(|(name, _)| name.parse::<usize>().is_ok())
}

fn wildcard(expected: &Json, observed: Option<&Json>, labels: &mut Labels, place: &Place<'_>) -> Differences {
    let differ = |wanted: String| {
        let seen = observed.map_or_else(|| "(missing)".to_owned(), Json::to_string);
        vec![Difference::new(&place.at, wanted, seen)]
    };
    if observed.is_none() && !may_be_missing(expected) {
        return differ(expected.to_string());
    }
    for (word, value) in expected.members() {
        let Some(seen) = observed else { continue };
        let text = seen.text();
        let fits = match word.as_str() {
            "$absent" => seen.is_null(),
            "$empty" => seen.is_empty(),
            "$any" => any(value.text().unwrap_or_default(), seen),
            "$re" => text.is_some_and(|text| found(&format!("(?s){}", value.text().unwrap_or_default()), text)),
            "$contains" => text.zip(value.text()).is_some_and(|(text, part)| text.contains(part)),
            "$max_chars" => text.zip(value.integer()).is_some_and(|(text, most)| text.chars().count() as i128 <= most),
            "$max" => seen.number().zip(value.number()).is_some_and(|(number, most)| number <= most),
            "$json" => text.and_then(|text| Json::parse(text).ok()).is_some_and(|inner| inner == *value),
            "$same" => labels.same.entry(value.to_string()).or_insert_with(|| seen.clone()) == seen,
            "$diff" => {
                let others = labels.different.entry(value.to_string()).or_default();
                let new = !others.contains(seen);
                others.push(seen.clone());
                new
            }
            "$one_of" => {
                let found = one_of_values(value.items(), seen, labels, place);
                if !found.is_empty() {
                    return found;
                }
                true
            }
            _ => return differ(format!("a known wild card, not {word}")),
        };
        if !fits {
            return differ(expected.to_string());
        }
    }
    vec![]
}

fn one_of_values(alternatives: &[Json], seen: &Json, labels: &mut Labels, place: &Place<'_>) -> Differences {
    for alternative in alternatives {
        let mut tried = labels.clone();
        if compare(alternative, Some(seen), &mut tried, place).is_empty() {
            *labels = tried;
            return vec![];
        }
    }
    one_of(alternatives, &place.at, |alternative| compare(alternative, Some(seen), &mut labels.clone(), place))
}

fn any(kind: &str, seen: &Json) -> bool {
    match kind {
        "nonempty-string" => seen.text().is_some_and(|text| !text.trim().is_empty()),
        "string" => seen.text().is_some(),
        "object" => seen.is_object(),
        "integer" => seen.integer().is_some(),
        "anything" => true,
        _ => false,
    }
}

/// Whether a pattern is found in a text; a pattern that is none is found nowhere.
pub(crate) fn found(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text).unwrap_or(false))
}
