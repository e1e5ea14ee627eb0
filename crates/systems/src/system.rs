//! What a memory system is: the trait, what it is told and what it says.
//!
//! The trait follows what real systems need: a handle per bank and generation, writes in order or in batches, event
//! times, proven readiness, hard limits that are refused rather than clipped in silence. A system never sees gold;
//! the one control that does (`oracle`) says so in its capabilities.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use bench_proto::{
    call::Usage,
    dataset::{BankContent, Filter, FilterParts, Question, StreamEntry},
    failure::Failure,
    ids::Sha256Hash,
    scenario::ReaderMode,
    server::ServerAddress,
    step::RetrievedHit,
    trace::StepTrace,
};

use crate::{chat::Chat, embed::Embed};

/// Settings of a system, from the run spec: dotted name (`bm25.k1`) → value.
pub type SystemSettings = BTreeMap<String, serde_json::Value>;

/// What a system can do and where its limits are.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Version of a built-in, or the version a server reported: part of the fingerprint.
    pub version: String,
    /// Largest k of a recall; asking for more is refused before the run.
    pub max_k: Option<u32>,
    /// Most entries of a retain; how many of the next ones go together says [`MemorySystem::together`].
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
    /// Of what it is asked in this process it does one thing after the other: what waits is not begun.
    pub one_at_a_time: bool,
    /// The system is computed from the stored items alone: retain is the checkpoint, any worker serves any question (P29).
    pub from_items: bool,
    /// What it holds is what a model has made of the items: it may lack some of them, and filled again it may hold something else.
    pub derived: bool,
    /// The context is the whole bank by design: an answerer's limit, not `top_k`, bounds it.
    pub ignores_k: bool,
    /// Receives the gold evidence with each query: a control, never a competitor.
    pub sees_gold: bool,
    /// Returns nothing by design (`none`): an empty context is no fault.
    pub empty_by_design: bool,
    /// It is another process: it may be away, slow, or lose what it was given.
    pub remote: bool,
    /// It is asked to make a bank; otherwise a bank begins with what is stored in it.
    pub opens: bool,
    /// It is asked whether a bank is ready.
    pub asked_ready: bool,
    /// Has a step of its own that makes something better of what was retained, and the run wants it.
    pub consolidates: bool,
    /// Answers questions by itself (`--answerer system`).
    pub answers: bool,
    /// Searches. Without it only its own answers can be measured.
    pub recalls: bool,
    /// Counts what a bank holds.
    pub verifies: bool,
    /// Lists what a bank holds.
    pub lists: bool,
    /// Keeps banks apart.
    pub banks: bool,
    /// A turn is stored as one thing of its own, so that a bank has at least as many things to find as turns.
    pub stores_turns: bool,
    /// A recall is bounded by tokens and not by k.
    pub token_budget: bool,
    /// Replaces a memory by another one. Without it the new one is stored beside the old one.
    pub updates: bool,
    /// Takes a memory away. Without it what was withdrawn stays.
    pub withdraws: bool,
    /// Stores a memory in all of its scopes. Without it, in the first alone.
    pub several_scopes: bool,
    /// Parts of a question's filter that its searches honour.
    pub filters: FilterParts,
    /// Parts that its own answers honour.
    pub answer_filters: FilterParts,
    /// Longest time of one operation: what hangs longer has failed.
    pub deadline: Option<Duration>,
}

impl Capabilities {
    /// What all systems have in common that are computed from the stored items alone.
    #[must_use]
    pub fn from_items(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            max_k: None,
            max_batch: 64,
            ordered: false,
            retain_idempotent: true,
            recall_mutates: false,
            event_times: true,
            proves_ready: true,
            max_parallel: None,
            one_at_a_time: false,
            from_items: true,
            derived: false,
            ignores_k: false,
            sees_gold: false,
            empty_by_design: false,
            remote: false,
            opens: false,
            asked_ready: false,
            consolidates: false,
            answers: false,
            recalls: true,
            verifies: false,
            lists: true,
            banks: true,
            stores_turns: true,
            token_budget: false,
            updates: true,
            withdraws: true,
            several_scopes: true,
            filters: FilterParts::ALL,
            answer_filters: FilterParts::default(),
            deadline: None,
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
    /// The content, for systems that are computed from items, and to know what others have to hold.
    pub content: Option<Arc<BankContent>>,
}

impl BankRef {
    /// A bank of one who works outside of a run: it has the name that is given, and its content says which it is.
    #[must_use]
    pub(crate) fn outside_of_runs(name: &str, content: BankContent) -> Self {
        let bytes = serde_json::to_vec(&content).unwrap_or_default();
        Self {
            name: name.to_owned(),
            handle: None,
            bank_id: content.bank_id.clone(),
            content_hash: Sha256Hash::of_bytes(&bytes),
            content: Some(Arc::new(content)),
        }
    }
}

/// A question to a bank, with what bounds its answer.
#[derive(Debug, Clone, Default)]
pub struct RecallQuery<'a> {
    /// Id of the question as systems see it: it tells nothing of the answer (seeds, routes).
    pub question_id: &'a str,
    /// The text to search for.
    pub text: &'a str,
    /// When it is asked, in the dataset's words.
    pub time_text: Option<&'a str>,
    /// The same as `YYYY-MM-DDTHH:MM:SS`, where it could be read.
    pub time: Option<&'a str>,
    /// Hits asked for.
    pub k: u32,
    /// How whoever answers is to read, for systems that answer by themselves.
    pub reader_mode: ReaderMode,
    /// What may be found at all.
    pub filter: &'a Filter,
    /// Entries that may be seen (P6): those with a position below this.
    pub visible_entries: u32,
    /// Gold evidence turns; present only for systems that declare `sees_gold`.
    pub evidence: Option<&'a [String]>,
    /// Asked for a figure of the runner's own (canaries, the latency probe), and by no question of the dataset.
    pub is_check: bool,
    /// The step that asks.
    pub step: StepContext<'a>,
}

