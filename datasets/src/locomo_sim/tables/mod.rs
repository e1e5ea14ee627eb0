//! The generator's vocabulary, one file per kind of fact. Whoever changes a word raises the generator's version.

pub(super) mod events;
pub(super) mod pairs;
pub(super) mod sets;
pub(super) mod singles;
pub(super) mod smalltalk;
pub(super) mod traits;
pub(super) mod words;
