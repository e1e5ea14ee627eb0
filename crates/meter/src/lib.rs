//! A proxy in front of model providers that tells what each request used.
//!
//! Memory systems call models themselves. A system whose base URL leads here calls through the meter: each request is read, somebody
//! who knows runs and money decides about it ([`Admission`]), it goes to its provider with the provider's own key, and what became of
//! it is told ([`Outcome`]). Bodies pass byte by byte; what is changed is listed in docs/METER.md.
//!
//! In come requests of memory systems and, of each, what [`Admission`] decides; out go the same requests to their providers, the
//! replies to the clients, and an [`Outcome`] of each. Start reading at `exchange`.
//!
//! The way of a request: `server` → `exchange` (`address`, `ask`) → [`Admission`] → `flight` → `relay` and `reading` (`events`,
//! `members`, `usage`) → [`Admitted::settle`]. The meter knows no run and stores nothing.
//!
//! Bounds: of requests by their bytes, one by one and together ([`MeterSettings::most_held_bytes`]); of replies nothing is held but what
//! is read of them; clients pull, so that a slow one holds a few buffers.

mod address;
mod admission;
mod ask;
mod events;
mod exchange;
mod faults;
mod flight;
mod headers;
pub mod heard;
mod members;
mod origin;
mod outcome;
mod reading;
mod refusal;
mod relay;
mod room;
mod seats;
mod secrets;
mod server;
mod settings;
mod texts;
mod upstream;
mod url;
mod usage;
mod wish;

pub use address::{Address, Operation};
pub use admission::{Admission, Admitted};
pub use ask::{Asked, PromptTokens};
pub use faults::{FaultKind, Faults, FaultsError};
pub use outcome::{Ended, Outcome, Refusal, StoredReply, Tokens};
pub use server::{Meter, MeterError};
pub use settings::MeterSettings;
pub use upstream::{Paths, Upstream};
