//! What stands between a task and a memory system that is another process: a deadline for every operation, a breaker per
//! system and operation in the store so that ten workers do not each find out, and a look at what is lost when a recall
//! comes back empty.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_proto::{
    dataset::StreamEntry,
    failure::{Failure, FailureClass},
    server::ServerAddress,
};
use bench_store::{BreakerEvent, BreakerState, Store};
use tokio::sync::Semaphore;
use tracing::warn;

use crate::systems::{
    BankRef, Capabilities, Consolidation, Counted, MemorySystem, NativeAnswer, Prepared, Readiness, Recall,
    RecallQuery, RetainReceipt, SystemStats, adapter::UNREACHABLE,
};

/// Code of a failure that never reached the system: its breaker is open. The task is parked, nothing is counted.
pub(crate) const UNAVAILABLE: &str = "system_unavailable";
/// Code of the failure of a system that holds less than was stored in it.
pub(crate) const MEMORIES_LOST: &str = "memories_lost";
/// How long this process trusts what it last read of a breaker.
const TRUST: Duration = Duration::from_secs(1);
/// Longest wait for what a system says about itself.
const STATISTICS_WITHIN: Duration = Duration::from_secs(10);
/// How long ending a system waits for operations in flight.
const CLOSE_WAIT: Duration = Duration::from_secs(30);

/// A memory system behind its guard.
pub(crate) struct Guarded {
    system: Arc<dyn MemorySystem>,
    name: String,
    store: Arc<dyn Store>,
    known: Mutex<HashMap<&'static str, Known>>,
    active: AtomicUsize,
    /// Operations in flight in this process, when the system has a limit.
    slots: Option<Semaphore>,
}

/// What this process knows of a breaker.
#[derive(Debug, Clone, Copy)]
struct Known {
    at: Instant,
    state: BreakerState,
}

impl Guarded {
    /// Puts a guard around systems that need one.
    pub(crate) fn around(system: Arc<dyn MemorySystem>, name: &str, store: Arc<dyn Store>) -> Arc<dyn MemorySystem> {
        if !system.capabilities().remote {
            return system;
        }
        let name = format!("{name}@{}", system.place());
        let slots = system.capabilities().max_parallel.map(|most| Semaphore::new(most as usize));
        Arc::new(Self { slots, system, name, store, known: Mutex::default(), active: AtomicUsize::new(0) })
    }

    fn known(&self, operation: &'static str) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(operation).copied()
    }

    async fn tell(&self, operation: &'static str, event: BreakerEvent) -> BreakerState {
        let state = match self.store.breaker(&self.name, operation, event).await {
            Ok(state) => state,
            // without the store nothing is stored either, and the task will fail there
            Err(error) => {
                if !error.is_transient() {
                    warn!(code = "store", "the breaker of {} could not be read: {error}", self.name);
                }
                BreakerState::default()
            }
        };
        let known = Known { at: Instant::now(), state };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(operation, known);
        state
    }

    /// Whether the operation may begin.
    async fn admit(&self, operation: &'static str) -> Result<(), Failure> {
        let state = match self.known(operation) {
            Some(known) if known.at.elapsed() < TRUST && known.state.wait_ms == 0 && !known.state.troubled => {
                return Ok(());
            }
            Some(known)
                if known.state.wait_ms > 0
                    && known.at.elapsed() < TRUST.min(Duration::from_millis(known.state.wait_ms)) =>
            {
                known.state
            }
            _ => self.tell(operation, BreakerEvent::Ask).await,
        };
        if state.wait_ms == 0 {
            return Ok(());
        }
        let message = format!(
            "system unavailable: {} does not {operation} since {} failures in a row",
            self.name, state.failures
        );
        if state.opened > MOST_OPENINGS {
            return Err(Failure::terminal(UNAVAILABLE, message));
        }
        let mut failure = Failure::transient(UNAVAILABLE, message);
        failure.retry_after_ms = Some(state.wait_ms);
        Err(failure)
    }

    async fn guarded<T: Send>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, Failure>> + Send,
    ) -> Result<T, Failure> {
        let _slot = match &self.slots {
            Some(slots) => slots.acquire().await.ok(),
            None => None,
        };
        self.admit(operation).await?;
        self.active.fetch_add(1, Ordering::SeqCst);
        let active = Active(&self.active);
        let result = match self.system.capabilities().deadline {
            None => work.await,
            Some(deadline) => tokio::time::timeout(deadline, work).await.unwrap_or_else(|_| {
                let seconds = deadline.as_secs();
                Err(Failure::transient("system_timeout", format!("{operation}: {} hangs for {seconds} s", self.name)))
            }),
        };
        drop(active);
        match &result {
            Err(failure) if is_trouble(failure) => {
                let state = self.tell(operation, BreakerEvent::Failed).await;
                if state.wait_ms > 0 {
                    let code = failure.code.as_str();
                    warn!(code, "{} does not {operation}: {failure}; next try in {} ms", self.name, state.wait_ms);
                }
            }
            // it was not asked: its instance waits to be started
            Err(failure) if failure.code == UNAVAILABLE => {}
            _ if self.known(operation).is_some_and(|known| known.state.troubled) => {
                self.tell(operation, BreakerEvent::Succeeded).await;
            }
            _ => {}
        }
        result
    }
}

