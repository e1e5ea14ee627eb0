//! What response headers say about pace.

use std::time::SystemTime;

use bench_proto::failure::LONGEST_RETRY_AFTER;
use http::HeaderMap;

use crate::PaceHint;

/// Longest time until a limit is whole again: a day. Anything longer is a mistake.
const MAX_WAIT_MS: f64 = 24.0 * 3600.0 * 1000.0;

/// Reads `retry-after-ms`, `retry-after` and the `x-ratelimit-*` family.
pub(crate) fn pace_hint(headers: &HeaderMap) -> PaceHint {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let retry_after_ms = text("retry-after-ms")
        .and_then(|value| value.parse::<f64>().ok())
        .and_then(believed_ms)
        .or_else(|| text("retry-after").and_then(|value| retry_after(value, SystemTime::now())));
    let family = |what: &str| {
        let number = |kind: &str| text(&format!("x-ratelimit-{kind}-{what}"))?.parse::<u64>().ok();
        Some((number("limit")?, number("remaining")?, duration_ms(text(&format!("x-ratelimit-reset-{what}"))?)?))
    };
    // most servers send none of these, and looking for them costs a name each
    let limited =
        headers.contains_key("x-ratelimit-limit-requests") || headers.contains_key("x-ratelimit-limit-tokens");
    let (requests, tokens) = if limited { (family("requests"), family("tokens")) } else { (None, None) };
    if headers.contains_key("anthropic-ratelimit-requests-limit") {
        let now = SystemTime::now();
        let family = |what: &str| {
            let field = |kind: &str| text(&format!("anthropic-ratelimit-{what}-{kind}"));
            let number = |kind: &str| field(kind)?.parse::<u64>().ok();
            Some((number("limit")?, number("remaining")?, until_ms(field("reset")?, now)?))
        };
        return PaceHint { retry_after_ms, requests: family("requests"), tokens: family("tokens") };
    }
    PaceHint { retry_after_ms, requests, tokens }
}

/// Time until an RFC 3339 instant, as Anthropic writes resets.
fn until_ms(value: &str, now: SystemTime) -> Option<u64> {
    let at = SystemTime::from(value.parse::<jiff::Timestamp>().ok()?);
    whole_ms(at.duration_since(now).map_or(0.0, |wait| wait.as_secs_f64() * 1000.0))
}

/// Milliseconds, if the number is a sane wait.
fn whole_ms(ms: f64) -> Option<u64> {
    (ms.is_finite() && (0.0..=MAX_WAIT_MS).contains(&ms)).then(|| ms.ceil() as u64)
}

/// Milliseconds of a `Retry-After`, as far as they are believed.
fn believed_ms(ms: f64) -> Option<u64> {
    let longest = LONGEST_RETRY_AFTER.as_secs_f64() * 1000.0;
    (ms.is_finite() && ms >= 0.0).then(|| ms.min(longest).ceil() as u64)
}

/// `Retry-After`: seconds (some send decimals) or an HTTP date.
fn retry_after(value: &str, now: SystemTime) -> Option<u64> {
    if let Ok(seconds) = value.parse::<f64>() {
        return believed_ms(seconds * 1000.0);
    }
    let at = SystemTime::from(jiff::fmt::rfc2822::parse(value).ok()?.timestamp());
    let wait = at.duration_since(now).map_or(0.0, |wait| wait.as_secs_f64() * 1000.0);
    believed_ms(wait)
}

/// A duration as the rate limit headers write it: `1s`, `6m0s`, `120ms`, `1h2m3s`, `7.66s`, or bare seconds.
fn duration_ms(value: &str) -> Option<u64> {
    if let Ok(seconds) = value.parse::<f64>() {
        return whole_ms(seconds * 1000.0);
    }
    let (mut total, mut rest) = (0.0, value);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_len = rest[digits..].find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len() - digits);
        let (unit, after) = rest[digits..].split_at(unit_len);
        total += number
            * match unit {
                "d" => 86_400_000.0,
                "h" => 3_600_000.0,
                "m" => 60_000.0,
                "s" => 1000.0,
                "ms" => 1.0,
                "us" | "µs" => 0.001,
                _ => return None,
            };
        rest = after;
    }
    if value.is_empty() { None } else { whole_ms(total) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, ms) in [
            ("1s", 1000),
            ("6m0s", 360_000),
            ("120ms", 120),
            ("1h2m3s", 3_723_000),
            ("7.66s", 7660),
            ("2m59.56s", 179_560),
            ("0", 0),
            ("1.5", 1500),
            ("1d", 86_400_000),
            ("0.2ms", 1),
        ] {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
        }
        for bad in ["", "s", "1x", "-1s", "1s2", "nan", "inf", "9999999999h", "1.2.3s"] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(retry_after("2", now), Some(2000));
        assert_eq!(retry_after("0.25", now), Some(250));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:47 GMT", now), Some(10_000));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:00:00 GMT", now), Some(0), "it is over");
        for bad in ["", "soon", "-3", "inf"] {
            assert_eq!(retry_after(bad, now), None, "{bad}");
        }
        for long in ["301", "86400", "1e300", "Mon, 07 Nov 1994 08:49:37 GMT"] {
            assert_eq!(retry_after(long, now), Some(300_000), "{long}: five minutes are believed");
        }
    }

    #[test]
    fn families_are_read_together() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("retry-after", "3"),
            ("retry-after-ms", "1200"),
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ] {
            headers.insert(name, http::HeaderValue::from_static(value));
        }
        let expected = PaceHint {
            retry_after_ms: Some(1200),
            requests: Some((60, 59, 1000)),
            tokens: Some((150_000, 149_984, 360_000)),
        };
        assert_eq!(pace_hint(&headers), expected);
        headers.remove("x-ratelimit-reset-tokens");
        assert_eq!(pace_hint(&headers).tokens, None);
        assert_eq!(pace_hint(&HeaderMap::new()), PaceHint::default());
    }

    proptest! {
        #[test]
        fn no_header_breaks_it(text in ".{0,30}") {
            let _ = duration_ms(&text);
            let _ = retry_after(&text, SystemTime::now());
        }
    }
}
