//! What rate-limit headers say, in the words of OpenAI and of Anthropic.

use std::{fmt, time::Duration};

use axum::http::{HeaderMap, HeaderValue};

/// What the `x-ratelimit-*` headers say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) requests: Option<Gauge>,
    pub(crate) tokens: Option<Gauge>,
}

/// One limit of an account and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gauge {
    /// What a minute allows.
    pub(crate) limit: u64,
    /// What is left of it.
    pub(crate) remaining: u64,
    /// Until all of it is back.
    pub(crate) reset: Duration,
}

impl Announced {
    /// Writes OpenAI's headers.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let mut put = |gauge: Option<Gauge>, names: [&'static str; 3]| {
            let Some(gauge) = gauge else { return };
            headers.insert(names[0], HeaderValue::from(gauge.limit));
            headers.insert(names[1], HeaderValue::from(gauge.remaining));
            if let Ok(reset) = HeaderValue::from_str(&GoDuration(gauge.reset).to_string()) {
                headers.insert(names[2], reset);
            }
        };
        put(
            self.requests,
            ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
        );
        put(self.tokens, ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"]);
    }

    /// Writes Anthropic's headers: the same figures, resets as instants.
    pub(crate) fn write_anthropic(&self, headers: &mut HeaderMap) {
        let mut put = |gauge: Option<Gauge>, names: [&'static str; 3]| {
            let Some(gauge) = gauge else { return };
            headers.insert(names[0], HeaderValue::from(gauge.limit));
            headers.insert(names[1], HeaderValue::from(gauge.remaining));
            let reset = jiff::SignedDuration::try_from(gauge.reset).unwrap_or_default();
            if let Ok(at) = jiff::Timestamp::now().checked_add(reset)
                && let Ok(at) = HeaderValue::from_str(&at.to_string())
            {
                headers.insert(names[2], at);
            }
        };
        put(
            self.requests,
            [
                "anthropic-ratelimit-requests-limit",
                "anthropic-ratelimit-requests-remaining",
                "anthropic-ratelimit-requests-reset",
            ],
        );
        put(
            self.tokens,
            [
                "anthropic-ratelimit-tokens-limit",
                "anthropic-ratelimit-tokens-remaining",
                "anthropic-ratelimit-tokens-reset",
            ],
        );
    }
}

/// A duration as Go prints it, to the millisecond, rounded up: `0s`, `120ms`, `1.5s`, `6m0s`, `1h0m0s`.
pub(crate) struct GoDuration(pub(crate) Duration);

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a hair below a millisecond is a rounding error of the division, not another millisecond
        let ms = (self.0.as_secs_f64() * 1e3 - 1e-6).ceil().max(0.0) as u64;
        if ms == 0 {
            return f.write_str("0s");
        }
        if ms < 1000 {
            return write!(f, "{ms}ms");
        }
        let (hours, minutes, seconds, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if ms >= 60_000 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{seconds}")?;
        if rest > 0 {
            write!(f, ".{}", format!("{rest:03}").trim_end_matches('0'))?;
        }
        f.write_str("s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_look_like_openais() {
        let shown = |d| GoDuration(d).to_string();
        for (duration, expected) in [
            (Duration::ZERO, "0s"),
            (Duration::from_millis(120), "120ms"),
            (Duration::from_millis(1000), "1s"),
            (Duration::from_millis(1500), "1.5s"),
            (Duration::from_millis(8640), "8.64s"),
            (Duration::from_millis(60_000), "1m0s"),
            (Duration::from_millis(360_000), "6m0s"),
            (Duration::from_millis(3_605_020), "1h0m5.02s"),
            (Duration::from_micros(120), "1ms"),
            (Duration::from_secs_f64(0.12), "120ms"),
        ] {
            assert_eq!(shown(duration), expected);
        }
    }
}
