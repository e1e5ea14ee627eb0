//! The checkpoint writer (P8): one per process, commits whatever waits as soon as the previous commit has returned. What no
//! slot waits for yet goes with the next commit, or after 20 ms.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use bench_proto::{
    ids::{Role, RunNo, TaskKey},
    step::{Effect, StepFacts, StepRecord, StepText},
};
use bench_store::{CommitOutcome, Conclusion, SessionId, Store, StoreError, retry};
use bench_telemetry::{process, process_span};
use tokio::sync::{Notify, mpsc};
use tracing::{Instrument as _, Span};

use crate::{
    batch::{Batcher, Bounds, Committer, Failed, Stopped, Told, Underway},
    journal::Journal,
    traces::{Keeper, link_questions, meter},
};

/// What became of the records of one submission: for each, `None` when it was stored now, else what was stored before.
pub(crate) type Committed = Vec<Option<StepFacts>>;

/// Why a submission could not be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    /// The store refuses exactly this submission: its task fails.
    #[error("the store refuses this result: {0}")]
    Refused(String),
    /// A record was not taken although nothing is stored in its place: the task ended otherwise, another holds it, or its bank
    /// has a newer generation.
    #[error("another worker holds the task, or its bank has begun anew")]
    Overtaken,
    /// What the store holds beside exactly this submission cannot be read: its task fails, and others go on.
    #[error("what is stored of this cannot be read: {0}")]
    Damaged(String),
    /// The store cannot be written any more; the process has to stop.
    #[error("{0}")]
    Broken(String),
}

impl From<Stopped> for WriteError {
    fn from(_: Stopped) -> Self {
        Self::Broken("the checkpoint writer has stopped".to_owned())
    }
}

/// What the writer tells the rest of the process.
#[derive(Clone)]
pub(crate) struct WriterHooks {
    /// Questions of which no step is missing any more.
    pub(crate) to_conclude: mpsc::UnboundedSender<(RunNo, TaskKey)>,
    /// Woken when tasks became ready.
    pub(crate) opened: Arc<Notify>,
    /// Woken when tasks ended.
    pub(crate) ended: Arc<Notify>,
    /// Woken when questions were concluded.
    pub(crate) concluded: Arc<Notify>,
    /// Told once when the store is broken for good.
    pub(crate) broken: tokio::sync::watch::Sender<Option<String>>,
    /// Told of questions that ended by a commit.
    pub(crate) keeper: Option<Arc<Keeper>>,
    /// Told of what was committed, and the number of the session that commits (P44).
    pub(crate) journal: Option<(Arc<Journal>, Arc<AtomicI64>)>,
}

/// Hands finished steps to the writer task.
#[derive(Clone)]
pub(crate) struct Writer(Batcher<Steps>);

impl Writer {
    /// Starts the writer task.
    #[must_use]
    pub(crate) fn start(store: Arc<dyn Store>, hooks: WriterHooks) -> Self {
        Self(Batcher::start(Steps { store, hooks }))
    }

    /// Stores the records of one task together and waits for the commit.
    ///
    /// # Errors
    /// When the store refuses them or is broken; an unavailable store is waited for.
    pub(crate) async fn submit(&self, records: Vec<StepRecord>) -> Result<Committed, WriteError> {
        self.submit_and_conclude(records, None).await
    }

    /// The same for the records of a whole question, with its facts: it is concluded by the same commit.
    ///
    /// # Errors
    /// Like [`Self::submit`].
    pub(crate) async fn submit_and_conclude(
        &self,
        records: Vec<StepRecord>,
        conclusion: Option<Conclusion>,
    ) -> Result<Committed, WriteError> {
        self.0.store((records, conclusion)).await
    }

    /// Stores the records of one task while it goes on. Who drops what is returned leaves them to the writer.
    ///
    /// # Errors
    /// When the writer has stopped.
    pub(crate) async fn submit_beside(&self, records: Vec<StepRecord>) -> Result<Underway<Steps>, WriteError> {
        Ok(self.0.store_beside((records, None)).await?)
    }
}

/// Commits steps.
pub(crate) struct Steps {
    store: Arc<dyn Store>,
    hooks: WriterHooks,
}

impl Committer for Steps {
    /// The records of one task, and the facts of the question that ends with them.
    type Item = (Vec<StepRecord>, Option<Conclusion>);
    type Stored = Committed;
    type Error = WriteError;

