//! What a run that could stop early has found at its looks, and what it saved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    spec::RunSpec,
    stop::{Look, LookOutcome, Looks, StopGoal},
};

/// Looks of a run that could stop early.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopSummary {
    /// The rule as a person writes it.
    pub rule: String,
    /// Questions that are asked at each look that was planned, cumulative; the last number is the whole sample.
    pub planned: Vec<u64>,
    /// The looks that were made.
    pub looks: Vec<Look>,
    /// Whether it has stopped with the last of them.
    pub stopped: bool,
    /// Whether a person has let it go on to its end whatever the looks say.
    pub to_the_end: bool,
    /// What the questions that were not asked would have taken, by what each of the others took; null where all were asked.
    pub saved: Option<Saved>,
    /// Where conversations like these say something else than this benchmark; null where they do not.
    pub disagreement: Option<String>,
}

/// What was not spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saved {
    /// Questions that were not asked.
    pub questions: u64,
    /// Calls of models for recalls, answers and verdicts, those of a metered memory system for questions among them.
    pub calls: u64,
    /// US dollars at list prices.
    pub usd: f64,
}

impl StopSummary {
    /// What the looks of a run have found; nothing for a run without a rule. `taken`: calls and dollars of the questions that it has
    /// asked, without what is asked once whatever is saved, such as canaries.
    #[must_use]
    pub fn new(spec: &RunSpec, looks: &Looks, taken: (u64, f64)) -> Option<Self> {
        let rule = spec.stop.as_ref()?;
        let stopped = looks.stopped();
        let (calls, usd) = taken;
        let saved = stopped.and_then(|look| {
            let left = rule.looks.last()?.checked_sub(look.asked).filter(|left| *left > 0)?;
            let ratio = left as f64 / look.asked.max(1) as f64;
            Some(Saved { questions: left, calls: (calls as f64 * ratio).round() as u64, usd: usd * ratio })
        });
        Some(Self {
            rule: rule.goal.to_string(),
            planned: rule.looks.clone(),
            looks: looks.made.clone(),
            stopped: stopped.is_some(),
            to_the_end: looks.to_the_end,
            saved,
            disagreement: looks.made.last().and_then(|look| disagreement(&rule.goal, look)),
        })
    }
}

/// Where the interval for conversations like these does not say what the look has decided.
fn disagreement(goal: &StopGoal, look: &Look) -> Option<String> {
    let [low, high] = look.clustered?;
    let range = format!("[{:.1}, {:.1}]", 100.0 * low, 100.0 * high);
    let (holds_nothing, is_wide) = match (look.outcome, goal) {
        (LookOutcome::Better | LookOutcome::Worse, _) => (low <= 0.0 && 0.0 <= high, false),
        (LookOutcome::NoDifference, StopGoal::Decided { margin, .. }) => (false, low < -margin || high > *margin),
        (LookOutcome::Narrow, StopGoal::Interval { half_width }) => (false, (high - low) / 2.0 > *half_width),
        _ => (false, false),
    };
    if holds_nothing {
        return Some(format!(
            "for conversations like these the difference may be none: its interval there is {range} points; other conversations may \
             say something else"
        ));
    }
    is_wide.then(|| {
        format!("for conversations like these less is known: the interval there is {range} points, wider than the rule asks for")
    })
}
