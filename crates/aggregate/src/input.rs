//! What aggregation must know of a run beside its questions.

use std::collections::BTreeSet;

use bench_proto::{
    call::Ledger,
    ids::RunId,
    metered::MeteredCalls,
    money::PicoUsd,
    spec::RunSpec,
    stop::Looks,
    summary::{AccountsSpent, ControlScore, GroupSummary, MeteredRefused},
};

use crate::{compare::DEFAULT_STATS_SEED, instrument::Instrument};

/// Identity, status and times of a run, as the store knows them.
#[derive(Debug, Clone, PartialEq)]
pub struct RunIdentity {
    /// Public id.
    pub id: RunId,
    /// Name given by the user.
    pub name: Option<String>,
    /// State of the run in words.
    pub status: String,
    /// Versions of all builds that stored a checkpoint, without repeats.
    pub code_versions: Vec<String>,
    /// RFC 3339, UTC.
    pub started_at: Option<String>,
    /// RFC 3339, UTC.
    pub finished_at: Option<String>,
    /// Seconds in which it was being worked on.
    pub wall_seconds: Option<f64>,
    /// Times it was resumed.
    pub resumed_times: u64,
}

/// Result of the grader self-check before the first paid question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelfCheck {
    /// It did not run.
    NotRun,
    /// Gold scores 1, the empty answer 0, the whole conversation less than 0.5.
    Passed,
    /// As far as the scorers claim it, and one line says what readers must know.
    Noted(String),
    /// It did not; one line says what was seen.
    Failed(String),
}

/// Whether canaries can say anything about the run's memory system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canaries {
    /// Canaries can say something.
    Possible,
    /// Canaries can say nothing, for this reason.
    Impossible(&'static str),
}

/// All of it. Start from [`AggregateInput::new`] and set what is known.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateInput {
    /// Effective settings of the run.
    pub spec: RunSpec,
    /// Identity, status and times.
    pub run: RunIdentity,
    /// The metric that heads the report instead of the spec's own (imported grades).
    pub headline_metric: Option<String>,
    /// The system has no memory by design (`none`): empty contexts are no fault.
    pub empty_context_expected: bool,
    /// Hits that the system could be asked for after its own cap; `None` when it is not known.
    pub effective_k: Option<u32>,
    /// Result of the grader self-check.
    pub self_check: SelfCheck,
    /// Controls that were run beside it.
    pub controls: Vec<ControlScore>,
    /// The controls `oracle` and `none`, question by question, when both have ended.
    pub instrument: Option<Instrument>,
    /// The system is another process: what it does with models is known only as far as it tells.
    pub is_remote: bool,
    /// It stores each turn by itself: its banks have as many things to find as turns.
    pub stores_turns: bool,
    /// It is computed from the stored items, and holds all that was retained.
    pub holds_all: bool,
    /// Whether canaries can be sent into its banks.
    pub canaries: Canaries,
    /// What the store's ledger says of it; `None` where nothing was booked (imported grades).
    pub ledger: Option<Ledger>,
    /// What its memory system has called itself; `None` where that was not metered.
    pub metered: Option<Vec<MeteredCalls>>,
    /// Calls of its memory system that the meter itself has refused.
    pub metered_refused: Vec<MeteredRefused>,
    /// Calls of its memory system that were under way when a process was killed, and the most that they have cost.
    pub metered_lost: (u64, PicoUsd),
    /// Models of paid providers that have answered its memory system, and of which nobody knows what they cost.
    pub unpriced: BTreeSet<String>,
    /// What the accounts of a metered run say was spent meanwhile; `None` where they do not say it.
    pub accounts_spent: Option<AccountsSpent>,
    /// The runs that were started with it.
    pub group: Option<GroupSummary>,
    /// What its looks have found, where it may stop early.
    pub looks: Option<Looks>,
    /// Ids of other runs whose stored replies it used.
    pub calls_of: Vec<String>,
    /// Seed of the bootstrap.
    pub stats_seed: u64,
}

impl AggregateInput {
    /// The input of a run of which nothing further is known; the verdict's rules without data stay `not checked`.
    #[must_use]
    pub fn new(spec: RunSpec, run: RunIdentity) -> Self {
        let empty_context_expected = spec.system.name == "none";
        Self {
            spec,
            run,
            headline_metric: None,
            empty_context_expected,
            effective_k: None,
            self_check: SelfCheck::NotRun,
            controls: Vec::new(),
            instrument: None,
            is_remote: false,
            stores_turns: false,
            holds_all: false,
            canaries: Canaries::Impossible("the system is not known"),
            ledger: None,
            accounts_spent: None,
            metered: None,
            metered_refused: Vec::new(),
            metered_lost: (0, PicoUsd::ZERO),
            unpriced: BTreeSet::new(),
            group: None,
            looks: None,
            calls_of: Vec::new(),
            stats_seed: DEFAULT_STATS_SEED,
        }
    }

    /// The metric that heads the report.
    #[must_use]
    pub fn headline_metric(&self) -> String {
        self.headline_metric.clone().unwrap_or_else(|| self.spec.headline_metric())
    }
}
