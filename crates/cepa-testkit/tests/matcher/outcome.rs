//! Kinds `response` and `stream`: the outcome of a model's reply.

use std::collections::HashMap;

use super::{
    expect::{Difference, Differences, equals, matches, one_of},
    invariants,
    json::Json,
    said::{self, Said, SaidCall},
    shape,
    target::Target,
};

/// Kind `response`.
pub(crate) fn response(case: &Json, observed: &Json) -> Differences {
    let (target, expected) = super::target_and_expectation(case);
    let Some(variants) = case.get("input").and_then(|input| input.get("variants")) else {
        return reply(target, expected, observed, "observed", false);
    };
    let seen = observed.get("variants").map_or(&[][..], Json::items);
    let wanted = expected.get("variants").map_or(&[][..], Json::items);
    if seen.len() != variants.items().len() || wanted.len() != seen.len() {
        return vec![Difference::new("observed.variants", format!("{} outcomes", wanted.len()), observed)];
    }
    let pairs = wanted.iter().zip(seen).enumerate();
    pairs.flat_map(|(n, (wanted, seen))| reply(target, wanted, seen, &format!("observed[{n}]"), false)).collect()
}

/// Kind `stream`: an outcome for each way to split the body, all of them the same.
pub(crate) fn stream(case: &Json, observed: &Json) -> Differences {
    let (target, expected) = super::target_and_expectation(case);
    let sse = case.get("input").and_then(|input| input.get("sse")).and_then(Json::text).unwrap_or_default();
    let entries = observed.items();
    let mut found = Differences::new();
    for (index, entry) in entries.iter().enumerate() {
        found.extend(shape::fields(
            entry,
            &[
                ("split", is_split),
                ("runs", shape::integer),
                ("elapsed_ms", shape::milliseconds),
                ("outcome", Json::is_object),
            ],
            &format!("observed[{index}]"),
        ));
    }
    if entries.is_empty() || !found.is_empty() {
        found.push(Difference::new("observed", "a list of {split, runs, elapsed_ms, outcome}", observed));
        return found;
    }
    let runs: i128 = entries.iter().filter_map(|entry| entry.get("runs")?.integer()).sum();
    let wanted = 5 + sse.len() as i128 - 1;
    if runs != wanted {
        found.push(Difference::new("observed[*].runs", format!("{wanted} in all"), runs));
    }
    let first = entries.first().and_then(|entry| entry.get("split")).and_then(Json::text);
    if first != Some("whole") {
        found.push(Difference::new("observed[0].split", "whole", format!("{first:?}")));
    }
    let mut whole: Option<Json> = None;
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("observed[{index}]");
        let Some(outcome) = entry.get("outcome") else { continue };
        found.extend(reply(target, expected, outcome, &at, true));
        if let (Some(most), Some(took)) = (expected.get("within_ms"), entry.get("elapsed_ms"))
            && took.number() > most.number()
        {
            found.push(Difference::new(format!("{at}.elapsed_ms"), format!("at most {most}"), took));
        }
        let canonical = canonical(outcome, sse);
        match &whole {
            None => whole = Some(canonical),
            // The same, however the network cut the body.
            Some(whole) => found.extend(equals(whole, &canonical, &format!("{at} against the whole"))),
        }
    }
    found
}

fn is_split(value: &Json) -> bool {
    value.text().is_some_and(|split| match split.split_once('-') {
        Some(("by", step)) => ["1", "2", "3", "7"].contains(&step),
        Some(("cut", at)) => at.parse::<usize>().is_ok(),
        _ => split == "whole",
    })
}

