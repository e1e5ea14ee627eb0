//! What traces are built of (P20).

use async_trait::async_trait;
use bench_proto::{
    facts::QuestionFacts,
    ids::{Role, RunNo, TaskKey, TaskKind},
    step::StepNo,
    task::TaskState,
    trace::{AttemptNote, StoredSpan},
};

use super::{
    Backend, Batch, Conn, Row, Sql, SqlStore, args,
    results::{distinct, of_questions},
    task_key,
    tasks::{self, WAITING, by_role, role_of},
};
use crate::{
    SessionId, StoreResult, Traces,
    codec::{escape, from_json, large_from_json, to_json, unescape},
};

fn stored_span(mut row: Row) -> StoreResult<StoredSpan> {
    let (task, step) = (task_key(&row, 0)?, StepNo(row.small(1)?));
    let facts = large_from_json(&row.text(2)?, || format!("step {} of {task:?}", step.0))?;
    Ok(StoredSpan { task, step, facts, stored_us: row.opt_int(3)? })
}

/// Questions as a batch, each once, in one order.
fn pairs(mut questions: Vec<(RunNo, TaskKey)>) -> Batch {
    questions.sort_unstable();
    questions.dedup();
    tasks::pairs(&questions)
}

fn facts(mut row: Row) -> StoreResult<QuestionFacts> {
    large_from_json(&row.text(0)?, || "the facts of a question".to_owned())
}

/// Ready tasks, next in the order of their keys, among which the oldest is looked for.
const NEXT: u32 = 1000;
/// How long whoever decided or took a trace has to send it, before others do.
const HOLD_US: i64 = 30_000_000;

/// Notes questions whose traces are kept, in the transaction that keeps them.
pub(super) async fn decided(conn: &mut dyn Conn, run: RunNo, kept: &[TaskKey]) -> StoreResult<()> {
    static INSERT: Sql = Sql::new(|| {
        format!(
            "INSERT INTO unsent_traces (run_no, task_key, due_us) SELECT $1, b.task, @now + {HOLD_US} \
             FROM @rows($2: task int) AS b WHERE true ON CONFLICT (run_no, task_key) DO NOTHING"
        )
    });
    if kept.is_empty() {
        return Ok(());
    }
    conn.execute(&INSERT, args![run.0, distinct(kept)]).await.map(drop)
}

