//! Stopping early: a rule, the looks that it takes, and what came of them.
//!
//! Looks are fixed before the run: each is made when all questions of a prefix of the run's order have ended, never when some have
//! arrived. So the questions that a stopped run has asked, and with them its digest, do not depend on who was quick.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`Looks`] as stored.
pub const LOOKS_VERSION: u32 = 1;

/// When a run may end before its last question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// What has to be known.
    pub goal: StopGoal,
    /// Questions asked at each look, cumulative; the last one is the sample. Ascending.
    pub looks: Vec<u64>,
}

/// What a run has to know before it may end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StopGoal {
    /// Its score, so exactly.
    Interval {
        /// Half-width of the 95 % interval, a fraction.
        half_width: f64,
    },
    /// Whether it differs from another run.
    Decided {
        /// Id of the other run, the baseline.
        run: String,
        /// Result digest of the baseline when the run began.
        digest: String,
        /// A difference that is surely smaller than this is none; a fraction.
        margin: f64,
    },
}

/// What is wrong with the text of a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopRuleError {
    /// It is none of the forms.
    #[error("'{0}' is no rule: write \"ci<=3pt\" (the score is known to ± 3 points) or \"decided vs RUN by 8pt\"")]
    Form(String),
    /// Its number is no number of points.
    #[error("'{0}' is no number of points from 0.1 to 50: write it as 3pt or 2.5pt")]
    Points(String),
}

/// A goal as a person writes it; the other run is what they call it.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenGoal {
    /// `ci<=3pt`
    Interval(f64),
    /// `decided vs RUN by 8pt`
    Decided(String, f64),
}

impl WrittenGoal {
    /// Reads a goal.
    ///
    /// # Errors
    /// With the forms that there are.
    pub fn parse(text: &str) -> Result<Self, StopRuleError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("ci") {
            let points = rest.trim_start().strip_prefix("<=").ok_or_else(|| StopRuleError::Form(text.to_owned()))?;
            return Ok(Self::Interval(fraction(points)?));
        }
        let named = text.strip_prefix("decided").map(str::trim_start).and_then(|rest| rest.strip_prefix("vs "));
        let (run, points) = named
            .and_then(|rest| rest.rsplit_once(" by "))
            .filter(|(run, _)| !run.trim().is_empty())
            .ok_or_else(|| StopRuleError::Form(text.to_owned()))?;
        Ok(Self::Decided(run.trim().to_owned(), fraction(points)?))
    }
}

/// Points as a fraction.
fn fraction(text: &str) -> Result<f64, StopRuleError> {
    let text = text.trim();
    let number = ["points", "pts", "pt", "pp"].iter().find_map(|unit| text.strip_suffix(unit));
    let points = number.and_then(|number| number.trim().parse::<f64>().ok()).filter(|p| (0.1..=50.0).contains(p));
    points.map(|points| points / 100.0).ok_or_else(|| StopRuleError::Points(text.to_owned()))
}

impl StopGoal {
    /// Whether it is about a difference to another run.
    #[must_use]
    pub const fn compares(&self) -> bool {
        matches!(self, Self::Decided { .. })
    }
}

impl fmt::Display for StopGoal {
    /// As a person writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = |fraction: f64| (fraction * 1e6).round() / 1e4;
        match self {
            Self::Interval { half_width } => write!(f, "ci<={}pt", points(*half_width)),
            Self::Decided { run, margin, .. } => write!(f, "decided vs {run} by {}pt", points(*margin)),
        }
    }
}

/// The looks of a run so far. Stored beside the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looks {
    /// [`LOOKS_VERSION`] of the writer.
    pub version: u32,
    /// In the order of their making.
    #[serde(default)]
    pub made: Vec<Look>,
    /// The run goes on to its last question whatever they say (`resume --no-stop`).
    #[serde(default)]
    pub to_the_end: bool,
}

impl Default for Looks {
    fn default() -> Self {
        Self { version: LOOKS_VERSION, made: Vec::new(), to_the_end: false }
    }
}

/// What a run knew when all questions of a prefix had ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// Questions that had been asked.
    pub asked: u64,
    /// Banks of which a question had been asked.
    pub banks: u64,
    /// Those of the questions that the figure rests on: with a score, and where runs are compared with one in both.
    pub used: u64,
    /// The score, or the difference to the baseline, on this benchmark under new answers and verdicts; a fraction.
    pub estimate: Option<f64>,
    /// Lower bound of its 95 % interval. That of a difference holds at all looks together.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// The same interval for conversations like these, at this look alone; null for fewer than three banks.
    #[serde(default)]
    pub clustered: Option<[f64; 2]>,
    /// What followed.
    pub outcome: LookOutcome,
    /// Questions asked of each category.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_category: BTreeMap<String, u64>,
    /// Questions asked of each stratum of the sample, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_stratum: Vec<u64>,
}

/// What follows from a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LookOutcome {
    /// Nothing is decided: more questions are asked, if there are any.
    Continues,
    /// The interval is as narrow as was asked for.
    Narrow,
    /// Better than the baseline.
    Better,
    /// Worse than the baseline.
    Worse,
    /// Surely no difference as large as the margin.
    NoDifference,
    /// The baseline is gone, or has another result than when the run began: the run goes on to its end.
    NoBaseline,
}

