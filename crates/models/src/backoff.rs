//! Delays between attempts: exponential (`backon`) with jitter. Jitter is random and never changes a result.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use bench_proto::failure::{Failure, FailureClass};
use rand::Rng;

/// Settings of the delays between attempts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffSettings {
    /// Delay before the first repeat.
    pub initial_interval: Duration,
    /// Factor from one delay to the next.
    pub multiplier: f32,
    /// Jitter r in [0, 1]: a delay d becomes one of [(1 − r) d, (1 + r) d].
    pub randomization_factor: f32,
    /// Longest delay before jitter.
    pub max_interval: Duration,
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self {
            initial_interval: Duration::from_millis(500),
            multiplier: 2.0,
            randomization_factor: 0.5,
            max_interval: Duration::from_secs(5),
        }
    }
}

/// The delays of one call.
#[derive(Debug)]
pub struct Delays {
    exponential: ExponentialBackoff,
    randomization_factor: f32,
}

impl BackoffSettings {
    /// Delays of calls outside of runs, for which a person waits.
    pub const OUTSIDE_OF_RUNS: Self = Self {
        initial_interval: Duration::from_millis(200),
        multiplier: 2.0,
        randomization_factor: 0.5,
        max_interval: Duration::from_secs(5),
    };

    /// Makes a call again, later each time, while what it meets is transient and `may_pass`: at most so many `attempts` in all. For
    /// calls that have no route and no cap, whose delays and stops are the caller's.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub async fn patiently<T, F>(
        &self,
        attempts: u32,
        may_pass: impl Fn(&Failure) -> bool,
        mut call: impl FnMut() -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut delays = self.delays();
        for _ in 1..attempts {
            match call().await {
                Err(failure) if failure.class == FailureClass::Transient && may_pass(&failure) => {
                    let asked = failure.retry_after_ms.map(Duration::from_millis);
                    tokio::time::sleep(delays.next_delay(asked)).await;
                }
                ended => return ended,
            }
        }
        call().await
    }

    /// Delays for a new call.
    #[must_use]
    pub fn delays(&self) -> Delays {
        let exponential = ExponentialBuilder::new()
            .with_min_delay(self.initial_interval)
            .with_factor(self.multiplier.max(1.0))
            .with_max_delay(self.max_interval)
            .without_max_times()
            .build();
        Delays { exponential, randomization_factor: self.randomization_factor.clamp(0.0, 1.0) }
    }
}

impl Delays {
    /// The next delay. `asked` (Retry-After) is a lower bound that jitter only lengthens.
    pub fn next_delay(&mut self, asked: Option<Duration>) -> Duration {
        let base = self.exponential.next().unwrap_or_default();
        let spread = self.randomization_factor * rand::rng().random_range(-1.0_f32..=1.0);
        let own = base.mul_f32(1.0 + spread);
        match asked {
            // a little spread, so that those who were refused together do not come back together
            Some(asked) => asked + asked.min(base).mul_f32(spread.abs() * 0.2),
            None => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_within_their_jitter() {
        let settings = BackoffSettings { max_interval: Duration::from_secs(3), ..BackoffSettings::default() };
        let mut delays = settings.delays();
        for expected in [0.5_f32, 1.0, 2.0, 3.0, 3.0] {
            let delay = delays.next_delay(None).as_secs_f32();
            assert!((expected * 0.499..=expected * 1.501).contains(&delay), "{delay} for {expected}");
        }
    }

    #[test]
    fn retry_after_is_a_lower_bound() {
        let asked = Duration::from_secs(2);
        for _ in 0..100 {
            let delay = BackoffSettings::default().delays().next_delay(Some(asked));
            assert!(delay >= asked && delay < asked * 2, "{delay:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_made_again_while_what_it_meets_may_pass() {
        let passing = || Failure::transient("away", "not now");
        let long = Failure { retry_after_ms: Some(60_000), ..passing() };
        let attempts = async |answers: Vec<Result<u32, Failure>>| {
            let (mut answers, mut made) = (answers.into_iter(), 0);
            let call = || {
                made += 1;
                std::future::ready(answers.next().expect("an attempt that nobody expects"))
            };
            let may_pass = |failure: &Failure| failure.code != "too_slow";
            let ended = BackoffSettings::default().patiently(3, may_pass, call).await;
            (ended.map_err(|failure| failure.code), made)
        };
        let since = tokio::time::Instant::now();
        assert_eq!(attempts(vec![Err(passing()), Err(long), Ok(7)]).await, (Ok(7), 3));
        assert!(since.elapsed() >= Duration::from_secs(60), "it was asked to wait: {:?}", since.elapsed());
        assert_eq!(attempts(vec![Err(passing()), Err(passing()), Err(passing())]).await, (Err("away".to_owned()), 3));
        for (code, failure) in [
            ("too_slow", Failure::transient("too_slow", "it would be so again")),
            ("refused", Failure::permanent("refused", "never")),
        ] {
            assert_eq!(attempts(vec![Err(failure)]).await, (Err(code.to_owned()), 1));
        }
    }

    #[test]
    fn no_jitter_is_exact() {
        let settings = BackoffSettings { randomization_factor: 0.0, ..BackoffSettings::default() };
        assert_eq!(settings.delays().next_delay(None), Duration::from_millis(500));
    }
}
