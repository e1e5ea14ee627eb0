//! Group commits (P8): whatever is submitted while a commit is under way goes into the next one, and one is under way at a time. What
//! the store refuses for its data, or cannot take for a row that it cannot read, is halved until the bad submission stands alone. What
//! is asked for many at once is halved in the same way ([`by_halves`]).

use std::time::Duration;

use bench_store::{StoreError, StoreResult};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

/// How much goes into one commit, and how much may wait for it.
pub(crate) struct Bounds {
    /// Most rows of one commit.
    pub(crate) rows: usize,
    /// Most bytes of text in one commit.
    pub(crate) bytes: usize,
    /// How long a submission that nobody waits for yet may wait for company.
    pub(crate) alone: Duration,
    /// Submissions that may wait; more make their submitters wait.
    pub(crate) waiting: usize,
}

/// What is stored in batches.
pub(crate) trait Committer: Send + Sync + 'static {
    /// What is submitted at once: stored as a whole or not at all.
    type Item: Send + 'static;
    /// What its submitter is told when it is stored.
    type Stored: Send + 'static;
    /// Why it is not.
    type Error: From<Stopped> + Send + 'static;

    /// Of one commit.
    const BOUNDS: Bounds;

    /// Rows and bytes of an item.
    fn weight(item: &Self::Item) -> (usize, usize);

    /// Stores items together; what became of each, in their order. When all of it fails they come back.
    fn commit(&self, items: Vec<Self::Item>) -> impl Future<Output = Result<Vec<Told<Self>>, Failed<Self>>> + Send;

    /// What the submitter of an item is told that cannot be stored.
    fn refusal(&self, error: &StoreError) -> Self::Error;
}

/// What a submitter is told.
pub(crate) type Told<C> = Result<<C as Committer>::Stored, <C as Committer>::Error>;
/// A commit that failed, and what was to be stored.
pub(crate) type Failed<C> = (StoreError, Vec<<C as Committer>::Item>);

struct Submission<C: Committer> {
    item: C::Item,
    done: oneshot::Sender<Told<C>>,
    /// Somebody waits for it.
    urgent: bool,
}

enum Message<C: Committer> {
    Store(Box<Submission<C>>),
    /// What is not urgent has become so.
    Hurry,
}

/// The way to the task that commits; it ends with the last of them.
pub(crate) struct Batcher<C: Committer>(mpsc::Sender<Message<C>>);

impl<C: Committer> Clone for Batcher<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The task that commits is gone.
#[derive(Debug)]
pub(crate) struct Stopped;

/// What is being stored while its task goes on. Dropping it leaves it to the committer.
pub(crate) struct Underway<C: Committer> {
    batcher: Batcher<C>,
    answer: oneshot::Receiver<Told<C>>,
}

impl<C: Committer> Underway<C> {
    /// Waits for the commit, which now hurries.
    pub(crate) async fn stored(mut self) -> Told<C> {
        match self.answer.try_recv() {
            Ok(told) => told,
            Err(oneshot::error::TryRecvError::Closed) => Err(Stopped.into()),
            Err(oneshot::error::TryRecvError::Empty) => {
                self.batcher.0.send(Message::Hurry).await.map_err(|_| Stopped)?;
                self.answer.await.map_err(|_| Stopped)?
            }
        }
    }

    /// Waits for the commit, which takes the time that it has for company.
    pub(crate) async fn stored_with_others(self) -> Told<C> {
        self.answer.await.map_err(|_| Stopped)?
    }
}

impl<C: Committer> Batcher<C> {
    /// Starts the task.
    pub(crate) fn start(committer: C) -> Self {
        let (batcher, mut inbox) = Self::with_inbox();
        tokio::spawn(async move {
            while let Some(batch) = inbox.next_batch().await {
                commit(&committer, batch).await;
            }
        });
        batcher
    }

    fn with_inbox() -> (Self, Inbox<C>) {
        let (sender, receiver) = mpsc::channel(C::BOUNDS.waiting);
        (Self(sender), Inbox { receiver, carried: None })
    }

    /// Stores an item and waits for the commit.
    pub(crate) async fn store(&self, item: C::Item) -> Told<C> {
        self.send(item, true).await?.await.map_err(|_| Stopped)?
    }

    /// Stores an item that nobody waits for yet.
    pub(crate) async fn store_beside(&self, item: C::Item) -> Result<Underway<C>, Stopped> {
        let answer = self.send(item, false).await?;
        Ok(Underway { batcher: self.clone(), answer })
    }

    async fn send(&self, item: C::Item, urgent: bool) -> Result<oneshot::Receiver<Told<C>>, Stopped> {
        let (done, answer) = oneshot::channel();
        let submission = Submission { item, done, urgent };
        self.0.send(Message::Store(Box::new(submission))).await.map_err(|_| Stopped)?;
        Ok(answer)
    }
}

