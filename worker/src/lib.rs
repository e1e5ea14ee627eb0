//! The worker: takes tasks and carries out their steps.
//!
//! In: messages of the queue, claims and items of the store. Out: steps, calls and facts in the store, each written once. A worker
//! keeps nothing that lasts.
//!
//! Start with `engine`, the loop: receive, claim, run, settle. `tasks` are the kinds of task, one file each; they work with what the
//! process has (`tools`) and with what their run has (`context`: the memory system behind its `guard`, the `answerer`, each
//! `judge`). Models are called through `calls`, embeddings are made and paid by `embedder`. `writer` commits steps, `cost_ledger`
//! attempts that no step holds yet, both in groups (`batch`). What memory systems call themselves goes through `metering`. `ending` is how a task ends otherwise, `concluder` makes facts of
//! steps, `journal` remembers what a store may forget. `environment` is what settings make of a process, `routes` which ways a run
//! needs, `traces` what can be seen from outside.

mod about;
mod active;
pub mod answerer;
pub mod banks;
mod batch;
mod calls;
mod clock;
pub mod concluder;
mod context;
mod cost_ledger;
mod embedder;
mod ending;
pub mod engine;
pub mod environment;
mod guard;
mod journal;
pub mod judge;
pub mod machine;
pub mod meter_place;
mod metering;
pub mod routes;
mod served;
mod tasks;
mod tools;
pub mod traces;
pub mod transport;
pub mod version;
mod writer;
