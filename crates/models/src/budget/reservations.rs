//! What a process reserves of a run's money before its calls: its front to the store's budget (P10).
//!
//! One task per run and process reserves for all calls that wait, in one transaction at a time and at most one per
//! `GATHER`. While calls are many and money is plenty, it also keeps a small float of reserved attempts that are not
//! sent yet, so that calls need not wait for a transaction. The float is given back when it is not used, when the cap
//! comes near, and when the run stops.

mod plan;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bench_proto::{call::Phase, ids::RunNo, money::PicoUsd};
use bench_store::{BudgetAnswer, BudgetChange, Money, RunRow, SessionId, StoreResult, retry_until};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use uuid::Uuid;

use self::plan::{Given, Plan};
use super::{Budget, Ended, Holder, Refusal, Reservation};

/// Shortest time between the beginnings of two transactions.
const GATHER: Duration = Duration::from_millis(10);
/// How often a process with a float looks whether it is used.
const LOOK: Duration = Duration::from_millis(250);
/// How often calls that do not fit ask again while others may make room.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Wait after a change that the store has refused.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

type Answer = oneshot::Sender<Result<Reservation, Refusal>>;

/// The front of a run's money. Dropping it closes it.
pub struct Reservations(Arc<Inner>);

struct Inner {
    plan: Mutex<Plan<Answer>>,
    wake: Notify,
    /// Cancelled when they are closed.
    closed: CancellationToken,
    /// Told when everything that was held when they were closed has been given back.
    empty: Notify,
}

/// The store's side of them.
struct Account {
    store: Arc<dyn Money>,
    run: RunNo,
    session: SessionId,
}

impl Reservations {
    /// Opens the reservations of a run for a worker's session.
    #[must_use]
    pub fn open(store: Arc<dyn Money>, run: &RunRow, session: SessionId) -> Self {
        let inner = Arc::new(Inner {
            plan: Mutex::new(Plan::new(run)),
            wake: Notify::new(),
            closed: CancellationToken::new(),
            empty: Notify::new(),
        });
        let account = Account { store, run: run.run_no, session };
        tokio::spawn(serve(Arc::clone(&inner), account));
        Self(inner)
    }

    /// Whether calls wait here that a cap has refused: what is booked now may make room for them.
    #[must_use]
    pub fn are_starving(&self) -> bool {
        self.0.lock().has_refused()
    }

    /// Takes no more calls and gives back what is not in use.
    pub async fn close(&self) {
        let empty = self.0.empty.notified();
        tokio::pin!(empty);
        empty.as_mut().enable();
        if self.0.close() {
            empty.await;
        }
    }
}

impl Drop for Reservations {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Plan<Answer>> {
        // every change of the state is complete when the lock is dropped, so a panic elsewhere leaves it usable
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no more calls; false when nothing was left to give back.
    fn close(&self) -> bool {
        let left = self.lock().close();
        self.closed.cancel();
        if left {
            self.wake.notify_one();
        }
        left
    }

    fn reservation(self: &Arc<Self>, id: Uuid, phase: Phase, amount: i64) -> Reservation {
        Reservation::new(Arc::clone(self) as Arc<dyn Holder>, id, phase, PicoUsd(amount))
    }

    /// Takes from the float, or joins those who wait.
    async fn ask(self: &Arc<Self>, phase: Phase, amount: i64, once: bool) -> Result<Reservation, Refusal> {
        if amount <= 0 {
            // nothing to reserve, nothing to settle
            return Ok(Reservation::new(Arc::new(Nobody), Uuid::now_v7(), phase, PicoUsd::ZERO));
        }
        let answer = {
            let mut plan = self.lock();
            match plan.take(phase, amount) {
                Given::FromFloat { id, amount, low } => {
                    drop(plan);
                    if low {
                        self.wake.notify_one();
                    }
                    return Ok(self.reservation(id, phase, amount));
                }
                Given::Closed => return Err(Refusal::Stopped("the run is stopping".to_owned())),
                Given::Nothing => {
                    let (sender, receiver) = oneshot::channel();
                    plan.wait(phase, amount, once, sender);
                    receiver
                }
            }
        };
        self.wake.notify_one();
        // the sender is dropped unanswered only when the reservations are closed
        answer.await.unwrap_or_else(|_| Err(Refusal::Stopped("the run is stopping".to_owned())))
    }
}

#[async_trait]
impl Budget for Reservations {
    async fn reserve_generously(&self, phase: Phase, bound: PicoUsd) -> Option<Reservation> {
        if !self.0.lock().roomy(phase, bound.0) {
            return None;
        }
        self.0.ask(phase, bound.0, true).await.ok()
    }

