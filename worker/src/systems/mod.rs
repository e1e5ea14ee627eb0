//! Memory systems: what is benchmarked. To add a built-in, copy the smallest file here and add a line to the registry.
//!
//! The trait follows what real systems need: a handle per bank and generation, writes in order or in batches, event
//! times, proven readiness, hard limits that are refused rather than clipped in silence. A system never sees gold;
//! the one control that does (`oracle`) says so in its capabilities.

mod bm25;
#[cfg(test)]
mod conformance;
mod documents;
mod faulty;
mod from_items;
mod full_context;
pub mod index_cache;
mod none;
mod oracle;
mod random;
pub mod registry;
mod settings;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use bench_proto::{
    call::Usage,
    dataset::{BankContent, StreamEntry},
    failure::Failure,
    ids::Sha256Hash,
    step::RetrievedHit,
};

pub use registry::BuildError;
pub use settings::Setting;

/// What a system can do and where its limits are.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Semantic version of a built-in, or the version a server reported: part of the fingerprint.
    pub version: String,
    /// Largest k of a recall; asking for more is refused before the run.
    pub max_k: Option<u32>,
    /// Entries per retain call.
    pub max_batch: u32,
    /// Entries of a bank must be retained in order, one call at a time.
    pub ordered: bool,
    /// Repeating a retain changes nothing (P5).
    pub retain_idempotent: bool,
    /// Recall writes (systems that learn from queries, P33).
    pub recall_mutates: bool,
    /// Event times are taken over.
    pub event_times: bool,
    /// Readiness can be proven, not only promised.
    pub proves_ready: bool,
    /// Operations in flight at once over all workers; unlimited when absent.
    pub max_parallel: Option<u32>,
    /// The system is computed from the stored items alone: retain is the checkpoint, any worker serves any question (P29).
    pub from_items: bool,
    /// The context is the whole bank by design: an answerer's limit, not `top_k`, bounds it.
    pub ignores_k: bool,
    /// Receives the gold evidence with each query: a control, never a competitor.
    pub sees_gold: bool,
    /// Returns nothing by design (`none`): an empty context is no fault.
    pub empty_by_design: bool,
}

impl Capabilities {
    /// What all systems have in common that are computed from the stored items alone.
    #[must_use]
    pub fn from_items(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            max_k: None,
            max_batch: u32::MAX,
            ordered: false,
            retain_idempotent: true,
            recall_mutates: false,
            event_times: true,
            proves_ready: true,
            max_parallel: None,
            from_items: true,
            ignores_k: false,
            sees_gold: false,
            empty_by_design: false,
        }
    }
}

/// Which bank is meant.
#[derive(Debug, Clone)]
pub struct BankRef {
    /// Name in the system's namespace: `bench-<bank row>-g<generation>` (P5).
    pub name: String,
    /// The system's own handle, once the bank is open.
    pub handle: Option<String>,
    /// The dataset's id, for seeds and messages.
    pub bank_id: String,
    /// Hash of the content item: the key of caches.
    pub content_hash: Sha256Hash,
    /// The content, for systems that are computed from items; holds only entries up to the current segment's end.
    pub content: Option<Arc<BankContent>>,
}

/// A query.
#[derive(Debug, Clone)]
pub struct RecallQuery<'a> {
    /// The dataset's question id (seeds, traces).
    pub question_id: &'a str,
    /// The text to search for.
    pub text: &'a str,
    /// When it is asked.
    pub time_text: Option<&'a str>,
    /// Hits asked for.
    pub k: u32,
    /// Entries that may be seen (P6): those with a position below this.
    pub visible_entries: u32,
    /// Gold evidence turns; present only for systems that declare `sees_gold`.
    pub evidence: Option<&'a [String]>,
}

/// What came back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recall {
    /// Hits, best first; ties broken by id.
    pub hits: Vec<RetrievedHit>,
    /// k after the system's own limit.
    pub effective_k: u32,
    /// Usage that the system reported.
    pub usage: Usage,
}

/// What a retain did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetainReceipt {
    /// Turns or memories written.
    pub written: u64,
    /// Usage that the system reported.
    pub usage: Usage,
}

/// Whether what was retained can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can, and the system has shown it.
    Proven,
    /// The system says so, but cannot show it.
    Promised,
    /// Not yet; ask again after this many milliseconds.
    NotYet {
        /// Delay in milliseconds.
        poll_after_ms: u64,
    },
}

/// A memory system.
#[async_trait]
pub trait MemorySystem: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Opens a bank: returns the handle that is stored in the bank row.
    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure>;

    /// Retains entries, in order; at most `max_batch` of them.
    async fn retain(&self, bank: &BankRef, entries: &[StreamEntry]) -> Result<RetainReceipt, Failure>;

    /// Asks whether what was retained can be found.
    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure>;

    /// Searches.
    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure>;

    /// Removes this bank, and nothing else.
    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure>;

    /// Is it up? One line about it.
    async fn health(&self) -> Result<String, Failure>;
}

/// Settings of a system, from the run spec: dotted name (`bm25.k1`) → value.
pub type SystemSettings = BTreeMap<String, serde_json::Value>;

/// What systems share within a process. One per process, so that the bounds hold for all its runs together.
#[derive(Clone, Default)]
pub struct BuildContext {
    /// Built indexes of banks.
    pub index_cache: index_cache::IndexCache,
}
