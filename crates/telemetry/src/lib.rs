//! Logs of bench-coord, and the names of everything that is logged or measured.
//!
//! Stands alone: no other crate of the project is needed to log. [`init`] is called once by each binary; library code
//! only uses `tracing`. Metrics and trace export have their names in [`names`] already and join [`TelemetryGuard`] when
//! they come.

#[cfg(feature = "http")]
pub mod http;
mod logs;
pub mod names;
#[cfg(feature = "http")]
pub mod probe;
mod redact;

pub use logs::{DEFAULT_FILTER, InitError, LogFormat, LogOptions, TelemetryGuard, init};
pub use redact::redact_url;
