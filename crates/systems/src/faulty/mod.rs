//! `faulty`: `bm25` that fails or panics by lot, once per question, for rehearsing how a run takes it. A run over it ends
//! with the same hits as `bm25`, only with more attempts; except for the questions that end their worker's process each time.
//! It can also keep its banks outside of the store, where a retain of unknown outcome matters (P5).

mod outside;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bench_proto::{dataset::StreamEntry, failure::Failure, ids::Sha256Hash};
use outside::Outside;

use crate::{
    BankRef, BuildContext, BuildError, Capabilities, ListCursor, ListedPage, MemorySystem, Prepared, Readiness, Recall,
    RecallQuery, RetainReceipt, StepContext, SystemSettings, bm25,
    settings::{Setting, number, text},
};

const PANIC: Setting = Setting::new("faulty.panic", "share of questions whose first recall panics, 0 to 1", "0");
const ERROR: Setting = Setting::new("faulty.error", "share of questions whose first recall fails, 0 to 1", "0");
const KILL: Setting =
    Setting::new("faulty.kill", "share of questions whose recall ends the process, every time, 0 to 1", "0");
const MEMORY: Setting = Setting::new(
    "faulty.memory",
    "folder in which banks are kept outside of the store; what is written twice is there twice",
    "",
);
const RETAIN: Setting =
    Setting::new("faulty.retain", "share of entries that are written outside and whose answer is lost, 0 to 1", "0");
const RETAIN_MS: Setting =
    Setting::new("faulty.retain_ms", "milliseconds that it takes to write an entry outside", "0");

/// Longest time that an entry may take.
const LONGEST_RETAIN_MS: f64 = 60_000.0;

pub(crate) const SETTINGS: &[Setting] = &[PANIC, ERROR, KILL, MEMORY, RETAIN, RETAIN_MS];

struct Faulty {
    inner: Arc<dyn MemorySystem>,
    capabilities: Capabilities,
    outside: Option<Outside>,
    retain: f64,
    panic: f64,
    error: f64,
    kill: f64,
    /// Questions that have had their fault in this process; bounded by the run's sample.
    struck: Mutex<HashSet<String>>,
}

pub(crate) fn build(settings: &SystemSettings, context: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let inner = bm25::build(&SystemSettings::new(), context)?;
    let takes = Duration::from_secs_f64(number(settings, &RETAIN_MS, 0.0, LONGEST_RETAIN_MS)? / 1000.0);
    let folder = text(settings, &MEMORY)?;
    let outside = (!folder.is_empty()).then(|| Outside { folder: folder.into(), takes });
    let capabilities = match &outside {
        None => inner.capabilities().clone(),
        Some(_) => Capabilities {
            max_batch: 1,
            ordered: true,
            retain_idempotent: false,
            from_items: false,
            // what is outside is read with each recall
            lists: false,
            ..inner.capabilities().clone()
        },
    };
    Ok(Arc::new(Faulty {
        inner,
        capabilities,
        outside,
        retain: number(settings, &RETAIN, 0.0, 1.0)?,
        panic: number(settings, &PANIC, 0.0, 1.0)?,
        error: number(settings, &ERROR, 0.0, 1.0)?,
        kill: number(settings, &KILL, 0.0, 1.0)?,
        struck: Mutex::default(),
    }))
}

impl Faulty {
    /// Whether the lot falls on a question, as a pure function of kind and question id.
    fn lot(kind: &str, question_id: &str, share: f64) -> bool {
        let hash = Sha256Hash::of_bytes(format!("bench-faulty-v1\n{kind}\n{question_id}").as_bytes());
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

/// What tells an entry from all others of its bank.
fn name_of(entry: &StreamEntry) -> String {
    match entry {
        StreamEntry::Session(session) if session.part > 0 => format!("{} part {}", session.id, session.part),
        StreamEntry::Update { replaces, memory: None } => format!("withdrawal of {replaces}"),
        StreamEntry::Update { replaces, memory: Some(memory) } if *replaces == memory.id => {
            format!("update of {replaces}")
        }
        other => other.id().to_owned(),
    }
}

#[async_trait]
impl MemorySystem for Faulty {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        self.inner.open_bank(bank).await
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        let Some(outside) = &self.outside else { return self.inner.retain(bank, entries, step).await };
        let receipt = outside.retain(bank, entries).await?;
        // another generation is another name, and draws anew
        let lost =
            |entry: &&StreamEntry| Self::lot("retain", &format!("{} {}", bank.name, name_of(entry)), self.retain);
        match entries.iter().find(lost) {
            Some(entry) => Err(Failure::transient("faulty", format!("the answer to {} was lost", name_of(entry)))),
            None => Ok(receipt),
        }
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.inner.readiness(bank, entries).await
    }

    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        match &self.outside {
            None => self.inner.prepare(bank, query).await,
            // what is outside is read with each recall
            Some(_) => Ok(Prepared::Ready),
        }
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        self.strike(query.question_id)?;
        let Some(outside) = &self.outside else { return self.inner.recall(bank, query).await };
        let content = Some(Arc::new(outside.content(bank)?));
        self.inner.recall(&BankRef { content, ..bank.clone() }, query).await
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        self.inner.list(bank, entries, from).await
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        match &self.outside {
            Some(outside) => outside.reset(bank),
            None => self.inner.reset_bank(bank).await,
        }
    }

    async fn health(&self) -> Result<String, Failure> {
        self.inner.health().await
    }
}
