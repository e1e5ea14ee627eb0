//! A simulated OpenAI-compatible provider, for rehearsals, tests and benchmarks.
//!
//! It serves chat completions and embeddings with usage numbers, and on request it is slow, enforces limits with the real
//! headers and 429s, fails, hangs, cuts connections and replies nonsense. Replies are pure functions of (seed, request, draw)
//! and faults of (seed, request, try), never of time or arrival order (P17), so that a run against it has one right result.
//! What it has seen is served at `/stats`: the figures to check a runner's own books against.
//!
//! The way of a request: `server` → `request` (read, check, identity) → `core` (key, limits, try, fault) → `reply` or
//! `embed` → `wire`.
//!
//! Limits of the simulation: no tools, no images, no log-probabilities, no partial streaming delays.

mod anthropic;
mod config;
mod core;
mod draw;
mod embed;
mod error;
mod fault;
mod latency;
mod limit;
mod reply;
mod request;
mod schema;
mod server;
mod stats;
mod tokens;
mod wire;

pub use config::{
    AnswerMode, FaultConfig, LatencyConfig, LimitConfig, LiveConfig, Price, SimConfig, TokenCounter, Window,
};
pub use error::{ConfigError, StartError};
pub use fault::FaultKind;
pub use server::{RunningSim, Sim};
pub use stats::{ModelStats, Stats};
