//! The policy of a gate, as its YAML file says it.

use std::collections::BTreeMap;

use bench_proto::gate::Level;
use serde::{Deserialize, Serialize};

/// How much worse a score may be, as a fraction (0.02 = 2 points).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// The interval of the difference must lie above minus this.
    pub tolerance: f64,
    /// How much it matters.
    pub level: Level,
}

/// How much more of something may be used: new / old ≤ `ratio`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Largest allowed quotient.
    pub ratio: f64,
    /// How much it matters.
    pub level: Level,
}

/// Phase of a rule on the latency probe, the one latency that is compared (P43).
pub const PROBE: &str = "probe";

/// A rule on a latency percentile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyRule {
    /// [`PROBE`]; `retain`, `recall`, `answer`, `judge` and `question` are known, and said to be not compared.
    pub phase: String,
    /// `p50`, `p95` or `p99`.
    pub percentile: String,
    /// Largest allowed quotient new / old.
    pub ratio: f64,
    /// How much it matters.
    pub level: Level,
}

/// Scores below which a run fails whatever its baseline did; above which, where lower is better.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Floors {
    /// Lowest headline score.
    pub overall: Option<f64>,
    /// Lowest score by category.
    pub category: BTreeMap<String, f64>,
}

/// All rules of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Version of the file's form: 1.
    pub version: u32,
    /// The headline score.
    #[serde(default)]
    pub overall: Option<Tolerance>,
    /// Every category, unless `categories` names it.
    #[serde(default)]
    pub category: Option<Tolerance>,
    /// Single categories.
    #[serde(default)]
    pub categories: BTreeMap<String, Tolerance>,
    /// Evidence recall at the largest common cut-off, per level.
    #[serde(default)]
    pub retrieval: Option<Tolerance>,
    /// Latency percentiles.
    #[serde(default)]
    pub latency: Vec<LatencyRule>,
    /// Dollars per question as if nothing had been cached.
    #[serde(default)]
    pub cost: Option<Ratio>,
    /// Absolute floors.
    #[serde(default)]
    pub floors: Floors,
}

/// The shipped policy: 2 points overall, 3 per category, 3 for retrieval; latency and cost are only said.
pub const DEFAULT_POLICY_YAML: &str = include_str!("default_policy.yaml");

impl Default for Policy {
    /// The policy of the shipped file (a test holds the two together).
    fn default() -> Self {
        let latency = |phase: &str| LatencyRule {
            phase: phase.to_owned(),
            percentile: "p95".to_owned(),
            ratio: 1.5,
            level: Level::Advisory,
        };
        Self {
            version: 1,
            overall: Some(Tolerance { tolerance: 0.02, level: Level::Critical }),
            category: Some(Tolerance { tolerance: 0.03, level: Level::Supporting }),
            categories: BTreeMap::new(),
            retrieval: Some(Tolerance { tolerance: 0.03, level: Level::Supporting }),
            latency: vec![latency(PROBE)],
            cost: Some(Ratio { ratio: 1.25, level: Level::Advisory }),
            floors: Floors::default(),
        }
    }
}

impl Policy {
    /// Finds what no gate could mean.
    ///
    /// # Errors
    /// One line that names the rule.
    pub fn check(&self) -> Result<(), String> {
        if self.version != 1 {
            return Err(format!("version {} is not known, this build reads version 1", self.version));
        }
        let tolerances = [("overall", self.overall), ("category", self.category), ("retrieval", self.retrieval)];
        let named = self.categories.iter().map(|(name, rule)| (name.as_str(), Some(*rule)));
        for (name, rule) in tolerances.into_iter().chain(named) {
            if let Some(rule) = rule
                && !(0.0..=1.0).contains(&rule.tolerance)
            {
                return Err(format!("{name}: tolerance {} is no fraction; 2 points are 0.02", rule.tolerance));
            }
        }
        let floors = self.floors.overall.iter().map(|floor| ("floors.overall", floor));
        let floors = floors.chain(self.floors.category.iter().map(|(name, floor)| (name.as_str(), floor)));
        for (name, floor) in floors {
            if !(0.0..=1.0).contains(floor) {
                return Err(format!("{name}: floor {floor} is no fraction; 90 % are 0.9"));
            }
        }
        for rule in &self.latency {
            let known = [PROBE, "retain", "recall", "answer", "judge", "question"].contains(&rule.phase.as_str())
                && ["p50", "p95", "p99"].contains(&rule.percentile.as_str());
            if !known || rule.ratio.is_nan() || rule.ratio <= 0.0 {
                return Err(format!(
                    "latency: {} {} ratio {}: phases are probe, retain, recall, answer, judge, question; percentiles p50, p95, p99; ratios above 0",
                    rule.phase, rule.percentile, rule.ratio
                ));
            }
        }
        match self.cost {
            Some(cost) if cost.ratio.is_nan() || cost.ratio <= 0.0 => {
                Err(format!("cost: ratio {} is not above 0", cost.ratio))
            }
            _ => Ok(()),
        }
    }
}
