//! Accounts: a base URL and the key that belongs to it. A key is sent to its own base URL and to nobody else (P32).

use std::path::Path;

use secrecy::SecretString;

use crate::{
    layers::{Entries, Sources},
    origin::Origin,
    value::Value,
};

/// An account of a provider.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its name: part of pace, stop flag and cache keys.
    pub name: String,
    /// Base URL, with its version path.
    pub base_url: Option<String>,
    /// Its key, or why there is none.
    pub key: ApiKey,
    /// Requests per minute that the provider allows to each of its models, if known.
    pub rpm: Option<u64>,
    /// Tokens per minute that the provider allows to each of its models, if known.
    pub tpm: Option<u64>,
    /// Its token limit counts the reply that came and not the largest one that was asked for.
    pub tpm_counts_used: bool,
    /// Who says what its key has spent: `openrouter` or `litellm`.
    pub spent: Option<String>,
    /// Its server takes the wish that a stream tells its use (`stream_options`).
    pub stream_usage: bool,
    /// Names of parameters of requests that cost nothing beyond tokens there, beside those that are known to.
    pub parameters: Vec<String>,
}

impl Account {
    /// An account without a server, a key or limits.
    pub(crate) const fn named(name: String) -> Self {
        Self {
            name,
            base_url: None,
            key: ApiKey::None,
            rpm: None,
            tpm: None,
            tpm_counts_used: false,
            spent: None,
            stream_usage: true,
            parameters: Vec::new(),
        }
    }
}

/// The key of an account.
#[derive(Debug, Clone)]
pub enum ApiKey {
    /// Here it is, and where it comes from.
    Set(SecretString, Origin),
    /// One is named, but could not be found: why, and what to do.
    Missing(String),
    /// The account works without a key.
    None,
}

impl ApiKey {
    /// The key, when there is one.
    #[must_use]
    pub const fn secret(&self) -> Option<&SecretString> {
        match self {
            Self::Set(secret, _) => Some(secret),
            Self::Missing(_) | Self::None => None,
        }
    }
}

/// A role that calls a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModelRole {
    /// Answers questions.
    Answerer,
    /// Judges answers.
    Judge,
    /// Embeds, for memory systems that search by embeddings.
    Embedder,
}

impl ModelRole {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Answerer, Self::Judge, Self::Embedder];

    /// Name of its section.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answerer => "answerer",
            Self::Judge => "judge",
            Self::Embedder => "embedder",
        }
    }
}

/// The accounts that the settings describe, by name.
pub(crate) fn accounts(entries: &Entries, sources: &Sources<'_>) -> Vec<Account> {
    let mut names: Vec<&str> =
        entries.keys().filter_map(|key| key.strip_prefix("accounts.")?.split_once('.')).map(|(name, _)| name).collect();
    names.dedup();
    names.into_iter().map(|name| account(name, entries, sources)).collect()
}

fn account(name: &str, entries: &Entries, sources: &Sources<'_>) -> Account {
    let field = |field: &str| entries.get(&format!("accounts.{name}.{field}"));
    let base_url = field("base_url").and_then(|entry| match &entry.value {
        Value::Url(url) => Some(url.clone()),
        _ => None,
    });
    let variable = field("api_key_env").and_then(|entry| entry.value.text()).map(str::to_owned);
    let path = field("api_key_file").map(|entry| entry.value.shown());
    let from_env = variable.as_deref().and_then(|variable| {
        let key = (sources.env)(variable).filter(|key| !key.trim().is_empty())?;
        Some(ApiKey::Set(key.trim().into(), Origin::Env(variable.to_owned())))
    });
    let key = match (from_env, path, variable) {
        (Some(key), ..) => key,
        (None, Some(path), _) => from_file(&path, sources),
        (None, None, Some(variable)) => ApiKey::Missing(format!("the environment variable {variable} is not set")),
        (None, None, None) => ApiKey::None,
    };
    let limit = |name: &str| match field(name).map(|entry| &entry.value) {
        Some(Value::Whole(limit)) => u64::try_from(*limit).ok(),
        _ => None,
    };
    let tpm_counts_used = field("tpm_counts").is_some_and(|entry| entry.value.text() == Some("used"));
    let spent = field("spent").and_then(|entry| entry.value.text()).map(str::to_owned);
    let stream_usage = field("stream_usage").is_none_or(|entry| !matches!(entry.value, Value::Bool(false)));
    let parameters = match field("parameters").map(|entry| &entry.value) {
        Some(Value::List(names)) => names.clone(),
        _ => Vec::new(),
    };
    let (rpm, tpm) = (limit("rpm"), limit("tpm"));
    Account { name: name.to_owned(), base_url, key, rpm, tpm, tpm_counts_used, spent, stream_usage, parameters }
}

/// A key file may not be there on machines that never use the account: that is no error until it is used.
fn from_file(path: &str, sources: &Sources<'_>) -> ApiKey {
    match (sources.read_key_file)(Path::new(path)) {
        Ok(text) if text.trim().is_empty() => ApiKey::Missing(format!("the key file {path} is empty")),
        Ok(text) => ApiKey::Set(text.trim().into(), Origin::KeyFile(path.to_owned())),
        Err(error) => ApiKey::Missing(format!("the key file {path} cannot be read: {error}")),
    }
}
