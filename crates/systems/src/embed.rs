//! Where embeddings come from: any OpenAI-compatible server, or nothing but the words of a text.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bench_models::{
    backoff::BackoffSettings,
    openai::{
        SharedHttp,
        embeddings::{request, vectors},
    },
    registry::{Account, build_embeddings, embedding_account},
};
use bench_proto::failure::Failure;

/// A model that makes vectors of texts, and the account that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// Its name, as it is sent.
    pub name: String,
    /// The account whose server has it.
    pub account: String,
}

/// Makes vectors of texts.
#[async_trait]
pub trait Embed: Send + Sync {
    /// One vector per text, in order.
    async fn embed(&self, model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure>;

    /// Makes the vectors of what a bank is given and keeps them for [`Self::of_bank`], where that spares making them again.
    async fn ahead(&self, _: &EmbeddingModel, _: &[String]) -> Result<(), Failure> {
        Ok(())
    }

    /// The vectors of what a bank was given.
    async fn of_bank(&self, model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        self.embed(model, texts).await
    }
}

/// Embeddings of a server for whoever works outside of a run (`systems check`): those of runs are paced, capped and stored.
pub struct HttpEmbeddings {
    accounts: BTreeMap<String, Account>,
    http: SharedHttp,
}

impl HttpEmbeddings {
    /// Embeddings of the servers of these accounts.
    #[must_use]
    pub fn new(accounts: BTreeMap<String, Account>, http: SharedHttp) -> Self {
        Self { accounts, http }
    }
}

#[async_trait]
impl Embed for HttpEmbeddings {
    async fn embed(&self, model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let account = embedding_account(&self.accounts, &model.account).ok_or_else(|| no_account(&model.account))?;
        let server = build_embeddings(&model.name, account, &self.http)?;
        let request = request(texts);
        let attempt = || async { server.attempt(&request, None).await.result.map_err(|error| error.failure) };
        // embedding a text twice is harmless
        let reply = BackoffSettings::for_a_person(attempt).await?;
        vectors(&reply.text, texts.len()).map_err(|error| Failure::permanent("embedding_shape", error))
    }
}

fn no_account(name: &str) -> Failure {
    Failure::terminal(
        "embedding_account",
        format!(
            "account '{name}' has no server and key for embeddings: set OPENAI_API_KEY, or vector.account, or vector.model=hash"
        ),
    )
}

/// No account is configured at all.
pub(crate) struct NoEmbeddings;

#[async_trait]
impl Embed for NoEmbeddings {
    async fn embed(&self, model: &EmbeddingModel, _texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        Err(no_account(&model.account))
    }
}

/// Words and their parts, hashed into 384 dimensions: no meaning, no network, the same everywhere. For tests and as the
/// floor that a real embedding model has to beat.
pub struct HashEmbeddings;

impl HashEmbeddings {
    /// Numbers of each vector.
    pub const DIMENSIONS: usize = 384;
}

#[async_trait]
impl Embed for HashEmbeddings {
    async fn embed(&self, _model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        Ok(texts.iter().map(|text| hashed(text)).collect())
    }
}

fn hashed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; HashEmbeddings::DIMENSIONS];
    let mut add = |part: &str, weight: f32| {
        // FNV-1a
        let hash = part
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
        vector[(hash % HashEmbeddings::DIMENSIONS as u64) as usize] += sign * weight;
    };
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        add(word, 1.0);
        let letters: Vec<char> = word.chars().collect();
        for three in letters.windows(3) {
            add(&three.iter().collect::<String>(), 0.3);
        }
    }
    vector
}
