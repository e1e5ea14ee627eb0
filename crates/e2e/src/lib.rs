//! Whole-system tests that run the real binaries; they are in `tests/it`, and the long fault tests in `tests/long`.
//!
//! What both share is here: a run over a cluster, what is broken in the middle of it, and what must hold afterwards.
//!
//! In come the binaries of this workspace and the services of `bench_testkit`; nothing comes out: nobody uses this crate.
//! Start reading at `tests/it/main.rs`; a test is in the file of its subject. [`faults`] is what is broken in the middle of a
//! run and what must hold afterwards. Tests of the tree itself (`arrows`, `rooms`) are in `tests/it` too.

pub mod amqp;
pub mod at_hand;
pub mod collector;
pub mod faults;
pub mod lanes;
pub mod mute;
