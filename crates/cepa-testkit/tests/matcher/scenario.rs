//! Kind `scenario`: turns, pauses, restarts, cancellations.

use super::{
    checks,
    expect::{Difference, Differences, matches_member, one_of},
    invariants,
    json::Json,
    shape,
};

/// Kind `scenario`.
pub(crate) fn scenario(case: &Json, observed: &Json) -> Differences {
    let (target, expected) = super::target_and_expectation(case);
    let input = case.get("input").unwrap_or(&Json::Null);
    let malformed = malformed(input, observed);
    if !malformed.is_empty() {
        return malformed;
    }
    let mut found = Differences::new();
    let mut view = observed.clone();
    if let Some(requests) = observed.get("http_requests").filter(|_| input.get("http").is_some()) {
        let mut bodies = Vec::new();
        for (index, text) in requests.items().iter().filter_map(Json::text).enumerate() {
            let at = format!("observed.http_requests[{index}]");
            match Json::parse(text) {
                Ok(body) => {
                    found.extend(invariants::judge_body(target, &body, &at));
                    bodies.push(body);
                }
                Err(error) => found.push(Difference::new(at, format!("JSON ({error})"), text)),
            }
        }
        view = view.with("attempts", Json::Number(bodies.len().to_string())).with("http", Json::List(bodies));
    }
    for (index, request) in observed.get("requests").map_or(&[][..], Json::items).iter().enumerate() {
        let messages = request.get("messages").unwrap_or(&Json::Null);
        found.extend(invariants::judge(["hist.paired"], messages, &format!("observed.requests[{index}]")));
    }
    if found.is_empty() { judge(expected, &view) } else { found }
}

fn malformed(input: &Json, observed: &Json) -> Differences {
    let mut found = shape::fields(observed, &[("elapsed_ms", shape::milliseconds)], "observed");
    let has_steps = input.get("steps");
    if let Some(steps) = has_steps {
        found.extend(shape::fields(
            observed,
            &[("steps", shape::objects), ("history", |v| matches!(v, Json::List(_))), ("tool_runs", shape::objects)],
            "observed",
        ));
        let seen = observed.get("steps").map_or(&[][..], Json::items);
        if seen.len() != steps.items().len() {
            found.push(Difference::new("observed.steps", format!("{} outcomes", steps.items().len()), seen.len()));
        }
        found.extend(seen.iter().enumerate().flat_map(|(n, step)| shape::step(step, &format!("observed.steps[{n}]"))));
        found.extend(shape::messages(observed.get("history").unwrap_or(&Json::Null), "observed.history", false));
        for run in observed.get("tool_runs").map_or(&[][..], Json::items) {
            found.extend(shape::fields(run, &[("name", shape::text), ("args", Json::is_object)], "observed.tool_runs"));
        }
    } else {
        found.extend(shape::outcome(observed.get("result").unwrap_or(&Json::Null), "observed.result", false));
    }
    if input.get("model").is_some() {
        found.extend(shape::fields(
            observed,
            &[("model_calls", shape::integer), ("requests", shape::objects)],
            "observed",
        ));
        let requests = observed.get("requests").map_or(&[][..], Json::items);
        if observed.get("model_calls").and_then(Json::integer) != Some(requests.len() as i128) {
            found.push(Difference::new("observed.requests", "as many as model_calls", requests.len()));
        }
        for (index, request) in requests.iter().enumerate() {
            let at = format!("observed.requests[{index}]");
            found.extend(shape::fields(
                request,
                &[("system", shape::opt_text), ("tools", shape::texts), ("tool_choice", shape::opt_text)],
                &at,
            ));
            found.extend(shape::messages(request.get("messages").unwrap_or(&Json::Null), &at, true));
        }
    }
    if input.get("http").is_some() {
        found.extend(shape::fields(observed, &[("http_requests", shape::texts)], "observed"));
    }
    found
}

fn judge(expected: &Json, view: &Json) -> Differences {
    let mut found = Differences::new();
    for (name, wanted) in expected.members() {
        found.extend(match name.as_str() {
            "one_of" => one_of(wanted.items(), "observed", |one| judge(one, view)),
            "invariants" => {
                let history = view.get("history").unwrap_or(&Json::Null);
                invariants::judge(invariants::names(Some(wanted)), history, "observed.history")
            }
            "checks" => checks::judge(wanted, view),
            "within_ms" => match view.get("elapsed_ms") {
                Some(took) if took.number() <= wanted.number() => vec![],
                took => vec![Difference::new("observed.elapsed_ms", format!("at most {wanted}"), format!("{took:?}"))],
            },
            name => matches_member(wanted, view.get(name), &format!("observed.{name}"), name),
        });
    }
    found
}
