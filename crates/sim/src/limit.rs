//! Limits per account and model, as pure functions of a time that the caller gives.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use axum::http::StatusCode;

use crate::{
    announced::{Announced, Gauge, GoDuration},
    config::{LimitConfig, Window},
    error::ApiError,
};

/// Use of one limit by one account and model.
#[derive(Debug, Default)]
struct Meter {
    /// Requests and tokens that have not drained from the buckets yet, at `at`.
    used: [f64; 2],
    at: Duration,
    /// What the sliding window still sees: time and tokens of each request, oldest first.
    seen: VecDeque<(Duration, u64)>,
    seen_tokens: u64,
}

/// All meters.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    accounts: HashMap<String, HashMap<String, Meter>>,
}

/// A refusal.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    tokens: bool,
    limit: u64,
    requested: u64,
    /// `None`: the request is larger than the limit itself.
    retry_after: Option<Duration>,
}

impl Limiter {
    /// Takes one request of `tokens` tokens, or refuses it; also says what to announce.
    pub(crate) fn take(
        &mut self,
        config: &LimitConfig,
        account: &str,
        model: &str,
        tokens: u64,
        now: Duration,
    ) -> (Announced, Result<(), Refused>) {
        let meter = entry(entry(&mut self.accounts, account), model);
        match config.window {
            Window::Bucket => meter.take_from_bucket(config, tokens, now),
            Window::Sliding(length) => meter.take_from_window(config, tokens, now, length),
        }
    }
}

/// `HashMap::entry` that makes no key when the entry is there.
fn entry<'m, V: Default>(map: &'m mut HashMap<String, V>, name: &str) -> &'m mut V {
    if !map.contains_key(name) {
        map.insert(name.to_owned(), V::default());
    }
    map.get_mut(name).expect("just inserted")
}

impl Meter {
    /// Buckets hold `burst_seconds` of the limit (at least one request) and drain evenly. A request of more tokens than the
    /// bucket holds passes when the bucket is full and leaves a debt, unless it is larger than a whole minute's limit.
    fn take_from_bucket(
        &mut self,
        config: &LimitConfig,
        tokens: u64,
        now: Duration,
    ) -> (Announced, Result<(), Refused>) {
        let elapsed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        let limits = [config.rpm, config.tpm];
        let needs = [1, tokens];
        let mut waits = [None, None];
        let mut refused = None;
        for n in 0..2 {
            let Some(limit) = limits[n] else { continue };
            let rate = limit as f64 * config.factor / 60.0;
            let capacity = (rate * config.burst_seconds).max(1.0);
            let need = needs[n] as f64;
            self.used[n] = (self.used[n] - rate * elapsed).max(0.0);
            let fits = (capacity - need).max(0.0);
            if n == 1 && need > limit as f64 * config.factor {
                refused = refused.or(Some(Refused { tokens: true, limit, requested: tokens, retry_after: None }));
            } else if self.used[n] > fits + 1e-9 {
                waits[n] = Some((self.used[n] - fits) / rate);
            }
        }
        if refused.is_none() {
            // of two reasons the longer wait is told
            let longer = usize::from(waits[1] > waits[0]);
            refused = waits[longer].map(|seconds| Refused {
                tokens: longer == 1,
                limit: limits[longer].unwrap_or_default(),
                requested: needs[longer],
                retry_after: Some(Duration::from_secs_f64(seconds)),
            });
        }
        if refused.is_none() {
            for n in 0..2 {
                self.used[n] += if limits[n].is_some() { needs[n] as f64 } else { 0.0 };
            }
        }
        // `remaining` counts down from the minute's limit although the bucket is smaller, and `reset` is the time until all
        // is back: (limit − remaining) / reset is the true rate, which is what clients should learn from headers
        let gauge = |n: usize| {
            limits[n].map(|limit| {
                let used = self.used[n].ceil();
                let reset = Duration::from_secs_f64(used * 60.0 / limit as f64);
                Gauge { limit, remaining: limit.saturating_sub(used as u64), reset }
            })
        };
        (Announced { requests: gauge(0), tokens: gauge(1) }, refused.map_or(Ok(()), Err))
    }

