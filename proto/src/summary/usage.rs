//! Calls, tokens and dollars.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::{Ledger, Phase, Usage},
    facts::PhaseUsage,
    money::PicoUsd,
    summary::MeteredSummary,
};

/// Usage per phase: what went into the results of questions that have ended, and into banks. What else was paid is named in
/// `booked`; `total` is the sum of both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSummary {
    /// Writing into the memory system.
    pub retain: UsageFigures,
    /// Making something better of what was written; absent unless the run asked for it (`--mode consolidated`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<UsageFigures>,
    /// Reading from it.
    pub recall: UsageFigures,
    /// Making answers of what was recalled.
    pub answer: UsageFigures,
    /// All votes of all judges.
    pub judge: UsageFigures,
    /// Everything that was paid.
    pub total: UsageTotal,
    /// What the ledger has beside the phases; absent in reports of schema version 1 and of imported runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked: Option<Booked>,
    /// Phases in which the memory system, being another process, may use models and has told nothing of it: their
    /// figures are unknown and not 0, and `total` is the least.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Phase>,
    /// What the memory system spends by calls of the runner's own, or by what it tells: a part of these figures. Absent where it is
    /// metered or not known, and where recalls have calls of other models in them (rephrased questions).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryCost>,
}

/// What a memory system spends on models: itself, as the meter saw it, or by calls that the runner makes for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryCost {
    /// Dollars of the whole run, as if no reply had been stored.
    pub usd: f64,
    /// Dollars for filling a thousand turns; null where that is not known.
    pub usd_per_1000_turns: Option<f64>,
    /// Dollars for asking a question; null where that is not known.
    pub usd_per_question: Option<f64>,
}

impl UsageSummary {
    /// Dollars as if no reply had come from the call store, with what the memory system spent itself where that was metered.
    #[must_use]
    pub fn usd_list_with(&self, metered: Option<&MeteredSummary>) -> f64 {
        self.total.usd_list + metered.map_or(0.0, |metered| metered.total.usd_list())
    }
}

/// What the store's ledger has booked of a run, and what of it is in no phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Booked {
    /// Dollars booked: `usage.total.usd` and `uncertain.usd`. What the cap is held against.
    pub usd: f64,
    /// Paid for questions that have not ended. `retries` counts replies that did not pass their parser, here and below.
    pub unfinished: UsageFigures,
    /// Paid, and used by no result: calls that were made again, lost races, replies of banks that were begun anew.
    pub unused: UsageFigures,
    /// Paid beside all questions and banks: probes of a provider.
    pub overhead: UsageFigures,
    /// Paid by the memory system itself, through the meter; absent where it was not metered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered: Option<UsageFigures>,
    /// Attempts of which nobody knows whether they were paid (cut, timed out, lost with their worker), at their worst case. Not
    /// a part of `usage.total`.
    pub uncertain: UsageFigures,
}

/// The group of a run: the runs that one command started, under one cap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    /// Id of the run that the others belong to.
    pub id: String,
    /// Hard cap of all of them in dollars; null without one.
    pub cap_usd: Option<f64>,
    /// Dollars booked of all of them, uncertain attempts at their worst case.
    pub booked_usd: f64,
    /// Number of its runs.
    pub runs: u64,
    /// Ids of those that had not ended when the report was made.
    #[serde(default)]
    pub not_ended: Vec<String>,
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
    /// Tokens of all prompts, as providers counted them.
    pub prompt_tokens: u64,
    /// Tokens of all replies, as providers counted them.
    pub completion_tokens: u64,
    /// Dollars paid.
    pub usd: f64,
}

/// Total usage and the cap it was held to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotal {
    /// What was paid by the store's ledger, whatever became of it; uncertain attempts are no part of it. (In reports of schema
    /// version 1: what the phases consumed, uncertain attempts of ended questions included.)
    #[serde(flatten)]
    pub used: UsageFigures,
    /// Hard cap in dollars, of the group where the run is one of several; null without one.
    pub usd_cap: Option<f64>,
    /// Dollars of the phases as if nothing had come from the call store.
    #[serde(default)]
    pub usd_list: f64,
    /// Dollars booked of the run, whatever became of the attempts: `usd` and `usd_uncertain`.
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