/// What is to be committed.
struct Inbox<C: Committer> {
    receiver: mpsc::Receiver<Message<C>>,
    /// The submission that did not fit into the last batch.
    carried: Option<Box<Submission<C>>>,
}

impl<C: Committer> Inbox<C> {
    /// The next batch: what waits now, when some of it is urgent; else what has come when it is, or when nobody came for so long.
    async fn next_batch(&mut self) -> Option<Vec<Submission<C>>> {
        let Bounds { rows: most_rows, bytes: most_bytes, alone, .. } = C::BOUNDS;
        let (mut batch, mut rows, mut bytes) = (Vec::new(), 0, 0);
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
                    let weight = C::weight(&submission.item);
                    (rows, bytes) = (rows + weight.0, bytes + weight.1);
                    if !batch.is_empty() && (rows > most_rows || bytes > most_bytes) {
                        self.carried = Some(submission);
                        return Some(batch);
                    }
                    urgent |= submission.urgent;
                    deadline.get_or_insert_with(|| Instant::now() + alone);
                    batch.push(*submission);
                }
            }
        }
    }
}

/// Whether an error says nothing of the other submissions of its batch.
fn is_of_one(error: &StoreError) -> bool {
    matches!(error, StoreError::BadData(_)) || error.is_about_rows()
}

async fn commit<C: Committer>(committer: &C, batch: Vec<Submission<C>>) {
    let (items, waiting): (Vec<_>, Vec<_>) = batch.into_iter().map(|of| (of.item, of.done)).unzip();
    let mut parts = vec![(items, waiting)];
    while let Some((items, mut waiting)) = parts.pop() {
        let told = match committer.commit(items).await {
            Ok(told) => told,
            Err((error, mut items)) if is_of_one(&error) && waiting.len() > 1 => {
                let half = waiting.len() / 2;
                parts.push((items.split_off(half), waiting.split_off(half)));
                parts.push((items, waiting));
                continue;
            }
            Err((error, _)) => waiting.iter().map(|_| Err(committer.refusal(&error))).collect(),
        };
        for (done, told) in waiting.into_iter().zip(told) {
            // a task that was dropped (cancel --now) no longer waits for its answer
            let _ = done.send(told);
        }
    }
}

