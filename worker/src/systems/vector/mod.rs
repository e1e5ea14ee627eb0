//! `vector`: search by embeddings, exact. `hybrid`: bm25 and vector joined by reciprocal rank.
//!
//! A document is one turn with its date and speaker, as for bm25: short texts make sharp vectors, and the same units make
//! the two comparable. Vectors have length 1, so that the dot product is the cosine. The embeddings of a bank are computed
//! once per process and bank, 64 texts per request, and kept in the index cache.

mod embed;
mod hybrid;
mod index;

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{dataset::BankContent, failure::Failure, step::RetrievedHit};

pub use self::embed::{Embed, EmbeddingModel, HashEmbeddings, HttpEmbeddings};
pub use self::index::{Vectors, nearest};
use super::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, Setting, SystemSettings, documents,
    from_items::{FromItems, Search},
    index_cache::{BuiltIndex, IndexCache, IndexKey},
    settings::text,
};
pub(super) use hybrid::{HYBRID_SETTINGS, build_hybrid};

/// Semantic version: raised when the same settings find something else.
const VERSION: &str = "1.0.0";

const MODEL: Setting = Setting {
    name: "vector.model",
    description: "embedding model of an OpenAI-compatible server, or hash (no network, words only)",
    default: "text-embedding-3-small",
};
const ACCOUNT: Setting =
    Setting { name: "vector.account", description: "account whose server makes the embeddings", default: "openai" };

/// Settings of `vector`.
pub(super) const SETTINGS: &[Setting] = &[MODEL, ACCOUNT];

/// Texts of one request.
const TEXTS_PER_REQUEST: usize = 64;

/// Search by embeddings.
pub(super) struct VectorSearch {
    model: EmbeddingModel,
    embed: Arc<dyn Embed>,
    settings_key: Arc<str>,
    cache: IndexCache,
}

impl VectorSearch {
    pub(super) fn new(settings: &SystemSettings, context: &BuildContext) -> Result<Self, BuildError> {
        let model = EmbeddingModel { name: text(settings, &MODEL)?, account: text(settings, &ACCOUNT)? };
        let embed: Arc<dyn Embed> = match (model.name.as_str(), &context.embeddings) {
            ("hash", _) => Arc::new(HashEmbeddings),
            (_, Some(embed)) => Arc::clone(embed),
            (_, None) => Arc::new(embed::NoEmbeddings),
        };
        let settings_key = format!("model={}", model.name).into();
        Ok(Self { model, embed, settings_key, cache: context.index_cache.clone() })
    }
}

/// Builds `vector`.
pub(super) fn build(settings: &SystemSettings, context: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    Ok(FromItems::system(Capabilities::from_items(VERSION), VectorSearch::new(settings, context)?))
}

#[async_trait]
impl Search for VectorSearch {
    async fn search(
        &self,
        bank: &BankRef,
        content: &Arc<BankContent>,
        query: &RecallQuery<'_>,
    ) -> Result<Vec<RetrievedHit>, Failure> {
        let visible_entries = documents::visible_len(content, query.visible_entries) as u32;
        let key = IndexKey {
            system: "vector",
            content_hash: bank.content_hash,
            visible_entries,
            settings: self.settings_key.clone(),
        };
        let (content, embed, model) = (content.clone(), Arc::clone(&self.embed), self.model.clone());
        let runtime = tokio::runtime::Handle::current();
        let build = move || {
            let hits: Vec<RetrievedHit> =
                documents::visible(&content, visible_entries).into_iter().map(|document| document.hit(None)).collect();
            let mut vectors = Vectors::default();
            for chunk in hits.chunks(TEXTS_PER_REQUEST) {
                let texts: Vec<String> = chunk.iter().map(|hit| hit.text.clone()).collect();
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
        let mut embedded = self.embed.embed(&self.model, &[text.to_owned()]).await?;
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
