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
    /// How far above the worst score the headline must be at least, whatever its direction: a run that gets next to nothing right is
    /// broken, and one that is as broken as its baseline would pass otherwise.
    pub least: Option<f64>,
    /// Lowest headline score.
    pub overall: Option<f64>,
    /// Lowest score by category.
    pub category: BTreeMap<String, f64>,
    /// Lowest figure by its path in the report, such as `retrieval.session.10.recall`.
    pub figures: BTreeMap<String, f64>,
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
    /// Calls of models and memory systems per question, cached ones too.
    #[serde(default)]
    pub calls: Option<Ratio>,
    /// Absolute floors.
    #[serde(default)]
    pub floors: Floors,
    /// Highest figure by its path in the report, such as `latency_probe.p95_ms`, `usage.total.usd` or
    /// `usage.total.prompt_tokens`.
    #[serde(default)]
    pub ceilings: BTreeMap<String, f64>,
}

/// The shipped policy: 3 points overall, 10 per category, 3 for retrieval, and a score of 1 % at least; latency, cost and calls are
/// only said. Chosen so that a run that is as good as its baseline seldom ends undecided: docs/STATISTICS.md, "Gates".
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
            overall: Some(Tolerance { tolerance: 0.03, level: Level::Critical }),
            category: Some(Tolerance { tolerance: 0.10, level: Level::Supporting }),
            categories: BTreeMap::new(),
            retrieval: Some(Tolerance { tolerance: 0.03, level: Level::Supporting }),
            latency: vec![latency(PROBE)],
            cost: Some(Ratio { ratio: 1.25, level: Level::Advisory }),
            calls: Some(Ratio { ratio: 1.25, level: Level::Advisory }),
            floors: Floors { least: Some(0.01), ..Floors::default() },
            ceilings: BTreeMap::new(),
        }
    }
}

impl Policy {
    /// Whether it says anything of a run that is held against no other.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        // that a run gets anything right is no gate by itself
        let Floors { least: _, overall, category, figures } = &self.floors;
        overall.is_some() || !category.is_empty() || !figures.is_empty() || !self.ceilings.is_empty()
    }

    /// Its rules beside those on scores that can keep a run from passing.
    #[must_use]
    pub fn beside_scores(&self) -> Vec<&'static str> {
        let counts = |level: Level| level != Level::Advisory;
        let Floors { least, overall, category, figures } = &self.floors;
        let floors = least.is_some() || overall.is_some() || !category.is_empty() || !figures.is_empty();
        let all = [
            ("retrieval", self.retrieval.is_some_and(|rule| counts(rule.level))),
            ("latency", self.latency.iter().any(|rule| counts(rule.level))),
            ("cost", self.cost.is_some_and(|rule| counts(rule.level))),
            ("calls", self.calls.is_some_and(|rule| counts(rule.level))),
            ("floors", floors),
            ("ceilings", !self.ceilings.is_empty()),
        ];
        all.into_iter().filter(|(_, counts)| *counts).map(|(name, _)| name).collect()
    }

    fn has_rules(&self) -> bool {
        let of_scores = self.overall.is_some() || self.category.is_some() || !self.categories.is_empty();
        let of_others = self.retrieval.is_some() || !self.latency.is_empty();
        let of_least = self.floors.least.is_some();
        of_scores || of_others || of_least || self.cost.is_some() || self.calls.is_some() || self.stands_alone()
    }

    /// Finds what no gate could mean.
    ///
    /// # Errors
    /// One line that names the rule.
    pub fn check(&self) -> Result<(), String> {
        if self.version != 1 {
            return Err(format!("version {} is not known, this build reads version 1", self.version));
        }
        if !self.has_rules() {
            return Err("it has no rule, so every run would pass; --print-policy shows which there are".to_owned());
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
        let floors = floors.chain(self.floors.least.iter().map(|floor| ("floors.least", floor)));
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
        let paths = self.floors.figures.iter().chain(&self.ceilings);
        if let Some((path, bound)) = paths.into_iter().find(|(path, bound)| path.is_empty() || !bound.is_finite()) {
            return Err(format!("'{path}': {bound}: give the path of a figure of report.json, and a number"));
        }
        for (name, rule) in [("cost", self.cost), ("calls", self.calls)] {
            if let Some(rule) = rule.filter(|rule| rule.ratio.is_nan() || rule.ratio <= 0.0) {
                return Err(format!("{name}: ratio {} is not above 0", rule.ratio));
            }
        }
        Ok(())
    }
}
