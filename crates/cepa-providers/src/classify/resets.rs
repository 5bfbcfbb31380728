//! When a spent allowance is full again: what vendors say where they do not say how long to wait.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};

use super::wait::{LONGEST, seconds};

/// What is counted, in OpenAI's headers (<https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers>),
/// which Groq has too (<https://console.groq.com/docs/rate-limits>).
const OPENAI: &[&str] = &["requests", "tokens"];
/// What is counted, in Anthropic's (<https://platform.claude.com/docs/en/api/rate-limits#response-headers>).
const ANTHROPIC: &[&str] = &["requests", "tokens", "input-tokens", "output-tokens"];

/// The time until every allowance that is spent is full again; `None` if none is. Those that are not spent did not cause
/// the refusal, and their times are not waited for.
pub(super) fn wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let openai = OPENAI.iter().filter_map(|what| {
        is_spent(headers, &format!("x-ratelimit-remaining-{what}"))?;
        duration(text(headers, &format!("x-ratelimit-reset-{what}"))?)
    });
    let anthropic = ANTHROPIC.iter().filter_map(|what| {
        is_spent(headers, &format!("anthropic-ratelimit-{what}-remaining"))?;
        time(text(headers, &format!("anthropic-ratelimit-{what}-reset"))?)?.duration_since(now).ok()
    });
    openai.chain(anthropic).filter(|wait| !wait.is_zero() && *wait <= LONGEST).max()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(HeaderName::from_bytes(name.as_bytes()).ok()?)?.to_str().ok().map(str::trim)
}

/// Azure says -1 where it does not count.
fn is_spent(headers: &HeaderMap, name: &str) -> Option<()> {
    (text(headers, name)?.parse() == Ok(0_i64)).then_some(())
}

/// `6m0s`, `1s`, `120ms`, `2m59.56s`; a bare number is seconds, as Azure has it
/// (<https://learn.microsoft.com/en-us/answers/questions/5625878/azure-openai-responses-api-x-ratelimit-headers-val>).
pub(super) fn duration(text: &str) -> Option<Duration> {
    if let Some(wait) = seconds(text) {
        return Some(wait);
    }
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let unit = tail.get(..tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()))?;
        rest = tail.get(unit.len()..)?;
        let factor = match unit {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()?;
        sum = sum.checked_add(part)?;
    }
    (!text.is_empty()).then_some(sum)
}

/// A time as <https://www.rfc-editor.org/rfc/rfc3339#section-5.6> writes it. Fractions of a second are rounded up: one does
/// not come too early.
fn time(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.split_once(['T', 't', ' '])?;
    let mut date = date.split('-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let end = clock.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = clock.split_at(end);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let mut clock = clock.split(':').map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let legal = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60
        && fraction.is_none_or(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty());
    if !legal || date.next().is_some() || clock.next().is_some() {
        return None;
    }
    let ahead = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let seconds = digits(hours)? * 3600 + digits(minutes)? * 60;
            if sign == "-" { -seconds } else { seconds }
        }
    };
    let local = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let since = local - ahead + i64::from(fraction.is_some_and(|digits| digits.bytes().any(|digit| digit != b'0')));
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(since).ok()?))
}

fn digits(text: &str) -> Option<i64> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// The days from 1970-01-01, by the Gregorian calendar. Years are counted from March, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let leap_days = year / 4 - year / 100 + year / 400;
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    // 1970-01-01 is this many days after 0000-03-01.
    year * 365 + leap_days + in_year - 719_468
}

#[cfg(test)]
#[path = "resets_tests.rs"]
mod tests;
