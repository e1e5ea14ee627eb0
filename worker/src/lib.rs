//! The worker: retain, recall, answer and judge.
//!
//! `systems` (memory systems) and `models` (chat models) are registries of small files. The rest is
//! the loop around them: claim tasks, run their steps, hand every finished step to the one checkpoint writer.

pub mod answerer;
pub mod banks;
mod batch;
mod calls;
pub mod concluder;
pub mod context;
mod cost_ledger;
pub mod embedder;
pub mod engine;
pub mod environment;
mod guard;
mod journal;
mod judge;
mod machine;
pub mod routes;
mod served;
pub mod systems;
mod tasks;
pub mod traces;
pub mod transport;
pub mod version;
mod writer;
