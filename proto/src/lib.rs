//! The contract of bench-coord: what the rooms hand to each other.
//!
//! Ids, dataset model, run spec and fingerprint, tasks and their transition table, step records, question facts,
//! calls and money, the summary. Plain data and pure functions; no I/O, no clock, no randomness. Whatever of this is
//! put on a disk or a wire carries a version and has a golden file under `proto/golden/`.
//!
//! In comes what other crates measured or read; out come types that they agree on, and derivations that two of them must make
//! in the same way. Start reading at [`spec`] (what a run is), [`task`] (what may happen to a task), [`step`] (what a worker
//! stores) and [`facts`] (what a question came to); `docs/PROTOCOL.md` has the rules behind them.

pub mod address;
pub mod assertions;
pub mod audit;
pub mod bank;
pub mod banks_archive;
pub mod call;
pub mod canary;
pub mod comparison;
pub mod counting;
pub mod dataset;
pub mod digest;
pub mod facts;
pub mod failure;
pub mod gate;
pub mod ids;
pub mod json_bound;
pub mod label_fixes;
pub mod matrix;
pub mod meter_refused;
pub mod metered;
pub mod metric;
pub mod money;
pub mod nearest;
pub mod outage;
pub mod panel;
pub mod policy;
pub mod price;
pub mod probe;
pub mod profile;
pub mod reason;
pub mod redact;
pub mod repeats;
pub mod retrieval;
pub mod scenario;
pub mod served;
pub mod server;
pub mod session;
pub mod spec;
pub mod started_again;
pub mod step;
pub mod stop;
pub mod strata;
pub mod summary;
pub mod task;
pub mod text;
pub mod trace;
pub mod transition;
pub mod usage_cap;
pub mod weight;

/// Version of this build; binaries say its commit as well.
pub const CODE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Queue domain of runs that a long-running coordinator serves (P21).
pub const CLUSTER_DOMAIN: &str = "cluster";

/// Queue domain of runs that one process owns; the sessions of run number 7 are in the domain `local/7`.
pub const LOCAL_DOMAIN: &str = "local";

/// Plans of runs of a cluster are written in sessions of a domain that begins so: that of run number 7 in `cluster/plan/7`.
pub const PLANS_DOMAIN: &str = "cluster/plan";
