//! The checkpoint writer (P8): one per process, commits whatever waits as soon as the previous commit has returned. What no
//! slot waits for yet goes with the next commit, or after `ALONE_AFTER`.

use std::{
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
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant as Deadline, timeout_at},
};
use tracing::{Instrument as _, Span};

use crate::{
    journal::Journal,
    traces::{Keeper, link_questions, meter},
};

/// Most records in one commit.
const MAX_RECORDS: usize = 100;
/// Most bytes of text in one commit.
const MAX_BYTES: usize = 1 << 20;
/// How long a submission that nobody waits for yet may wait for company.
const ALONE_AFTER: Duration = Duration::from_millis(20);
/// Commits that may wait: with the slots as a bound on senders this never fills up.
const QUEUE_LENGTH: usize = 4096;

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
    #[error("another holds the task, or its bank has begun anew")]
    Overtaken,
    /// The store cannot be written any more; the process has to stop.
    #[error("{0}")]
    Broken(String),
}

type Answer = oneshot::Receiver<Result<Committed, WriteError>>;

struct Submission {
    records: Vec<StepRecord>,
    conclusion: Option<Conclusion>,
    done: oneshot::Sender<Result<Committed, WriteError>>,
    /// Somebody waits for it.
    urgent: bool,
}

enum Message {
    Store(Box<Submission>),
    /// What is not urgent has become so.
    Hurry,
}

/// Hands finished steps to the writer task.
#[derive(Clone)]
pub(crate) struct Writer {
    sender: mpsc::Sender<Message>,
}

/// Records that are being stored while their task goes on. Dropping it leaves them to the writer.
pub(crate) struct Underway {
    sender: mpsc::Sender<Message>,
    answer: Answer,
}

impl Underway {
    /// Waits for the commit.
    ///
    /// # Errors
    /// Like [`Writer::submit`].
    pub(crate) async fn stored(mut self) -> Result<Committed, WriteError> {
        match self.answer.try_recv() {
            Ok(outcome) => outcome,
            Err(oneshot::error::TryRecvError::Closed) => Err(closed()),
            Err(oneshot::error::TryRecvError::Empty) => {
                self.sender.send(Message::Hurry).await.map_err(|_| closed())?;
                self.answer.await.map_err(|_| closed())?
            }
        }
    }
}

fn closed() -> WriteError {
    WriteError::Broken("the checkpoint writer has stopped".to_owned())
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

impl Writer {
    /// Starts the writer task.
    #[must_use]
    pub(crate) fn start(store: Arc<dyn Store>, hooks: WriterHooks) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        tokio::spawn(write_until_closed(store, hooks, receiver));
        Self { sender }
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
        self.send(records, conclusion, true).await?.await.map_err(|_| closed())?
    }

    /// Stores the records of one task while it goes on.
    ///
    /// # Errors
    /// When the writer has stopped.
    pub(crate) async fn submit_beside(&self, records: Vec<StepRecord>) -> Result<Underway, WriteError> {
        let answer = self.send(records, None, false).await?;
        Ok(Underway { sender: self.sender.clone(), answer })
    }

    async fn send(
        &self,
        records: Vec<StepRecord>,
        conclusion: Option<Conclusion>,
        urgent: bool,
    ) -> Result<Answer, WriteError> {
        let (done, answer) = oneshot::channel();
        let submission = Submission { records, conclusion, done, urgent };
        self.sender.send(Message::Store(Box::new(submission))).await.map_err(|_| closed())?;
        Ok(answer)
    }
}

async fn write_until_closed(store: Arc<dyn Store>, hooks: WriterHooks, receiver: mpsc::Receiver<Message>) {
    let mut inbox = Inbox { receiver, carried: None };
    while let Some(batch) = inbox.next_batch().await {
        commit_batch(store.as_ref(), &hooks, batch).await;
    }
}

/// What is to be written.
struct Inbox {
    receiver: mpsc::Receiver<Message>,
    /// The submission that did not fit into the last batch.
    carried: Option<Box<Submission>>,
}

