//! `faulty`: `bm25` that fails or panics by lot, once per question, for rehearsing how a run takes it. A run over it ends
//! with the same hits as `bm25`, only with more attempts; except for the questions that end their worker's process each time.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bench_proto::{dataset::StreamEntry, failure::Failure, ids::Sha256Hash};

use super::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, Readiness, Recall, RecallQuery, RetainReceipt,
    SystemSettings, bm25,
    settings::{Setting, number},
};

const PANIC: Setting =
    Setting { name: "faulty.panic", description: "share of questions whose first recall panics, 0 to 1", default: "0" };
const ERROR: Setting =
    Setting { name: "faulty.error", description: "share of questions whose first recall fails, 0 to 1", default: "0" };

const KILL: Setting = Setting {
    name: "faulty.kill",
    description: "share of questions whose recall ends the process, every time, 0 to 1",
    default: "0",
};

/// The settings of the system.
pub(super) const SETTINGS: &[Setting] = &[PANIC, ERROR, KILL];

struct Faulty {
    inner: Arc<dyn MemorySystem>,
    panic: f64,
    error: f64,
    kill: f64,
    /// Questions that have had their fault in this process; bounded by the run's sample.
    struck: Mutex<HashSet<String>>,
}

/// Builds the system.
pub(super) fn build(settings: &SystemSettings, context: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    Ok(Arc::new(Faulty {
        inner: bm25::build(&SystemSettings::new(), context)?,
        panic: number(settings, &PANIC, 0.0, 1.0)?,
        error: number(settings, &ERROR, 0.0, 1.0)?,
        kill: number(settings, &KILL, 0.0, 1.0)?,
        struck: Mutex::default(),
    }))
}

impl Faulty {
    /// Whether the lot falls on a question, as a pure function of kind and question id.
    fn lot(kind: &str, question_id: &str, share: f64) -> bool {
        let hash = Sha256Hash::of(format!("bench-faulty-v1\n{kind}\n{question_id}").as_bytes());
        let number = hash.0[..4].iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
        f64::from(number) / f64::from(u32::MAX) < share
    }

    fn strike(&self, question_id: &str) -> Result<(), Failure> {
        if Self::lot("kill", question_id, self.kill) {
            // as memory that runs out would: without a word, and without anybody who could catch it
            std::process::abort();
        }
        let first = self.struck.lock().unwrap_or_else(PoisonError::into_inner).insert(question_id.to_owned());
        if first && Self::lot("panic", question_id, self.panic) {
            panic!("the lot fell on {question_id}");
        }
        if first && Self::lot("error", question_id, self.error) {
            return Err(Failure::transient("faulty", format!("the lot fell on {question_id}")));
        }
        Ok(())
    }
}

#[async_trait]
impl MemorySystem for Faulty {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        self.inner.open_bank(bank).await
    }

    async fn retain(&self, bank: &BankRef, entries: &[StreamEntry]) -> Result<RetainReceipt, Failure> {
        self.inner.retain(bank, entries).await
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.inner.readiness(bank, entries).await
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        self.strike(query.question_id)?;
        self.inner.recall(bank, query).await
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        self.inner.reset_bank(bank).await
    }

    async fn health(&self) -> Result<String, Failure> {
        self.inner.health().await
    }
}
