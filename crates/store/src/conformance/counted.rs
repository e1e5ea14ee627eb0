//! A store whose front counts how often it is asked for money and slots.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use bench_proto::{call::Ledger, ids::RunNo, money::PicoUsd};

use crate::{
    BudgetAnswer, BudgetChange, BudgetState, GroupState, Money, Paces, RunRow, SessionId, SlotAnswer, SlotAsk, Store,
    StoreResult,
};

/// Counts transactions of money and exchanges of pace.
pub struct Counted {
    /// What answers.
    pub store: Arc<dyn Store>,
    asked: AtomicU64,
}

impl Counted {
    /// Counts from now on.
    #[must_use]
    pub fn new(store: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store: Arc::clone(store), asked: AtomicU64::new(0) })
    }

    /// Questions so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Paces for Counted {
    async fn take_slots(&self, ask: &SlotAsk) -> StoreResult<SlotAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.store.take_slots(ask).await
    }

    async fn release_holds(&self, run: RunNo, accounts: &[String]) -> StoreResult<()> {
        self.store.release_holds(run, accounts).await
    }
}

#[async_trait]
impl Money for Counted {
    async fn change_budget(&self, change: &BudgetChange) -> StoreResult<BudgetAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.store.change_budget(change).await
    }

    async fn lose_open(&self, run: RunNo, session: SessionId) -> StoreResult<()> {
        self.store.lose_open(run, session).await
    }

    async fn stop_account(&self, run: RunNo, account: &str, model: Option<&str>, why: &str) -> StoreResult<Vec<RunNo>> {
        self.store.stop_account(run, account, model, why).await
    }

    async fn release_uncertain(&self, run: RunNo) -> StoreResult<PicoUsd> {
        self.store.release_uncertain(run).await
    }

    async fn group(&self, run: RunNo) -> StoreResult<Option<GroupState>> {
        self.store.group(run).await
    }

    async fn usage(&self, run: &RunRow) -> StoreResult<Option<BudgetState>> {
        self.store.usage(run).await
    }

    async fn ledger(&self, run: &RunRow) -> StoreResult<Ledger> {
        self.store.ledger(run).await
    }
}
