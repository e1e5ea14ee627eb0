//! Delays between attempts: exponential (`backon`) with jitter. Jitter is random and never changes a result.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
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

    #[test]
    fn no_jitter_is_exact() {
        let settings = BackoffSettings { randomization_factor: 0.0, ..BackoffSettings::default() };
        assert_eq!(settings.delays().next_delay(None), Duration::from_millis(500));
    }
}