/// What the step of a run that asks for an operation brings along. Empty for whoever works outside of a run.
#[derive(Clone, Copy, Default)]
pub struct StepContext<'a> {
    /// Makes embeddings at the expense of the step.
    pub embeddings: Option<&'a Arc<dyn Embed>>,
    /// Asks the chat model of the system at the expense of the step.
    pub chats: Option<&'a Arc<dyn Chat>>,
    /// The trace of which its requests are a part.
    pub trace: Option<&'a StepTrace>,
}

impl<'a> RecallQuery<'a> {
    /// The query of a dataset's question: `top_k` hits unless it has a number of its own. What a system cannot do is refused before
    /// the run, and never clipped.
    #[must_use]
    pub fn from_question(question: &'a Question, top_k: u32, entries: usize) -> Self {
        Self {
            question_id: question.shown_id(),
            text: &question.text,
            time_text: question.time_text.as_deref(),
            time: question.time.as_deref(),
            k: question.k.unwrap_or(top_k),
            filter: &question.filter,
            visible_entries: question.ask_after.min(u32::try_from(entries).unwrap_or(u32::MAX)),
            ..Self::default()
        }
    }
}

impl fmt::Debug for StepContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext").field("trace", &self.trace).finish_non_exhaustive()
    }
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
    /// What the system said once of all hits (`details_of_reply`): it stands with the first of them, and is here for who leaves that
    /// one out ([`Recall::keep_said_once`]).
    pub said_once: BTreeMap<String, serde_json::Value>,
}

impl Recall {
    /// Gives the first hit what the system said once of all of them, where the hit that had it was left out: it is said of the
    /// recall, not of that hit.
    pub fn keep_said_once(&mut self) {
        let Self { hits, said_once, .. } = self;
        let is_kept =
            |name: &String, value: &serde_json::Value| hits.iter().any(|hit| hit.details.get(name) == Some(value));
        let lost: Vec<_> = said_once.iter().filter(|(name, value)| !is_kept(name, value)).collect();
        let Some(first) = hits.first().filter(|_| !lost.is_empty()) else { return };
        let mut details = first.details.clone();
        for (name, value) in lost {
            let _ = details.entry(name.clone()).or_insert_with(|| value.clone());
        }
        hits[0].details = bounded_details(details);
    }
}

/// Most details of a hit, and the longest of them in bytes of JSON: what is longer is left out.
const MOST_DETAILS: usize = 16;
const LONGEST_DETAIL: usize = 1024;

/// Details as they are kept: a report is not filled by what a system says of its hits.
pub(crate) fn bounded_details(details: BTreeMap<String, serde_json::Value>) -> BTreeMap<String, serde_json::Value> {
    let short =
        |(name, value): &(String, serde_json::Value)| name.len() <= 64 && value.to_string().len() <= LONGEST_DETAIL;
    details.into_iter().filter(short).take(MOST_DETAILS).collect()
}

/// What recalls rest on, when an operation asked for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prepared {
    /// It was there, or there is nothing to build.
    #[default]
    Ready,
    /// Somebody else was building it: the operation waited.
    Waited,
    /// The operation built it.
    Built,
}

/// What a retain did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetainReceipt {
    /// Turns or memories written.
    pub written: u64,
    /// Entries at the end of those given that are known not to be stored, or that may be given again: fewer than were given.
    pub left: u32,
    /// The part of its time, in microseconds, that made what recalls rest on (embeddings of the bank).
    pub build_us: u64,
    /// Usage that the system reported.
    pub usage: Usage,
}

/// Whether what was retained can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can, and the system has shown it.
    Proven,
    /// Storing has returned, by which the system means it; nothing was asked.
    Returned,
    /// The system says so, but cannot show it.
    Promised,
    /// The bank is not ready; ask again after this many milliseconds.
    NotYet {
        /// Delay in milliseconds.
        poll_after_ms: u64,
    },
}

