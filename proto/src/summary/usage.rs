//! Calls, tokens and dollars.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{call::Usage, facts::PhaseUsage};

/// Usage per phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSummary {
    /// Writing into the memory system.
    pub retain: UsageFigures,
    /// Making something better of what was written; absent unless the run asked for it (`--mode consolidated`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<UsageFigures>,
    /// Reading from it.
    pub recall: UsageFigures,
    /// Answering.
    pub answer: UsageFigures,
    /// Judging.
    pub judge: UsageFigures,
    /// All of them.
    pub total: UsageTotal,
}

/// What calls consumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageFigures {
    /// Calls answered by the provider and used.
    pub calls: u64,
    /// Calls served from the call store.
    pub cached_calls: u64,
    /// Further attempts.
    pub retries: u64,
    /// Attempts answered with 429.
    pub rate_limited: u64,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
    /// Dollars paid.
    pub usd: f64,
}

/// Total usage and the cap it was held to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotal {
    /// What all phases consumed.
    #[serde(flatten)]
    pub used: UsageFigures,
    /// Hard cap in dollars; null without one.
    pub usd_cap: Option<f64>,
    /// Dollars as if nothing had come from the call store.
    #[serde(default)]
    pub usd_list: f64,
    /// Dollars booked of the run, whatever became of the attempts: what the cap is held against.
    #[serde(default)]
    pub usd_booked: f64,
    /// The part of `usd_booked` of which nobody knows whether it was paid: attempts that were cut, timed out or lost with
    /// their worker, at their worst case.
    #[serde(default)]
    pub usd_uncertain: f64,
    /// The part of `usd_booked` by which attempts passed their own worst case.
    #[serde(default)]
    pub usd_overdraft: f64,
}

impl From<&Usage> for UsageFigures {
    fn from(usage: &Usage) -> Self {
        Self {
            calls: usage.calls,
            cached_calls: usage.cached_calls,
            retries: usage.retries,
            rate_limited: usage.rate_limited,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            usd: usage.cost.usd(),
        }
    }
}

impl UsageSummary {
    /// The usage of a run: what retaining and, where it happened, consolidating used, what its questions used, and the run's
    /// cap in dollars.
    #[must_use]
    pub fn new(retain: &Usage, consolidate: Option<&Usage>, questions: &PhaseUsage, usd_cap: Option<f64>) -> Self {
        let mut sum = *retain;
        sum += consolidate.copied().unwrap_or_default();
        sum += questions.recall;
        sum += questions.answer;
        sum += questions.judge;
        Self {
            retain: retain.into(),
            consolidate: consolidate.map(UsageFigures::from),
            recall: (&questions.recall).into(),
            answer: (&questions.answer).into(),
            judge: (&questions.judge).into(),
            total: UsageTotal {
                used: (&sum).into(),
                usd_cap,
                usd_list: sum.cost.saturating_add(sum.saved).usd(),
                usd_booked: sum.cost.usd(),
                usd_uncertain: 0.0,
                usd_overdraft: 0.0,
            },
        }
    }
}
