//! Kind `request`: the body that would be sent.

use super::{
    checks,
    expect::{Difference, Differences, matches, one_of},
    invariants,
    json::Json,
    shape,
};

/// Kind `request`.
pub(crate) fn request(case: &Json, observed: &Json) -> Differences {
    let (target, expected) = super::target_and_expectation(case);
    let input = case.get("input").unwrap_or(&Json::Null);
    let mut view = Vec::new();
    match (observed.get("bodies"), observed.get("error")) {
        (None, Some(error)) => {
            let malformed = shape::small_error(error, "observed.error");
            if !malformed.is_empty() {
                return malformed;
            }
            if expected.get("error").is_none() && expected.get("one_of").is_none() {
                return vec![Difference::new("observed", "a body", observed)];
            }
            view.push(("error".to_owned(), error.clone()));
        }
        (Some(bodies), None) => match parse_bodies(bodies, input) {
            Ok(body) => view.push(("body".to_owned(), body)),
            Err(difference) => return vec![difference],
        },
        _ => return vec![Difference::new("observed", "an object with either bodies or error", observed)],
    }
    let view = Json::Object(view);
    let judge = |expected: &Json| -> Differences {
        let mut found = Differences::new();
        for name in ["body", "error"] {
            if let Some(wanted) = expected.get(name) {
                found.extend(matches(wanted, view.get(name), name));
            }
        }
        found.extend(checks::judge(expected.get("checks").unwrap_or(&Json::Null), &view));
        found
    };
    let mut found = judge(expected);
    if let Some(alternatives) = expected.get("one_of") {
        found.extend(one_of(alternatives.items(), "observed", judge));
    }
    if let Some(body) = view.get("body") {
        found.extend(invariants::judge(invariants::names(expected.get("invariants")), body, "body"));
        // Beyond the invariants: whatever its provider would refuse.
        found.extend(invariants::judge_body(target, body, "body"));
        // Gemini's is in the path.
        if target.provider != "gemini" {
            found.extend(matches(input.get("model").unwrap_or(&Json::Null), body.get("model"), "body.model"));
        }
        found.extend(tools_are_known(input, body, observed));
    }
    found
}

/// All builds of a request are byte for byte the same.
fn parse_bodies(bodies: &Json, input: &Json) -> Result<Json, Difference> {
    let builds = input.get("repeat").and_then(Json::integer).unwrap_or(2);
    let texts: Vec<&str> = bodies.items().iter().filter_map(Json::text).collect();
    let (Some(first), true) = (texts.first(), texts.len() as i128 == builds) else {
        return Err(Difference::new("observed.bodies", format!("{builds} texts"), bodies));
    };
    if let Some(other) = texts.iter().find(|text| text != &first) {
        return Err(Difference::new("observed.bodies", first, other));
    }
    Json::parse(first).map_err(|error| Difference::new("observed.bodies[0]", format!("JSON ({error})"), first))
}

/// Each tool in the body is one that was registered, under its name or one that leads back to it.
fn tools_are_known(input: &Json, body: &Json, observed: &Json) -> Differences {
    let registered: Vec<&str> =
        input.get("tools").map_or(&[][..], Json::items).iter().filter_map(|tool| tool.get("name")?.text()).collect();
    let mut found = Differences::new();
    let listed = body.get("tools").map_or(&[][..], Json::items);
    // Gemini's tools are lists of functions.
    let inside = |tool| Json::get(tool, "functionDeclarations").map_or(std::slice::from_ref(tool), Json::items);
    for tool in listed.iter().flat_map(inside) {
        let name = tool.get("function").unwrap_or(tool).get("name").and_then(Json::text).unwrap_or_default();
        let reached = observed.get("tool_names").and_then(|names| names.get(name)).and_then(Json::text);
        if !registered.contains(&name) && !reached.is_some_and(|reached| registered.contains(&reached)) {
            found.push(Difference::new("observed.tool_names", format!("the tool that `{name}` reaches"), observed));
        }
    }
    found
}
