//! Whole-system tests that run the real binaries; they are in `tests/it`, and the long fault tests in `tests/long`.
//!
//! What both share is here: a run over a cluster, what is broken in the middle of it, and what must hold afterwards.

pub mod amqp;
pub mod at_hand;
pub mod collector;
pub mod faults;
pub mod mute;
