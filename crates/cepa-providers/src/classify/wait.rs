//! How long a provider asks to wait.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use super::resets;

/// Past this a number is a mistake, not a wait.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What is waited instead of such a number: it was meant as a wait, and a long one.
const INSTEAD: Duration = Duration::from_secs(60 * 60);

/// The wait that the headers ask for: `retry-after-ms`, or `retry-after` in seconds or as a date
/// (<https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3>). A date in the past asks for nothing. Where several ask, each with
/// a header or in one that a gateway has joined (`2, 3`), the longest counts.
pub(super) fn asked(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let values = |name: &str| headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>();
    let exact = values("retry-after-ms").into_iter().flat_map(|value| value.split(','));
    let exact = exact.filter_map(|ms| number(ms.trim(), 1e-3)).max();
    exact.or_else(|| values("retry-after").into_iter().filter_map(|value| date_or_seconds(value.trim(), now)).max())
}

fn date_or_seconds(value: &str, now: SystemTime) -> Option<Duration> {
    match httpdate::parse_http_date(value) {
        Ok(date) => date.duration_since(now).ok().filter(|wait| !wait.is_zero()).map(believable),
        Err(_) => value.split(',').filter_map(|value| resets::duration(value.trim())).map(believable).max(),
    }
}

/// Seconds as a decimal number.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    number(text, 1.0)
}

fn number(text: &str, unit: f64) -> Option<Duration> {
    // `f64` also reads "inf" and "1e9".
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = text.parse::<f64>().ok().filter(|_| digits)? * unit;
    Some(believable(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

fn believable(wait: Duration) -> Duration {
    if wait <= LONGEST { wait } else { INSTEAD }
}
