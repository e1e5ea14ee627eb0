//! What the steps of tasks work with, whatever run they belong to.

use std::sync::Arc;

use bench_proto::{call::CallRecord, failure::code, ids::RunId};
use bench_store::{ClaimedTask, Store, retry};

use crate::{about::About, active::Active, banks::BankCache, journal::Journal, traces::Keeper, writer::Writer};

/// What the steps of tasks work with.
pub(crate) struct Tools {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) writer: Writer,
    pub(crate) banks: Arc<BankCache>,
    /// What was acknowledged lately, where a store may go back in time beside living processes (P44).
    pub(crate) journal: Option<Arc<Journal>>,
    /// Keeps traces, where this process has a collector.
    pub(crate) keeper: Option<Arc<Keeper>>,
    /// The tasks in hand.
    pub(crate) active: Active,
}

impl Tools {
    /// Tasks in hand beside the one that asks.
    pub(crate) fn others(&self) -> u32 {
        u32::try_from(self.active.count().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Books attempts that belong to no stored step. What cannot be booked is said; `run` is the public id of the run.
    pub(crate) async fn keep_calls(&self, task: ClaimedTask, run: Option<RunId>, calls: Vec<CallRecord>) {
        if calls.is_empty() {
            return;
        }
        if let Err(error) = retry(|| self.store.put_calls(task.run, task.task, &calls)).await {
            let about = About::task(task, run, &self.banks).await;
            about.warn(code::STORE, &format!("has {} paid attempts that could not be booked: {error}", calls.len()));
        } else if let Some(journal) = &self.journal {
            journal.calls(task.run, calls.into_iter().map(|call| (task.task, call)).collect());
        }
    }
}