/// What a system says about itself and a bank: numbers under its own names.
pub use bench_proto::step::SystemStats;

/// What a consolidation did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Consolidation {
    /// Usage that the system reported.
    pub usage: Usage,
}

/// What a system has answered by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NativeAnswer {
    /// The answer.
    pub text: String,
    /// Ids or texts that it cites.
    pub citations: Vec<String>,
    /// Usage that the system reported.
    pub usage: Usage,
}

/// What a bank holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Items that were stored in it.
    pub expected: u64,
    /// Items that it says it holds.
    pub found: u64,
}

/// A page of what a bank holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListedPage {
    /// Its items, placed among what was stored as hits are.
    pub items: Vec<RetrievedHit>,
    /// Where the next page begins; none behind the last.
    pub next: Option<ListCursor>,
}

/// Where a page of what a bank holds begins.
pub use bench_proto::step::listing::ListCursor;

/// Code of the failure of a built-in system whose server lacks what it needs.
pub const NOT_INSTALLED: &str = "system_not_installed";

fn cannot(what: &str) -> Failure {
    Failure::permanent("system_cannot", format!("this memory system has no {what} of its own"))
}

/// A memory system, in this process or elsewhere. An operation is carried out once: whether it is tried again is the caller's
/// matter, by the class of its failure.
#[async_trait]
pub trait MemorySystem: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Opens a bank: returns the handle that is stored in the bank row.
    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure>;

    /// How many of the next entries of a bank go in one retain: at least one of any that are there.
    fn together(&self, entries: &[StreamEntry]) -> usize {
        entries.len().min(self.capabilities().max_batch.max(1) as usize)
    }

    /// Retains entries, in order; as many as [`together`](Self::together) says. It may leave the last ones
    /// (`RetainReceipt::left`), and is then asked again for these.
    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure>;

    /// Asks whether what was retained can be found.
    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure>;

    /// Builds what the system needs before it can do anything (a started server) and, for a query, what the recall rests on (an
    /// index), unless it is there. The recall does it too when nobody has asked: apart it is measured apart (P43).
    async fn prepare(&self, _bank: &BankRef, _query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        Ok(Prepared::Ready)
    }

    /// Searches.
    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure>;

    /// Removes this bank, and nothing else.
    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure>;

    /// Writes a bank, as the system itself hands it on, into a new file of at most `most` bytes; how many it has.
    async fn export_bank(&self, _bank: &BankRef, _to: &Path, _most: u64) -> Result<u64, Failure> {
        Err(cannot("call that hands a bank on"))
    }

    /// Takes in a bank that was handed on, out of its file.
    async fn import_bank(&self, _bank: &BankRef, _from: &Path) -> Result<(), Failure> {
        Err(cannot("call that takes a bank in"))
    }

    /// Is it up? One line about it.
    async fn health(&self) -> Result<String, Failure>;

    /// Whether it can be asked at all: what `health` finds, where that starts nothing that no bank has asked for.
    async fn is_there(&self) -> Result<(), Failure> {
        self.health().await.map(drop)
    }

    /// Makes something better of what was retained (`--mode consolidated`); asked for once per segment.
    async fn consolidate(&self, _bank: &BankRef) -> Result<Consolidation, Failure> {
        Err(cannot("consolidation"))
    }

    /// Answers by itself (`--answerer system`).
    async fn answer(&self, _bank: &BankRef, _query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        Err(cannot("answer"))
    }

    /// Counts what a bank holds of its first `entries` entries; `None` when it cannot be counted.
    async fn verify(&self, _bank: &BankRef, _entries: u32) -> Result<Option<Counted>, Failure> {
        Ok(None)
    }

    /// A page of what a bank holds of its first `entries` entries, in any order: the first one from the beginning, every other from
    /// where the one before it says.
    /// Only asked where [`Capabilities::lists`] says so; without a default, so that no system around another one forgets it.
    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure>;

    /// What it says about itself and the bank, for the report. Nobody waits for it long, and a failure loses nothing else.
    async fn statistics(&self, _bank: &BankRef) -> Result<SystemStats, Failure> {
        Ok(SystemStats::default())
    }

    /// Whether this machine can serve the bank: a system that was started on another one is out of reach.
    fn on_this_machine(&self, _bank: &BankRef) -> Result<(), Failure> {
        Ok(())
    }

    /// Where it is, for people and as a part of the name of its routes.
    fn place(&self) -> String {
        String::new()
    }

    /// The server that requests about a bank go to, for traces; none where nothing leaves the process.
    async fn server(&self, _bank: &BankRef) -> Option<ServerAddress> {
        None
    }

    /// How processes of it ended in whose place others were started, since this was asked the last time: one text each, without secrets.
    fn started_again(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends what this process has started for it.
    async fn close(&self) {}
}
