//! Logs, metrics and traces of bench-coord, and the names of everything that is logged or measured.
//!
//! Of the project it uses `bench-proto` alone, for what must not be shown (URLs with passwords, control characters). In come log
//! records, counts and finished spans; out go lines on standard error, the Prometheus page and what a collector is sent. Start
//! reading at [`init`] and [`names`]. [`init`] is called once by each binary; library code logs through
//! `tracing`, counts through [`metrics::catalogue`], and shows what the process itself does through [`process_span!`]. Features
//! decide what is built in: `http` (the listener), `metrics` (counting and the Prometheus page), `otlp` (sending to a collector).

mod github;
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

pub use github::{logged, logged_json, on_github};
pub use logs::{
    DEFAULT_FILTER, InitError, LogFormat, LogOptions, TelemetryGuard, current_filter, init, last_words, set_filter,
};

#[doc(hidden)]
pub use tracing;