impl Inbox {
    /// The next batch: what waits now, when some of it is urgent; else what has come when it is, or after `ALONE_AFTER`.
    async fn next_batch(&mut self) -> Option<Vec<Submission>> {
        let (mut batch, mut records, mut bytes) = (Vec::new(), 0, 0);
        let (mut urgent, mut deadline) = (false, None);
        loop {
            let next = match self.carried.take() {
                Some(submission) => Some(Message::Store(submission)),
                None => match (self.receiver.try_recv(), deadline) {
                    (Ok(message), _) => Some(message),
                    (Err(_), None) => Some(self.receiver.recv().await?),
                    (Err(_), Some(_)) if urgent => None,
                    (Err(_), Some(deadline)) => timeout_at(deadline, self.receiver.recv()).await.ok().flatten(),
                },
            };
            match next {
                None => return Some(batch),
                // for what is in this batch, or was in the one before
                Some(Message::Hurry) => urgent = !batch.is_empty(),
                Some(Message::Store(submission)) => {
                    records += submission.records.len();
                    bytes += weight(&submission);
                    if !batch.is_empty() && (records > MAX_RECORDS || bytes > MAX_BYTES) {
                        self.carried = Some(submission);
                        return Some(batch);
                    }
                    urgent |= submission.urgent;
                    deadline.get_or_insert_with(|| Deadline::now() + ALONE_AFTER);
                    batch.push(*submission);
                }
            }
        }
    }
}

/// Rough size of a submission in bytes: texts dominate.
fn weight(submission: &Submission) -> usize {
    submission.records.iter().map(weight_of).sum()
}

fn weight_of(record: &StepRecord) -> usize {
    let of_text = |text: &StepText| match text {
        StepText::Recalled { hits } => hits.iter().map(|h| h.text.len() + 64).sum(),
        StepText::Answered { answer, raw, .. } => answer.len() + raw.as_ref().map_or(0, String::len),
        StepText::Judged { raw, .. } => raw.len(),
    };
    256 + record.text.as_ref().map_or(0, of_text) + record.calls.iter().map(|c| c.reply.len()).sum::<usize>()
}

/// Commits a batch; one that is refused for its data is halved until the bad submission stands alone.
async fn commit_batch(store: &dyn Store, hooks: &WriterHooks, batch: Vec<Submission>) {
    let mut parts = vec![Part::of(batch)];
    while let Some(mut part) = parts.pop() {
        let began = Instant::now();
        let span = part.span(hooks);
        let turn = match &hooks.journal {
            Some((journal, session)) => {
                let turn = journal.turn.lock().await;
                Some((journal, journal.next(SessionId(session.load(Ordering::SeqCst))), turn))
            }
            None => None,
        };
        let mark = turn.as_ref().map(|(_, mark, _)| *mark);
        // every row is keyed by its own id, so a commit of which nobody knows may be repeated
        let committing = retry(|| store.commit_marked(&part.records, &part.conclusions, mark));
        let committed = committing.instrument(span.clone()).await;
        if let Err(error) = &committed {
            process::failed(&span, &error.to_string());
        }
        drop(span);
        match committed {
            Ok(outcome) => {
                part.tell(hooks, &outcome, began.elapsed());
                announce(hooks, &outcome, !part.conclusions.is_empty());
                if part.records.iter().any(|record| record.effect != Effect::Continue) {
                    hooks.ended.notify_one();
                }
                let ends_probe = |r: &StepRecord| r.task == TaskKey::PROBE && r.effect != Effect::Continue;
                if part.records.iter().any(ends_probe) {
                    // it is the last thing of its run
                    hooks.concluded.notify_one();
                }
                if let Some((journal, mark, _)) = &turn {
                    let bytes = part.records.iter().map(weight_of).sum();
                    journal.batch(mark.number, part.records, part.conclusions, bytes);
                }
                let (mut already, mut first) = (outcome.already.into_iter(), 0);
                for (records, done) in part.waiting {
                    let mine = already.by_ref().take(records).collect();
                    let overtaken = outcome.refused.iter().any(|at| (first..first + records).contains(at));
                    first += records;
                    // a task that was dropped (cancel --now) no longer waits for its answer
                    let _ = done.send(if overtaken { Err(WriteError::Overtaken) } else { Ok(mine) });
                }
            }
            Err(StoreError::BadData(reason)) if part.waiting.len() == 1 => {
                part.refuse(&WriteError::Refused(reason));
            }
            Err(StoreError::BadData(_)) => {
                let second = part.split_off();
                parts.push(second);
                parts.push(part);
            }
            Err(fatal) => {
                // the process ends with this reason as its last words
                hooks.broken.send_if_modified(|reason| {
                    let first = reason.is_none();
                    if first {
                        *reason = Some(fatal.to_string());
                    }
                    first
                });
                part.refuse(&WriteError::Broken(fatal.to_string()));
            }
        }
    }
}

/// What is committed together: the records of some submissions, in their order.
struct Part {
    records: Vec<StepRecord>,
    conclusions: Vec<Conclusion>,
    /// For each submission its number of records, and who waits for it.
    waiting: Vec<(usize, oneshot::Sender<Result<Committed, WriteError>>)>,
}

