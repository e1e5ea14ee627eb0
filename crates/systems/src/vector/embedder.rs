//! Who makes the embeddings of a system, and what its model wants before texts.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{dataset::StreamEntry, failure::Failure};

use super::{ACCOUNT, FOLDER, LOCAL, MODEL, QUERY_PREFIX, REQUESTS_AT_ONCE, TEXT_PREFIX, requests};
use crate::{
    BuildContext, BuildError, Embeddings, StepContext, SystemSettings,
    at_once::several_at_once,
    embed::{Embed, EmbeddingModel, HashEmbeddings, NoEmbeddings},
    settings::text,
};

/// Who makes embeddings, and of what.
pub(crate) struct Embedder {
    pub(super) model: EmbeddingModel,
    /// Where they come from, unless the step that asks brings its own.
    embed: Option<Arc<dyn Embed>>,
    /// Hash of a local model.
    pub(super) local: Option<String>,
    query_prefix: String,
    pub(super) text_prefix: String,
}

impl Embedder {
    /// By the settings of `vector`.
    ///
    /// # Errors
    /// A value that a setting does not take, a local model that cannot be read.
    pub(crate) fn new(settings: &SystemSettings, context: &BuildContext) -> Result<Self, BuildError> {
        let model = EmbeddingModel { name: text(settings, &MODEL)?, account: text(settings, &ACCOUNT)? };
        let mut local = None;
        let embed: Option<Arc<dyn Embed>> = match (model.name.as_str(), &context.embeddings) {
            ("hash", _) => Some(Arc::new(HashEmbeddings)),
            (LOCAL, _) => {
                let opened = context.local_models.open(&text(settings, &FOLDER)?);
                let opened = opened
                    .map_err(|reason| BuildError::Adapter { system: "vector".to_owned(), reason: reason.into() })?;
                local = Some(opened.hash);
                Some(opened.embed)
            }
            (_, Embeddings::Accounts(embed)) => Some(Arc::clone(embed)),
            (_, Embeddings::Nowhere) => Some(Arc::new(NoEmbeddings)),
            (_, Embeddings::OfStep) => None,
        };
        let (query_prefix, text_prefix) = (text(settings, &QUERY_PREFIX)?, text(settings, &TEXT_PREFIX)?);
        Ok(Self { model, embed, local, query_prefix, text_prefix })
    }

    /// A version with the hash of a local model: its folder may hold another one elsewhere.
    pub(crate) fn version(&self, version: &str) -> String {
        self.local.as_ref().map_or_else(|| version.to_owned(), |hash| format!("{version}+{hash}"))
    }

    /// Who makes embeddings for a step.
    ///
    /// # Errors
    /// When nobody does.
    pub(super) fn embedder_for<'a>(&'a self, step: StepContext<'a>) -> Result<&'a Arc<dyn Embed>, Failure> {
        self.embed.as_ref().or(step.embeddings).ok_or_else(|| {
            Failure::permanent("embedding_payer", "embeddings of a run are made within its steps; report this as a bug")
        })
    }

    /// The vector of a question.
    ///
    /// # Errors
    /// What its model says.
    pub(crate) async fn query(&self, text: &str, step: StepContext<'_>) -> Result<Vec<f32>, Failure> {
        let text = if text.trim().is_empty() { " " } else { text };
        let embedded = self.embedder_for(step)?.embed(&self.model, &[format!("{}{text}", self.query_prefix)]).await?;
        let missing = || Failure::permanent("embedding_shape", "no embedding came back for the query");
        embedded.into_iter().next_back().ok_or_else(missing)
    }

    /// The vectors of all documents of some entries, in order.
    ///
    /// # Errors
    /// What the model says.
    #[cfg(feature = "pgvector")]
    pub(crate) async fn of_entries(
        &self,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let embed = self.embedder_for(step)?;
        let texts = self.texts(entries);
        let asked = texts.iter().map(|texts| embed.of_bank(&self.model, texts)).collect();
        Ok(several_at_once(asked, REQUESTS_AT_ONCE).await?.into_iter().flatten().collect())
    }

    fn texts(&self, entries: &[StreamEntry]) -> Vec<Vec<String>> {
        requests::of_entries(entries, &self.text_prefix).into_iter().map(|request| request.texts).collect()
    }

    /// Makes the vectors of entries and keeps them for whoever needs them; how long that took.
    ///
    /// # Errors
    /// What the model says.
    pub(crate) async fn ahead(&self, entries: &[StreamEntry], step: StepContext<'_>) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let embed = self.embedder_for(step)?;
        let texts = self.texts(entries);
        let asked = texts.iter().map(|texts| embed.ahead(&self.model, texts)).collect();
        several_at_once(asked, REQUESTS_AT_ONCE).await?;
        Ok(begun.elapsed())
    }
}
