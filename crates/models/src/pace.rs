//! Explicit pace: requests and tokens per minute as evenly spaced slots (P24).
//!
//! The spacing is the theoretical arrival time of the generic cell rate algorithm (GCRA, ITU-T I.371): a call leaves at
//! max(now, TAT), then the TAT moves on by the interval of one request, and by that of the call's tokens.

mod queue;
pub mod shared;

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;

pub use self::queue::Lane;

/// What asking for a slot brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paced {
    /// Send now.
    Go {
        /// How long it took.
        waited: Duration,
    },
    /// The slot is further away than the caller's patience; none was taken.
    Later {
        /// Time until it.
        wait: Duration,
    },
}

/// Hands out send slots. The store's, which all processes share, come through [`shared::SharedPace`]; [`LocalPace`] keeps
/// the same promises for callers without a store.
#[async_trait]
pub trait Pace: Send + Sync {
    /// Waits for a slot for a call of `tokens` tokens (prompt and largest completion), at most `patience`. Lanes are served
    /// in turn.
    async fn acquire(&self, lane: Lane, tokens: u64, patience: Duration) -> Paced;

    /// Whether tokens matter, so that they must be counted.
    fn counts_tokens(&self) -> bool;

    /// A call used so many tokens less than it had taken slots for: other calls may have them.
    fn settled(&self, _unused_tokens: u64) {}

    /// A call was refused, and the provider may want to be left alone for a while (Retry-After): others hear of it at once.
    /// Returns how long all calls are to be held.
    fn told(&self, hold: Duration) -> Duration {
        hold
    }
}

/// Two theoretical arrival times, in microseconds from an epoch of the holder's choice.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Arrival {
    requests_us: f64,
    tokens_us: f64,
}

/// Intervals of one request and of one token, in microseconds; 0 when there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Intervals {
    /// Between requests.
    pub request_us: f64,
    /// For each token.
    pub token_us: f64,
}

impl Intervals {
    /// From limits per minute.
    #[must_use]
    pub fn per_minute(requests: Option<u64>, tokens: Option<u64>) -> Self {
        let interval = |limit: Option<u64>| limit.map_or(0.0, |limit| 60e6 / limit.max(1) as f64);
        Self { request_us: interval(requests), token_us: interval(tokens) }
    }
}

impl Arrival {
    /// Time until the next slot, in microseconds.
    #[must_use]
    pub fn wait_us(&self, now_us: f64) -> f64 {
        (self.requests_us.max(self.tokens_us) - now_us).max(0.0)
    }

    /// Takes the next slot; returns the time until it, in microseconds.
    pub fn take(&mut self, now_us: f64, intervals: Intervals, tokens: u64) -> f64 {
        let wait = self.wait_us(now_us);
        let at = now_us + wait;
        self.requests_us = at + intervals.request_us;
        self.tokens_us = at + intervals.token_us * tokens as f64;
        wait
    }
}

/// Pace within this process.
#[derive(Debug)]
pub struct LocalPace {
    intervals: Intervals,
    epoch: Instant,
    arrival: Mutex<Arrival>,
}

impl LocalPace {
    /// Pace by requests and tokens per minute; `None` when there is no limit.
    #[must_use]
    pub fn new(max_rpm: Option<u64>, max_tpm: Option<u64>) -> Option<Self> {
        if max_rpm.is_none() && max_tpm.is_none() {
            return None;
        }
        let intervals = Intervals::per_minute(max_rpm, max_tpm);
        Some(Self { intervals, epoch: Instant::now(), arrival: Mutex::default() })
    }
}

#[async_trait]
impl Pace for LocalPace {
    async fn acquire(&self, _: Lane, tokens: u64, patience: Duration) -> Paced {
        let wait = {
            let now_us = self.epoch.elapsed().as_secs_f64() * 1e6;
            let mut arrival = self.arrival.lock().unwrap_or_else(PoisonError::into_inner);
            let wait_us = arrival.wait_us(now_us);
            if wait_us > patience.as_secs_f64() * 1e6 {
                return Paced::Later { wait: Duration::from_secs_f64(wait_us / 1e6) };
            }
            Duration::from_secs_f64(arrival.take(now_us, self.intervals, tokens) / 1e6)
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Paced::Go { waited: wait }
    }

    fn counts_tokens(&self) -> bool {
        self.intervals.token_us > 0.0
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{call::Phase, ids::RunNo};
    use proptest::prelude::*;

    use super::*;

    const LANE: Lane = (RunNo(1), Phase::Answer);

    #[test]
    fn slots_are_evenly_spaced() {
        let intervals = Intervals::per_minute(Some(600), None);
        let mut arrival = Arrival::default();
        let waits: Vec<f64> = (0..4).map(|_| arrival.take(1e6, intervals, 0)).collect();
        assert_eq!(waits, [0.0, 100_000.0, 200_000.0, 300_000.0]);
        assert_eq!(arrival.take(10e6, intervals, 0), 0.0, "unused time is not saved up");
    }

    #[tokio::test]
    async fn impatient_callers_take_no_slot() {
        let pace = LocalPace::new(Some(60), None).expect("a limit");
        let patience = Duration::from_millis(10);
        assert_eq!(pace.acquire(LANE, 0, patience).await, Paced::Go { waited: Duration::ZERO });
        for _ in 0..3 {
            match pace.acquire(LANE, 0, patience).await {
                Paced::Later { wait } => assert!(wait <= Duration::from_secs(1), "{wait:?}"),
                go => panic!("{go:?}"),
            }
        }
        assert!(LocalPace::new(None, None).is_none());
        assert!(!pace.counts_tokens());
    }

    proptest! {
        /// However calls arrive, no window holds more requests or tokens than its length allows, one call apart.
        #[test]
        fn p24_no_window_is_overfilled(
            rpm in 60_u64..6000, tpm in 1000_u64..1_000_000,
            calls in proptest::collection::vec((0_u64..200_000, 1_u64..2000), 2..80),
        ) {
            let intervals = Intervals::per_minute(Some(rpm), Some(tpm));
            let (mut arrival, mut now) = (Arrival::default(), 0.0);
            let mut sent: Vec<(f64, u64)> = Vec::new();
            for (gap_us, tokens) in calls {
                now += gap_us as f64;
                sent.push((now + arrival.take(now, intervals, tokens), tokens));
            }
            for (i, (from, _)) in sent.iter().enumerate() {
                let (mut requests, mut tokens) = (0.0, 0.0);
                for (at, count) in &sent[i..] {
                    // what was sent from `from` until just before `at` fits into that time
                    let minutes = (at - from) / 60e6 + 1e-9;
                    prop_assert!(requests <= rpm as f64 * minutes + 1e-6);
                    prop_assert!(tokens <= tpm as f64 * minutes + 1e-6);
                    requests += 1.0;
                    tokens += *count as f64;
                }
            }
        }
    }
}
