//! The hard cap on spending (P10): reserve the worst case, send, settle what it really cost.
//!
//! `spent + reserved ≤ cap` holds at every moment; only a call that costs more than its own worst case can pass the cap,
//! by that excess, and is reported as overdraft. A reservation that does not fit waits while others are outstanding; when
//! none is, the smallest waiting one decides: if even that does not fit, all are refused.
//!
//! The run's money is in the store and reached through the process's [`reservations::Reservations`]. [`LocalBudget`] keeps the same
//! promises for callers without a store.

mod local;
pub mod reservations;

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{call::Phase, money::PicoUsd};
use bench_store::BudgetScope;
use uuid::Uuid;

pub use self::local::{LocalBudget, LocalState};

/// Money of one run.
#[async_trait]
pub trait Budget: Send + Sync {
    /// Reserves a bound that costs nothing to compute, while that leaves most of the money free. `None`: count the prompt,
    /// and reserve exactly.
    async fn reserve_generously(&self, phase: Phase, bound: PicoUsd) -> Option<Reservation>;

    /// Reserves `amount`, waiting for the settlement of others while there are any.
    ///
    /// # Errors
    /// When it does not fit and nothing is outstanding, or when nothing can be reserved any more.
    async fn reserve(&self, phase: Phase, amount: PicoUsd) -> Result<Reservation, Refusal>;
}

/// Why money is not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It does not fit, and nothing is outstanding that could make room.
    OverCap(OverCap),
    /// The run does not run any more, or the store gives nothing; for people.
    Stopped(String),
}

/// A reservation does not fit and nothing is outstanding that could make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverCap {
    /// Worst case of the call.
    pub needed: PicoUsd,
    /// What is left under the cap.
    pub left: PicoUsd,
    /// Most that may be spent, in pico-dollars.
    pub cap: PicoUsd,
    /// The cap that refuses.
    pub scope: BudgetScope,
}

fn amount(scope: BudgetScope, of: PicoUsd) -> String {
    match scope {
        BudgetScope::Usage(unit) => unit.counted(of.0),
        _ => of.to_string(),
    }
}

fn use_of(scope: BudgetScope, needed: PicoUsd) -> String {
    let does = if matches!(scope, BudgetScope::Usage(_)) { "use" } else { "cost" };
    format!("{does} {}", amount(scope, needed))
}

impl OverCap {
    /// What does not fit, with the commands that go on with a run of this id.
    #[must_use]
    pub fn of_run(&self, run: &str) -> String {
        let &Self { needed, left, cap, scope } = self;
        format!(
            "the next call may {}, {} are left under {}",
            use_of(scope, needed),
            amount(scope, left),
            advice(scope, cap, run)
        )
    }
}

fn advice(scope: BudgetScope, cap: PicoUsd, run: &str) -> String {
    match scope {
        BudgetScope::Run => {
            format!(
                "the cap, against which uncertain attempts count too: raise it with `bench-coord resume {run} --max-cost USD`, or \
                 `bench-coord resume {run} --release-uncertain` when you know what was paid"
            )
        }
        BudgetScope::Group => {
            format!(
                "the group's cap of {cap} for all runs of one command: raise it with `bench-coord resume {run} --max-cost USD`"
            )
        }
        BudgetScope::Phase(phase) => {
            let phase = phase.name();
            format!("the cap of phase {phase}: raise it with `bench-coord resume {run} --set run.max_cost_{phase}=USD`")
        }
        BudgetScope::Usage(unit) => {
            let most = amount(scope, cap);
            format!(
                "the cap of {most}, against which uncertain attempts count too: raise it with `bench-coord resume {run} --max-cost \
                 N{}`, or `bench-coord resume {run} --release-uncertain` when you know what was used",
                unit.name()
            )
        }
        BudgetScope::Day => format!(
            "the cap of the day: raise it with `bench-coord resume {run} --max-cost-per-day USD`, or go on after midnight UTC"
        ),
    }
}

/// What became of a reserved attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was not sent, or surely cost nothing.
    Free,
    /// It cost this; its record is on the way to the store.
    Settled(PicoUsd),
    /// It was sent, and nobody will know.
    Lost,
}

/// Who gave a reservation.
trait Holder: Send + Sync {
    fn ended(self: Arc<Self>, id: Uuid, phase: Phase, amount: PicoUsd, end: Ended);
}

/// A reserved worst case of one attempt. Dropping it releases it when the attempt was not sent, and gives it up for lost
/// when it was.
pub struct Reservation {
    /// `None` once it has ended.
    holder: Option<Arc<dyn Holder>>,
    id: Uuid,
    phase: Phase,
    amount: PicoUsd,
    sent: bool,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, phase, amount, sent, .. } = self;
        f.debug_struct("Reservation")
            .field("id", id)
            .field("phase", phase)
            .field("amount", amount)
            .field("sent", sent)
            .finish()
    }
}

impl Reservation {
    fn new(holder: Arc<dyn Holder>, id: Uuid, phase: Phase, amount: PicoUsd) -> Self {
        Self { holder: Some(holder), id, phase, amount, sent: false }
    }

    /// Id of the attempt, also of its record.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// The reserved amount.
    #[must_use]
    pub const fn amount(&self) -> PicoUsd {
        self.amount
    }

    /// Notes that the attempt is being sent: from now on dropping gives it up for lost.
    pub const fn sent(&mut self) {
        self.sent = true;
    }

    /// Notes what the attempt cost; its record settles it in the store.
    pub fn settle(mut self, actual: PicoUsd) {
        self.end(Ended::Settled(actual));
    }

    /// Gives the money back: the attempt surely cost nothing.
    pub fn free(mut self) {
        self.end(Ended::Free);
    }

    fn end(&mut self, end: Ended) {
        if let Some(holder) = self.holder.take() {
            holder.ended(self.id, self.phase, self.amount, end);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end(if self.sent { Ended::Lost } else { Ended::Free });
    }
}
