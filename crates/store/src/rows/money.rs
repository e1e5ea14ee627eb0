//! Money under caps: what is asked for, and what became of it (P10, P41).

use bench_proto::{call::Phase, ids::RunNo, money::PicoUsd, usage_cap::UsageUnit};

use super::processes::SessionId;

/// Money of a group: the sums of its runs, in one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// Public id.
    pub id: String,
    /// The cap, if there is one.
    pub cap: Option<PicoUsd>,
    /// Booked, uncertain attempts included.
    pub spent: PicoUsd,
    /// Reserved by all processes.
    pub reserved: PicoUsd,
    /// Number of its runs.
    pub runs: u64,
}

/// Money that an attempt may cost, asked for before it is sent (P10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// Id of the attempt: also that of its call record, if there will be one.
    pub attempt: uuid::Uuid,
    /// Phase that pays.
    pub phase: Phase,
    /// Its worst case; above 0. Of a run with a cap on its usage a number of that unit, here and wherever its caps are told.
    pub amount: PicoUsd,
}

/// What one process changes about the reserved money of a run, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetChange {
    /// Number of the run whose money it is.
    pub run: RunNo,
    /// The worker session that reserves: when it ends, its open reservations become uncertain.
    pub session: SessionId,
    /// Attempts that were never sent, or surely cost nothing: their reservations are gone.
    pub release: Vec<uuid::Uuid>,
    /// Attempts that were sent and given up (`cancel --now`): uncertain at their worst case.
    pub lose: Vec<uuid::Uuid>,
    /// Attempts that shall be sent, the most urgent first; one that is reserved already is granted again.
    pub wants: Vec<Want>,
}

/// For what a cap holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    /// The cap of the run itself.
    Run,
    /// All runs of the run's group, in the place of the run's own cap.
    Group,
    /// One phase of the run.
    Phase(Phase),
    /// The UTC day by the database's clock, over all runs of the store.
    Day,
    /// Tokens or calls of the run itself, in the place of all caps on dollars.
    Usage(UsageUnit),
}

impl BudgetScope {
    /// Whether a phase's attempts count under this cap.
    #[must_use]
    pub fn holds(self, phase: Phase) -> bool {
        match self {
            Self::Run | Self::Group | Self::Day | Self::Usage(_) => true,
            Self::Phase(of) => of == phase,
        }
    }
}

/// Money under one cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetState {
    /// For what the cap holds.
    pub scope: BudgetScope,
    /// Most that may be spent and reserved within the scope.
    pub cap: PicoUsd,
    /// Booked, uncertain attempts included.
    pub spent: PicoUsd,
    /// Reserved by all processes.
    pub reserved: PicoUsd,
}

impl BudgetState {
    /// What is left; negative after an overdraft.
    #[must_use]
    pub const fn left(&self) -> PicoUsd {
        PicoUsd(self.cap.0.saturating_sub(self.spent.0).saturating_sub(self.reserved.0))
    }
}

/// What became of a [`BudgetChange`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BudgetAnswer {
    /// Places of wants that do not fit, with the first cap that refuses each.
    pub refused: Vec<(usize, BudgetScope)>,
    /// All caps of the run as they are now.
    pub caps: Vec<BudgetState>,
    /// The run does not run, or the session has ended: nothing was reserved.
    pub stopped: bool,
}