/// One outcome against its expectation, and what holds for every outcome.
pub(crate) fn reply(target: Target<'_>, expected: &Json, observed: &Json, at: &str, stream: bool) -> Differences {
    let malformed = shape::outcome(observed, at, stream);
    if !malformed.is_empty() {
        return malformed;
    }
    let always = expected.without(&["one_of", "within_ms"]);
    let mut found = matches(&always, Some(observed), at);
    if let Some(alternatives) = expected.get("one_of") {
        found.extend(one_of(alternatives.items(), at, |one| matches(one, Some(observed), at)));
    }
    let Some(ok) = observed.get("ok").filter(|_| found.is_empty()) else { return found };
    let (Some(message), Some(replay)) = (ok.get("message"), ok.get("replay")) else { return found };
    let finish = ok.get("finish").and_then(Json::text).unwrap_or_default();
    let content = message.get("content").and_then(Json::text).unwrap_or_default();
    if let Some(named) = always.get("ok") {
        // A reply has no calls, and no broken ones, if the case speaks of none.
        if named.get("message").is_none_or(|message| message.get("tool_calls").is_none()) {
            found.extend(nothing_in(message.get("tool_calls"), &format!("{at}.ok.message.tool_calls")));
        }
        if named.get("invalid_args").is_none() && finish != "length" {
            found.extend(nothing_in(ok.get("invalid_args"), &format!("{at}.ok.invalid_args")));
        }
        if stream && finish != "refusal" {
            let joined: String = ok.get("deltas").map_or(&[][..], Json::items).iter().filter_map(Json::text).collect();
            if joined != content {
                found.push(Difference::new(format!("{at}.ok.deltas"), content, joined));
            }
        }
    }
    let at = format!("{at}.ok.replay");
    found.extend(invariants::judge_body(target, replay, &at));
    if found.is_empty() {
        found.extend(replay_says_the_same(target.provider, message, finish, replay, &at));
    }
    found
}

fn nothing_in(list: Option<&Json>, at: &str) -> Differences {
    match list.filter(|list| !list.items().is_empty()) {
        Some(list) => vec![Difference::new(at, "nothing", list)],
        None => vec![],
    }
}

/// The next request says what the reply said: its text, its calls, their arguments.
fn replay_says_the_same(provider: &str, message: &Json, finish: &str, replay: &Json, at: &str) -> Differences {
    let Said { text, calls: sent } = said::of(provider, replay);
    let word = |value: &Json, name: &str| value.get(name).and_then(Json::text).unwrap_or_default().to_owned();
    let calls = message.get("tool_calls").map_or(&[][..], Json::items);
    let same = |(call, sent): (&Json, &SaidCall)| {
        // An id that we made is not sent where calls need none.
        word(call, "name") == sent.name && sent.id.as_ref().is_none_or(|id| *id == word(call, "id"))
    };
    if calls.len() != sent.len() || !calls.iter().zip(&sent).all(same) {
        return vec![Difference::new(at, format!("the calls {calls:?}"), format!("{sent:?}"))];
    }
    let mut found = Differences::new();
    for (call, sent) in calls.iter().zip(&sent) {
        if let Some(wanted) = call.get("args").filter(|wanted| !wanted.is_null() && **wanted != sent.args) {
            found.push(Difference::new(at, format!("the arguments {wanted}"), &sent.args));
        }
    }
    let content = word(message, "content");
    if !content.trim().is_empty() && finish != "refusal" && text != content {
        found.push(Difference::new(at, format!("the text {content}"), text));
    }
    found
}

/// An outcome without what may differ between two runs: generated ids, the cut into deltas, the prose of errors.
fn canonical(outcome: &Json, sse: &str) -> Json {
    if let Some(error) = outcome.get("error") {
        return error.without(&["message"]);
    }
    let Some(ok) = outcome.get("ok") else { return Json::Null };
    let joined: String = ok.get("deltas").map_or(&[][..], Json::items).iter().filter_map(Json::text).collect();
    let calls = ok.get("message").and_then(|message| message.get("tool_calls")).map_or(&[][..], Json::items);
    let ids = calls.iter().filter_map(|call| call.get("id")?.text()).filter(|id| !sse.contains(*id));
    let names: HashMap<&str, String> = ids.enumerate().map(|(n, id)| (id, format!("generated {n}"))).collect();
    rename(&ok.clone().with("deltas", Json::Text(joined)), &names)
}

fn rename(value: &Json, names: &HashMap<&str, String>) -> Json {
    match value {
        Json::Text(text) => Json::Text(names.get(text.as_str()).unwrap_or(text).clone()),
        Json::List(items) => Json::List(items.iter().map(|item| rename(item, names)).collect()),
        Json::Object(members) => {
            Json::Object(members.iter().map(|(name, inner)| (name.clone(), rename(inner, names))).collect())
        }
        other => other.clone(),
    }
}