#[async_trait]
impl<B: Backend> Traces for SqlStore<B> {
    async fn spans(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<StoredSpan>> {
        static SELECT: Sql = Sql::new(|| of_questions("checkpoints", &["task_key", "step_no", "facts", "stored_us"]));
        let rows = self.fetch(&SELECT, args![run.0, distinct(questions)]).await?;
        let mut spans: Vec<StoredSpan> = rows.into_iter().map(stored_span).collect::<StoreResult<_>>()?;
        spans.sort_by_key(|span| (span.task.question_of(), span.task, span.step));
        Ok(spans)
    }

    async fn bank_steps(&self, run: RunNo, bank_no: u32) -> StoreResult<Vec<StoredSpan>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT task_key, step_no, facts, stored_us FROM checkpoints \
             WHERE run_no = $1 AND (task_key BETWEEN $2 AND $3 OR task_key BETWEEN $4 AND $5) ORDER BY task_key, step_no"
                .to_owned()
        });
        let (retain, ready) = (TaskKey::range(TaskKind::Retain, bank_no), TaskKey::range(TaskKind::Ready, bank_no));
        let args = args![run.0, retain.0.0, retain.1.0, ready.0.0, ready.1.0];
        self.fetch(&SELECT, args).await?.into_iter().map(stored_span).collect()
    }

    async fn note_attempts(&self, run: RunNo, attempts: &[AttemptNote]) -> StoreResult<()> {
        static INSERT: Sql = Sql::new(|| {
            "INSERT INTO attempts (run_no, task_key, epoch, doc) SELECT $1, b.task, b.epoch, b.doc \
             FROM @rows($2: task int, epoch int, doc text) AS b WHERE true ON CONFLICT (run_no, task_key, epoch) DO NOTHING"
                .to_owned()
        });
        if attempts.is_empty() {
            return Ok(());
        }
        let docs: Vec<String> = attempts.iter().map(to_json).collect::<StoreResult<_>>()?;
        let batch = Batch::default()
            .int(attempts.iter().map(|attempt| attempt.task.0))
            .int(attempts.iter().map(|attempt| attempt.epoch))
            .text(docs);
        self.execute(&INSERT, args![run.0, batch]).await.map(drop)
    }

    async fn attempts(&self, run: RunNo, question: TaskKey) -> StoreResult<Vec<AttemptNote>> {
        static SELECT: Sql = Sql::new(|| of_questions("attempts", &["task_key", "epoch", "doc"]));
        let rows = self.fetch(&SELECT, args![run.0, distinct(&[question])]).await?;
        let read = |mut row: Row| from_json(&row.text(2)?, || "a try of a task".to_owned());
        let mut attempts: Vec<AttemptNote> = rows.into_iter().map(read).collect::<StoreResult<_>>()?;
        attempts.sort_by_key(|attempt| (attempt.task, attempt.epoch));
        Ok(attempts)
    }

    async fn facts_of_id(&self, run: RunNo, question_id: &str) -> StoreResult<Option<QuestionFacts>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT doc FROM facts WHERE run_no = $1 AND question_id = $2 ORDER BY task_key LIMIT 1".to_owned()
        });
        let rows = self.fetch(&SELECT, args![run.0, escape(question_id)]).await?;
        rows.into_iter().next().map(facts).transpose()
    }

    async fn facts_of(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<QuestionFacts>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT c.doc FROM @rows($2: task int) AS b JOIN facts AS c ON c.run_no = @each($1, b.task) AND c.task_key = b.task \
             ORDER BY c.task_key"
                .to_owned()
        });
        self.fetch(&SELECT, args![run.0, distinct(questions)]).await?.into_iter().map(facts).collect()
    }

    async fn slowest(&self, run: RunNo, most: u32) -> StoreResult<Vec<QuestionFacts>> {
        // the database looks through the documents: what is not asked for does not travel and is not parsed
        static SELECT: Sql = Sql::new(|| {
            "SELECT c.doc FROM facts AS c WHERE c.run_no = $1 ORDER BY @number(c.doc, times.question_us) DESC, c.task_key LIMIT $2"
                .to_owned()
        });
        self.fetch(&SELECT, args![run.0, most]).await?.into_iter().map(facts).collect()
    }

    async fn take_unsent_traces(&self, limit: u32) -> StoreResult<Vec<(RunNo, TaskKey)>> {
        static DUE: Sql = Sql::new(|| {
            "SELECT run_no, task_key FROM unsent_traces WHERE due_us <= @now ORDER BY due_us LIMIT $1".to_owned()
        });
        // whoever is second finds that they are no longer due
        static TAKE: Sql = Sql::new(|| {
            format!(
                "UPDATE unsent_traces AS u SET due_us = @now + {HOLD_US} \
                 FROM @locked(unsent_traces $1: run int, task int) AS b \
                 WHERE u.run_no = b.run AND u.task_key = b.task AND u.due_us <= @now RETURNING run_no, task_key"
            )
        });
        let read = |row: &Row| Ok((RunNo(row.int(0)?), task_key(row, 1)?));
        let due = self.fetch(&DUE, args![i64::from(limit)]).await?;
        let due: Vec<(RunNo, TaskKey)> = due.iter().map(read).collect::<StoreResult<_>>()?;
        if due.is_empty() {
            return Ok(due);
        }
        let taken = self
            .backend
            .change(move |conn| Box::pin(async move { conn.fetch(&TAKE, args![pairs(due)]).await }))
            .await?;
        taken.iter().map(read).collect()
    }

    async fn inherit_traces(&self, run: RunNo) -> StoreResult<()> {
        static SELECT: Sql =
            Sql::new(|| "SELECT run_no, task_key FROM unsent_traces WHERE run_no = $1 AND due_us > @now".to_owned());
        let read = |row: &Row| Ok((RunNo(row.int(0)?), task_key(row, 1)?));
        let waiting = self.fetch(&SELECT, args![run.0]).await?;
        let waiting: Vec<(RunNo, TaskKey)> = waiting.iter().map(read).collect::<StoreResult<_>>()?;
        self.settle_traces(&waiting, false).await
    }

    async fn settle_traces(&self, questions: &[(RunNo, TaskKey)], sent: bool) -> StoreResult<()> {
        static SENT: Sql = Sql::new(|| {
            "DELETE FROM unsent_traces WHERE (run_no, task_key) IN \
             (SELECT b.run, b.task FROM @rows($1: run int, task int) AS b)"
                .to_owned()
        });
        static FREE: Sql = Sql::new(|| {
            "UPDATE unsent_traces AS u SET due_us = @now FROM @locked(unsent_traces $1: run int, task int) AS b \
             WHERE u.run_no = b.run AND u.task_key = b.task"
                .to_owned()
        });
        if questions.is_empty() {
            return Ok(());
        }
        let statement = if sent { &SENT } else { &FREE };
        self.execute(statement, args![pairs(questions.to_vec())]).await.map(drop)
    }

    async fn own_trace_parts(&self, run: RunNo, question: TaskKey, parts: &[TaskKey]) -> StoreResult<Vec<TaskKey>> {
        static INSERT: Sql = Sql::new(|| {
            "INSERT INTO trace_parts (run_no, part_key, task_key) SELECT $1, b.part, $2 FROM @rows($3: part int) AS b WHERE true \
             ON CONFLICT (run_no, part_key) DO NOTHING"
                .to_owned()
        });
        static SELECT: Sql = Sql::new(|| {
            "SELECT part_key FROM trace_parts WHERE run_no = $1 AND task_key = $2 ORDER BY part_key".to_owned()
        });
        self.execute(&INSERT, args![run.0, question.0, distinct(parts)]).await?;
        let rows = self.fetch(&SELECT, args![run.0, question.0]).await?;
        rows.iter().map(|row| Ok(TaskKey(row.int(0)?))).collect()
    }

    async fn add_latencies(&self, run: RunNo, counts: &[(u16, u64)]) -> StoreResult<Vec<(u16, u64)>> {
        static ADD: Sql = Sql::new(|| {
            "INSERT INTO latencies (run_no, bucket, questions) SELECT $1, b.bucket, b.questions \
             FROM @rows($2: bucket int, questions int) AS b WHERE true \
             ON CONFLICT (run_no, bucket) DO UPDATE SET questions = latencies.questions + excluded.questions"
                .to_owned()
        });
        static SELECT: Sql = Sql::new(|| {
            "SELECT CAST(bucket AS bigint), questions FROM latencies WHERE run_no = $1 ORDER BY bucket".to_owned()
        });
        if !counts.is_empty() {
            let mut counts = counts.to_vec();
            // several processes at once: rows are locked in one order
            counts.sort_unstable();
            let batch = Batch::default()
                .int(counts.iter().map(|(bucket, _)| i64::from(*bucket)))
                .int(counts.iter().map(|(_, count)| i64::try_from(*count).unwrap_or(i64::MAX)));
            self.execute(&ADD, args![run.0, batch]).await?;
        }
        let rows = self.fetch(&SELECT, args![run.0]).await?;
        rows.iter().map(|row| Ok((row.small(0)?, u64::try_from(row.int(1)?).unwrap_or(0)))).collect()
    }

    async fn oldest_ready(&self, runs: &[RunNo]) -> StoreResult<Vec<(RunNo, Role, i64)>> {
        // among those that were published or put off, and the next ones to be published
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT b.run, b.role, @now - (SELECT min(t.ready_at) FROM tasks AS t WHERE t.run_no = b.run \
                 AND t.task_key BETWEEN b.low AND b.high AND {WAITING} AND t.not_before <= @now AND t.ready_at <= @now), \
                 @now - (SELECT min(few.ready_at) FROM (SELECT t.ready_at FROM tasks AS t WHERE t.run_no = b.run \
                 AND t.task_key BETWEEN b.low AND b.high AND t.state = {} AND t.published_at IS NULL AND t.not_before = 0 \
                 AND t.ready_at <= @now ORDER BY t.task_key LIMIT {NEXT}) AS few) \
                 FROM @rows($1: run int, role int, low int, high int) AS b ORDER BY b.run, b.role",
                TaskState::Ready.code()
            )
        });
        let mut oldest = Vec::new();
        for row in self.fetch(&SELECT, args![by_role(runs)]).await? {
            if let Some(age_us) = row.opt_int(2)?.max(row.opt_int(3)?) {
                oldest.push((RunNo(row.int(0)?), role_of(&row, 1)?, age_us.max(0) / 1000));
            }
        }
        Ok(oldest)
    }

    async fn session_names(&self, sessions: &[SessionId]) -> StoreResult<Vec<(SessionId, String)>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT s.session_id, s.worker FROM @rows($1: session int) AS b JOIN sessions AS s ON s.session_id = b.session \
             ORDER BY s.session_id"
                .to_owned()
        });
        let rows = self.fetch(&SELECT, args![Batch::default().int(sessions.iter().map(|session| session.0))]).await?;
        rows.into_iter().map(|mut row| Ok((SessionId(row.int(0)?), unescape(row.text(1)?)))).collect()
    }
}