    fn take_from_window(
        &mut self,
        config: &LimitConfig,
        tokens: u64,
        now: Duration,
        length: Duration,
    ) -> (Announced, Result<(), Refused>) {
        while let Some(&(at, seen)) = self.seen.front().filter(|(at, _)| *at + length <= now) {
            debug_assert!(at <= now);
            self.seen_tokens -= seen;
            self.seen.pop_front();
        }
        let in_window =
            |limit: u64, factor: f64| ((limit as f64 * factor * length.as_secs_f64() / 60.0).floor() as u64).max(1);
        let mut refused = None;
        if let Some(limit) = config.rpm
            && self.seen.len() as u64 >= in_window(limit, config.factor)
        {
            // how many of the oldest requests must leave the window
            let too_many = self.seen.len() as u64 + 1 - in_window(limit, config.factor);
            let free_at = self.seen.get(too_many as usize - 1).map_or(now, |(at, _)| *at + length);
            let retry_after = Some(free_at.saturating_sub(now));
            refused = Some(Refused { tokens: false, limit, requested: 1, retry_after });
        }
        if let Some(limit) = config.tpm {
            let most = in_window(limit, config.factor);
            if tokens > most {
                refused = Some(Refused { tokens: true, limit, requested: tokens, retry_after: None });
            } else if self.seen_tokens + tokens > most {
                let mut left = self.seen_tokens;
                let free_at = self.seen.iter().find_map(|(at, seen)| {
                    left -= seen;
                    (left + tokens <= most).then_some(*at + length)
                });
                let retry_after = free_at.unwrap_or(now).saturating_sub(now);
                if refused.as_ref().is_none_or(|other| other.retry_after < Some(retry_after)) {
                    refused = Some(Refused { tokens: true, limit, requested: tokens, retry_after: Some(retry_after) });
                }
            }
        }
        if refused.is_none() && (config.rpm.is_some() || config.tpm.is_some()) {
            self.seen.push_back((now, tokens));
            self.seen_tokens += tokens;
        }
        let reset = self.seen.back().map_or(Duration::ZERO, |(at, _)| (*at + length).saturating_sub(now));
        let gauge = |limit: Option<u64>, used: u64| {
            limit.map(|limit| Gauge { limit, remaining: in_window(limit, 1.0).saturating_sub(used), reset })
        };
        let announced = Announced {
            requests: gauge(config.rpm, self.seen.len() as u64),
            tokens: gauge(config.tpm, self.seen_tokens),
        };
        (announced, refused.map_or(Ok(()), Err))
    }
}

impl Refused {
    /// The 429 as OpenAI words it.
    pub(crate) fn into_error(self, account: &str, model: &str) -> ApiError {
        let (kind, per) =
            if self.tokens { ("tokens", "tokens per min (TPM)") } else { ("requests", "requests per min (RPM)") };
        let Self { limit, requested, .. } = self;
        let message = match self.retry_after {
            Some(wait) => format!(
                "Rate limit reached for {model} in account {} on {per}: Limit {limit}, Requested {requested}. Please try again in {}.",
                masked(account),
                GoDuration(wait)
            ),
            None => format!(
                "Request too large for {model} in account {} on {per}: Limit {limit}, Requested {requested}. The input or output tokens must be reduced in order to run successfully.",
                masked(account)
            ),
        };
        let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, kind, Some("rate_limit_exceeded"), message);
        error.retry_after_ms = self.retry_after.map(|wait| (wait.as_secs_f64() * 1e3).ceil().max(1.0) as u64);
        error
    }
}

