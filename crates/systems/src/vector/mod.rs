//! `vector`: search by embeddings, exact. `hybrid`: bm25 and vector joined by reciprocal rank.
//!
//! A document is one turn with its date and speaker, as for bm25: short texts make sharp vectors, and the same units make
//! the two comparable. Vectors have length 1, so that the dot product is the cosine. Embeddings come from a server, from a
//! model in a folder, or from nothing but the words. Those that are paid for are made once, when a bank is retained, and read
//! back from the call store; an index is built once per process and bank, and kept in the index cache. `given` reads vectors that
//! somebody else has made: then no bank is embedded.

mod embedder;
mod given;
mod hybrid;
mod index;
pub mod requests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bench_proto::{
    dataset::{BankContent, StreamEntry},
    failure::Failure,
    step::RetrievedHit,
};

pub(crate) use self::embedder::Embedder;
use self::{given::Given, index::nearest_of};
pub use self::{
    given::{GivenVectors, embeds_banks, is_path, without_given},
    index::{Vectors, nearest},
};
use crate::{
    BuildContext, BuildError, Capabilities, MemorySystem, Prepared, Setting, StepContext, SystemSettings,
    at_once::several_at_once,
    documents,
    embed::EmbeddingModel,
    from_items::{FromItems, Lookup, Search},
    index_cache::{BuiltIndex, IndexCache, IndexKey},
    settings::text,
};
pub(crate) use hybrid::{HYBRID_SETTINGS, build_hybrid};

/// Version: raised when the same settings find something else.
const VERSION: &str = "1.1.0";

pub(crate) const MODEL: Setting = Setting::new(
    "vector.model",
    "embedding model of an OpenAI-compatible server, local (vector.folder), or hash (words only)",
    "text-embedding-3-small",
);
pub(crate) const ACCOUNT: Setting =
    Setting::new("vector.account", "account whose server makes the embeddings", "openai");
pub(crate) const FOLDER: Setting =
    Setting::new("vector.folder", "folder of the local model: config.json, tokenizer.json, model.safetensors", "");
pub(crate) const QUERY_PREFIX: Setting =
    Setting::new("vector.query_prefix", "what the model wants before a question, such as 'query: ' for E5", "");
pub(crate) const TEXT_PREFIX: Setting =
    Setting::new("vector.text_prefix", "what the model wants before a text, such as 'passage: ' for E5", "");
pub(crate) const PRECOMPUTED: Setting = Setting::new(
    "vector.precomputed",
    "file of given vectors of memories: a JSON array of records with text and embedding",
    "",
);
pub(crate) const QUERIES: Setting =
    Setting::new("vector.queries", "file of given vectors of queries; without it vector.model embeds them", "");

/// Settings of `vector`.
pub(crate) const SETTINGS: &[Setting] = &[MODEL, ACCOUNT, FOLDER, QUERY_PREFIX, TEXT_PREFIX, PRECOMPUTED, QUERIES];

/// The value of `vector.model` that means a model in a folder.
const LOCAL: &str = "local";

/// Values of `vector.model` that are no model of a server.
const AT_HOME: &[&str] = &["hash", "local"];

/// Requests of a bank that are under way at once.
const REQUESTS_AT_ONCE: usize = 16;

/// Search by embeddings.
pub(crate) struct VectorSearch {
    embedder: Embedder,
    given: Option<Arc<Given>>,
    settings_key: Arc<str>,
    cache: IndexCache,
}

impl VectorSearch {
    pub(crate) fn new(settings: &SystemSettings, context: &BuildContext) -> Result<Self, BuildError> {
        let embedder = Embedder::new(settings, context)?;
        let given = Given::read(settings)?.map(Arc::new);
        let settings_key = match &given {
            Some(given) => format!("given={}", given.hash),
            None => {
                let hash = embedder.local.as_deref().unwrap_or_default();
                format!("model={} {hash} prefix={}", embedder.model.name, embedder.text_prefix)
            }
        };
        Ok(Self { embedder, given, settings_key: settings_key.into(), cache: context.index_cache.clone() })
    }

    async fn index_of(&self, lookup: Lookup<'_>) -> Result<(Arc<VectorIndex>, Prepared), Failure> {
        let key = IndexKey::new("vector", lookup.bank, lookup.content, lookup.query, &self.settings_key);
        if let Some(given) = self.given.clone() {
            let (content, visible_entries) = (Arc::clone(lookup.content), key.visible_entries);
            return self
                .cache
                .find_or_build(&key, move || VectorIndex::of_given(&given, &content, visible_entries))
                .await;
        }
        let (content, model) = (Arc::clone(lookup.content), self.embedder.model.clone());
        let embed = Arc::clone(self.embedder.embedder_for(lookup.query.step)?);
        let (visible_entries, prefix) = (key.visible_entries, self.embedder.text_prefix.clone());
        let runtime = tokio::runtime::Handle::current();
        let build = move || {
            let given = requests::of_entries(&content.entries[..visible_entries as usize], &prefix);
            let asked = given.iter().map(|request| embed.of_bank(&model, &request.texts)).collect();
            // a thread for blocking work: the runtime goes on meanwhile
            let embedded = runtime.block_on(several_at_once(asked, REQUESTS_AT_ONCE))?;
            let (mut hits, mut vectors) = (Vec::new(), Vectors::default());
            let mut visible = documents::visible(&content, visible_entries).into_iter().peekable();
            let given = given.iter().flat_map(|request| request.documents.iter());
            for (document, vector) in given.zip(embedded.into_iter().flatten()) {
                // what an update has taken away was given too, and is not found any more
                if visible.next_if(|next| next.is(*document)).is_some() {
                    vectors.push(vector).map_err(|error| Failure::permanent("embedding_shape", error))?;
                    hits.push(document.hit(None));
                }
            }
            vectors.seal();
            Ok(VectorIndex { hits, vectors })
        };
        self.cache.find_or_build(&key, build).await
    }

