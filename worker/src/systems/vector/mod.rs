//! `vector`: search by embeddings, exact. `hybrid`: bm25 and vector joined by reciprocal rank.
//!
//! A document is one turn with its date and speaker, as for bm25: short texts make sharp vectors, and the same units make
//! the two comparable. Vectors have length 1, so that the dot product is the cosine. The embeddings of a bank are computed
//! once per process and bank, 64 texts per request, and kept in the index cache. They come from a server, from a model in a
//! folder, or from nothing but the words.

mod embed;
mod hybrid;
mod index;
mod local;

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{dataset::BankContent, failure::Failure, step::RetrievedHit};

pub use self::embed::{Embed, EmbeddingModel, HashEmbeddings, HttpEmbeddings};
pub use self::index::{Vectors, nearest};
pub use self::local::LocalModels;
use super::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, Setting, SystemSettings, documents,
    from_items::{FromItems, Search},
    index_cache::{BuiltIndex, IndexCache, IndexKey},
    settings::text,
};
pub(super) use hybrid::{HYBRID_SETTINGS, build_hybrid};

/// Semantic version: raised when the same settings find something else.
const VERSION: &str = "1.0.0";

const MODEL: Setting = Setting::new(
    "vector.model",
    "embedding model of an OpenAI-compatible server, local (vector.folder), or hash (words only)",
    "text-embedding-3-small",
);
const ACCOUNT: Setting = Setting::new("vector.account", "account whose server makes the embeddings", "openai");
const FOLDER: Setting =
    Setting::new("vector.folder", "folder of the local model: config.json, tokenizer.json, model.safetensors", "");
const QUERY_PREFIX: Setting =
    Setting::new("vector.query_prefix", "what the model wants before a question, such as 'query: ' for E5", "");
const TEXT_PREFIX: Setting =
    Setting::new("vector.text_prefix", "what the model wants before a text, such as 'passage: ' for E5", "");

/// Settings of `vector`.
pub(super) const SETTINGS: &[Setting] = &[MODEL, ACCOUNT, FOLDER, QUERY_PREFIX, TEXT_PREFIX];

/// The value of `vector.model` that means a model in a folder.
const LOCAL: &str = "local";

/// Texts of one request.
const TEXTS_PER_REQUEST: usize = 64;

/// Search by embeddings.
pub(super) struct VectorSearch {
    model: EmbeddingModel,
    embed: Arc<dyn Embed>,
    /// Hash of a local model.
    local: Option<String>,
    query_prefix: String,
    text_prefix: String,
    settings_key: Arc<str>,
    cache: IndexCache,
}

impl VectorSearch {
    pub(super) fn new(settings: &SystemSettings, context: &BuildContext) -> Result<Self, BuildError> {
        let model = EmbeddingModel { name: text(settings, &MODEL)?, account: text(settings, &ACCOUNT)? };
        let mut local = None;
        let embed: Arc<dyn Embed> = match (model.name.as_str(), &context.embeddings) {
            ("hash", _) => Arc::new(HashEmbeddings),
            (LOCAL, _) => {
                let opened = context.local_models.open(&text(settings, &FOLDER)?);
                let opened = opened.map_err(|reason| BuildError::Adapter { system: "vector".to_owned(), reason })?;
                local = Some(opened.hash);
                opened.embed
            }
            (_, Some(embed)) => Arc::clone(embed),
            (_, None) => Arc::new(embed::NoEmbeddings),
        };
        let text_prefix = text(settings, &TEXT_PREFIX)?;
        let hash = local.as_deref().unwrap_or_default();
        let settings_key = format!("model={} {hash} prefix={text_prefix}", model.name).into();
        let query_prefix = text(settings, &QUERY_PREFIX)?;
        Ok(Self { model, embed, local, query_prefix, text_prefix, settings_key, cache: context.index_cache.clone() })
    }

    /// What the search can do. A local model is a part of the version: its folder may hold another one elsewhere.
    fn capabilities(&self) -> Capabilities {
        match &self.local {
            None => Capabilities::from_items(VERSION),
            Some(hash) => Capabilities::from_items(&format!("{VERSION}+{hash}")),
        }
    }
}

/// Builds `vector`.
pub(super) fn build(settings: &SystemSettings, context: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let search = VectorSearch::new(settings, context)?;
    Ok(FromItems::system(search.capabilities(), search))
}

#[async_trait]
impl Search for VectorSearch {
    async fn search(
        &self,
        bank: &BankRef,
        content: &Arc<BankContent>,
        query: &RecallQuery<'_>,
    ) -> Result<Vec<RetrievedHit>, Failure> {
        let key = IndexKey::of("vector", bank, content, query, &self.settings_key);
        let (content, embed, model) = (content.clone(), Arc::clone(&self.embed), self.model.clone());
        let (visible_entries, prefix) = (key.visible_entries, self.text_prefix.clone());
        let runtime = tokio::runtime::Handle::current();
        let build = move || {
            let hits = documents::hits(&content, visible_entries);
            let mut vectors = Vectors::default();
            for chunk in hits.chunks(TEXTS_PER_REQUEST) {
                let texts: Vec<String> = chunk.iter().map(|hit| format!("{prefix}{}", hit.text)).collect();
                // a thread for blocking work: the runtime goes on meanwhile
                for vector in runtime.block_on(embed.embed(&model, &texts))? {
                    vectors.push(vector).map_err(|error| Failure::permanent("embedding_shape", error))?;
                }
            }
            vectors.seal();
            Ok(VectorIndex { hits, vectors })
        };
        let index = self.cache.get_or_build(&key, build).await?;
        if index.hits.is_empty() || query.k == 0 {
            return Ok(Vec::new());
        }
        let text = if query.text.trim().is_empty() { " " } else { query.text };
        let mut embedded = self.embed.embed(&self.model, &[format!("{}{text}", self.query_prefix)]).await?;
        let embedded = embedded
            .pop()
            .ok_or_else(|| Failure::permanent("embedding_shape", "no embedding came back for the query"))?;
        let found = nearest(&index.vectors, &embedded, query.k as usize)
            .map_err(|error| Failure::permanent("embedding_shape", error))?;
        let hit = |(at, score): (usize, f32)| RetrievedHit { score: Some(f64::from(score)), ..index.hits[at].clone() };
        Ok(found.into_iter().map(hit).collect())
    }
}

struct VectorIndex {
    hits: Vec<RetrievedHit>,
    vectors: Vectors,
}

impl BuiltIndex for VectorIndex {
    fn bytes(&self) -> u64 {
        let texts: usize = self.hits.iter().map(|hit| hit.text.len() + size_of::<RetrievedHit>()).sum();
        (texts + self.vectors.bytes()) as u64
    }
}
