//! Books attempts before the step that they belong to is stored: what a call has paid for without a reply that could be used,
//! and embeddings, of which a step may need many. A call that waits for money must not wait for attempts that are stored only
//! when it is done itself: their reservations would stand for ever.
//!
//! One writer per run commits them in batches, as that of the checkpoints does. In a process that does nothing but meter, calls wait a
//! little for each other: a transaction costs it and the store nearly the same, whether it books one call or ten.

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

/// How long an attempt that nobody waits for may wait for others.
const COMPANY: Duration = Duration::from_millis(20);

/// The way to a run's writer. The writer ends with the last of them.
#[derive(Clone)]
pub(crate) struct CostLedger(Batcher<Attempts>);

impl CostLedger {
    pub(crate) fn open(store: Arc<dyn Calls>, run: RunNo, journal: Option<Arc<Journal>>) -> Self {
        Self(Batcher::start(Attempts { store, run, journal }))
    }

    /// Books an attempt together with others that end soon after it, and returns when it is stored. For one whose reply is given
    /// already: its reservation stands until then.
    pub(crate) async fn put_with_others(&self, task: TaskKey, call: CallRecord) -> Result<(), Failure> {
        self.0.store_beside(vec![(task, call)]).await?.stored_with_others().await
    }

    /// Books at once what waits for others, and returns when it is stored: whoever submitted it may be gone.
    pub(crate) async fn flush(&self) {
        // attempts are stored in the order in which they came; what cannot be stored is told to those who submitted it
        let _ = self.0.store(Vec::new()).await;
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

    // what the runner's own calls submit is urgent, and takes along what waits
    const BOUNDS: Bounds = Bounds { rows: 100, bytes: 4 << 20, alone: COMPANY, waiting: 1024 };

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
        if let Some(journal) = self.journal.as_ref().filter(|_| !calls.is_empty()) {
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
