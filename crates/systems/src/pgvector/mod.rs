//! `pgvector`: turns and their vectors in a PostgreSQL database with the extension `vector`, as many people keep them.
//!
//! Documents and embeddings are those of `vector`, so that the two differ in the database alone. Each run has a schema of its own, each
//! bank a table; `exact` compares all of them, `hnsw` asks an index of the server's. Where the server is says a variable of the
//! process that asks it ([`URL_VARIABLE`]): a run carries no address and no password. Start reading at [`PgVector`].

mod database;
mod extension;
mod trouble;

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{dataset::StreamEntry, failure::Failure, step::RetrievedHit};
use serde_json::Value;

use self::database::{Change, Database, Found, Wanted};
use crate::{
    BankRef, BuildContext, BuildError, Capabilities, Counted, ListCursor, ListedPage, MemorySystem, Prepared,
    Readiness, Recall, RecallQuery, RetainReceipt, Setting, StepContext, SystemSettings, SystemStats,
    documents::{self, Document},
    settings::text,
    vector::{ACCOUNT, Embedder, FOLDER, MODEL, QUERY_PREFIX, TEXT_PREFIX},
};

/// Version: raised when the same settings find something else.
const VERSION: &str = "1.1.0";
/// Variable with the URL of the database.
const URL_VARIABLE: &str = "BENCH_PGVECTOR_URL";
/// Items that a page of a listing has.
const PAGE: u32 = 200;

const INDEX: Setting = Setting::new(
    "pgvector.index",
    "exact, or hnsw: an approximate index of the server's (extension 0.5 or newer)",
    "exact",
);

/// Settings of `pgvector`: those of `vector`, and its own.
pub(crate) const SETTINGS: &[Setting] = &[MODEL, ACCOUNT, FOLDER, QUERY_PREFIX, TEXT_PREFIX, INDEX];

/// How vectors are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Index {
    Exact,
    Hnsw,
}

/// Search by embeddings in PostgreSQL.
struct PgVector {
    capabilities: Capabilities,
    embedder: Embedder,
    database: Database,
}

pub(crate) fn build(settings: &SystemSettings, context: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let index = match text(settings, &INDEX)?.as_str() {
        "exact" => Index::Exact,
        "hnsw" => Index::Hnsw,
        other => {
            let (setting, expected) = (INDEX.name, "exact or hnsw".to_owned());
            return Err(BuildError::BadSetting { setting, expected, value: Value::from(other).to_string() });
        }
    };
    let embedder = Embedder::new(settings, context)?;
    let run = context.adapters.run.as_deref().unwrap_or("no-run");
    let version = embedder.version(VERSION);
    Ok(Arc::new(PgVector {
        capabilities: capabilities(&version),
        embedder,
        database: Database::of_run(run, index, context.pgvector_url.clone()),
    }))
}

fn capabilities(version: &str) -> Capabilities {
    Capabilities {
        // the next entries are counted on from those before them
        ordered: true,
        retain_idempotent: false,
        from_items: false,
        remote: true,
        opens: true,
        verifies: true,
        ..Capabilities::from_items(version)
    }
}

impl PgVector {
    /// What entries do to a bank, in order, with the vectors of what they add.
    async fn changes(&self, entries: &[StreamEntry], step: StepContext<'_>) -> Result<Vec<Change>, Failure> {
        self.embedder.ahead(entries, step).await?;
        let mut vectors = self.embedder.of_entries(entries, step).await?.into_iter();
        let mut changes = Vec::new();
        for (at, entry) in (0..).zip(entries) {
            if let StreamEntry::Update { replaces, .. } = entry {
                changes.push(Change::Removes { entry: at, id: replaces.clone() });
            }
            for document in documents::of_entry(entry) {
                let vector = vectors.next().ok_or_else(|| {
                    Failure::permanent("embedding_shape", "fewer embeddings came back than texts were given")
                })?;
                changes.push(Change::Adds {
                    entry: at,
                    id: document.id().to_owned(),
                    session: document.session_id().to_owned(),
                    text: document.text(),
                    vector,
                });
            }
        }
        Ok(changes)
    }

    /// The only ids that a question may be answered from, where not all are.
    fn among(bank: &BankRef, query: &RecallQuery<'_>) -> Result<Option<Vec<String>>, Failure> {
        if query.filter.parts().is_empty() {
            return Ok(None);
        }
        let content = bank.content.as_ref().ok_or_else(|| {
            let message = format!("the content of bank {} was not handed to its system", bank.bank_id);
            Failure::permanent("bank_content_missing", message)
        })?;
        let admitted = documents::visible_to(content, query.visible_entries, query.filter)?;
        Ok(Some(admitted.into_iter().map(Document::id).map(str::to_owned).collect()))
    }
}

fn hit(found: Found, score: bool) -> RetrievedHit {
    RetrievedHit {
        id: found.id,
        session_id: found.session,
        text: found.text,
        score: score.then_some(found.score),
        ..RetrievedHit::default()
    }
}

#[async_trait]
impl MemorySystem for PgVector {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        self.database.open(&bank.name).await?;
        Ok(bank.name.clone())
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        let changes = self.changes(entries, step).await?;
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        self.database.store(&bank.name, count, &changes).await?;
        let written = entries.iter().map(|entry| entry.turns() as u64).sum();
        Ok(RetainReceipt { written, ..RetainReceipt::default() })
    }

    async fn readiness(&self, _bank: &BankRef, _entries: u32) -> Result<Readiness, Failure> {
        // what a transaction has committed is found by the next one
        Ok(Readiness::Proven)
    }

    async fn prepare(&self, _bank: &BankRef, _query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        Ok(Prepared::Ready)
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        let mut hits = Vec::new();
        if query.k > 0 {
            let among = Self::among(bank, query)?;
            let vector = self.embedder.query(query.text, query.step).await?;
            let wanted =
                Wanted { vector: &vector, k: query.k, visible: query.visible_entries, among: among.as_deref() };
            let found = self.database.nearest(&bank.name, &wanted).await?;
            hits = found.into_iter().map(|found| hit(found, true)).collect();
        }
        Ok(Recall { hits, effective_k: query.k, ..Recall::default() })
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        let Some(content) = &bank.content else { return Ok(None) };
        let expected = documents::visible(content, entries).len() as u64;
        let found = self.database.count(&bank.name, entries).await?;
        Ok(Some(Counted { expected, found }))
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        let found = self.database.list(&bank.name, entries, from.listed, PAGE).await?;
        let more = found.len() as u64 == u64::from(PAGE);
        let items: Vec<RetrievedHit> = found.into_iter().map(|found| hit(found, false)).collect();
        let next = more.then(|| from.behind(items.len(), None));
        Ok(ListedPage { items, next })
    }

    async fn statistics(&self, _bank: &BankRef) -> Result<SystemStats, Failure> {
        let (extension, server) = self.database.versions().await?;
        let version = Some(format!("pgvector {extension}, PostgreSQL {server}"));
        Ok(SystemStats { version, ..SystemStats::default() })
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        self.database.remove(&bank.name).await
    }

    async fn health(&self) -> Result<String, Failure> {
        let (extension, server) = self.database.versions().await?;
        Ok(format!("pgvector {extension}, PostgreSQL {server}, {}", self.database.place()))
    }

    fn place(&self) -> String {
        self.database.place()
    }

    async fn close(&self) {
        self.database.close().await;
    }
}
