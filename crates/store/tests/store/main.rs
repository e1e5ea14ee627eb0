//! Tests of the stores through their public traits.

mod history;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
