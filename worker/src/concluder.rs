//! Ends questions: reads the stored steps, derives the facts with a pure function, stores them (P7).
//!
//! It works from the store alone, so the sweep after a crash ends questions in exactly the same way, in any process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use bench_proto::{
    facts::{JudgePlan, QuestionFacts, QuestionIdentity, conclude},
    failure::code,
    ids::{RunId, RunNo, TaskKey},
    step::StoredStep,
    trace::TracePolicy,
};
use bench_store::{Store, StoreError, StoreResult, retry};
use bench_telemetry::{process, process_span};
use tokio::sync::{Mutex, Notify, mpsc, watch};
use tracing::{Instrument as _, Span, warn};

use crate::{
    banks::BankCache,
    batch::by_halves,
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

    /// Concludes those of `questions` that are complete; waits while the store is out of reach. What is wrong with a row leaves out
    /// the questions that rest on it, and no others.
    ///
    /// # Errors
    /// What the store meets; of questions that were left out, why the first of them was.
    pub async fn conclude_complete(&self, run: RunNo, mut questions: Vec<TaskKey>) -> StoreResult<()> {
        questions.sort_unstable();
        questions.dedup();
        let span = process::started(process_span!("conclude_batch", questions = process::count(questions.len())));
        let concluded = self.conclude_batch(run, questions).instrument(span.clone()).await;
        if let Err(error) = &concluded {
            process::failed(&span, &error.to_string());
        }
        concluded
    }

    async fn conclude_batch(&self, run: RunNo, questions: Vec<TaskKey>) -> StoreResult<()> {
        let Grading { judges, headline, run_id, trace } = self.grading(run).await?;
        let mut left_out = None;
        let mut by_question: BTreeMap<TaskKey, Vec<StoredStep>> = BTreeMap::new();
        for step in self.steps(run, &questions, &mut left_out).await? {
            by_question.entry(step.task.question_of()).or_default().push(step);
        }
        let mut facts: Vec<QuestionFacts> = Vec::with_capacity(questions.len());
        for (task, steps) in by_question {
            let identity = match self.identity(run, task).await {
                Err(error) if error.is_about_rows() => {
                    left_out.get_or_insert(error);
                    continue;
                }
                identity => identity?,
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
        left_out.map_or(Ok(()), Err)
    }

    /// The stored steps of questions. Those of which something cannot be read are found by halves, and left out.
    async fn steps(
        &self,
        run: RunNo,
        questions: &[TaskKey],
        left_out: &mut Option<StoreError>,
    ) -> StoreResult<Vec<StoredStep>> {
        let read = by_halves(questions, |part| retry(move || self.store.question_steps(run, part)));
        let (steps, unreadable) = read.await?;
        if let Some((_, error)) = unreadable.into_iter().next() {
            left_out.get_or_insert(error);
        }
        Ok(steps.into_iter().flatten().collect())
    }

    async fn identity(&self, run: RunNo, task: TaskKey) -> StoreResult<QuestionIdentity> {
        let bank = retry(|| self.banks.get(run, task.bank())).await?;
        let Some(question) = bank.question(task.index()) else {
            return Err(StoreError::Corrupt(format!("{task:?} is not in its bank's items").into()));
        };
        Ok(QuestionIdentity {
            task,
            question_id: question.question_id.clone(),
            bank_id: bank.content.bank_id.clone(),
            category: question.category.clone(),
            facets: bank.gold(&question.question_id).map(|gold| gold.facets.clone()).unwrap_or_default(),
        })
    }

    async fn grading(&self, run: RunNo) -> StoreResult<Grading> {
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

    /// A run as lines of the log name it.
    async fn name(&self, run: RunNo) -> String {
        self.gradings.lock().await.get(&run).map_or_else(|| run.0.to_string(), |grading| grading.run_id.0.clone())
    }
}

/// What the concluder of a process tells it.
pub(crate) struct ConcluderHooks {
    /// Woken when questions were concluded.
    pub(crate) concluded: Arc<Notify>,
    /// Told when the store is broken for good.
    pub(crate) broken: watch::Sender<Option<String>>,
    /// The process works for the runs of many: what is wrong with one ends none of the others. A process with one run ends with it.
    pub(crate) is_served: bool,
}

/// Concludes questions until the channel closes.
pub(crate) async fn run(
    concluder: Arc<Concluder>,
    mut to_conclude: mpsc::UnboundedReceiver<(RunNo, TaskKey)>,
    hooks: ConcluderHooks,
) {
    let (mut waiting, mut told) = (Vec::with_capacity(BATCH), BTreeSet::new());
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
            match concluder.conclude_complete(run, questions).await {
                Err(error) if hooks.is_served && error.is_about_rows() => {
                    if told.insert(run) {
                        let run = concluder.name(run).await;
                        warn!(
                            run,
                            code = code::STORE,
                            "questions of run {run} cannot be ended: {error}; the others go on"
                        );
                    }
                }
                // the process ends with this reason as its last words
                Err(error) => drop(hooks.broken.send_replace(Some(error.to_string()))),
                Ok(()) => {}
            }
        }
        hooks.concluded.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        dataset::{BankContent, Question},
        step::Opens,
    };
    use bench_store::{
        Item, NewBank,
        conformance::{Scene, bank},
    };

    use super::*;

    /// A run with two banks that were asked one question each; nothing is there of the first one's items.
    async fn asked(store: &dyn Store) -> RunNo {
        let content = BankContent { bank_id: "bank-1".to_owned(), ..BankContent::default() };
        let question = Question { question_id: "bank-1:0".to_owned(), ..Question::default() };
        let item = |json: serde_json::Result<Vec<u8>>| Item::from_bytes(json.expect("serialises"));
        let (content, questions) = (item(serde_json::to_vec(&content)), item(serde_json::to_vec(&[question])));
        let gold = Item::from_bytes(b"[]".to_vec());
        let (first, second) = (bank(0, &[(1, &[0])]), bank(1, &[(1, &[0])]));
        let second = NewBank { content: content.hash, questions: questions.hash, gold: gold.hash, ..second };
        store.put_items(&[content, questions, gold]).await.expect("are written");
        let scene = Scene::start(store, &[first, second]).await;
        for bank in 0..2 {
            scene.make_ready(bank, 1).await;
            scene.answer(TaskKey::question(bank, 0), 1.0, Opens::Nothing).await;
        }
        scene.run
    }

    #[tokio::test]
    async fn p7_a_bank_that_cannot_be_read_keeps_no_other_question_from_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = bench_store::conformance::store_in(folder.path()).await;
        let run = asked(store.as_ref()).await;
        let banks = Arc::new(BankCache::new(Arc::clone(&store)));
        let concluder = Arc::new(Concluder::new(Arc::clone(&store), banks, None));
        let both = [0, 1].map(|bank| TaskKey::question(bank, 0));
        let error = concluder.conclude_complete(run, both.to_vec()).await.expect_err("one cannot be ended");
        assert!(error.is_about_rows(), "{error}");
        assert_eq!(store.run(run).await.expect("is there").counters.scored, 1);
        // a worker of many runs goes on, and the process of one ends with its reason
        for is_served in [true, false] {
            let (to_conclude, receiver) = mpsc::unbounded_channel();
            let (broken, told) = watch::channel(None);
            to_conclude.send((run, both[0])).expect("is sent");
            drop(to_conclude);
            let hooks = ConcluderHooks { concluded: Arc::default(), broken, is_served };
            super::run(Arc::clone(&concluder), receiver, hooks).await;
            assert_eq!(told.borrow().is_none(), is_served);
        }
    }
}
