//! Ends questions: reads the stored steps, derives the facts with a pure function, stores them (P7).
//!
//! It works from the store alone, so the sweep after a crash ends questions in exactly the same way, in any process.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use bench_proto::{
    facts::{JudgePlan, QuestionFacts, QuestionIdentity, conclude},
    failure::Failure,
    ids::{RunId, RunNo, TaskKey},
    step::StoredStep,
    trace::TracePolicy,
};
use bench_store::{Store, retry};
use bench_telemetry::{process, process_span};
use tokio::sync::{Mutex, Notify, mpsc, watch};
use tracing::{Instrument as _, Span};

use crate::{
    banks::BankCache,
    traces::{Keeper, link_questions, meter},
};

/// Most questions concluded together.
const BATCH: usize = 256;

/// Wait for more questions to conclude together: nothing but the run's progress and its end depends on it.
const GATHER: Duration = Duration::from_millis(20);

/// What concluding needs to know of a run; nothing of it changes while the run exists.
#[derive(Debug, Clone)]
struct Grading {
    judges: JudgePlan,
    headline: String,
    run_id: RunId,
    trace: TracePolicy,
}

/// Concludes questions over a store.
pub struct Concluder {
    store: Arc<dyn Store>,
    banks: Arc<BankCache>,
    gradings: Mutex<HashMap<RunNo, Grading>>,
    keeper: Option<Arc<Keeper>>,
}

impl Concluder {
    /// A concluder that reads banks through a cache, and decides which traces are kept where there is a keeper.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, banks: Arc<BankCache>, keeper: Option<Arc<Keeper>>) -> Self {
        Self { store, banks, gradings: Mutex::default(), keeper }
    }

    /// Concludes those of `questions` that are complete; waits while the store is out of reach.
    ///
    /// # Errors
    /// With code `store` when the store cannot be used any more.
    pub async fn conclude_complete(&self, run: RunNo, mut questions: Vec<TaskKey>) -> Result<(), Failure> {
        questions.sort_unstable();
        questions.dedup();
        let span = process::started(process_span!("conclude_batch", questions = process::count(questions.len())));
        let concluded = self.conclude_batch(run, questions).instrument(span.clone()).await;
        if let Err(failure) = &concluded {
            process::failed(&span, &failure.to_string());
        }
        concluded
    }

    async fn conclude_batch(&self, run: RunNo, questions: Vec<TaskKey>) -> Result<(), Failure> {
        let Grading { judges, headline, run_id, trace } = self.grading(run).await?;
        let steps = retry(|| self.store.question_steps(run, &questions)).await?;
        let mut by_question: BTreeMap<TaskKey, Vec<StoredStep>> = BTreeMap::new();
        for step in steps {
            by_question.entry(step.task.question_of()).or_default().push(step);
        }
        let mut facts: Vec<QuestionFacts> = Vec::with_capacity(questions.len());
        for (task, steps) in by_question {
            let bank = retry(|| self.banks.get(run, task.bank())).await?;
            let Some(question) = bank.question(task.index()) else {
                return Err(Failure::permanent(
                    "store",
                    format!("question {} is missing in its bank's item", task.index()),
                ));
            };
            let identity = QuestionIdentity {
                task,
                question_id: question.question_id.clone(),
                bank_id: bank.content.bank_id.clone(),
                category: question.category.clone(),
                facets: bank.gold(&question.question_id).map(|gold| gold.facets.clone()).unwrap_or_default(),
            };
            facts.extend(conclude(identity, &steps, &judges).map(|mut facts| {
                let decide = |keeper: &Arc<Keeper>| keeper.decide(run, &run_id, &trace, &judges, &facts);
                facts.kept = self.keeper.as_ref().and_then(decide);
                facts
            }));
        }
        let kept = facts.iter().filter(|facts| facts.kept.is_some());
        let root = |facts: &QuestionFacts| self.keeper.as_ref().and_then(|keeper| keeper.root_of(run, facts));
        link_questions(&Span::current(), kept.filter_map(root));
        let new = retry(|| self.store.store_facts(run, &headline, &facts)).await?;
        // some may have been concluded by others meanwhile: they count there
        facts.truncate(usize::try_from(new).unwrap_or(usize::MAX));
        meter::ended(facts.iter());
        if let Some(keeper) = &self.keeper {
            facts.iter().for_each(|facts| keeper.send(run, facts));
        }
        Ok(())
    }

    async fn grading(&self, run: RunNo) -> Result<Grading, Failure> {
        if let Some(grading) = self.gradings.lock().await.get(&run) {
            return Ok(grading.clone());
        }
        let row = retry(|| self.store.run(run)).await?;
        let grading = Grading {
            judges: row.spec.judge_plan(),
            headline: row.spec.headline_metric(),
            run_id: row.run_id,
            trace: row.spec.limits.trace,
        };
        self.gradings.lock().await.insert(run, grading.clone());
        Ok(grading)
    }
}

/// Concludes questions until the channel closes.
pub(crate) async fn run(
    concluder: Arc<Concluder>,
    mut to_conclude: mpsc::UnboundedReceiver<(RunNo, TaskKey)>,
    concluded: Arc<Notify>,
    broken: watch::Sender<Option<String>>,
) {
    let mut waiting = Vec::with_capacity(BATCH);
    while to_conclude.recv_many(&mut waiting, BATCH).await > 0 {
        if waiting.len() < BATCH {
            tokio::time::sleep(GATHER).await;
            while waiting.len() < BATCH
                && let Ok(more) = to_conclude.try_recv()
            {
                waiting.push(more);
            }
        }
        let mut by_run: BTreeMap<RunNo, Vec<TaskKey>> = BTreeMap::new();
        for (run, question) in waiting.drain(..) {
            by_run.entry(run).or_default().push(question);
        }
        for (run, questions) in by_run {
            // whatever is missed here is found again by the sweep
            if let Err(failure) = concluder.conclude_complete(run, questions).await {
                // the process ends with this reason as its last words
                broken.send_replace(Some(failure.message));
            }
        }
        concluded.notify_one();
    }
}
