//! How long a provider asks to wait.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// Past this a number is a mistake, not a wait.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The wait that the headers ask for: `retry-after-ms`, or `retry-after` in seconds or as a date
/// (<https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3>). A date in the past asks for nothing.
pub(super) fn asked(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let exact = text("retry-after-ms").and_then(|ms| number(ms, 1e-3));
    exact.or_else(|| {
        let value = text("retry-after")?;
        seconds(value).or_else(|| {
            let wait = httpdate::parse_http_date(value).ok()?.duration_since(now).ok()?;
            (wait <= LONGEST && !wait.is_zero()).then_some(wait)
        })
    })
}

/// Seconds as a decimal number.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    number(text, 1.0)
}

fn number(text: &str, unit: f64) -> Option<Duration> {
    // `f64` also reads "inf" and "1e9".
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = text.parse::<f64>().ok().filter(|_| digits)? * unit;
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| *wait <= LONGEST)
}
