//! Memory systems: what is benchmarked.
//!
//! In: a bank's entries to retain and queries to recall, each with what its step brings along ([`StepContext`]). Out: receipts, hits
//! and failures whose codes say whether another try can help. Nothing here knows of runs, tasks or stores.
//!
//! Start with `system`, the trait. `registry` finds a system by its name and builds it from its settings (`settings`) and from
//! what the process shares (`context`), unless `policy` refuses. Built-in systems are `bm25`, `vector` (and hybrid), `alias`,
//! `facts`, `full_context` and the controls `none`, `random`, `oracle` and `faulty`: all are computed from the stored items
//! (`from_items`, `documents`), their indexes are kept in `index_cache` (`kept` bounds it), their embeddings come from `embed` or `local`, what a model says from `chat`.
//! `pgvector` keeps the same in a database. Systems of others are described by a file and reached by `adapter`. `check` asks a system whether it keeps what the trait
//! promises, `filling` stores a bank for it and for whoever else works outside of a run, `filled_again` tells that an operation has to fill its bank first, and `canary` looks into a bank while a run is under way.
//! `closing` is how long the end of one is waited for.
//!
//! To add a built-in, copy the smallest file here (`none`) and add a line to the registry.

pub mod adapter;
mod alias;
mod at_once;
mod bm25;
pub mod canary;
pub mod chat;
pub mod check;
pub mod closing;
#[cfg(test)]
mod conformance;
mod context;
mod documents;
pub mod embed;
mod error;
pub mod facts;
mod faulty;
pub mod filled_again;
pub mod filling;
mod from_items;
mod full_context;
pub mod index_cache;
pub mod kept;
mod local;
mod moments;
mod none;
mod oracle;
#[cfg(feature = "pgvector")]
mod pgvector;
pub mod policy;
mod random;
pub mod registry;
mod settings;
mod system;
pub mod trial;
pub mod vector;

pub use context::{BuildContext, Embeddings};
pub use documents::outside_filter;
pub use error::BuildError;
pub use local::LocalModels;
pub use settings::Setting;
pub use system::{
    BankRef, Capabilities, Consolidation, Counted, ListCursor, ListedPage, MemorySystem, NOT_INSTALLED, NativeAnswer,
    Prepared, Readiness, Recall, RecallQuery, RetainReceipt, StepContext, SystemSettings, SystemStats,
};