    // with the slots as a bound on submitters nobody ever waits for room
    const BOUNDS: Bounds = Bounds { rows: 100, bytes: 1 << 20, alone: Duration::from_millis(20), waiting: 4096 };

    fn weight((records, _): &Self::Item) -> (usize, usize) {
        (records.len(), records.iter().map(weight_of).sum())
    }

    async fn commit(&self, items: Vec<Self::Item>) -> Result<Vec<Told<Self>>, Failed<Self>> {
        let began = Instant::now();
        let part = Part::from_items(items);
        let span = part.span(&self.hooks);
        let turn = match &self.hooks.journal {
            Some((journal, session)) => {
                let turn = journal.turn.lock().await;
                Some((journal, journal.next(SessionId(session.load(Ordering::SeqCst))), turn))
            }
            None => None,
        };
        let mark = turn.as_ref().map(|(_, mark, _)| *mark);
        // every row is keyed by its own id, so a commit of which nobody knows may be repeated
        let committing = retry(|| self.store.commit_marked(&part.records, &part.conclusions, mark));
        let outcome = match committing.instrument(span.clone()).await {
            Ok(outcome) => outcome,
            Err(error) => {
                process::failed(&span, &error.to_string());
                return Err((error, part.into_items()));
            }
        };
        drop(span);
        part.tell(&self.hooks, &outcome, began.elapsed());
        self.hooks.announce(&part, &outcome);
        if let Some((journal, mark, _)) = &turn {
            let bytes = part.records.iter().map(weight_of).sum();
            journal.batch(mark.number, part.records, part.conclusions, bytes);
        }
        let (mut already, mut first) = (outcome.already.into_iter(), 0);
        let told = |records: usize| {
            let mine = already.by_ref().take(records).collect();
            let overtaken = outcome.refused.iter().any(|at| (first..first + records).contains(at));
            first += records;
            if overtaken { Err(WriteError::Overtaken) } else { Ok(mine) }
        };
        Ok(part.sizes.into_iter().map(told).collect())
    }

    fn refusal(&self, error: &StoreError) -> WriteError {
        if let StoreError::BadData(reason) = error {
            return WriteError::Refused(reason.clone());
        }
        if error.is_about_rows() {
            return WriteError::Damaged(error.to_string());
        }
        // the process ends with this reason as its last words
        self.hooks.broken.send_if_modified(|reason| {
            let first = reason.is_none();
            if first {
                *reason = Some(error.to_string());
            }
            first
        });
        WriteError::Broken(error.to_string())
    }
}

/// Rough size of a record in bytes: texts dominate.
fn weight_of(record: &StepRecord) -> usize {
    let of_text = |text: &StepText| match text {
        StepText::Recalled { hits } | StepText::Searched { hits, .. } => hits.iter().map(|h| h.text.len() + 64).sum(),
        StepText::Answered { answer, raw, .. } => answer.len() + raw.as_ref().map_or(0, String::len),
        StepText::Judged { raw, .. } | StepText::JudgedPart { raw } | StepText::Phrased { raw, .. } => raw.len(),
    };
    256 + record.text.as_ref().map_or(0, of_text) + record.calls.iter().map(|c| c.reply.len()).sum::<usize>()
}

/// What is committed together: the records of some submissions, in their order.
struct Part {
    records: Vec<StepRecord>,
    conclusions: Vec<Conclusion>,
    /// Number of records of each submission.
    sizes: Vec<usize>,
}

impl Part {
    fn from_items(items: Vec<<Steps as Committer>::Item>) -> Self {
        let sizes: Vec<usize> = items.iter().map(|(records, _)| records.len()).collect();
        let (mut records, mut conclusions) = (Vec::with_capacity(sizes.iter().sum()), Vec::new());
        for (of_task, conclusion) in items {
            records.extend(of_task);
            conclusions.extend(conclusion);
        }
        Self { records, conclusions, sizes }
    }

    /// The submissions again; their questions are concluded from the store.
    fn into_items(self) -> Vec<<Steps as Committer>::Item> {
        let mut records = self.records.into_iter();
        self.sizes.into_iter().map(|size| (records.by_ref().take(size).collect(), None)).collect()
    }

