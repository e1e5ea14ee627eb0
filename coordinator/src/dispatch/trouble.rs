//! What keeps the parts of a coordinator from working, for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use bench_proto::ids::RunNo;
use bench_store::StoreError;
use tracing::warn;

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

/// Runs that cannot be read: what is wrong with one holds up no other.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    now: BTreeMap<RunNo, String>,
    told: BTreeSet<RunNo>,
}

impl LeftOut {
    /// Forgets which they are; what was said of them once is not said again.
    pub(crate) fn look_again(&mut self) {
        self.now.clear();
    }

    /// Forgets one that can be read again.
    #[cfg(feature = "cluster")]
    pub(crate) fn forget(&mut self, run: RunNo) {
        self.now.remove(&run);
    }

    /// Forgets those that nobody looks after any more.
    #[cfg(feature = "cluster")]
    pub(crate) fn keep(&mut self, is_looked_after: impl Fn(&RunNo) -> bool) {
        self.now.retain(|run, _| is_looked_after(run));
    }

    /// Leaves a run out, and says so once.
    pub(crate) fn add(&mut self, run: RunNo, error: &StoreError) {
        let what = format!("run number {} is left out: {error}", run.0);
        if self.told.insert(run) {
            warn!(code = "damaged_run", "{what}; the others go on");
        }
        self.now.insert(run, what);
    }

    /// What is wrong, in one line.
    pub(crate) fn text(&self) -> String {
        self.now.values().map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}
