//! Delays between attempts: exponential (`backon`) with jitter. Jitter is random and never changes a result.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use bench_proto::failure::{Failure, FailureClass};
use rand::Rng;

/// Attempts of a call for which a person waits.
const ATTEMPTS_FOR_A_PERSON: u32 = 5;
/// Longest delay that a server may ask of who waits for such a call.
const LONGEST_FOR_A_PERSON: Duration = Duration::from_secs(30);
/// A wait is looked at again each time that so much of it is over.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

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
    /// Makes a call outside of runs again while what it meets may pass. A person waits for it and sees nothing meanwhile: whoever asks
    /// for a long delay has failed.
    ///
    /// # Errors
    /// The failure of the last attempt, with the delay that was asked for.
    pub async fn for_a_person<T, F>(call: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let outside_of_runs = Self { initial_interval: Duration::from_millis(200), ..Self::default() };
        let asked = |failure: &Failure| failure.retry_after_ms.map(Duration::from_millis);
        let is_short = |failure: &Failure| asked(failure).is_none_or(|asked| asked <= LONGEST_FOR_A_PERSON);
        outside_of_runs.patiently(ATTEMPTS_FOR_A_PERSON, is_short, call).await.map_err(|failure| {
            match asked(&failure) {
                Some(asked) if asked > LONGEST_FOR_A_PERSON => {
                    let message = format!("{}; it may be asked again in {} s", failure.message, asked.as_secs());
                    Failure { message, ..failure }
                }
                _ => failure,
            }
        })
    }

    /// Makes a call again, later each time, while what it meets is transient and `may_pass`: at most so many `attempts` in all. For
    /// calls that have no route and no cap, whose delays and stops are the caller's: `may_pass` is asked again while a delay goes by,
    /// and ends it.
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
                    let mut left = delays.next_delay(failure.retry_after_ms.map(Duration::from_millis));
                    while !left.is_zero() {
                        let part = left.min(LOOKED_AT_EVERY);
                        tokio::time::sleep(part).await;
                        left -= part;
                        if !may_pass(&failure) {
                            return Err(failure);
                        }
                    }
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

    #[tokio::test(start_paused = true)]
    async fn a_delay_ends_when_what_it_waits_for_may_no_longer_pass() {
        let since = tokio::time::Instant::now();
        let stops = |_: &Failure| since.elapsed() < Duration::from_secs(10);
        let mut made = 0;
        let call = || {
            made += 1;
            let failure = Failure { retry_after_ms: Some(300_000), ..Failure::transient("away", "not now") };
            std::future::ready(Err::<(), _>(failure))
        };
        let ended = BackoffSettings::default().patiently(3, stops, call).await;
        assert_eq!(ended.map_err(|failure| failure.code), Err("away".to_owned()));
        assert!(since.elapsed() < Duration::from_secs(12) && made == 1, "{:?} {made}", since.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_does_not_wait_for_minutes() {
        let since = tokio::time::Instant::now();
        let ask = async |asked_s: u64| {
            let mut made = 0;
            let call = || {
                made += 1;
                let asked = Failure { retry_after_ms: Some(asked_s * 1_000), ..Failure::transient("busy", "later") };
                std::future::ready(if made < 3 { Err(asked) } else { Ok(made) })
            };
            BackoffSettings::for_a_person(call).await.map_err(|failure| failure.message)
        };
        assert_eq!(ask(31).await, Err("later; it may be asked again in 31 s".to_owned()));
        assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
        assert_eq!(ask(30).await, Ok(3));
        assert!(since.elapsed() >= Duration::from_secs(60), "{:?}", since.elapsed());
    }

    #[test]
    fn no_jitter_is_exact() {
        let settings = BackoffSettings { randomization_factor: 0.0, ..BackoffSettings::default() };
        assert_eq!(settings.delays().next_delay(None), Duration::from_millis(500));
    }
}
