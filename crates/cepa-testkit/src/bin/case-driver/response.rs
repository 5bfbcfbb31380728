//! Kind `response`: a whole HTTP answer.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use cepa_core::{ChatRequest, ChatResponse, Error, EventSink, Message, RawJson};
use cepa_providers::{
    classify::{Failure, classify},
    secret::ApiKey,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::{
    API_KEY,
    client::{self, LimitWords},
    line::{Fail, Line, Observed, observed},
    outcome::Outcome,
    server::{HttpReply, Server},
    wire::{Wire, model_of, model_of_stream},
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
pub(crate) async fn run(line: &Line) -> Result<Observed, Fail> {
    #[derive(Deserialize)]
    struct Shape {
        variants: Option<Vec<Answer>>,
    }
    #[derive(Serialize)]
    struct Variants {
        variants: Vec<Outcome>,
    }
    let Some(answers) = line.input::<Shape>()?.variants else {
        return observed(&outcome(&line.provider, &line.input()?).await?);
    };
    let mut variants = Vec::new();
    for answer in &answers {
        variants.push(outcome(&line.provider, answer).await?);
    }
    observed(&Variants { variants })
}

async fn outcome(provider: &str, answer: &Answer) -> Result<Outcome, Fail> {
    let body = match (&answer.body, &answer.body_text) {
        (Some(body), _) => body.as_str(),
        (None, Some(text)) => text,
        (None, None) => "",
    };
    let is_stream = answer.headers.values().any(|value| value.starts_with("text/event-stream"));
    let model = if is_stream { model_of_stream(body) } else { model_of(body) };
    let wire = Wire::of(provider, &model)?;
    let result = match &answer.now {
        // The clock matters to failures only, whose headers may name a date.
        Some(now) if !(200..300).contains(&answer.status) => Err(failure(provider, answer, body, moment(now)?)?),
        Some(_) | None => over_http(provider, &model, answer, body).await?,
    };
    Outcome::of(&wire, result, None)
}

/// The answer as the library's client takes it from a server.
async fn over_http(
    provider: &str,
    model: &str,
    answer: &Answer,
    body: &str,
) -> Result<Result<ChatResponse, Error>, Fail> {
    let reply = HttpReply::new(answer.status, answer.headers.clone(), body.to_owned());
    let server = Server::start(vec![reply]).await.map_err(|error| error.to_string())?;
    let model = client::model(provider, model, &server.url(), None, &LimitWords::default())?;
    let mut request = ChatRequest::new(vec![Message::user("hi")]);
    if answer.stream {
        request.events = EventSink::new(|_| {});
    }
    Ok(model.chat(request).await)
}

/// The failure that an answer means at a certain moment.
fn failure(provider: &str, answer: &Answer, body: &str, now: SystemTime) -> Result<Error, Fail> {
    let mut headers = HeaderMap::new();
    for (name, value) in &answer.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|error| error.to_string())?;
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).map_err(|error| error.to_string())?);
    }
    let key = ApiKey::new(API_KEY)?;
    let status = Some(answer.status);
    Ok(classify(&Failure { provider, status, headers: &headers, body, now, key: Some(&key) }))
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