impl Part {
    fn of(batch: Vec<Submission>) -> Self {
        let mut part = Self {
            records: Vec::with_capacity(batch.iter().map(|s| s.records.len()).sum()),
            conclusions: Vec::new(),
            waiting: Vec::with_capacity(batch.len()),
        };
        for submission in batch {
            part.waiting.push((submission.records.len(), submission.done));
            part.records.extend(submission.records);
            part.conclusions.extend(submission.conclusion);
        }
        part
    }

    /// Cuts off the second half of the submissions; their questions are concluded from the store.
    fn split_off(&mut self) -> Self {
        let first = self.waiting.len() / 2;
        let records = self.waiting[..first].iter().map(|(records, _)| records).sum();
        self.conclusions.clear();
        let (records, waiting) = (self.records.split_off(records), self.waiting.split_off(first));
        Self { records, conclusions: Vec::new(), waiting }
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
        let stored = |conclusion: &&Conclusion| {
            let open = outcome.to_conclude.contains(&(conclusion.run, conclusion.facts.task));
            !open && outcome.refused.is_empty()
        };
        meter::ended(self.conclusions.iter().filter(stored).map(|conclusion| &conclusion.facts));
        if let Some(keeper) = &hooks.keeper {
            let kept = self.conclusions.iter().filter(|conclusion| conclusion.facts.kept.is_some());
            kept.filter(stored).for_each(|conclusion| keeper.send(conclusion.run, &conclusion.facts));
        }
    }

    fn refuse(self, error: &WriteError) {
        for (_, done) in self.waiting {
            let _ = done.send(Err(error.clone()));
        }
    }
}

fn announce(hooks: &WriterHooks, outcome: &CommitOutcome, concluded: bool) {
    if concluded {
        hooks.concluded.notify_one();
    }
    for question in &outcome.to_conclude {
        let _ = hooks.to_conclude.send(*question);
    }
    if outcome.opened.iter().any(|(_, role)| Role::ALL.contains(role)) {
        hooks.opened.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        failure::Failure,
        step::{Opens, StepNo, Timing},
    };
    use bench_store::conformance::{Scene, bank, ending, recalled, record, scored};
    use futures::FutureExt as _;

    use super::*;

    async fn store() -> (tempfile::TempDir, Arc<dyn Store>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite:{}", folder.path().join("bench.db").display());
        let store = bench_store::open(&url).await.expect("the store opens");
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

    #[tokio::test(start_paused = true)]
    async fn p8_what_nobody_waits_for_goes_with_the_next_commit() {
        let (sender, receiver) = mpsc::channel(64);
        let (writer, mut inbox) = (Writer { sender }, Inbox { receiver, carried: None });
        let record = |index| {
            let task = TaskKey::question(0, index);
            vec![ending(RunNo(1), task, StepNo::SCORE, 1, scored(0.5), Opens::Nothing)]
        };
        let begun = Deadline::now();
        let beside = writer.submit_beside(record(0)).await.expect("is sent");
        let urgent = writer.send(record(1), None, true).await.expect("is sent");
        assert_eq!(inbox.next_batch().await.expect("a batch").len(), 2, "together");
        assert_eq!(begun.elapsed(), Duration::ZERO);
        drop(urgent);
        // its commit has not returned when its task asks: the writer is told, and what comes next is not hurried
        let asked = tokio::spawn(beside.stored());
        tokio::task::yield_now().await;
        let mut later = Vec::new();
        for index in 2..4 {
            later.push(writer.submit_beside(record(index)).await.expect("is sent"));
        }
        assert_eq!(inbox.next_batch().await.expect("a batch").len(), 2);
        let alone = begun.elapsed();
        assert!(alone >= ALONE_AFTER, "{alone:?}");
        assert!(asked.await.expect("no panic").is_err(), "its submission was dropped with the batch");
        // one that is asked for takes the others along
        let mut more = Vec::new();
        for index in 4..7 {
            more.push(writer.submit_beside(record(index)).await.expect("is sent"));
        }
        let asked = tokio::spawn(more.remove(0).stored());
        tokio::task::yield_now().await;
        assert_eq!(inbox.next_batch().await.expect("a batch").len(), 3);
        assert_eq!(begun.elapsed(), alone, "at once");
        drop((writer, later, more));
        assert!(asked.await.expect("no panic").is_err());
        assert!(inbox.next_batch().await.is_none());
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