    /// What this process shows of the commit, linked to the questions that it ends and whose traces are sent.
    fn span(&self, hooks: &WriterHooks) -> Span {
        let span = process_span!(
            "checkpoint_batch",
            records = process::count(self.records.len()),
            questions = process::count(self.conclusions.len()),
        );
        if let Some(keeper) = &hooks.keeper {
            let kept = self.conclusions.iter().filter(|conclusion| conclusion.facts.kept.is_some());
            link_questions(&span, kept.filter_map(|conclusion| keeper.root_of(conclusion.run, &conclusion.facts)));
        }
        process::started(span)
    }

    /// Counts what was stored, and hands on the traces that are kept.
    fn tell(&self, hooks: &WriterHooks, outcome: &CommitOutcome, took: Duration) {
        meter::committed(&self.records, |at| outcome.already.get(at).is_some_and(Option::is_none), took);
        let concluded = self.concluded(outcome);
        meter::ended(concluded.iter().map(|conclusion| &conclusion.facts));
        if let Some(keeper) = &hooks.keeper {
            let kept = concluded.iter().filter(|conclusion| conclusion.facts.kept.is_some());
            kept.for_each(|conclusion| keeper.send(conclusion.run, &conclusion.facts));
        }
    }

    /// The questions that this commit has ended: those whose records were all stored by it. The others are concluded from the store,
    /// or were before.
    fn concluded(&self, outcome: &CommitOutcome) -> Vec<&Conclusion> {
        let told = self.records.iter().zip(&outcome.already);
        let not_new: HashSet<(RunNo, TaskKey)> =
            told.filter(|(_, already)| already.is_some()).map(|(record, _)| (record.run, record.task)).collect();
        let is_stored = |conclusion: &&Conclusion| {
            let question = (conclusion.run, conclusion.facts.task);
            !not_new.contains(&question) && !outcome.to_conclude.contains(&question)
        };
        self.conclusions.iter().filter(is_stored).collect()
    }
}

