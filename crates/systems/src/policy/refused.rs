//! In place of a system that is not allowed here: it says so to whoever asks it. What needs no memory system, such as grading
//! answers that are stored, goes on.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use bench_proto::{dataset::StreamEntry, failure::Failure};

use crate::{
    BankRef, Capabilities, ListCursor, ListedPage, MemorySystem, NativeAnswer, Prepared, Readiness, Recall,
    RecallQuery, RetainReceipt, StepContext,
};

/// A system that is not allowed.
pub struct RefusedSystem {
    capabilities: Capabilities,
    failure: Failure,
}

impl RefusedSystem {
    /// Of what its adapter says it could do; each operation fails with `failure`.
    #[must_use]
    pub fn instead(capabilities: Capabilities, failure: Failure) -> Arc<dyn MemorySystem> {
        Arc::new(Self { capabilities, failure })
    }

    fn refuse<T>(&self) -> Result<T, Failure> {
        Err(self.failure.clone())
    }
}

#[async_trait]
impl MemorySystem for RefusedSystem {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open_bank(&self, _bank: &BankRef) -> Result<String, Failure> {
        self.refuse()
    }

    async fn retain(
        &self,
        _bank: &BankRef,
        _entries: &[StreamEntry],
        _step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        self.refuse()
    }

    async fn readiness(&self, _bank: &BankRef, _entries: u32) -> Result<Readiness, Failure> {
        self.refuse()
    }

    async fn prepare(&self, _bank: &BankRef, _query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        self.refuse()
    }

    async fn recall(&self, _bank: &BankRef, _query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        self.refuse()
    }

    async fn answer(&self, _bank: &BankRef, _query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        self.refuse()
    }

    async fn list(&self, _bank: &BankRef, _entries: u32, _from: &ListCursor) -> Result<ListedPage, Failure> {
        self.refuse()
    }

    async fn reset_bank(&self, _bank: &BankRef) -> Result<(), Failure> {
        self.refuse()
    }

    async fn export_bank(&self, _bank: &BankRef, _to: &Path, _most: u64) -> Result<u64, Failure> {
        self.refuse()
    }

    async fn import_bank(&self, _bank: &BankRef, _from: &Path) -> Result<(), Failure> {
        self.refuse()
    }

    async fn health(&self) -> Result<String, Failure> {
        self.refuse()
    }
}