    /// What the search can do.
    fn capabilities(&self) -> Capabilities {
        let version = self.embedder.version(VERSION);
        match &self.given {
            Some(given) => Capabilities::from_items(&format!("{version}+{}", given.hash)),
            None => Capabilities::from_items(&version),
        }
    }

    /// The vector of what is searched for.
    async fn query(&self, text: &str, step: StepContext<'_>) -> Result<Vec<f32>, Failure> {
        let Some(given) = &self.given else { return self.embedder.query(text, step).await };
        if let Some(vector) = given.of_query(text)? {
            return Ok(vector);
        }
        let embedded = self.embedder.query(text, step).await?;
        if embedded.len() == given.dimensions() { Ok(embedded) } else { Err(given.other_length(embedded.len())) }
    }
}

/// The embedding model that a system with these settings calls on a server; `None` where nothing is called. A system whose
/// settings cannot be read has none: building it says what is wrong.
#[must_use]
pub fn remote_model(system: &str, settings: &SystemSettings) -> Option<EmbeddingModel> {
    let (name, account) = (text(settings, &MODEL).ok()?, text(settings, &ACCOUNT).ok()?);
    let queries_are_given = text(settings, &QUERIES).is_ok_and(|path| !path.is_empty());
    let called = matches!(system, "vector" | "hybrid" | "pgvector") && !AT_HOME.contains(&name.as_str());
    // one file of vectors may do without the model, where the other one is given too
    (called && (embeds_banks(settings) || !queries_are_given)).then_some(EmbeddingModel { name, account })
}

/// What a model wants before texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// Before what is searched for.
    pub query: String,
    /// Before what is searched in.
    pub text: String,
}

/// The prefixes that settings name; none where they cannot be read.
#[must_use]
pub fn prefixes(settings: &SystemSettings) -> Prefixes {
    let read = |setting| text(settings, setting).unwrap_or_default();
    Prefixes { query: read(&QUERY_PREFIX), text: read(&TEXT_PREFIX) }
}

/// Settings with which the system needs no server and recalls texts of about the same length, for estimates.
#[must_use]
pub fn rehearsed(settings: &SystemSettings) -> SystemSettings {
    let mut settings = without_given(settings);
    settings.insert(MODEL.name.to_owned(), "hash".into());
    settings
}

pub(crate) fn build(settings: &SystemSettings, context: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let search = VectorSearch::new(settings, context)?;
    Ok(FromItems::system(search.capabilities(), search))
}

#[async_trait]
impl Search for VectorSearch {
    async fn search(&self, lookup: Lookup<'_>) -> Result<Vec<RetrievedHit>, Failure> {
        let (index, _) = self.index_of(lookup).await?;
        let query = lookup.query;
        let nothing = self.given.as_ref().is_some_and(|given| given.finds_nothing(query.text));
        if index.hits.is_empty() || query.k == 0 || nothing {
            return Ok(Vec::new());
        }
        let embedded = self.query(query.text, query.step).await?;
        let found = nearest_of(&index.vectors, &embedded, query.k as usize, lookup.admitted()?.as_deref())
            .map_err(|error| Failure::permanent("embedding_shape", error))?;
        let hit = |(at, score): (usize, f32)| RetrievedHit { score: Some(f64::from(score)), ..index.hits[at].clone() };
        Ok(found.into_iter().map(hit).collect())
    }

    async fn index(&self, lookup: Lookup<'_>) -> Result<Prepared, Failure> {
        self.index_of(lookup).await.map(|(_, prepared)| prepared)
    }

    async fn ahead(&self, entries: &[StreamEntry], step: StepContext<'_>) -> Result<Duration, Failure> {
        if self.given.is_some() { Ok(Duration::ZERO) } else { self.embedder.ahead(entries, step).await }
    }
}

struct VectorIndex {
    hits: Vec<RetrievedHit>,
    vectors: Vectors,
}

impl VectorIndex {
    fn of_given(given: &Given, content: &BankContent, visible_entries: u32) -> Result<Self, Failure> {
        let (mut hits, mut vectors) = (Vec::new(), Vectors::default());
        for document in documents::visible(content, visible_entries) {
            let vector = given.of_document(document)?;
            vectors.push(vector).map_err(|error| Failure::permanent("embedding_shape", error))?;
            hits.push(document.hit(None));
        }
        vectors.seal();
        Ok(Self { hits, vectors })
    }
}

impl BuiltIndex for VectorIndex {
    fn bytes(&self) -> u64 {
        let texts: usize = self.hits.iter().map(|hit| hit.text.len() + size_of::<RetrievedHit>()).sum();
        (texts + self.vectors.bytes()) as u64
    }
}