impl WriterHooks {
    fn announce(&self, part: &Part, outcome: &CommitOutcome) {
        if !part.conclusions.is_empty() {
            self.concluded.notify_one();
        }
        for question in &outcome.to_conclude {
            let _ = self.to_conclude.send(*question);
        }
        if outcome.opened.iter().any(|(_, role)| Role::ALL.contains(role)) {
            self.opened.notify_one();
        }
        let mut ended = part.records.iter().filter(|record| record.effect != Effect::Continue).peekable();
        if ended.peek().is_some() {
            self.ended.notify_one();
        }
        if ended.any(|record| record.task == TaskKey::PROBE) {
            // it is the last thing of its run
            self.concluded.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        facts::Outcome,
        failure::Failure,
        step::{Opens, StepNo, Timing},
    };
    use bench_store::conformance::{HEADLINE, Scene, bank, ending, question_facts, recalled, record, scored};
    use futures::FutureExt as _;

    use super::*;

    async fn store() -> (tempfile::TempDir, Arc<dyn Store>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = bench_store::conformance::store_in(folder.path()).await;
        (folder, store)
    }

    fn hooks() -> (WriterHooks, mpsc::UnboundedReceiver<(RunNo, TaskKey)>) {
        let (to_conclude, receiver) = mpsc::unbounded_channel();
        let (broken, _) = tokio::sync::watch::channel(None);
        let (opened, ended, concluded) = Default::default();
        (WriterHooks { to_conclude, opened, ended, concluded, broken, keeper: None, journal: None }, receiver)
    }

    #[tokio::test]
    async fn p8_one_bad_row_fails_alone() {
        let (_folder, store) = store().await;
        let questions: Vec<u32> = (0..40).collect();
        let scene = Scene::start(store.as_ref(), &[bank(0, &[(1, &questions)])]).await;
        scene.make_ready(0, 1).await;
        let (hooks, mut to_conclude) = hooks();
        let writer = Writer::start(Arc::clone(&store), hooks);
        let submissions = (0..40).map(|index| {
            let task = TaskKey::question(0, index);
            let mut record = ending(scene.run, task, StepNo::SCORE, 1, scored(0.5), Opens::Nothing);
            if index == 17 {
                // a contradiction: the facts of a failure without the effect of one
                let failure = Failure::permanent("bad", "row");
                record.facts = StepFacts::Failed { failure, usage: Default::default(), timing: Timing::default() };
                record.effect = Effect::Continue;
            }
            writer.submit(vec![record])
        });
        let results = futures::future::join_all(submissions).await;
        for (index, result) in results.iter().enumerate() {
            assert_eq!(matches!(result, Err(WriteError::Refused(_))), index == 17, "{index}: {result:?}");
        }
        let mut complete = 0;
        while to_conclude.try_recv().is_ok() {
            complete += 1;
        }
        assert_eq!(complete, 39);
    }

    #[tokio::test]
    async fn p8_a_row_that_cannot_be_read_fails_its_task_and_not_the_process() {
        let (_folder, store) = store().await;
        let (hooks, _receiver) = hooks();
        let broken = hooks.broken.subscribe();
        let steps = Steps { store, hooks };
        let of_row = steps.refusal(&StoreError::Corrupt("a stored step is not readable".into()));
        assert!(matches!(of_row, WriteError::Damaged(_)) && broken.borrow().is_none(), "{of_row:?}");
        let of_all = steps.refusal(&StoreError::Full("quota".into()));
        assert!(matches!(of_all, WriteError::Broken(_)) && broken.borrow().is_some(), "{of_all:?}");
    }

    #[tokio::test]
    async fn p8_what_is_stored_beside_its_task_is_there_when_asked_for() {
        let (_folder, store) = store().await;
        let scene = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0, 1])])]).await;
        scene.make_ready(0, 1).await;
        let (hooks, mut to_conclude) = hooks();
        let writer = Writer::start(Arc::clone(&store), hooks);
        let record =
            |index| ending(scene.run, TaskKey::question(0, index), StepNo::SCORE, 1, scored(0.5), Opens::Nothing);
        let beside = writer.submit_beside(vec![record(0)]).await.expect("is sent");
        assert_eq!(beside.stored().await, Ok(vec![None]));
        drop(writer.submit_beside(vec![record(1)]).await.expect("is sent"));
        assert_eq!(to_conclude.recv().await, Some((scene.run, TaskKey::question(0, 0))));
        assert_eq!(to_conclude.recv().await, Some((scene.run, TaskKey::question(0, 1))), "though nobody asked");
    }

    #[test]
    fn a_record_that_is_refused_hides_no_other_question_of_its_commit() {
        let tasks = [0, 1, 2].map(|index| TaskKey::question(0, index));
        let part = Part {
            records: tasks
                .map(|task| ending(RunNo(1), task, StepNo::SCORE, 1, scored(0.5), Opens::Nothing))
                .into_iter()
                .collect(),
            conclusions: tasks
                .map(|task| Conclusion {
                    run: RunNo(1),
                    headline_metric: HEADLINE.to_owned(),
                    facts: question_facts(task, Outcome::Scored, 0.5),
                })
                .into_iter()
                .collect(),
            sizes: vec![1; 3],
        };
        let already = vec![None, Some(scored(0.5)), None];
        let outcome = CommitOutcome { refused: vec![1], already, ..CommitOutcome::default() };
        let concluded: Vec<TaskKey> = part.concluded(&outcome).iter().map(|conclusion| conclusion.facts.task).collect();
        assert_eq!(concluded, [tasks[0], tasks[2]]);
    }

    #[tokio::test]
    async fn p25_the_end_of_a_task_is_told_when_it_is_stored() {
        let (_folder, store) = store().await;
        let scene = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
        scene.make_ready(0, 1).await;
        let (hooks, _receiver) = hooks();
        let ended = Arc::clone(&hooks.ended);
        let writer = Writer::start(Arc::clone(&store), hooks);
        let recall = record(scene.run, TaskKey::question(0, 0), StepNo::RECALL, 1, recalled());
        assert_eq!(writer.submit(vec![recall]).await, Ok(vec![None]));
        assert_eq!(ended.notified().now_or_never(), None, "it goes on");
        let last = ending(scene.run, TaskKey::question(0, 0), StepNo::SCORE, 1, scored(0.5), Opens::Nothing);
        assert_eq!(writer.submit(vec![last]).await, Ok(vec![None]));
        assert_eq!(ended.notified().now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn p7_a_repeated_submission_is_told_what_is_stored() {
        let (_folder, store) = store().await;
        let scene = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
        scene.make_ready(0, 1).await;
        let (hooks, _receiver) = hooks();
        let writer = Writer::start(Arc::clone(&store), hooks);
        let record = ending(scene.run, TaskKey::question(0, 0), StepNo::SCORE, 1, scored(0.5), Opens::Nothing);
        assert_eq!(writer.submit(vec![record.clone()]).await, Ok(vec![None]));
        assert_eq!(writer.submit(vec![record.clone()]).await, Ok(vec![Some(record.facts)]));
    }
}