/// Openings in a row (about ten minutes) after which the run is paused instead of waiting on.
const MOST_OPENINGS: u32 = 16;

struct Active<'a>(&'a AtomicUsize);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a failure says that the system is in trouble, and not that this request was wrong.
fn is_trouble(failure: &Failure) -> bool {
    failure.class == FailureClass::Transient
        && (matches!(failure.code.as_str(), UNREACHABLE | "system_connection" | "system_timeout" | "system_cut_off")
            || failure.code.starts_with("system_http_5"))
}

/// Whether nothing can be said against the task: it waits until the system is back.
pub(crate) fn is_away(failure: &Failure) -> bool {
    failure.class == FailureClass::Transient && matches!(failure.code.as_str(), UNAVAILABLE | UNREACHABLE)
}

/// What is wrong with a count, when something is.
pub(crate) fn lost(bank: &BankRef, counted: Counted) -> Option<Failure> {
    (counted.found < counted.expected).then(|| {
        Failure::permanent(
            MEMORIES_LOST,
            format!(
                "bank {} holds {} of {} items that were stored in it",
                bank.bank_id, counted.found, counted.expected
            ),
        )
    })
}

#[async_trait]
impl MemorySystem for Guarded {
    fn capabilities(&self) -> &Capabilities {
        self.system.capabilities()
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        self.guarded("open", self.system.open_bank(bank)).await
    }

    async fn retain(&self, bank: &BankRef, entries: &[StreamEntry]) -> Result<RetainReceipt, Failure> {
        self.system.on_this_machine(bank)?;
        self.guarded("retain", self.system.retain(bank, entries)).await
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.system.on_this_machine(bank)?;
        self.guarded("ready", self.system.readiness(bank, entries)).await
    }

    /// A part of the operation that follows: its failure counts as that one's, its success says nothing about it.
    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        self.system.on_this_machine(bank)?;
        let operation = if query.is_some() { "recall" } else { "open" };
        self.admit(operation).await?;
        let prepared = self.system.prepare(bank, query).await;
        if prepared.as_ref().is_err_and(is_trouble) {
            self.tell(operation, BreakerEvent::Failed).await;
        }
        prepared
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        self.system.on_this_machine(bank)?;
        let recall = self.guarded("recall", self.system.recall(bank, query)).await?;
        if recall.hits.is_empty()
            && self.capabilities().recalls
            && let Some(counted) = self.verify(bank, query.visible_entries).await?
            && let Some(failure) = lost(bank, counted)
        {
            return Err(failure);
        }
        Ok(recall)
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        self.system.on_this_machine(bank)?;
        self.guarded("reset", self.system.reset_bank(bank)).await
    }

    async fn health(&self) -> Result<String, Failure> {
        self.system.health().await
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        self.system.on_this_machine(bank)?;
        self.guarded("consolidate", self.system.consolidate(bank)).await
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        self.system.on_this_machine(bank)?;
        self.guarded("answer", self.system.answer(bank, query)).await
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        if !self.capabilities().verifies {
            return Ok(None);
        }
        self.system.on_this_machine(bank)?;
        self.guarded("verify", self.system.verify(bank, entries)).await
    }

    /// Without the breaker: what is only said for the report says nothing about whether the system works.
    async fn statistics(&self, bank: &BankRef) -> Result<SystemStats, Failure> {
        self.system.on_this_machine(bank)?;
        let asked = tokio::time::timeout(STATISTICS_WITHIN, self.system.statistics(bank)).await;
        asked.unwrap_or_else(|_| Err(Failure::transient("system_timeout", "statistics: no reply in time")))
    }

    fn on_this_machine(&self, bank: &BankRef) -> Result<(), Failure> {
        self.system.on_this_machine(bank)
    }

    fn place(&self) -> String {
        self.system.place()
    }

    async fn server(&self, bank: &BankRef) -> Option<ServerAddress> {
        self.system.server(bank).await
    }

    async fn close(&self) {
        let asked = Instant::now();
        while self.active.load(Ordering::SeqCst) > 0 && asked.elapsed() < CLOSE_WAIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.system.close().await;
    }
}
