//! Kind `response`: a whole HTTP answer.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use cepa_core::{ChatResponse, Error, RawJson};
use cepa_providers::{
    classify::{Failure, classify},
    secret::ApiKey,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::{
    API_KEY,
    line::{Fail, Line, Observed, observed},
    outcome::Outcome,
    wire::{Eof, Wire, model_of},
};

#[derive(Deserialize)]
struct Answer {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<RawJson>,
    body_text: Option<String>,
    #[serde(default)]
    stream: bool,
    now: Option<String>,
}

/// Decodes the answer, or each of several.
pub(crate) fn run(line: &Line) -> Result<Observed, Fail> {
    #[derive(Deserialize)]
    struct Shape {
        variants: Option<Vec<Answer>>,
    }
    #[derive(Serialize)]
    struct Variants {
        variants: Vec<Outcome>,
    }
    match line.input::<Shape>()?.variants {
        Some(answers) => {
            let outcomes = answers.iter().map(|answer| outcome(&line.provider, answer));
            observed(&Variants { variants: outcomes.collect::<Result<_, _>>()? })
        }
        None => observed(&outcome(&line.provider, &line.input()?)?),
    }
}

fn outcome(provider: &str, answer: &Answer) -> Result<Outcome, Fail> {
    let body = match (&answer.body, &answer.body_text) {
        (Some(body), _) => body.as_str(),
        (None, Some(text)) => text,
        (None, None) => "",
    };
    let wire = Wire::of(provider, &model_of(body))?;
    Outcome::of(&wire, decode(&wire, provider, answer, body)?, None)
}

fn decode(wire: &Wire, provider: &str, answer: &Answer, body: &str) -> Result<Result<ChatResponse, Error>, Fail> {
    let mut headers = HeaderMap::new();
    for (name, value) in &answer.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|error| error.to_string())?;
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).map_err(|error| error.to_string())?);
    }
    if !(200..300).contains(&answer.status) {
        let key = ApiKey::new(API_KEY)?;
        let now = answer.now.as_deref().map_or_else(|| Ok(SystemTime::now()), moment)?;
        let status = Some(answer.status);
        return Ok(Err(classify(&Failure { provider, status, headers: &headers, body, now, key: Some(&key) })));
    }
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if answer.stream && content_type.starts_with("text/event-stream") {
        return Ok(wire.stream(std::iter::once(body.as_bytes()), Eof::Clean).0);
    }
    Ok(wire.decode(body.as_bytes()))
}

/// A moment as `2026-10-21T07:28:00Z`.
fn moment(text: &str) -> Result<SystemTime, Fail> {
    let numbers: Option<Vec<i64>> =
        text.trim_end_matches('Z').split(['-', 'T', ':']).map(|part| part.split('.').next()?.parse().ok()).collect();
    let Some([year, month, day, hour, minute, second]) = numbers.as_deref() else {
        return Err(Fail::Crash(format!("`{text}` is no moment")));
    };
    // Days since 1970 by the civil calendar, years beginning in March.
    let (year, month) = if *month > 2 { (*year, month - 3) } else { (year - 1, month + 9) };
    let era_days = year * 365 + year / 4 - year / 100 + year / 400;
    let days = era_days + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    let seconds = u64::try_from(seconds).map_err(|_| Fail::Crash(format!("`{text}` lies before 1970")))?;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}