/// The end of a key: enough to tell accounts apart in a message.
fn masked(account: &str) -> String {
    let tail: Vec<char> = account.chars().rev().take(4).collect();
    if account.chars().count() < 12 {
        "***".into()
    } else {
        format!("***{}", tail.into_iter().rev().collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn limits(rpm: Option<u64>, tpm: Option<u64>) -> LimitConfig {
        LimitConfig { rpm, tpm, ..LimitConfig::default() }
    }

    #[test]
    fn p19_bucket_passes_the_burst_and_then_exactly_the_rate() {
        let config = limits(Some(600), None); // 10 a second, a bucket of 10
        let mut limiter = Limiter::default();
        let mut passed = vec![];
        for at in 0..5000 {
            if limiter.take(&config, "key", "model", 5, ms(at)).1.is_ok() {
                passed.push(at);
            }
        }
        assert_eq!(passed.len(), 10 + 49, "the burst, then one per 100 ms");
        assert!(passed[..10].iter().all(|at| *at < 10));
        assert!(limiter.take(&config, "key", "other model", 5, ms(5000)).1.is_ok(), "models have their own limits");
        assert!(limiter.take(&config, "other key", "model", 5, ms(5000)).1.is_ok(), "accounts have their own limits");
    }

    #[test]
    fn waiting_as_told_is_enough() {
        let config = limits(Some(60), Some(60_000));
        let mut limiter = Limiter::default();
        let mut now = Duration::ZERO;
        for n in 0..50_u64 {
            let tokens = n * 700 % 9000;
            if let Err(refused) = limiter.take(&config, "k", "m", tokens, now).1 {
                now += refused.retry_after.expect("fits into the limit");
                limiter.take(&config, "k", "m", tokens, now).1.expect("the wait that was told is enough");
            }
        }
    }

    #[test]
    fn tokens_are_limited_and_large_requests_leave_a_debt() {
        let config = limits(None, Some(60_000)); // 1,000 a second
        let mut limiter = Limiter::default();
        assert!(
            limiter.take(&config, "k", "m", 5000, ms(0)).1.is_ok(),
            "a full bucket lets one larger request through"
        );
        let refused = limiter.take(&config, "k", "m", 10, ms(0)).1.expect_err("in debt");
        assert_eq!((refused.tokens, refused.retry_after), (true, Some(ms(4010))));
        assert!(limiter.take(&config, "k", "m", 10, ms(4011)).1.is_ok());
        let refused = limiter.take(&config, "k", "m", 60_001, ms(600_000)).1.expect_err("larger than a minute's limit");
        assert_eq!(refused.retry_after, None);
        assert!(refused.into_error("k", "m").message.starts_with("Request too large for m"));
    }

    #[test]
    fn p19_sliding_window_holds_in_every_window() {
        let config = LimitConfig { window: Window::Sliding(ms(60_000)), ..limits(Some(30), Some(10_000)) };
        let mut limiter = Limiter::default();
        let mut passed: Vec<u64> = vec![];
        for at in (0..300_000).step_by(50) {
            match limiter.take(&config, "k", "m", 100, ms(at)).1 {
                Ok(()) => passed.push(at),
                Err(refused) => {
                    let told = at + refused.retry_after.expect("fits").as_millis() as u64;
                    assert_eq!(told, passed[passed.len() - 30] + 60_000, "told to wait until the oldest leaves");
                }
            }
        }
        assert_eq!(passed.len(), 150);
        for (n, at) in passed.iter().enumerate() {
            let in_window = passed[n..].iter().take_while(|later| **later < at + 60_000).count();
            assert!(in_window <= 30, "{in_window} in the window from {at}");
        }
        let refused = limiter.take(&config, "k", "m", 9_999, ms(300_000)).1.expect_err("tokens of the window are used");
        assert!(refused.tokens);
    }

    #[test]
    fn a_limit_halved_in_silence_announces_the_old_one() {
        let config = LimitConfig { factor: 0.5, ..limits(Some(600), None) };
        let mut limiter = Limiter::default();
        let passed = (0..10_000).filter(|at| limiter.take(&config, "k", "m", 1, ms(*at)).1.is_ok()).count();
        assert_eq!(passed, 5 + 49, "a bucket of 5, then 5 a second");
        let (announced, _) = limiter.take(&config, "k", "m", 1, ms(10_000));
        assert_eq!(announced.requests.map(|gauge| gauge.limit), Some(600));
    }

    #[test]
    fn headers_have_openais_names_and_formats_and_tell_the_rate() {
        let config = limits(Some(500), Some(60_000));
        let mut limiter = Limiter::default();
        let (announced, taken) = limiter.take(&config, "k", "m", 90, ms(0));
        assert!(taken.is_ok());
        let mut headers = HeaderMap::new();
        announced.write(&mut headers);
        let mut lines: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("ascii"))).collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "x-ratelimit-limit-requests: 500",
                "x-ratelimit-limit-tokens: 60000",
                "x-ratelimit-remaining-requests: 499",
                "x-ratelimit-remaining-tokens: 59910",
                "x-ratelimit-reset-requests: 120ms",
                "x-ratelimit-reset-tokens: 90ms",
            ]
        );
        let gauge = announced.requests.expect("limited");
        assert!(((gauge.limit - gauge.remaining) as f64 / gauge.reset.as_secs_f64() - 500.0 / 60.0).abs() < 1e-6);
    }
}
