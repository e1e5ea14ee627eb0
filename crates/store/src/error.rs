//! What can go wrong in a store, told apart by what the caller can do about it.

use std::{error::Error, fmt};

use bench_proto::{
    failure::{Failure, code},
    reason::Reason,
};

/// Why something could not be done with the store.
#[derive(Debug, Clone)]
pub enum StoreError {
    /// May pass: locked, connection lost, server restarting, no room on the server's disk. Repeat the same call (every write is
    /// idempotent).
    Unavailable(Reason),
    /// The disk (or quota) under a store of this machine is full.
    Full(Reason),
    /// A row of this batch cannot be stored; smaller batches find out which (P8).
    BadData(String),
    /// What was read does not make sense (failed checksum, unreadable JSON, damaged page).
    Corrupt(Reason),
    /// The store as a whole does not make sense: a file that is no database, a schema that is not what its row says.
    Broken(Reason),
    /// The schema is not one that this build can use.
    Schema {
        /// Version in the store.
        found: i64,
        /// Version of this build.
        supported: i64,
        /// What to do.
        advice: String,
    },
    /// The URL or folder cannot be used.
    Open(Reason),
    /// The user of the store's URL has not the right to it.
    Denied(String),
    /// Something with this name is already there.
    Exists(String),
    /// It is not there.
    Missing(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "the store is unavailable: {why}"),
            Self::Full(why) => write!(f, "no space left for the store: {why}"),
            Self::BadData(why) => write!(f, "the store refuses the data: {why}"),
            Self::Corrupt(why) | Self::Broken(why) => write!(f, "the store is damaged: {why}"),
            Self::Schema { found, supported, advice } => {
                write!(f, "the store has schema version {found}, this build reads {supported}: {advice}")
            }
            Self::Open(why) => write!(f, "{why}"),
            Self::Denied(what) => write!(
                f,
                "{what}: the user of the store's URL has not the role for it; docs/OPERATIONS.md names the role of each program and \
                 verb"
            ),
            Self::Exists(what) => write!(f, "{what} already exists"),
            Self::Missing(what) => write!(f, "{what} is not in the store"),
        }
    }
}

/// By hand: the words of a reason are part of the message, and what is behind them is the cause.
impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(why) | Self::Full(why) | Self::Corrupt(why) | Self::Broken(why) | Self::Open(why) => {
                why.source()
            }
            Self::BadData(_) | Self::Schema { .. } | Self::Denied(_) | Self::Exists(_) | Self::Missing(_) => None,
        }
    }
}

impl StoreError {
    /// The same with an error behind its reason. What gives no reason stays as it is.
    #[must_use]
    pub(crate) fn because(self, error: &(dyn Error + 'static)) -> Self {
        match self {
            Self::Unavailable(why) => Self::Unavailable(why.because(error)),
            Self::Full(why) => Self::Full(why.because(error)),
            Self::Corrupt(why) => Self::Corrupt(why.because(error)),
            Self::Broken(why) => Self::Broken(why.because(error)),
            Self::Open(why) => Self::Open(why.because(error)),
            Self::BadData(_) | Self::Schema { .. } | Self::Denied(_) | Self::Exists(_) | Self::Missing(_) => self,
        }
    }

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
