//! Importing results made elsewhere.

use async_trait::async_trait;
use bench_proto::{
    facts::QuestionFacts,
    ids::{RunNo, TaskKey},
    step::{StepNo, StepText},
};

use super::{Backend, Batch, Conn, Sql, SqlStore, args, conclude};
use crate::{Imports, StoreResult, codec::to_frame};

/// Questions of one transaction.
const PART: usize = 1_000;

/// Stores texts that are not there.
pub(super) async fn store_texts(conn: &mut dyn Conn, run: RunNo, texts: Batch) -> StoreResult<()> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO texts (run_no, task_key, step_no, body) SELECT $1, b.task, b.step, b.body \
         FROM @rows($2: task int, step int, body blob) AS b WHERE true ON CONFLICT (run_no, task_key, step_no) DO NOTHING"
            .to_owned()
    });
    conn.execute(&INSERT, args![run.0, texts]).await.map(drop)
}

#[async_trait]
impl<B: Backend> Imports for SqlStore<B> {
    async fn import_results(
        &self,
        run: RunNo,
        headline_metric: &str,
        results: &[(QuestionFacts, Vec<(StepNo, StepText)>)],
    ) -> StoreResult<()> {
        for part in results.chunks(PART) {
            let facts: Vec<QuestionFacts> = part.iter().map(|(facts, _)| facts.clone()).collect();
            let (rows, metric) = (conclude::rows(&facts)?, headline_metric.to_owned());
            let (mut tasks, mut steps, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
            for (facts, texts) in part {
                for (step, text) in texts {
                    tasks.push(facts.task.0);
                    steps.push(i64::from(step.0));
                    bodies.push(to_frame(text)?);
                }
            }
            let texts = Batch::default().int(tasks).int(steps).blob(bodies);
            self.backend
                .write(move |conn| {
                    Box::pin(async move {
                        store_texts(conn, run, texts).await?;
                        conclude::store(conn, run, &metric, &facts, rows).await.map(drop)
                    })
                })
                .await?;
        }
        Ok(())
    }

    async fn put_texts(&self, run: RunNo, texts: &[(TaskKey, StepNo, StepText)]) -> StoreResult<()> {
        for part in texts.chunks(PART) {
            let bodies: Vec<Vec<u8>> = part.iter().map(|(_, _, text)| to_frame(text)).collect::<StoreResult<_>>()?;
            let batch = Batch::default()
                .int(part.iter().map(|(task, ..)| task.0))
                .int(part.iter().map(|(_, step, _)| i64::from(step.0)))
                .blob(bodies);
            self.backend.write(move |conn| Box::pin(store_texts(conn, run, batch))).await?;
        }
        Ok(())
    }
}