impl LookOutcome {
    /// What a person reads of it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Continues => "not decided",
            Self::Narrow => "known as exactly as asked for",
            Self::Better => "better than the baseline",
            Self::Worse => "worse than the baseline",
            Self::NoDifference => "no difference as large as the margin",
            Self::NoBaseline => "the baseline is gone or has another result now: the run goes on to its end",
        }
    }

    /// Whether the run may end with it.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Narrow | Self::Better | Self::Worse | Self::NoDifference)
    }
}

impl Looks {
    /// The look that the run has ended with; `None` while it goes on, and of one that goes on to its end.
    #[must_use]
    pub fn stopped(&self) -> Option<&Look> {
        self.made.last().filter(|look| look.outcome.is_decided() && !self.to_the_end)
    }

    /// Looks after which questions are asked: the next round is that of this number.
    #[must_use]
    pub fn round(&self) -> u32 {
        u32::try_from(self.made.len()).unwrap_or(u32::MAX)
    }
}

/// Which questions of a run are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// Those up to this round, counted from 0.
    Until(u32),
    /// Those that have been, and no more.
    NoMore,
    /// Each question of the sample.
    All,
}

impl StopRule {
    /// What of it can change a score: which questions are asked. A baseline is what it has answered, whatever its name.
    #[must_use]
    pub fn fingerprint(&self) -> serde_json::Value {
        let goal = match &self.goal {
            StopGoal::Decided { digest, margin, .. } => {
                StopGoal::Decided { run: digest.clone(), digest: String::new(), margin: *margin }
            }
            interval @ StopGoal::Interval { .. } => interval.clone(),
        };
        serde_json::json!([goal.to_string(), self.looks])
    }

    /// Which questions are asked after these looks.
    #[must_use]
    pub fn opened(&self, looks: &Looks) -> Opened {
        if looks.to_the_end {
            Opened::All
        } else if looks.stopped().is_some() {
            Opened::NoMore
        } else {
            Opened::Until(looks.round())
        }
    }

    /// Questions that have to have ended before anything follows: before the next look, or at the end of the run.
    #[must_use]
    pub fn due(&self, looks: &Looks) -> u64 {
        let all = self.looks.last().copied().unwrap_or(0);
        match (looks.stopped(), looks.to_the_end) {
            (Some(look), _) => look.asked,
            (None, true) => all,
            (None, false) => self.looks.get(looks.made.len()).copied().unwrap_or(all),
        }
    }

    /// Whether all looks have been made that are made.
    #[must_use]
    pub fn is_over(&self, looks: &Looks) -> bool {
        looks.to_the_end || looks.stopped().is_some() || looks.made.len() >= self.looks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_people_write_them() {
        for text in ["ci<=3pt", "ci <= 3 pt", " ci<=3points ", "ci<=3.0pts"] {
            assert_eq!(WrittenGoal::parse(text), Ok(WrittenGoal::Interval(0.03)), "{text}");
        }
        let decided = |run: &str, margin| Ok(WrittenGoal::Decided(run.to_owned(), margin));
        assert_eq!(WrittenGoal::parse("decided vs before by 8pt"), decided("before", 0.08));
        assert_eq!(WrittenGoal::parse("decided vs run by night by 2.5pt"), decided("run by night", 0.025));
        for text in ["", "ci", "ci<3pt", "ci>=3pt", "decided by 8pt", "decided vs  by 8pt", "decided vs x", "8pt"] {
            assert!(matches!(WrittenGoal::parse(text), Err(StopRuleError::Form(_))), "{text}");
        }
        for text in ["ci<=3", "ci<=0.03", "ci<=0pt", "ci<=-3pt", "ci<=NaNpt", "ci<=99pt", "decided vs x by eight"] {
            assert!(matches!(WrittenGoal::parse(text), Err(StopRuleError::Points(_))), "{text}");
        }
    }

    #[test]
    fn a_rule_is_shown_as_it_was_written() {
        let interval = StopGoal::Interval { half_width: 0.025 };
        let decided = StopGoal::Decided { run: "b".into(), digest: String::new(), margin: 0.08 };
        assert_eq!((interval.to_string(), decided.to_string()), ("ci<=2.5pt".into(), "decided vs b by 8pt".into()));
    }

    fn look(asked: u64, outcome: LookOutcome) -> Look {
        Look {
            asked,
            banks: 1,
            used: asked,
            estimate: Some(0.5),
            low: Some(0.4),
            high: Some(0.6),
            clustered: None,
            outcome,
            by_category: BTreeMap::new(),
            by_stratum: Vec::new(),
        }
    }

    #[test]
    fn questions_are_opened_round_by_round_until_a_look_decides() {
        let rule = StopRule { goal: StopGoal::Interval { half_width: 0.03 }, looks: vec![10, 20, 30] };
        let mut looks = Looks::default();
        let state = |looks: &Looks| (rule.opened(looks), rule.due(looks), rule.is_over(looks));
        assert_eq!(state(&looks), (Opened::Until(0), 10, false));
        looks.made.push(look(10, LookOutcome::Continues));
        assert_eq!(state(&looks), (Opened::Until(1), 20, false));
        let mut decided = looks.clone();
        decided.made.push(look(20, LookOutcome::Narrow));
        assert_eq!(state(&decided), (Opened::NoMore, 20, true));
        decided.to_the_end = true;
        assert_eq!(state(&decided), (Opened::All, 30, true));
        looks.made.push(look(20, LookOutcome::NoBaseline));
        assert_eq!(state(&looks), (Opened::Until(2), 30, false));
        looks.made.push(look(30, LookOutcome::Continues));
        assert_eq!(state(&looks), (Opened::Until(3), 30, true));
    }
}
