//! Kind `history`: what memories and windows give back.

use super::{
    expect::{Difference, Differences, matches, one_of},
    invariants,
    json::Json,
    shape,
};

/// Kind `history`.
pub(crate) fn history(case: &Json, observed: &Json) -> Differences {
    let (_, expected) = super::target_and_expectation(case);
    let malformed = malformed(case, observed);
    if !malformed.is_empty() {
        return malformed;
    }
    judge(expected, observed)
}

/// What each operation that has a name must report.
fn malformed(case: &Json, observed: &Json) -> Differences {
    if let Some(error) = observed.get("error") {
        return shape::small_error(error, "observed.error");
    }
    let ops = case.get("input").and_then(|input| input.get("ops")).map_or(&[][..], Json::items);
    let mut found = Differences::new();
    for op in ops {
        let Some(name) = op.get("as").and_then(Json::text) else { continue };
        let at = format!("observed.{name}");
        let Some(value) = observed.get(name) else {
            found.push(Difference::new(at, op, "(missing)"));
            continue;
        };
        if let Some(error) = value.get("error") {
            found.extend(shape::small_error(error, &at));
            continue;
        }
        match op.get("op").and_then(Json::text) {
            Some("get") => {
                found.extend(shape::fields(value, &[("warned", |v| matches!(v, Json::Bool(_)))], &at));
                found.extend(shape::messages(value.get("messages").unwrap_or(&Json::Null), &at, false));
            }
            Some("get_all") => found.extend(shape::fields(value, &[("conversations", Json::is_object)], &at)),
            Some("raw_count") => found.extend(shape::fields(value, &[("count", shape::integer)], &at)),
            Some("parallel") => found.extend(shape::fields(value, &[("errors", shape::objects)], &at)),
            _ => found.extend(shape::fields(value, &[("ok", |v| matches!(v, Json::Bool(true)))], &at)),
        }
    }
    found
}

fn judge(expected: &Json, observed: &Json) -> Differences {
    let mut found = Differences::new();
    for (name, wanted) in expected.members() {
        found.extend(match name.as_str() {
            "one_of" => one_of(wanted.items(), "observed", |one| judge(one, observed)),
            "error" => matches(wanted, observed.get("error"), "observed.error"),
            name => entry(wanted, observed.get(name), &format!("observed.{name}")),
        });
    }
    found
}

fn entry(wanted: &Json, value: Option<&Json>, at: &str) -> Differences {
    const BESIDE: [&str; 5] = ["invariants", "len", "max_len", "must_contain", "one_of"];
    let Some(value) = value else { return vec![Difference::new(at, wanted, "(missing)")] };
    let mut found = matches(&wanted.without(&BESIDE), Some(value), at);
    if let Some(alternatives) = wanted.get("one_of") {
        found.extend(one_of(alternatives.items(), at, |one| matches(one, Some(value), at)));
    }
    let messages = value.get("messages");
    let length = messages.map_or(0, |messages| messages.items().len() as i128);
    if let Some(messages) = messages {
        found.extend(invariants::judge(invariants::names(wanted.get("invariants")), messages, at));
    } else if wanted.get("invariants").is_some() {
        found.push(Difference::new(at, "messages", value));
    }
    if let Some(len) = wanted.get("len").filter(|len| len.integer() != Some(length)) {
        found.push(Difference::new(at, format!("{len} messages"), length));
    }
    if let Some(most) = wanted.get("max_len").filter(|most| most.integer() < Some(length)) {
        found.push(Difference::new(at, format!("at most {most} messages"), length));
    }
    for part in wanted.get("must_contain").map_or(&[][..], Json::items) {
        let has = messages.is_some_and(|all| all.items().iter().any(|m| matches(part, Some(m), "").is_empty()));
        if !has {
            found.push(Difference::new(at, format!("a message {part}"), value));
        }
    }
    found
}