/// Asks the store for many things at once. Where a row of one of them cannot be read, that one is found by halves: what was answered for
/// the others, in their order, and those that stand alone, with why.
pub(crate) async fn by_halves<'a, T, R, F>(
    all: &'a [T],
    mut ask: impl FnMut(&'a [T]) -> F,
) -> StoreResult<(Vec<R>, Vec<(&'a T, StoreError)>)>
where
    F: Future<Output = StoreResult<R>>,
{
    let (mut parts, mut answered, mut alone) = (vec![all], Vec::new(), Vec::new());
    while let Some(part) = parts.pop() {
        match (ask(part).await, part) {
            (Err(error), [one]) if error.is_about_rows() => alone.push((one, error)),
            (Err(error), [_, _, ..]) if error.is_about_rows() => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            (answer, _) => answered.push(answer?),
        }
    }
    Ok((answered, alone))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Numbers, of which a commit holds ten; 13 is refused, and in the place of 15 stands what cannot be read.
    #[derive(Clone, Default)]
    struct Numbers(Arc<Mutex<Vec<Vec<u32>>>>);

    impl Committer for Numbers {
        type Item = u32;
        type Stored = u32;
        type Error = String;

        const BOUNDS: Bounds = Bounds { rows: 10, bytes: 100, alone: Duration::from_millis(20), waiting: 64 };

        fn weight(item: &u32) -> (usize, usize) {
            (1, *item as usize)
        }

        async fn commit(&self, items: Vec<u32>) -> Result<Vec<Told<Self>>, Failed<Self>> {
            if items.contains(&13) {
                return Err((StoreError::BadData("13".to_owned()), items));
            }
            if items.contains(&15) {
                return Err((StoreError::Corrupt("15".into()), items));
            }
            if items.contains(&50) {
                return Err((StoreError::Full("50".into()), items));
            }
            let told = items.iter().copied().map(Ok).collect();
            self.0.lock().expect("a lock").push(items);
            Ok(told)
        }

        fn refusal(&self, error: &StoreError) -> String {
            error.to_string()
        }
    }

    impl From<Stopped> for String {
        fn from(_: Stopped) -> Self {
            "stopped".to_owned()
        }
    }

    #[tokio::test]
    async fn p8_a_batch_is_bounded_by_rows_and_bytes() {
        let (batcher, mut inbox) = Batcher::<Numbers>::with_inbox();
        for item in [1; 12].into_iter().chain([60, 60, 500]) {
            batcher.send(item, true).await.expect("is sent");
        }
        let mut sizes = Vec::new();
        for _ in 0..4 {
            sizes.push(inbox.next_batch().await.expect("a batch").len());
        }
        assert_eq!(sizes, [10, 3, 1, 1], "what is too large goes alone");
    }

    #[tokio::test]
    async fn p8_what_is_bad_fails_alone_and_the_rest_keeps_its_order() {
        let numbers = Numbers::default();
        let batcher = Batcher::start(numbers.clone());
        let told = futures::future::join_all((10..17).map(|item| batcher.store(item))).await;
        for (item, told) in (10..17).zip(told) {
            assert_eq!(told.is_err(), item == 13 || item == 15, "{item}: {told:?}");
        }
        let stored = numbers.0.lock().expect("a lock").concat();
        assert_eq!(stored, [10, 11, 12, 14, 16]);
    }

    #[tokio::test(start_paused = true)]
    async fn p8_who_is_in_no_hurry_is_stored_with_others_and_in_time() {
        let numbers = Numbers::default();
        let batcher = Batcher::start(numbers.clone());
        let begun = Instant::now();
        let (one, other) = (batcher.store_beside(1).await, batcher.store_beside(2).await);
        let (one, other) = (one.expect("is sent"), other.expect("is sent"));
        let stored = tokio::join!(one.stored_with_others(), other.stored_with_others());
        assert_eq!(stored, (Ok(1), Ok(2)));
        let waited = begun.elapsed();
        assert!(waited >= Numbers::BOUNDS.alone && waited < Numbers::BOUNDS.alone * 2, "{waited:?}");
        assert_eq!(*numbers.0.lock().expect("a lock"), [[1, 2]]);
    }

    #[tokio::test]
    async fn p8_who_cannot_be_read_is_found_by_halves() {
        let ask = |part: &[u32]| {
            std::future::ready(if part.contains(&50) {
                Err(StoreError::Full("50".into()))
            } else if part.contains(&13) || part.contains(&15) {
                Err(StoreError::Corrupt("odd".into()))
            } else {
                Ok(part.to_vec())
            })
        };
        let all: Vec<u32> = (10..17).collect();
        let (answered, alone) = by_halves(&all, ask).await.expect("is answered");
        assert_eq!(answered.concat(), [10, 11, 12, 14, 16]);
        assert_eq!(alone.iter().map(|(one, _)| **one).collect::<Vec<_>>(), [13, 15]);
        assert!(by_halves(&[1, 50], ask).await.is_err(), "it is not about rows");
        assert!(by_halves(&[], ask).await.is_ok_and(|(answered, _)| answered.concat().is_empty()));
    }

    #[tokio::test]
    async fn p8_what_is_wrong_with_the_store_fails_all() {
        let batcher = Batcher::start(Numbers::default());
        let told = futures::future::join_all([1, 50, 2].map(|item| batcher.store(item))).await;
        assert!(told.iter().all(Result::is_err), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn p8_what_nobody_waits_for_goes_with_the_next_commit() {
        let (batcher, mut inbox) = Batcher::<Numbers>::with_inbox();
        let begun = Instant::now();
        let beside = batcher.store_beside(0).await.expect("is sent");
        let urgent = batcher.send(1, true).await.expect("is sent");
        assert_eq!(inbox.next_batch().await.expect("a batch").len(), 2, "together");
        assert_eq!(begun.elapsed(), Duration::ZERO);
        drop(urgent);
        // its commit has not returned when its task asks: the committer is told, and what comes next is not hurried
        let asked = tokio::spawn(beside.stored());
        tokio::task::yield_now().await;
        let mut later = Vec::new();
        for item in 2..4 {
            later.push(batcher.store_beside(item).await.expect("is sent"));
        }
        assert_eq!(inbox.next_batch().await.expect("a batch").len(), 2);
        let alone = begun.elapsed();
        assert!(alone >= Numbers::BOUNDS.alone, "{alone:?}");
        assert!(asked.await.expect("no panic").is_err(), "its submission was dropped with the batch");
        // one that is asked for takes the others along
        let mut more = Vec::new();
        for item in 4..7 {
            more.push(batcher.store_beside(item).await.expect("is sent"));
        }
        let asked = tokio::spawn(more.remove(0).stored());
        tokio::task::yield_now().await;
        assert_eq!(inbox.next_batch().await.expect("a batch").len(), 3);
        assert_eq!(begun.elapsed(), alone, "at once");
        drop((batcher, later, more));
        assert!(asked.await.expect("no panic").is_err());
        assert!(inbox.next_batch().await.is_none());
    }
}
