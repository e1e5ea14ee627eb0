//! Where embeddings come from: any OpenAI-compatible server, or nothing but the words of a text.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use bench_proto::failure::Failure;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;

use crate::models::registry::Account;

/// An embedding model.
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
}

/// Embeddings of OpenAI-compatible servers.
pub struct HttpEmbeddings {
    accounts: BTreeMap<String, Account>,
    client: reqwest::Client,
    timeout: Duration,
}

/// Attempts of one request; embedding a text twice is harmless.
const ATTEMPTS: u32 = 5;
/// Longest response: 64 vectors of 3,072 numbers as text.
const MAX_BYTES: usize = 32 << 20;

impl HttpEmbeddings {
    /// Over these accounts.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(accounts: BTreeMap<String, Account>, timeout: Duration) -> Result<Self, Failure> {
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .http1_only()
            .user_agent(concat!("bench-coord/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::terminal("http_client", format!("cannot set up HTTP: {error}")))?;
        Ok(Self { accounts, client, timeout })
    }

    async fn once(&self, account: &Account, model: &str, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let (base, query) = account.base_url.split_once('?').unwrap_or((&account.base_url, ""));
        let mark = if query.is_empty() { "" } else { "?" };
        let url = format!("{}/embeddings{mark}{query}", base.trim_end_matches('/'));
        let body = json!({ "model": model, "input": texts, "encoding_format": "float" });
        let mut request = self.client.post(url).timeout(self.timeout).json(&body);
        if let Some(key) = &account.key {
            request = request.bearer_auth(key.expose_secret().trim());
        }
        let lost = |e: reqwest::Error| Failure::transient("embedding_connection", e.without_url().to_string());
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if bytes.len() + chunk.len() > MAX_BYTES {
                return Err(Failure::permanent("embedding_shape", "the response is too long"));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status != 200 {
            let text: String = String::from_utf8_lossy(&bytes).chars().take(300).collect();
            let line = format!("embeddings of {model}: status {status}: {text}");
            return Err(match status {
                401 | 403 => Failure::terminal("embedding_auth", line),
                404 => Failure::terminal("embedding_model", line),
                408 | 409 | 425 | 429 | 500..=599 => Failure::transient(format!("embedding_http_{status}"), line),
                _ => Failure::permanent(format!("embedding_http_{status}"), line),
            });
        }
        let reply: Reply = serde_json::from_slice(&bytes)
            .map_err(|e| Failure::transient("embedding_shape", format!("embeddings of {model}: {e}")))?;
        let mut data = reply.data;
        if data.len() != texts.len() {
            let message = format!("embeddings of {model}: {} came back for {} texts", data.len(), texts.len());
            return Err(Failure::permanent("embedding_shape", message));
        }
        data.sort_by_key(|one| one.index);
        Ok(data.into_iter().map(|one| one.embedding).collect())
    }
}

#[derive(Deserialize)]
struct Reply {
    data: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

#[async_trait]
impl Embed for HttpEmbeddings {
    async fn embed(&self, model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let account = self.accounts.get(&model.account).ok_or_else(|| no_account(&model.account))?;
        let mut wait = Duration::from_millis(200);
        for _ in 1..ATTEMPTS {
            match self.once(account, &model.name, texts).await {
                Err(failure) if failure.class == bench_proto::failure::FailureClass::Transient => {
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                result => return result,
            }
        }
        self.once(account, &model.name, texts).await
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
pub(super) struct NoEmbeddings;

#[async_trait]
impl Embed for NoEmbeddings {
    async fn embed(&self, model: &EmbeddingModel, _texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        Err(no_account(&model.account))
    }
}

/// Words and their parts, hashed into 384 dimensions: no meaning, no network, the same everywhere. For tests and as the
/// floor that a real embedding model has to beat.
pub struct HashEmbeddings;

const HASH_DIMENSIONS: usize = 384;

#[async_trait]
impl Embed for HashEmbeddings {
    async fn embed(&self, _model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        Ok(texts.iter().map(|text| hashed(text)).collect())
    }
}

fn hashed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; HASH_DIMENSIONS];
    let mut add = |part: &str, weight: f32| {
        // FNV-1a
        let hash = part
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
        vector[(hash % HASH_DIMENSIONS as u64) as usize] += sign * weight;
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
