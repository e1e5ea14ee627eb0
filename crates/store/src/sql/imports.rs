//! Importing results made elsewhere.

use async_trait::async_trait;
use bench_proto::{
    facts::QuestionFacts,
    ids::{RunNo, TaskKey},
    step::{StepNo, StepText},
    task::TaskState,
};

use super::{Backend, Batch, Conn, SqlStore, conclude, forks};
use crate::{Imports, StoreResult, codec::to_frame};

/// Questions of one transaction.
const PART: usize = 1_000;

/// Stores the tasks of questions that have ended: done where they have a score, given up where not. Without them a sweep of a run that
/// goes on would plan its questions anew.
async fn store_ended_tasks(conn: &mut dyn Conn, run: RunNo, facts: &[QuestionFacts]) -> StoreResult<()> {
    let (scored, failed): (Vec<&QuestionFacts>, Vec<&QuestionFacts>) =
        facts.iter().partition(|facts| facts.outcome.has_score());
    for (state, ended) in [(TaskState::Done, scored), (TaskState::Failed, failed)] {
        let tasks: Vec<TaskKey> = ended.iter().map(|facts| facts.task).collect();
        forks::insert_tasks(conn, run, &tasks, state, forks::WITH_STEPS, true).await?;
    }
    Ok(())
}

#[async_trait]
impl<B: Backend> Imports for SqlStore<B> {
    async fn import_results(
        &self,
        run: RunNo,
        headline_metric: &str,
        results: &[(QuestionFacts, Vec<(StepNo, StepText)>)],
        may_go_on: bool,
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
                        if may_go_on {
                            store_ended_tasks(conn, run, &facts).await?;
                        }
                        forks::store_texts(conn, run, texts).await?;
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
            self.backend.write(move |conn| Box::pin(forks::store_texts(conn, run, batch))).await?;
        }
        Ok(())
    }
}
