//! What can go wrong in a store, told apart by what the caller can do about it.

use bench_proto::failure::{Failure, code};

/// Why something could not be done with the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// May pass: locked, connection lost, server restarting, no room on the server's disk. Repeat the same call (every write is
    /// idempotent).
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The disk (or quota) under a store of this machine is full.
    #[error("no space left for the store: {0}")]
    Full(String),
    /// A row of this batch cannot be stored; smaller batches find out which (P8).
    #[error("the store refuses the data: {0}")]
    BadData(String),
    /// What was read does not make sense (failed checksum, unreadable JSON, damaged page).
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The store as a whole does not make sense: a file that is no database, a schema that is not what its row says.
    #[error("the store is damaged: {0}")]
    Broken(String),
    /// The schema is not one that this build can use.
    #[error("the store has schema version {found}, this build reads {supported}: {advice}")]
    Schema {
        /// Version in the store.
        found: i64,
        /// Version of this build.
        supported: i64,
        /// What to do.
        advice: String,
    },
    /// The URL or folder cannot be used.
    #[error("{0}")]
    Open(String),
    /// The user of the store's URL has not the right to it.
    #[error(
        "{0}: the user of the store's URL has not the role for it; docs/OPERATIONS.md names the role of each program and verb"
    )]
    Denied(String),
    /// Something with this name is already there.
    #[error("{0} already exists")]
    Exists(String),
    /// It is not there.
    #[error("{0} is not in the store")]
    Missing(String),
}

impl StoreError {
    /// Whether repeating the same call can help.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Whether it is about the rows that were asked for, and says nothing of others. Of a batch, smaller ones find out which.
    #[must_use]
    pub const fn is_about_rows(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Missing(_))
    }
}

/// As the failure of whoever needed the store: what may pass is retried.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error.is_transient() {
            true => Self::transient(code::STORE, error.to_string()),
            false => Self::permanent(code::STORE, error.to_string()),
        }
    }
}
