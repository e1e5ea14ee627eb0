//! What keeps the parts of a coordinator from working, for people.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// What troubles the leader's parts, written into its row for `status`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Trouble {
    /// Notes what is wrong with a part; empty when nothing is.
    pub(crate) fn set(&self, part: &'static str, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(part, what.into());
    }

    /// All of it, in one line.
    #[cfg(feature = "cluster")]
    pub(crate) fn get(&self) -> String {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut troubles: Vec<&str> =
            parts.values().map(String::as_str).filter(|trouble| !trouble.is_empty()).collect();
        troubles.dedup();
        troubles.join("; ")
    }
}
