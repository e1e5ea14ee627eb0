//! A class in several processes side by side: each has banks of its own, so that none has to share what it holds in memory.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use async_trait::async_trait;
use bench_proto::{dataset::StreamEntry, failure::Failure};
use futures::future::join_all;

use super::ProcessSystem;
use crate::{
    BankRef, Capabilities, Consolidation, Counted, ListCursor, ListedPage, MemorySystem, NativeAnswer, Prepared,
    Readiness, Recall, RecallQuery, RetainReceipt, StepContext, SystemStats,
};

/// The processes of a class; there is one at least.
pub(super) struct Several {
    first: Arc<ProcessSystem>,
    further: Vec<Arc<ProcessSystem>>,
}

impl Several {
    pub(super) fn new(first: Arc<ProcessSystem>, further: Vec<Arc<ProcessSystem>>) -> Self {
        Self { first, further }
    }

    /// The process that has a bank: always the same one.
    fn process_of(&self, bank: &BankRef) -> &ProcessSystem {
        let mut hasher = DefaultHasher::new();
        bank.bank_id.hash(&mut hasher);
        let at = hasher.finish() % (self.further.len() as u64 + 1);
        usize::try_from(at).ok().and_then(|at| self.further.get(at)).unwrap_or(&self.first)
    }
}

#[async_trait]
impl MemorySystem for Several {
    fn capabilities(&self) -> &Capabilities {
        self.first.capabilities()
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        self.process_of(bank).open_bank(bank).await
    }

    fn together(&self, entries: &[StreamEntry]) -> usize {
        self.first.together(entries)
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        self.process_of(bank).retain(bank, entries, step).await
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.process_of(bank).readiness(bank, entries).await
    }

    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        self.process_of(bank).prepare(bank, query).await
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        self.process_of(bank).recall(bank, query).await
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        self.process_of(bank).reset_bank(bank).await
    }

    async fn health(&self) -> Result<String, Failure> {
        self.first.health().await
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        self.process_of(bank).consolidate(bank).await
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        self.process_of(bank).answer(bank, query).await
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        self.process_of(bank).verify(bank, entries).await
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        self.process_of(bank).list(bank, entries, from).await
    }

    async fn statistics(&self, bank: &BankRef) -> Result<SystemStats, Failure> {
        self.process_of(bank).statistics(bank).await
    }

    fn started_again(&self) -> Vec<String> {
        let all = std::iter::once(&self.first).chain(&self.further);
        all.flat_map(|process| process.started_again()).collect()
    }

    async fn close(&self) {
        let all = std::iter::once(&self.first).chain(&self.further);
        join_all(all.map(|process| process.close())).await;
    }
}
