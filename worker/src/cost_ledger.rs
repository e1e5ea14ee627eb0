//! Books attempts before the step that they belong to is stored: what a call has paid for without a reply that could be used,
//! and embeddings, of which a step may need many. A call that waits for money must not wait for attempts that are stored only
//! when it is done itself: their reservations would stand for ever.
//!
//! One writer per run commits whatever waits as soon as the previous commit has returned, as that of the checkpoints does.

use std::sync::Arc;

use async_trait::async_trait;
use bench_models::caller::Bookkeeper;
use bench_proto::{
    call::CallRecord,
    failure::Failure,
    ids::{RunNo, TaskKey},
};
use bench_store::{Store, StoreError, retry};
use tokio::sync::{mpsc, oneshot};

use crate::journal::Journal;

/// Most bytes of replies in one commit.
const MAX_BYTES: usize = 4 << 20;
/// Most calls in one commit.
const MAX_CALLS: usize = 100;
/// Submissions that may wait.
const QUEUE_LENGTH: usize = 1024;

struct Submission {
    calls: Vec<(TaskKey, CallRecord)>,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// The way to a run's writer. The writer ends with the last of them.
#[derive(Clone)]
pub(crate) struct CostLedger(mpsc::Sender<Submission>);

impl CostLedger {
    pub(crate) fn open(store: Arc<dyn Store>, run: RunNo, journal: Option<Arc<Journal>>) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        tokio::spawn(write_until_closed(store, run, receiver, journal));
        Self(sender)
    }
}

#[async_trait]
impl Bookkeeper for CostLedger {
    async fn put(&self, task: TaskKey, calls: Vec<CallRecord>) -> Result<(), Failure> {
        if calls.is_empty() {
            return Ok(());
        }
        let (done, answer) = oneshot::channel();
        let gone = || Failure::transient("store", "the writer of attempts has stopped");
        let calls = calls.into_iter().map(|call| (task, call)).collect();
        self.0.send(Submission { calls, done }).await.map_err(|_| gone())?;
        let stored = answer.await.map_err(|_| gone())?;
        stored.map_err(|error| Failure::permanent("store", format!("attempts cannot be stored: {error}")))
    }
}

async fn write_until_closed(
    store: Arc<dyn Store>,
    run: RunNo,
    mut receiver: mpsc::Receiver<Submission>,
    journal: Option<Arc<Journal>>,
) {
    let bytes_of = |of: &Submission| of.calls.iter().map(|(_, call)| call.reply.len()).sum::<usize>();
    while let Some(first) = receiver.recv().await {
        let mut bytes = bytes_of(&first);
        let (mut calls, mut waiting) = (first.calls, vec![first.done]);
        while bytes < MAX_BYTES && calls.len() < MAX_CALLS {
            let Ok(next) = receiver.try_recv() else { break };
            bytes += bytes_of(&next);
            calls.extend(next.calls);
            waiting.push(next.done);
        }
        // every call has an id of its own, so a commit of which nobody knows may be repeated
        let result = retry(|| store.book_calls(run, &calls)).await;
        if let (Ok(()), Some(journal)) = (&result, &journal) {
            journal.calls(run, calls);
        }
        for done in waiting {
            // a task that was dropped no longer waits
            let _ = done.send(result.clone());
        }
    }
}
