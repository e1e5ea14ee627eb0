//! What a memory system spent on models itself, as the meter has seen it (P34).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::is_default,
    metered::{Service, Stage},
};

/// Calls of a memory system that have something in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeteredFigures {
    /// Calls that the provider answered.
    pub calls: u64,
    /// Calls answered from the call store, for free.
    pub stored_calls: u64,
    /// Calls that came to nothing: refused, failed on purpose, or the provider could not be reached. Those that the meter itself has
    /// refused are in the figures of all calls alone.
    pub failed: u64,
    /// Of these, those that the meter failed on purpose (`--meter-fault`); absent where there were none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed_on_purpose: u64,
    /// Of the calls, those whose tokens the provider did not tell and the meter has counted.
    pub counted_here: u64,
    /// Tokens that were sent.
    pub prompt_tokens: u64,
    /// Tokens that came back.
    pub completion_tokens: u64,
    /// Dollars paid.
    pub usd: f64,
    /// Dollars that the calls answered from the call store had cost when they were made.
    pub usd_saved: f64,
    /// Calls that were cut, of which nobody knows what they cost. They are no part of the figures above. Those that were under way when
    /// a process was killed are in the figures of all calls alone.
    pub uncertain: u64,
    /// Dollars that the cut calls cost at most.
    pub usd_uncertain: f64,
    /// Seconds of calls in all.
    pub seconds: f64,
}

/// Calls while the memory system did one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeteredStage {
    /// What it was doing.
    pub stage: Stage,
    /// Its calls.
    #[serde(flatten)]
    pub figures: MeteredFigures,
}

/// Calls of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeteredModel {
    /// Name of the model, as it names itself.
    pub model: String,
    /// What it was asked for.
    pub service: Service,
    /// Its calls.
    #[serde(flatten)]
    pub figures: MeteredFigures,
}

/// Calls for one bank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeteredBank {
    /// The dataset's id of the bank; null: it is not known which bank they were for.
    pub bank: Option<String>,
    /// Its calls.
    #[serde(flatten)]
    pub figures: MeteredFigures,
    /// Dollars of those by which it was filled (retain and consolidate), as if no reply had come from the store; null where that is not
    /// known: in reports of earlier releases, and where calls that may have filled it too come to more than a hundredth of it.
    #[serde(default)]
    pub usd_filling: Option<f64>,
    /// Where the bank is known and these dollars are not: the least and the most that they may be; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_filling_range: Option<[f64; 2]>,
}

impl MeteredFigures {
    /// Adds the calls of another run.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.calls, other.calls),
            (&mut self.stored_calls, other.stored_calls),
            (&mut self.failed, other.failed),
            (&mut self.failed_on_purpose, other.failed_on_purpose),
            (&mut self.counted_here, other.counted_here),
            (&mut self.prompt_tokens, other.prompt_tokens),
            (&mut self.completion_tokens, other.completion_tokens),
            (&mut self.uncertain, other.uncertain),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.usd += other.usd;
        self.usd_saved += other.usd_saved;
        self.usd_uncertain += other.usd_uncertain;
        self.seconds += other.seconds;
    }

    /// Dollars as if no reply had come from the store.
    #[must_use]
    pub fn usd_list(&self) -> f64 {
        self.usd + self.usd_saved
    }

    /// Whether the meter has seen anything, however it ended.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        [self.calls, self.stored_calls, self.failed, self.uncertain].iter().any(|calls| *calls > 0)
    }
}

/// What a memory system spent on models itself. The phases of `usage` are the runner's own calls and no part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeteredSummary {
    /// All of its calls.
    #[serde(flatten)]
    pub total: MeteredFigures,
    /// By what it was doing, in the order of a run; only what happened.
    pub by_stage: Vec<MeteredStage>,
    /// By model and service, by dollars, then calls, most first.
    pub by_model: Vec<MeteredModel>,
    /// By bank, in the order of the run's banks; the calls of unknown banks last.
    pub by_bank: Vec<MeteredBank>,
    /// Turns of the banks that the run retained: what filling is divided by.
    pub turns: u64,
    /// Questions that the memory system was asked: what asking is divided by.
    pub questions: u64,
    /// Dollars for filling (retain and consolidate) a thousand turns, as if no reply had come from the store; null without turns, and where unattributed calls, which may belong
    /// to it, come to more than a hundredth of it.
    pub usd_per_1000_turns: Option<f64>,
    /// Dollars for asking (recall and answer) a question, without checks, as if no reply had come from the store; null without questions, and where unattributed calls come to
    /// more than a hundredth of it.
    pub usd_per_question: Option<f64>,
    /// Where `usd_per_1000_turns` is null for unattributed calls: the least and the most that it may be; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_1000_turns_range: Option<[f64; 2]>,
    /// The same of `usd_per_question`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_question_range: Option<[f64; 2]>,
    /// What was failed on purpose (`--meter-fault`); absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// Calls that the meter itself has refused and that somebody has to do something about, by reason, most calls first; absent where
    /// there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<MeteredRefused>,
    /// What the accounts of the run say was spent with their keys while it was executed, where they say it (`accounts.NAME.spent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<AccountsSpent>,
}

impl MeteredSummary {
    /// Dollars of what it was doing there, as if no reply had come from the store.
    #[must_use]
    pub fn usd_list_of(&self, stages: &[Stage]) -> f64 {
        let of = self.by_stage.iter().filter(|of| stages.contains(&of.stage));
        of.fold(0.0, |sum, of| sum + of.figures.usd_list())
    }

    /// Calls that the meter itself has refused, for whatever reason: a part of those that came to nothing.
    #[must_use]
    pub fn refused_calls(&self) -> u64 {
        self.refused.iter().fold(0, |sum, of| sum.saturating_add(of.calls))
    }
}

/// Calls that the meter has refused for one reason: nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeteredRefused {
    /// The `code` of the answer.
    pub code: String,
    /// Why, and what to do about it.
    pub why: String,
    /// How many calls were refused so.
    pub calls: u64,
    /// Whether there may have been more: the run went on, or a process that counted them had not told its last count (it was killed, or
    /// still at work in a cluster); absent where not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at_least: bool,
}

impl MeteredRefused {
    /// `the meter refused 50 calls: m has no price …`
    #[must_use]
    pub fn words(&self) -> String {
        let Self { calls, why, .. } = self;
        let at_least = if self.at_least { "at least " } else { "" };
        let of_them = if *calls == 1 { "call" } else { "calls" };
        format!("the meter refused {at_least}{calls} {of_them}: {why}")
    }
}

/// What accounts say was spent with their keys, beside what was booked in the same time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountsSpent {
    /// Names of the accounts: all that the run used.
    pub accounts: Vec<String>,
    /// Dollars by which their figures have risen.
    pub usd: f64,
    /// Dollars that the run has booked for its own calls and for those that the meter has seen, uncertain ones at their worst case.
    pub usd_booked: f64,
    /// Why a part of the run was not watched, or all of it; absent where all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_watched: Option<String>,
}

impl AccountsSpent {
    /// Dollars that nobody here has seen: paid around the meter, by others with the same keys, or for models of no known price. 0 where
    /// the difference is one that prices and rounding make: a cent, or a twentieth of what was booked.
    #[must_use]
    pub fn usd_unseen(&self) -> f64 {
        let unseen = self.usd - self.usd_booked;
        if unseen > (0.05 * self.usd_booked).max(0.01) { unseen } else { 0.0 }
    }
}
