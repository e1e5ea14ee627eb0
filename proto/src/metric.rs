//! What the scores of a metric mean: in which direction they are better, and from where on a question has passed.
//!
//! Scorers say so of each metric they give, the run's spec carries it, and whatever reads scores (totals, comparisons, gates,
//! lists of the worst, colours) asks [`RunSpec::metric`](crate::spec::RunSpec::metric).

use serde::{Deserialize, Serialize};

use crate::call::is_default;

/// In which direction scores of a metric are better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The higher the better.
    #[default]
    Higher,
    /// The lower the better (drift, hallucination).
    Lower,
}

impl Better {
    /// A score or a difference with its sign turned where lower is better: the larger of two gains is the better one.
    #[must_use]
    pub fn gain(self, score: f64) -> f64 {
        match self {
            Self::Higher => score,
            Self::Lower => -score,
        }
    }
}

/// How the scores of a metric are read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Scale {
    /// The direction.
    #[serde(skip_serializing_if = "is_default")]
    pub better: Better,
    /// The score at which a question passes, and on its better side.
    #[serde(skip_serializing_if = "is_half")]
    pub threshold: f64,
    /// Whether the threshold itself does not pass.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
}

impl Scale {
    /// Higher is better, one half passes: judges, and every metric of which nothing else is known.
    pub const PLAIN: Self = Self { better: Better::Higher, threshold: 0.5, beyond: false };

    /// Lower is better; scores up to `threshold` pass.
    #[must_use]
    pub const fn lower(threshold: f64) -> Self {
        Self { better: Better::Lower, threshold, beyond: false }
    }

    /// Whether it needs not be written down.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::PLAIN
    }

    /// Whether a question with this score has passed.
    #[must_use]
    pub fn passes(&self, score: f64) -> bool {
        let (gain, needed) = (self.gain(score), self.gain(self.threshold));
        if self.beyond { gain > needed } else { gain >= needed }
    }

    /// See [`Better::gain`].
    #[must_use]
    pub fn gain(&self, score: f64) -> f64 {
        self.better.gain(score)
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self::PLAIN
    }
}

// serde's `skip_serializing_if` passes references
fn is_half(threshold: &f64) -> bool {
    *threshold == Scale::PLAIN.threshold
}

/// A metric that a scorer gives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// Its name in facts and reports.
    pub name: String,
    /// How its scores are read.
    #[serde(flatten)]
    pub scale: Scale,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_passes_on_the_better_side_of_the_threshold() {
        let beyond = Scale { threshold: 0.3, beyond: true, ..Scale::PLAIN };
        for (scale, score, passes) in [
            (Scale::PLAIN, 0.5, true),
            (Scale::PLAIN, 0.499, false),
            (Scale::lower(0.0), 0.0, true),
            (Scale::lower(0.0), 0.1, false),
            (beyond, 0.3, false),
            (beyond, 0.31, true),
            (Scale { better: Better::Lower, ..beyond }, 0.3, false),
            (Scale { better: Better::Lower, ..beyond }, 0.2, true),
            (Scale::PLAIN, f64::NAN, false),
        ] {
            assert_eq!(scale.passes(score), passes, "{scale:?} {score}");
        }
    }

    #[test]
    fn what_is_plain_is_not_written() {
        let plain = MetricSpec { name: "exact".to_owned(), scale: Scale::PLAIN };
        assert_eq!(serde_json::to_string(&plain).expect("writes"), r#"{"name":"exact"}"#);
        for scale in [Scale::PLAIN, Scale::lower(0.0), Scale { threshold: 0.3, beyond: true, ..Scale::PLAIN }] {
            let metric = MetricSpec { name: "drift".to_owned(), scale };
            let text = serde_json::to_string(&metric).expect("writes");
            assert_eq!(serde_json::from_str::<MetricSpec>(&text).expect("reads"), metric, "{text}");
        }
    }
}
