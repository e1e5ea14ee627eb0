//! Tests of the stores through their public traits.

mod history;
mod sqlite;
