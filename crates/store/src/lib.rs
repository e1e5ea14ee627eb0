//! Runs, items, tasks, checkpoints, calls and results: the truth of every run (architecture rule 1).
//!
//! The store is split by reader's need into narrow traits; [`Store`] is their sum. Each backend is one folder, one line in
//! the registry ([`open`]) and passes the whole suite of [`conformance`]. All times inside are the store's own clock;
//! callers give delays, never instants.
//!
//! In come plans, claims and batches of step records; out come rows (`rows`), tasks to work on, and what a commit opened or
//! completed. Start reading at the traits (`traits`), then at the statements that both backends share (`sql`): most of the
//! protocol is in `sql/claims` and `sql/commit`. `postgres` and `sqlite` only connect and translate.

mod codec;
pub mod conformance;
mod error;
mod pace;
#[cfg(feature = "postgres")]
pub mod postgres;
mod registry;
mod retry;
mod rows;
mod schema;
mod slow;
mod sql;
pub mod sqlite;
mod traits;

pub use error::StoreError;
pub use registry::{
    BACKENDS, Backend, COORDINATOR_CONNECTIONS, WORKER_CONNECTIONS, check, migrate, name_roles, open, open_for,
    open_with, transport,
};
pub use retry::{retry, retry_until};
pub use rows::*;
pub use traits::*;
