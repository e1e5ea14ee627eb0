//! Which rates a system held, between which of them it saturates, and where its knee is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::line::Line;

/// Growth of the latency, in seconds for each second, above which a step is behind.
pub const MOST_GROWTH: f64 = 0.05;
/// Share of what was intended that may fail to be served in a step that is held.
pub const MOST_UNSERVED: f64 = 0.01;

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The system kept up.
    Held,
    /// It did not: latency grew as long as the step went on, or too much was not served.
    Behind,
}

impl Standing {
    /// For tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Behind => "behind",
        }
    }

    /// Of a step by how many of its operations were served, and how their latency grew.
    #[must_use]
    pub fn from_step(intended: u64, unserved: u64, growth: Option<Line>) -> Self {
        let grows = growth.is_some_and(|line| line.slope > MOST_GROWTH && line.low > 0.0);
        if grows || unserved as f64 > MOST_UNSERVED * intended as f64 { Self::Behind } else { Self::Held }
    }
}

/// A step as saturation and knee see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Operations that were due a second.
    pub rate: f64,
    /// How it went.
    pub standing: Standing,
    /// Operations that ended well a second.
    pub served: f64,
    /// Mean latency in milliseconds, of what was served.
    pub mean_ms: Option<f64>,
}

/// Where a system saturates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saturation {
    /// The highest rate below the first that was not held.
    pub held: Option<f64>,
    /// The lowest rate that was not held; none when all were.
    pub behind: Option<f64>,
    /// Most operations that were served a second, at whatever rate.
    pub most_served: f64,
}

/// Where a system saturates, by steps of any order.
#[must_use]
pub fn saturation(steps: &[Measured]) -> Saturation {
    let with = |standing| steps.iter().filter(move |step| step.standing == standing).map(|step| step.rate);
    let behind = with(Standing::Behind).min_by(f64::total_cmp);
    let held = with(Standing::Held).filter(|rate| behind.is_none_or(|behind| *rate < behind)).max_by(f64::total_cmp);
    Saturation { held, behind, most_served: steps.iter().map(|step| step.served).fold(0.0, f64::max) }
}

/// The rate that was held with the most power, throughput over mean latency (Kleinrock, "Power and deterministic rules of thumb
/// for probabilistic problems in computer communications", 1979): more costs more waiting than it brings. None of fewer than three
/// rates that were held: the largest of two is no maximum.
#[must_use]
pub fn knee(steps: &[Measured]) -> Option<f64> {
    let held = steps.iter().filter(|step| step.standing == Standing::Held);
    let power = |step: &Measured| Some((step.rate, step.served / step.mean_ms.filter(|mean| *mean > 0.0)?));
    let powers: Vec<(f64, f64)> = held.filter_map(power).collect();
    let most = powers.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.filter(|_| powers.len() >= 3).map(|(rate, _)| *rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::mm1_mean_seconds;

    fn mm1(rate: f64, capacity: f64) -> Measured {
        let mean = mm1_mean_seconds(rate, capacity);
        let standing = if mean.is_some() { Standing::Held } else { Standing::Behind };
        Measured { rate, standing, served: rate.min(capacity), mean_ms: Some(mean.unwrap_or(10.0) * 1e3) }
    }

    #[test]
    fn the_knee_of_an_mm1_queue_is_at_half_of_its_capacity() {
        let steps: Vec<Measured> = (1..=12).map(|n| mm1(f64::from(n) * 10.0, 100.0)).collect();
        assert_eq!(knee(&steps), Some(50.0));
        let saturation = saturation(&steps);
        assert_eq!((saturation.held, saturation.behind), (Some(90.0), Some(100.0)));
        assert!((saturation.most_served - 100.0).abs() < 1e-9);
    }

    #[test]
    fn two_rates_have_no_knee_and_a_lucky_step_is_not_believed() {
        assert_eq!(knee(&[mm1(10.0, 100.0), mm1(20.0, 100.0)]), None);
        let lucky = Measured { standing: Standing::Held, ..mm1(120.0, 100.0) };
        let found = saturation(&[lucky, mm1(110.0, 100.0), mm1(50.0, 100.0)]);
        assert_eq!((found.held, found.behind), (Some(50.0), Some(110.0)));
        assert_eq!(saturation(&[]), Saturation::default());
    }

    #[test]
    fn a_step_is_behind_when_latency_grows_or_too_little_is_served() {
        let line = |slope, low| Some(Line { slope, low, high: 1.0, at_zero: 0.0, n: 10 });
        assert_eq!(Standing::from_step(1_000, 10, line(0.04, 0.03)), Standing::Held);
        assert_eq!(Standing::from_step(1_000, 11, None), Standing::Behind);
        assert_eq!(Standing::from_step(1_000, 0, line(0.2, 0.1)), Standing::Behind);
        assert_eq!(Standing::from_step(1_000, 0, line(0.2, -0.1)), Standing::Held, "by chance");
        assert_eq!(Standing::from_step(0, 0, None), Standing::Held);
    }
}
