//! Reading results.

use std::collections::HashMap;

use async_trait::async_trait;
use bench_proto::{
    ids::{RunNo, TaskKey, TaskKind},
    step::{StepNo, StepText, StoredStep},
};

use super::{Backend, Batch, Conn, JUDGE_OFFSET, Row, Sql, SqlStore, args, task_key};
use crate::{
    FactsPage, Results, StoreResult,
    codec::{from_frame, large_from_json},
};

/// These columns of the rows of `table` that belong to the questions of batch 2 or to their judge tasks.
pub(super) fn of_questions(table: &str, columns: &[&str]) -> String {
    let last = JUDGE_OFFSET + TaskKey::INDEX_STEP - 1;
    let columns = columns.iter().map(|column| format!("c.{column}")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT {columns} FROM @rows($2: task int) AS b \
         JOIN {table} AS c ON c.run_no = @each($1, b.task) AND c.task_key = b.task \
         UNION ALL SELECT {columns} FROM @rows($2: task int) AS b \
         JOIN {table} AS c ON c.run_no = @each($1, b.task) AND c.task_key BETWEEN b.task + {JUDGE_OFFSET} AND b.task + {last}"
    )
}

fn stored_step(mut row: Row) -> StoreResult<StoredStep> {
    let (task, step) = (task_key(&row, 0)?, StepNo(row.small(1)?));
    let facts = large_from_json(&row.text(2)?, || format!("step {} of {task:?}", step.0))?;
    Ok(StoredStep { task, step, facts })
}

fn text_of(mut row: Row, column: usize, task: TaskKey, step: StepNo) -> StoreResult<StepText> {
    from_frame(&row.blob(column)?, || format!("the text of step {} of {task:?}", step.0))
}

/// Rows of task, step and text, in that order.
fn texts_of_steps(rows: Vec<Row>) -> StoreResult<Vec<(TaskKey, StepNo, StepText)>> {
    let read = |row: Row| {
        let (task, step) = (task_key(&row, 0)?, StepNo(row.small(1)?));
        Ok((task, step, text_of(row, 2, task, step)?))
    };
    let mut texts: Vec<_> = rows.into_iter().map(read).collect::<StoreResult<_>>()?;
    texts.sort_by_key(|(task, step, _)| (*task, *step));
    Ok(texts)
}

/// Each task once.
pub(super) fn distinct(tasks: &[TaskKey]) -> Batch {
    let mut keys: Vec<i64> = tasks.iter().map(|task| task.0).collect();
    keys.sort_unstable();
    keys.dedup();
    Batch::default().int(keys)
}

/// Steps of questions and of their judge tasks, grouped in question order.
pub(super) async fn question_steps(
    conn: &mut dyn Conn,
    run: RunNo,
    questions: Vec<TaskKey>,
) -> StoreResult<Vec<StoredStep>> {
    static SELECT: Sql = Sql::new(|| of_questions("checkpoints", &["task_key", "step_no", "facts"]));
    let mut place = HashMap::with_capacity(questions.len());
    for question in &questions {
        let next = place.len();
        place.entry(*question).or_insert(next);
    }
    let keys = Batch::default().int(place.keys().map(|task| task.0));
    let rows = conn.fetch(&SELECT, args![run.0, keys]).await?;
    let mut steps: Vec<StoredStep> = rows.into_iter().map(stored_step).collect::<StoreResult<_>>()?;
    steps.sort_by_key(|s| (place.get(&s.task.question_of()).copied(), s.task, s.step));
    Ok(steps)
}

#[async_trait]
impl<B: Backend> Results for SqlStore<B> {
    async fn facts(&self, run: RunNo, after: Option<TaskKey>, limit: u32) -> StoreResult<FactsPage> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT doc FROM facts WHERE run_no = $1 AND task_key > $2 ORDER BY task_key LIMIT $3".to_owned()
        });
        let rows = self.fetch(&SELECT, args![run.0, after.map_or(-1, |task| task.0), limit]).await?;
        rows.into_iter()
            .map(|mut row| large_from_json(&row.text(0)?, || "the facts of a question".to_owned()))
            .collect()
    }

    async fn steps(
        &self,
        run: RunNo,
        kind: TaskKind,
        after: Option<(TaskKey, StepNo)>,
        limit: u32,
    ) -> StoreResult<Vec<StoredStep>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT task_key, step_no, facts FROM checkpoints WHERE run_no = $1 AND task_key BETWEEN $2 AND $3 \
             AND (task_key, step_no) > ($4, $5) ORDER BY task_key, step_no LIMIT $6"
                .to_owned()
        });
        let (low, high) = TaskKey::range_of_kind(kind);
        let (task, step) = after.unwrap_or((TaskKey(-1), StepNo(-1)));
        // the lower bound moves with the page, so that reading all pages reads every row once
        let args = args![run.0, low.max(task).0, high.0, task.0, step.0, limit];
        self.fetch(&SELECT, args).await?.into_iter().map(stored_step).collect()
    }

    async fn question_texts(&self, run: RunNo, questions: &[TaskKey]) -> StoreResult<Vec<(TaskKey, StepNo, StepText)>> {
        static SELECT: Sql = Sql::new(|| of_questions("texts", &["task_key", "step_no", "body"]));
        texts_of_steps(self.fetch(&SELECT, args![run.0, distinct(questions)]).await?)
    }

    async fn judging_texts(
        &self,
        run: RunNo,
        questions: &[TaskKey],
        begun: &[TaskKey],
    ) -> StoreResult<Vec<(TaskKey, StepNo, StepText)>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT c.task_key, c.step_no, c.body FROM @rows($2: task int) AS b \
             JOIN texts AS c ON c.run_no = @each($1, b.task) AND c.task_key = b.task AND c.step_no = @each($3, b.task) \
             UNION ALL SELECT c.task_key, c.step_no, c.body FROM @rows($4: task int) AS b \
             JOIN texts AS c ON c.run_no = @each($1, b.task) AND c.task_key = b.task"
                .to_owned()
        });
        let args = args![run.0, distinct(questions), StepNo::ANSWER.0, distinct(begun)];
        texts_of_steps(self.fetch(&SELECT, args).await?)
    }

    async fn step_texts(&self, run: RunNo, tasks: &[TaskKey], step: StepNo) -> StoreResult<Vec<(TaskKey, StepText)>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT c.task_key, c.body FROM @rows($2: task int) AS b \
             JOIN texts AS c ON c.run_no = @each($1, b.task) AND c.task_key = b.task AND c.step_no = @each($3, b.task)"
                .to_owned()
        });
        let rows = self.fetch(&SELECT, args![run.0, distinct(tasks), step.0]).await?;
        let read = |row: Row| {
            let task = task_key(&row, 0)?;
            Ok((task, text_of(row, 1, task, step)?))
        };
        let mut texts: Vec<_> = rows.into_iter().map(read).collect::<StoreResult<_>>()?;
        texts.sort_by_key(|(task, _)| *task);
        Ok(texts)
    }
}
