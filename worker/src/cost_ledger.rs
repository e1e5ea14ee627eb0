//! Books attempts before the step that they belong to is stored: what a call has paid for without a reply that could be used,
//! and embeddings, of which a step may need many. A call that waits for money must not wait for attempts that are stored only
//! when it is done itself: their reservations would stand for ever.
//!
//! One writer per run commits them in batches, as that of the checkpoints does.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bench_models::caller::Bookkeeper;
use bench_proto::{
    call::CallRecord,
    failure::{Failure, code},
    ids::{RunNo, TaskKey},
};
use bench_store::{Calls, StoreError, retry};

use crate::{
    batch::{Batcher, Bounds, Committer, Failed, Stopped, Told},
    journal::Journal,
};

/// The way to a run's writer. The writer ends with the last of them.
#[derive(Clone)]
pub(crate) struct CostLedger(Batcher<Attempts>);

impl CostLedger {
    pub(crate) fn open(store: Arc<dyn Calls>, run: RunNo, journal: Option<Arc<Journal>>) -> Self {
        Self(Batcher::start(Attempts { store, run, journal }))
    }
}

#[async_trait]
impl Bookkeeper for CostLedger {
    async fn put(&self, task: TaskKey, calls: Vec<CallRecord>) -> Result<(), Failure> {
        if calls.is_empty() {
            return Ok(());
        }
        self.0.store(calls.into_iter().map(|call| (task, call)).collect()).await
    }
}

/// Books the attempts of a run.
struct Attempts {
    store: Arc<dyn Calls>,
    run: RunNo,
    journal: Option<Arc<Journal>>,
}

impl Committer for Attempts {
    type Item = Vec<(TaskKey, CallRecord)>;
    type Stored = ();
    type Error = Failure;

    // everybody waits for what they submit
    const BOUNDS: Bounds = Bounds { rows: 100, bytes: 4 << 20, alone: Duration::ZERO, waiting: 1024 };

    fn weight(calls: &Self::Item) -> (usize, usize) {
        (calls.len(), calls.iter().map(|(_, call)| call.reply.len()).sum())
    }

    async fn commit(&self, items: Vec<Self::Item>) -> Result<Vec<Told<Self>>, Failed<Self>> {
        let sizes: Vec<usize> = items.iter().map(Vec::len).collect();
        let calls: Vec<(TaskKey, CallRecord)> = items.into_iter().flatten().collect();
        // every call has an id of its own, so a commit of which nobody knows may be repeated
        if let Err(error) = retry(|| self.store.book_calls(self.run, &calls)).await {
            let mut calls = calls.into_iter();
            return Err((error, sizes.into_iter().map(|size| calls.by_ref().take(size).collect()).collect()));
        }
        if let Some(journal) = &self.journal {
            journal.calls(self.run, calls);
        }
        Ok(sizes.into_iter().map(|_| Ok(())).collect())
    }

    fn refusal(&self, error: &StoreError) -> Failure {
        Failure::permanent(code::STORE, format!("attempts cannot be stored: {error}"))
    }
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Self {
        Self::transient(code::STORE, "the writer of attempts has stopped")
    }
}
