//! Concluding questions, and the trait of checkpoints.

use std::collections::HashSet;

use async_trait::async_trait;
use bench_proto::{
    facts::QuestionFacts,
    ids::{RunNo, TaskKey},
    step::{StepRecord, StoredStep},
};

use super::{
    Backend, Batch, CHUNK, Conn, Sql, SqlStore, args, commit,
    counters::{self, Delta},
    reopen, results, sweep, task_key, tasks, traces,
};
use crate::{
    Checkpoints, CommitMark, CommitOutcome, Conclusion, RetryScope, StoreResult,
    codec::{escape, to_json},
};

/// Rows of the table `facts`.
pub(super) fn rows(facts: &[QuestionFacts]) -> StoreResult<Batch> {
    let docs: Vec<String> = facts.iter().map(to_json).collect::<StoreResult<_>>()?;
    Ok(Batch::default()
        .int(facts.iter().map(|f| f.task.0))
        .text(facts.iter().map(|f| escape(&f.question_id)))
        .text(facts.iter().map(|f| escape(&f.category)))
        .text(facts.iter().map(|f| f.outcome.name().to_owned()))
        .text(docs))
}

/// What was new of some facts.
pub(super) struct Inserted {
    /// How many questions.
    pub(super) count: u64,
    /// What they count.
    pub(super) delta: Delta,
    /// Questions that keep their traces.
    kept: Vec<TaskKey>,
}

impl Inserted {
    /// Notes the traces that were decided now, not long ago by somebody else: they are still to be sent.
    pub(super) async fn note_traces(&self, conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
        traces::decided(conn, run, &self.kept).await
    }
}

/// Stores facts that are not there, counts them, and marks their tasks. Returns what is new.
pub(super) async fn store(
    conn: &mut dyn Conn,
    run: RunNo,
    headline_metric: &str,
    facts: &[QuestionFacts],
    rows: Batch,
) -> StoreResult<Inserted> {
    static MARK: Sql = Sql::new(|| {
        "UPDATE tasks AS t SET concluded = 1 FROM @locked(tasks $1: run int, task int) AS b \
         WHERE t.run_no = b.run AND t.task_key = b.task AND t.concluded = 0"
            .to_owned()
    });
    let mut keys: Vec<(RunNo, TaskKey)> = facts.iter().map(|f| (run, f.task)).collect();
    keys.sort_unstable();
    conn.execute(&MARK, args![tasks::pairs(&keys)]).await?;
    let new = insert(conn, run, headline_metric, facts, rows).await?;
    counters::require(conn, run).await?;
    if new.count > 0 {
        counters::add_at_last(conn, run, new.delta).await?;
    }
    Ok(new)
}

/// Inserts facts that are not there; returns what is new.
pub(super) async fn insert(
    conn: &mut dyn Conn,
    run: RunNo,
    headline_metric: &str,
    facts: &[QuestionFacts],
    rows: Batch,
) -> StoreResult<Inserted> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO facts (run_no, task_key, question_id, category, outcome, doc) \
         SELECT $1, b.task, b.question_id, b.category, b.outcome, b.doc \
         FROM @rows($2: task int, question_id text, category text, outcome text, doc text) AS b WHERE true \
         ON CONFLICT (run_no, task_key) DO NOTHING RETURNING task_key"
            .to_owned()
    });
    let new = conn.fetch(&INSERT, args![run.0, rows]).await?;
    let mut new: HashSet<TaskKey> = new.iter().map(|row| task_key(row, 0)).collect::<StoreResult<_>>()?;
    let (count, mut delta) = (new.len() as u64, Delta::default());
    let mut kept = Vec::new();
    for facts in facts {
        if new.remove(&facts.task) {
            delta.end(facts, headline_metric);
            kept.extend(facts.kept.map(|_| facts.task));
        }
    }
    Ok(Inserted { count, delta, kept })
}

#[async_trait]
impl<B: Backend> Checkpoints for SqlStore<B> {
    async fn commit_marked(
        &self,
        records: &[StepRecord],
        conclusions: &[Conclusion],
        mark: Option<CommitMark>,
    ) -> StoreResult<CommitOutcome> {
        if records.is_empty() {
            return Ok(CommitOutcome::default());
        }
        let prepared = commit::prepare(records, conclusions)?;
        let written = self.backend.write(move |conn| Box::pin(commit::write(conn, prepared, mark))).await?;
        Ok(written.outcome(records))
    }

    async fn question_steps(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<StoredStep>> {
        let questions = questions.to_vec();
        self.backend.read(move |conn| Box::pin(results::question_steps(conn, run, questions))).await
    }

    async fn store_facts(&self, run: RunNo, headline_metric: &str, facts: &[QuestionFacts]) -> StoreResult<u64> {
        let mut new = 0;
        for part in facts.chunks(CHUNK) {
            let (rows, metric, part) = (rows(part)?, headline_metric.to_owned(), part.to_vec());
            new += self
                .backend
                .write(move |conn| {
                    Box::pin(async move {
                        let new = store(conn, run, &metric, &part, rows).await?;
                        new.note_traces(conn, run).await?;
                        Ok(new.count)
                    })
                })
                .await?;
        }
        Ok(new)
    }

    async fn sweep(&self, run: RunNo) -> StoreResult<CommitOutcome> {
        let first = !self.swept.lock().is_ok_and(|swept| swept.contains(&run));
        let outcome = sweep::sweep(&self.backend, run, first).await?;
        if first && let Ok(mut swept) = self.swept.lock() {
            swept.insert(run);
        }
        Ok(outcome)
    }

    async fn reopen(&self, run: RunNo, scope: RetryScope) -> StoreResult<u64> {
        self.backend.write(move |conn| Box::pin(reopen::reopen(conn, run, scope))).await
    }
}
