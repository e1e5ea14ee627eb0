//! A simulated OpenAI-compatible provider, for rehearsals, tests and benchmarks.
//!
//! It serves chat completions, responses and embeddings with usage numbers, and on request it is slow, enforces limits with the real
//! headers and 429s, fails, hangs, cuts connections and replies nonsense. Replies are pure functions of (seed, request, draw)
//! and faults of (seed, request, try), never of time or arrival order (P17), so that a run against it has one right result.
//! Outages are the exception: they hold for a time, for everything or for a model, a kind of call, a key.
//! What it has seen is served at `/stats`: the figures to check a runner's own books against.
//!
//! In come a [`SimConfig`] and requests over HTTP; out come replies, and the figures of [`Stats`]. Start reading at
//! [`Sim`], then at `core`. The way of a request: `door` → `connections` → `server` → `request` (read, check, identity) → `core`
//! (outage, key, limits, try, fault) → `reply` (of it `extraction`) or `embed` → `wire`.
//!
//! Limits of the simulation: of the tools of a request the first is called, in whole replies only, and none at `/v1/responses`;
//! no images, no log-probabilities, no partial streaming delays.

mod admin;
mod announced;
mod anthropic;
mod config;
mod connections;
mod core;
mod door;
mod draw;
mod embed;
mod error;
mod extraction;
mod fault;
mod latency;
mod ledger;
mod limit;
mod notes;
mod outage;
mod reply;
mod request;
mod responses;
mod schema;
mod server;
mod stats;
mod strike;
mod tokens;
mod wire;

pub use config::{
    AnswerMode, FaultConfig, JudgeMode, KeyConfig, LatencyConfig, LimitConfig, LiveConfig, Price, SimConfig,
    TokenCounter, Window,
};
pub use error::{ConfigError, StartError};
pub use fault::FaultKind;
pub use outage::{AfterOutage, Calls, Outage, OutageFigures, OutageKind, OutageState};
pub use server::{RunningSim, Sim};
pub use stats::{ModelStats, Stats};