    async fn reserve(&self, phase: Phase, amount: PicoUsd) -> Result<Reservation, Refusal> {
        self.0.ask(phase, amount.0, false).await
    }
}

impl Holder for Inner {
    fn ended(self: Arc<Self>, id: Uuid, phase: Phase, amount: PicoUsd, end: Ended) {
        let mut plan = self.lock();
        let wake = match end {
            Ended::Free => plan.give_back(id, phase, amount.0),
            Ended::Lost => {
                plan.lose(id);
                true
            }
            // its record does it, in the transaction of the checkpoint
            Ended::Settled(_) => plan.starving(),
        };
        drop(plan);
        if wake {
            self.wake.notify_one();
        }
    }
}

/// Holds what costs nothing.
struct Nobody;

impl Holder for Nobody {
    fn ended(self: Arc<Self>, _: Uuid, _: Phase, _: PicoUsd, _: Ended) {}
}

/// The one task that speaks with the store.
async fn serve(inner: Arc<Inner>, account: Account) {
    let mut begun = Instant::now().checked_sub(GATHER).unwrap_or_else(Instant::now);
    loop {
        let pause = inner.lock().pause();
        match pause {
            Some(pause) => drop(tokio::time::timeout(pause, inner.wake.notified()).await),
            None => inner.wake.notified().await,
        }
        tokio::time::sleep_until(begun + GATHER).await;
        begun = Instant::now();
        let (change, asked) = {
            let mut plan = inner.lock();
            let (wants, asked) = plan.wants(begun.into_std());
            let (release, lose) = plan.returns();
            (BudgetChange { run: account.run, session: account.session, release, lose, wants }, asked)
        };
        let nothing = change.wants.is_empty() && change.release.is_empty() && change.lose.is_empty();
        if nothing {
            if inner.lock().is_done() {
                break;
            }
            continue;
        }
        let answers = match account.persist(&inner, &change).await {
            Ok(answer) => inner.lock().answered(begun.into_std(), asked, &change.wants, &answer),
            Err(error) => {
                // closed reservations do not wait, and its calls have ended
                if !error.is_transient() {
                    warn!(code = "store", "money of run number {} cannot be reserved: {error}", account.run.0);
                }
                begun += AFTER_FAILURE;
                inner.lock().failed(asked, change, &error.to_string())
            }
        };
        // outside the lock: an answer whose reader has gone drops its reservation, which comes back here
        for (answer, outcome) in answers {
            let outcome = outcome.map(|(id, phase, amount)| inner.reservation(id, phase, amount));
            let _ = answer.send(outcome);
        }
        if inner.lock().is_done() {
            break;
        }
    }
    debug!("the reservations of run {} are closed", account.run.0);
    inner.empty.notify_waiters();
}

impl Account {
    /// Makes a change in the store: every reservation has its own id, so one of which nobody knows may be repeated. Who closes
    /// does not wait for a store that is away: what one last try leaves reserved becomes uncertain with the session.
    async fn persist(&self, inner: &Inner, change: &BudgetChange) -> StoreResult<BudgetAnswer> {
        match retry_until(inner.closed.cancelled(), || self.store.change_budget(change)).await {
            Err(error) if error.is_transient() => self.store.change_budget(change).await,
            result => result,
        }
    }
}

#[cfg(test)]
mod tests;
