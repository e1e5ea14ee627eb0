//! What others may send, made up: a function for each kind, which panics when a promise is broken.
//!
//! In come bytes; nothing comes out but a panic. Start reading at [`TARGETS`], the list of what is read.
//!
//! | module | question |
//! |---|---|
//! | [`targets`] | what is read, and what must hold of it? |
//! | [`mutate`] | how does one input become another? |
//! | [`coverage`] | which places of the code has an input reached? |
//! | [`corpus`] | which inputs are there to begin with? |
//!
//! `tests/corpus.rs` runs all of it for some seconds; `bench-fuzz TARGET --minutes N` for as long as is wanted
//! (`sh scripts/fuzz.sh` builds it so that it is led by what inputs reach).

pub mod corpus;
pub mod coverage;
pub mod mutate;
pub mod targets;

pub use targets::{TARGETS, Target};
