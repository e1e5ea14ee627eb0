//! The generator's vocabulary: a table of texts for each kind of fact (`.toml`), beside the types that it is read into.
//! Whoever changes a word raises the generator's version.

use serde::Deserialize;

pub(super) mod events;
pub(super) mod pairs;
pub(super) mod sets;
pub(super) mod singles;
pub(super) mod smalltalk;
pub(super) mod traits;
pub(crate) mod words;

/// Reads a table that is part of the program. A broken one is empty, which the tests of this folder rule out.
pub(crate) fn read<T: Deserialize<'static> + Default>(text: &'static str) -> T {
    toml::from_str(text).unwrap_or_default()
}