impl UsageFigures {
    /// Tokens without any request: those of a call that the runner makes come with the call.
    fn is_of_tokens_alone(&self) -> bool {
        let no_request = [self.calls, self.cached_calls, self.retries].iter().all(|requests| *requests == 0);
        no_request && self.usd <= 0.0 && (self.prompt_tokens > 0 || self.completion_tokens > 0)
    }
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
    /// The usage of a run: what retaining and, where it happened, consolidating used, what its ended questions used, the cap in
    /// dollars, and what the store's ledger says, where there is one.
    #[must_use]
    pub fn new(
        retain: &Usage,
        consolidate: Option<&Usage>,
        questions: &PhaseUsage,
        usd_cap: Option<f64>,
        ledger: Option<&Ledger>,
    ) -> Self {
        let mut sum = *retain;
        sum += consolidate.copied().unwrap_or_default();
        sum += questions.recall;
        sum += questions.answer;
        sum += questions.judge;
        let mut paid = sum;
        let booked = ledger.map(|ledger| {
            let unused = unused(ledger, &sum);
            for part in [ledger.unfinished, unused, ledger.overhead, ledger.metered] {
                paid += part;
            }
            Booked {
                usd: paid.cost.saturating_add(ledger.uncertain.cost).usd(),
                unfinished: (&ledger.unfinished).into(),
                unused: (&unused).into(),
                overhead: (&ledger.overhead).into(),
                metered: (ledger.metered != Usage::default()).then(|| (&ledger.metered).into()),
                uncertain: (&ledger.uncertain).into(),
            }
        });
        Self {
            retain: retain.into(),
            consolidate: consolidate.map(UsageFigures::from),
            recall: (&questions.recall).into(),
            answer: (&questions.answer).into(),
            judge: (&questions.judge).into(),
            total: UsageTotal {
                used: (&paid).into(),
                usd_cap,
                usd_list: sum.cost.saturating_add(sum.saved).usd(),
                usd_booked: booked.as_ref().map_or_else(|| sum.cost.usd(), |booked| booked.usd),
                usd_uncertain: ledger.map_or(0.0, |ledger| ledger.uncertain.cost.usd()),
                usd_overdraft: ledger.map_or(0.0, |ledger| ledger.overdraft.usd()),
            },
            booked,
            unknown: Vec::new(),
            memory: None,
        }
    }

    /// The same of a memory system that is another process: of `phases`, which are its own, those of which it has told
    /// nothing are unknown.
    #[must_use]
    pub fn told_by_system(mut self, phases: &[Phase]) -> Self {
        let figures = |phase: &Phase| match phase {
            Phase::Retain => Some(&self.retain),
            Phase::Recall => Some(&self.recall),
            Phase::Answer => Some(&self.answer),
            Phase::Judge => Some(&self.judge),
        };
        let told_nothing = |phase: &&Phase| figures(phase).is_some_and(|told| *told == UsageFigures::default());
        self.unknown = phases.iter().filter(told_nothing).copied().collect();
        self
    }

    /// Names of the phases of which the memory system has told its tokens, and neither calls nor dollars: both are unknown and not 0.
    /// What a meter has seen is known.
    #[must_use]
    pub fn tokens_alone(&self) -> Vec<&'static str> {
        if self.booked.as_ref().is_some_and(|booked| booked.metered.is_some()) {
            return Vec::new();
        }
        let consolidated = self.consolidate.as_ref().map(|used| ("consolidate", used));
        let of_questions = [(Phase::Recall.name(), &self.recall), (Phase::Answer.name(), &self.answer)];
        let phases = std::iter::once((Phase::Retain.name(), &self.retain)).chain(consolidated).chain(of_questions);
        phases.filter(|(_, used)| used.is_of_tokens_alone()).map(|(name, _)| name).collect()
    }

    /// Whether the memory system may have spent something of which nobody knows: what is known is the least.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        !self.unknown.is_empty() || !self.tokens_alone().is_empty()
    }

    /// Whether nobody knows what a phase used.
    #[must_use]
    pub fn is_unknown(&self, phase: Phase) -> bool {
        self.unknown.contains(&phase)
    }
}

/// What was paid for no result: the rest of the ledger. A ledger that knows less than the results (that of a restored run, whose
/// calls are elsewhere) leaves nothing.
fn unused(ledger: &Ledger, used: &Usage) -> Usage {
    let named = [ledger.uncertain, ledger.unfinished, ledger.overhead, ledger.metered, *used];
    let rest = named.iter().fold(ledger.booked.0, |rest, part| rest.saturating_sub(part.cost.0));
    Usage {
        calls: ledger.ended.calls.saturating_sub(used.calls),
        prompt_tokens: ledger.ended.prompt_tokens.saturating_sub(used.prompt_tokens),
        completion_tokens: ledger.ended.completion_tokens.saturating_sub(used.completion_tokens),
        cost: PicoUsd(rest.max(0)),
        ..Usage::default()
    }
}
