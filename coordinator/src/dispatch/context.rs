//! Trace context in the headers of messages, where this process has a collector (P20).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bench_proto::{
    dataset::Question,
    ids::{RunId, RunNo, TaskKey, TaskKind},
    trace::{TRACEPARENT, TraceContext, TracePolicy},
};
use bench_queue::Headers;
use bench_store::{Store, StoreError};
use bench_worker::traces::read_questions;

/// Banks whose question ids are in memory: tasks are handed out bank by bank.
const BANKS: usize = 64;

/// Knows the ids of the questions that are being handed out.
#[derive(Default)]
pub(super) struct Contexts {
    banks: HashMap<(RunNo, u32), Arc<BTreeMap<u32, String>>>,
}

impl Contexts {
    /// The headers of a task's message.
    pub(super) async fn headers(
        &mut self,
        store: &dyn Store,
        run: RunNo,
        run_id: &RunId,
        policy: &TracePolicy,
        task: TaskKey,
    ) -> Result<Headers, StoreError> {
        let context = match task.kind() {
            TaskKind::Retain | TaskKind::Ready => TraceContext::of_bank_message(run_id, policy, task),
            TaskKind::Question | TaskKind::Judge => {
                let questions = self.questions(store, run, task.bank()).await?;
                let Some(id) = questions.get(&task.index()) else { return Ok(Headers::new()) };
                TraceContext::of_message(run_id, policy, id, task)
            }
        };
        Ok(vec![(TRACEPARENT.to_owned(), context.traceparent())])
    }

    async fn questions(
        &mut self,
        store: &dyn Store,
        run: RunNo,
        bank: u32,
    ) -> Result<Arc<BTreeMap<u32, String>>, StoreError> {
        if let Some(known) = self.banks.get(&(run, bank)) {
            return Ok(Arc::clone(known));
        }
        let questions: Vec<Question> = match store.banks(run, Some(&[bank])).await?.pop() {
            Some(row) => read_questions(store, &row).await?,
            None => Vec::new(),
        };
        let ids: BTreeMap<u32, String> = questions.into_iter().map(|q| (q.index, q.question_id)).collect();
        let ids = Arc::new(ids);
        if self.banks.len() >= BANKS {
            self.banks.clear();
        }
        self.banks.insert((run, bank), Arc::clone(&ids));
        Ok(ids)
    }
}
