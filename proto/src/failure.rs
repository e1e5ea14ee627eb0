//! Failures as data: what went wrong, whether trying again can help, and when.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest `Retry-After` that is believed, wherever it is read: a provider that names a day may be back in a minute, and
/// whoever asks every five minutes does no harm.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Whether repeating the same thing can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// May pass: time-out, 5xx, cut connection, unparsable reply. Retried up to the run's `retries`.
    Transient,
    /// Will not pass for this task: bad request, context too long, content filter.
    Permanent,
    /// Will not pass for any task of the account: invalid key, quota used up, unknown model. Stops the run (resumable).
    Terminal,
}

/// Codes of failures that more than one part of the program decides by.
pub mod code {
    /// A worker lacks something that a run needs: a name it does not know, an account. Others may have it.
    pub const CANNOT_SERVE: &str = "worker_cannot_serve";
    /// A worker may not run the memory system of a run (P42). Others may.
    pub const NOT_ALLOWED: &str = "system_not_allowed";
    /// A provider does not take the key of an account.
    pub const INVALID_API_KEY: &str = "invalid_api_key";
    /// A provider does not let an account do what it asked for.
    pub const FORBIDDEN: &str = "forbidden";
    /// The quota of an account is used up.
    pub const INSUFFICIENT_QUOTA: &str = "insufficient_quota";
    /// An account has asked its provider too often.
    pub const RATE_LIMITED: &str = "rate_limited";
    /// It concerns one model of an account.
    pub const MODEL_NOT_FOUND: &str = "model_not_found";
    /// A request never reached the memory server, which is away: the task is put off, nothing is counted.
    pub const SYSTEM_UNAVAILABLE: &str = "system_unavailable";
    /// The store did not take or bring what was asked of it.
    pub const STORE: &str = "store";
    /// A memory server holds less than was stored in it.
    pub const MEMORIES_LOST: &str = "memories_lost";
}

/// Why a task failed, as stored and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Whether a retry can help.
    pub class: FailureClass,
    /// Short stable word, such as `timeout`, `http_500`, `unparsable_judgement`, `insufficient_quota`.
    pub code: String,
    /// One readable line; never holds a key.
    pub message: String,
    /// Earliest time for another try in milliseconds from now, when the other side said so (Retry-After).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// A failure of the given class.
    pub fn new(class: FailureClass, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class, code: code.into(), message: message.into(), retry_after_ms: None }
    }

    /// One that may pass.
    pub fn transient(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Transient, code, message)
    }

    /// One that will not pass for this task.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Permanent, code, message)
    }

    /// One that stops the whole run.
    pub fn terminal(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Terminal, code, message)
    }
}
