//! W5: the vendors' own headers, where there is no `retry-after`.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

/// 2026-10-21T07:28:00Z
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_567_680)
}

fn of(pairs: &[(&'static str, &str)]) -> Option<Duration> {
    let headers = pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()));
    wait(&headers.collect(), now())
}

fn secs(seconds: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(seconds))
}

// W5: OpenAI's durations
#[test]
fn a_duration_counts_where_its_allowance_is_spent() {
    let requests =
        |remaining, reset| of(&[("x-ratelimit-remaining-requests", remaining), ("x-ratelimit-reset-requests", reset)]);
    for (reset, wait) in [
        ("6m0s", secs(360.0)),
        ("1s", secs(1.0)),
        ("120ms", secs(0.12)),
        ("2m59.56s", secs(179.56)),
        ("1h2m3s", secs(3723.0)),
        ("1d1h", secs(90_000.0)),
        (" 7.66s ", secs(7.66)),
        ("20", secs(20.0)),
        // Nothing that can be used.
        ("0", None),
        ("0s", None),
        ("", None),
        ("s", None),
        ("1x", None),
        ("1s2", None),
        ("-1s", None),
        ("1.2.3s", None),
        ("soon", None),
        ("99999999999999999999h", None),
        ("400d", None),
        ("2026-10-21T07:28:30Z", None),
    ] {
        assert_eq!(requests("0", reset), wait, "{reset}");
        assert_eq!(requests("1", reset), None, "not spent");
        assert_eq!(requests("-1", reset), None, "not counted");
        assert_eq!(requests("none", reset), None, "not readable");
    }
    assert_eq!(of(&[("x-ratelimit-reset-requests", "1s")]), None, "whether it is spent is not said");
}

// W5: only what is spent is waited for, and all of it
#[test]
fn the_longest_of_the_spent_ones_is_the_wait() {
    let both = |requests, tokens| {
        of(&[
            ("x-ratelimit-remaining-requests", requests),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", tokens),
            ("x-ratelimit-reset-tokens", "2s"),
        ])
    };
    assert_eq!(both("10", "0"), secs(2.0));
    assert_eq!(both("0", "10"), secs(360.0));
    assert_eq!(both("0", "0"), secs(360.0));
    assert_eq!(both("1", "1"), None);
}

// W5: Anthropic's times
#[test]
fn a_time_counts_where_its_allowance_is_spent() {
    let at = |reset| {
        of(&[("anthropic-ratelimit-input-tokens-remaining", "0"), ("anthropic-ratelimit-input-tokens-reset", reset)])
    };
    for (reset, wait) in [
        ("2026-10-21T07:28:30Z", secs(30.0)),
        ("2026-10-21t07:28:30z", secs(30.0)),
        ("2026-10-21T09:28:30+02:00", secs(30.0)),
        ("2026-10-21T05:28:30-02:00", secs(30.0)),
        ("2026-10-21T07:28:30.25Z", secs(31.0)),
        ("2026-10-21T07:28:30.00Z", secs(30.0)),
        ("2026-10-22T00:00:00Z", secs(59_520.0)),
        ("2027-03-01T07:28:00Z", secs(131.0 * 86_400.0)),
        // Over, or nothing that can be used.
        ("2026-10-21T07:28:00Z", None),
        ("2026-10-21T07:27:59Z", None),
        ("2028-10-21T07:28:00Z", None),
        ("2026-10-21T07:28:30", None),
        ("2026-10-21", None),
        ("2026-13-21T07:28:30Z", None),
        ("2026-10-21T25:28:30Z", None),
        ("2026-10-21T07:28Z", None),
        ("2026-10-21T07:28:30.Z", None),
        ("2026-10-21T07:28:30Zulu", None),
        ("1792567710", None),
        ("30s", None),
        ("", None),
    ] {
        assert_eq!(at(reset), wait, "{reset}");
    }
    let requests = [
        ("anthropic-ratelimit-requests-remaining", "4"),
        ("anthropic-ratelimit-requests-reset", "2026-10-21T07:28:30Z"),
    ];
    assert_eq!(of(&requests), None);
}

proptest! {
    /// A time that HTTP's own reader understands is understood the same.
    #[test]
    fn times_are_those_of_the_calendar(seconds in 0_u64..200_000_000_000) {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let date = httpdate::fmt_http_date(at);
        // Wed, 21 Oct 2026 07:28:00 GMT
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let month = months.iter().position(|month| *month == &date[8..11]).unwrap() + 1;
        let text = format!("{}-{month:02}-{}T{}Z", &date[12..16], &date[5..7], &date[17..25]);
        prop_assert_eq!(time(&text), Some(at), "{}", text);
    }

    #[test]
    fn any_value_is_read_or_ignored(text in "[0-9a-zA-Z.:+ -]{0,30}|[0-9]{1,20}(ms|s|m|h|d)[0-9]{0,20}s?") {
        let _ = (duration(&text), time(&text));
    }
}
