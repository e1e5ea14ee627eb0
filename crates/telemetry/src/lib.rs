//! Logs, metrics and traces of bench-coord, and the names of everything that is logged or measured.
//!
//! Stands alone: no other crate of the project is needed. [`init`] is called once by each binary; library code logs through
//! `tracing`, counts through [`metrics::catalogue`], and shows what the process itself does through [`process_span!`]. Features
//! decide what is built in: `http` (the listener), `metrics` (counting and the Prometheus page), `otlp` (sending to a collector).

#[cfg(feature = "http")]
pub mod http;
mod logs;
pub mod metrics;
pub mod names;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod outage;
#[cfg(feature = "http")]
pub mod probe;
pub mod process;
pub mod spans;

pub use logs::{
    DEFAULT_FILTER, InitError, LogFormat, LogOptions, TelemetryGuard, current_filter, init, last_words, set_filter,
};

#[doc(hidden)]
pub use tracing;
