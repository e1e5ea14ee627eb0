//! Model calls: usage, phases and the record that the call store keeps (P9).

use serde::{Deserialize, Serialize};

use crate::{ids::Sha256Hash, money::PicoUsd};

/// The four phases that are kept apart in every figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Writing into the memory system.
    Retain,
    /// Reading from it.
    Recall,
    /// Answering from what was read.
    Answer,
    /// Judging the answer.
    Judge,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 4] = [Self::Retain, Self::Recall, Self::Answer, Self::Judge];

    /// The phase's name in reports and the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retain => "retain",
            Self::Recall => "recall",
            Self::Answer => "answer",
            Self::Judge => "judge",
        }
    }
}

/// What calls consumed. Addition is exact. Zeros are not written: there are millions of these, most of them nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Calls that were answered by the provider and used.
    #[serde(skip_serializing_if = "is_default")]
    pub calls: u64,
    /// Calls served from the call store, for free.
    #[serde(skip_serializing_if = "is_default")]
    pub cached_calls: u64,
    /// Further attempts beside the used ones (errors, malformed replies, 429s).
    #[serde(skip_serializing_if = "is_default")]
    pub retries: u64,
    /// Attempts answered with 429.
    #[serde(skip_serializing_if = "is_default")]
    pub rate_limited: u64,
    /// Prompt tokens, as the provider counts them; those of `uncounted` calls as they were counted here.
    #[serde(skip_serializing_if = "is_default")]
    pub prompt_tokens: u64,
    /// Completion tokens, as the provider counts them.
    #[serde(skip_serializing_if = "is_default")]
    pub completion_tokens: u64,
    /// What was paid.
    #[serde(skip_serializing_if = "is_default")]
    pub cost: PicoUsd,
    /// What the calls served from the call store had cost when they were made.
    #[serde(skip_serializing_if = "is_default")]
    pub saved: PicoUsd,
    /// Replies without a number of tokens that can be true. Where the model's vocabulary is not known, bytes stand for tokens.
    #[serde(skip_serializing_if = "is_default")]
    pub uncounted: u64,
}

/// Whether a field may be left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.cached_calls = self.cached_calls.saturating_add(other.cached_calls);
        self.retries = self.retries.saturating_add(other.retries);
        self.rate_limited = self.rate_limited.saturating_add(other.rate_limited);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cost = self.cost.saturating_add(other.cost);
        self.saved = self.saved.saturating_add(other.saved);
        self.uncounted = self.uncounted.saturating_add(other.uncounted);
    }
}

/// What the store's ledger says of a run: every attempt that was or may have been paid, whatever became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Everything that was booked, uncertain attempts at their worst case: what the cap is held against.
    pub booked: PicoUsd,
    /// By how much attempts passed their own worst case; part of `booked`.
    pub overdraft: PicoUsd,
    /// Attempts of questions that have ended, and of banks. Here and below `retries` counts replies that did not pass their
    /// parser, and what cost nothing is not counted.
    pub ended: Usage,
    /// Attempts of questions that have not ended.
    pub unfinished: Usage,
    /// Attempts beside all tasks ([`crate::ids::TaskKey::OVERHEAD`]).
    pub overhead: Usage,
    /// The memory system's own calls, as the meter has seen them (P34).
    pub metered: Usage,
    /// Attempts of which nobody knows what they cost, at their worst case; they are in none of the others.
    pub uncertain: Usage,
    /// Of these, those that were under way when their worker was lost, by phase, in the order of [`Phase::ALL`]: calls, and dollars.
    pub lost: [(u64, PicoUsd); Phase::ALL.len()],
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// The reply passed its parser: it may be served again.
    Accepted,
    /// A reply came and was paid, but did not pass its parser: recorded, never served again.
    Rejected,
    /// The attempt ended without usage being known (cut, time-out): counted at its worst case.
    Uncertain,
}

/// Whose stored replies a run may use (`--cache`, P9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheScope {
    /// Those of its lineage: resumed, retried, forked and re-judged runs, grown samples.
    #[default]
    Lineage,
    /// Those of all runs of the store, the newest first: such runs are not independent of each other.
    Shared,
    /// Nobody's; the run's own are found by those alone that are forked from it.
    Off,
    /// Nobody's; the run's own are what later shared runs find.
    Refresh,
}

impl CacheScope {
    /// Names of all scopes, in order.
    pub const NAMES: [&str; 4] = ["lineage", "shared", "off", "refresh"];

    /// The scope's name in flags and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The scope of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Lineage, Self::Shared, Self::Off, Self::Refresh].into_iter().find(|scope| scope.name() == name)
    }

    /// Whether stored replies are looked for at all.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Lineage | Self::Shared)
    }
}

/// One paid (or possibly paid) attempt as the call store keeps it. Attempts that surely cost nothing (429, refused
/// connection) are only counted in [`Usage`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Own id of the attempt: a repeated commit changes nothing.
    pub attempt_id: uuid::Uuid,
    /// What was asked: sha256 of endpoint, model, parameters as sent, messages, question id and draw.
    pub key: Sha256Hash,
    /// Phase that pays.
    pub phase: Phase,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The reply's text; empty for uncertain attempts.
    pub reply: String,
    /// Why the reply ended (`stop`, `length`, …); empty in records of builds before this field.
    #[serde(default)]
    pub finish: String,
    /// The model's own name in the reply.
    pub model: String,
    /// Tokens that were sent, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens that came back.
    pub completion_tokens: u64,
    /// What was paid (worst case for uncertain attempts).
    pub cost: PicoUsd,
    /// Time from send to the end of the reply, in microseconds.
    pub duration_us: u64,
}
