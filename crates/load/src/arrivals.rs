//! When operations are due.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draws::Draws;

/// How the starts of operations are spread over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// As of many users who know nothing of each other: gaps are exponentially distributed.
    #[default]
    Poisson,
    /// With equal gaps.
    Constant,
}

impl Arrivals {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Constant => "constant",
        }
    }
}

/// Intended starts, from the beginning of a step, without an end. Each is drawn when it is asked for: nothing is kept.
#[derive(Debug, Clone)]
pub struct Schedule {
    arrivals: Arrivals,
    rate: f64,
    draws: Draws,
    drawn: u64,
    seconds: f64,
}

impl Schedule {
    /// `rate` arrivals a second on average; it is above zero.
    #[must_use]
    pub fn new(arrivals: Arrivals, rate: f64, seed: u64) -> Self {
        Self { arrivals, rate, draws: Draws::new(seed, 0), drawn: 0, seconds: 0.0 }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.seconds = match self.arrivals {
            Arrivals::Poisson => self.seconds + self.draws.exponential(1.0 / self.rate),
            // by multiplication: a sum of gaps would drift
            Arrivals::Constant => self.drawn as f64 / self.rate,
        };
        self.drawn += 1;
        Some(Duration::from_secs_f64(self.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(arrivals: Arrivals, rate: f64, n: usize) -> Vec<f64> {
        let starts: Vec<f64> = Schedule::new(arrivals, rate, 7).take(n + 1).map(|at| at.as_secs_f64()).collect();
        starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn equal_gaps_do_not_drift() {
        let starts: Vec<Duration> = Schedule::new(Arrivals::Constant, 3.0, 0).take(300_001).collect();
        assert_eq!(starts[0], Duration::ZERO);
        assert_eq!(starts[300_000], Duration::from_secs(100_000));
    }

    /// Of an exponential distribution mean and standard deviation are equal, a gap is longer than its mean with probability 1/e,
    /// and gaps do not depend on each other. Bounds: five standard errors of 100,000 draws.
    #[test]
    fn poisson_gaps_are_exponential_and_independent() {
        let gaps = gaps(Arrivals::Poisson, 50.0, 100_000);
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!((mean * 50.0 - 1.0).abs() < 0.016, "{mean}");
        assert!((deviation * 50.0 - 1.0).abs() < 0.023, "{deviation}");
        let longer = gaps.iter().filter(|gap| **gap > 1.0 / 50.0).count() as f64 / n;
        assert!((longer - (-1.0_f64).exp()).abs() < 0.008, "{longer}");
        let together: f64 = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n;
        assert!((together / deviation.powi(2)).abs() < 0.016, "{together}");
    }

    #[test]
    fn a_seed_gives_the_same_starts_and_another_one_others() {
        let starts = |seed| Schedule::new(Arrivals::Poisson, 10.0, seed).take(50).collect::<Vec<_>>();
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
    }
}
