//! The one writer (P8, P21): a task that owns the only writing connection.
//!
//! Whatever waits when a commit has returned goes into the next transaction together, each job behind its own savepoint:
//! many small jobs share one flush, and one that fails takes nothing else with it. A job is answered after the commit and
//! runs to its end even when nobody waits for its answer any more.

use std::panic::AssertUnwindSafe;

use futures::{FutureExt as _, future::BoxFuture};
use sqlx::SqliteConnection;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::JoinHandle,
};
use tracing::{Instrument as _, Span};

use super::{SYSTEM, conn::SqliteConn, errors};
use crate::{StoreError, StoreResult, slow, sql::Conn};

/// Jobs that may wait for the writer; more make their callers wait.
const QUEUE: usize = 256;
/// Jobs of one transaction: bounds how long the first one waits for its answer.
const GROUP: usize = 64;

/// The handle of the writer task.
pub(super) struct Writer {
    jobs: std::sync::Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the writer over its connection.
    pub(super) fn start(conn: SqliteConnection) -> Self {
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let task = tokio::spawn(write_until_closed(conn, waiting));
        Self { jobs: std::sync::Mutex::new(Some(jobs)), task: Mutex::new(Some(task)) }
    }

    /// Runs `work` in a transaction; answers after its commit.
    pub(super) async fn run<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        let closed = || StoreError::Unavailable("the store has been closed".into());
        let jobs = self.jobs.lock().ok().and_then(|jobs| jobs.clone()).ok_or_else(closed)?;
        let (answer, answered) = oneshot::channel();
        let job = Work { work: Some(work), value: None, answer, span: Span::current() };
        jobs.send(Box::new(job)).await.map_err(|_| closed())?;
        drop(jobs);
        answered.await.map_err(|_| closed())?
    }

    /// Lets waiting jobs end, then closes the connection.
    pub(super) async fn close(&self) {
        if let Ok(mut jobs) = self.jobs.lock() {
            jobs.take();
        }
        if let Some(task) = self.task.lock().await.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the store's writer ended badly");
        }
    }
}

/// A job of the writer, whatever its result.
trait Job: Send {
    /// Does the work and keeps its value; the error is what the caller will be told.
    fn run<'a>(&'a mut self, conn: &'a mut dyn Conn) -> BoxFuture<'a, StoreResult<()>>;
    /// Answers the caller.
    fn answer(self: Box<Self>, outcome: StoreResult<()>);
    /// What the caller does, for the log and for collectors.
    fn span(&self) -> Span;
}

struct Work<T, W> {
    work: Option<W>,
    value: Option<T>,
    answer: oneshot::Sender<StoreResult<T>>,
    span: Span,
}

impl<T, W> Job for Work<T, W>
where
    T: Send,
    W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send,
{
    fn run<'a>(&'a mut self, conn: &'a mut dyn Conn) -> BoxFuture<'a, StoreResult<()>> {
        let span = self.span.clone();
        let work = async move {
            if let Some(work) = self.work.take() {
                self.value = Some(work(conn).await?);
            }
            Ok(())
        };
        Box::pin(work.instrument(span))
    }

    fn span(&self) -> Span {
        self.span.clone()
    }

    fn answer(self: Box<Self>, outcome: StoreResult<()>) {
        let value = self.value.ok_or_else(|| StoreError::Unavailable("the work was not done".into()));
        // a caller that went away needs no answer
        drop(self.answer.send(outcome.and(value)));
    }
}

async fn write_until_closed(mut conn: SqliteConnection, mut waiting: mpsc::Receiver<Box<dyn Job>>) {
    let (mut group, mut wrote) = (Vec::with_capacity(GROUP), false);
    while waiting.recv_many(&mut group, GROUP).await > 0 {
        wrote = true;
        run_group(&mut conn, &mut group).await;
    }
    if wrote {
        bring_back(&mut conn).await;
    }
    super::close_quietly(conn).await;
}

/// Brings the write-ahead log back into the file and empties it, so that the file by itself is the whole store. Closing does so
/// too, but only when no other process has the file open. Where others are at work nothing is waited for: they do it at their end.
async fn bring_back(conn: &mut SqliteConnection) {
    for sql in ["PRAGMA busy_timeout = 0", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        if let Err(error) = statement(conn, sql).await {
            tracing::debug!(%error, "the store's log was left to others");
        }
    }
}

/// Runs jobs in one transaction and answers them.
async fn run_group(conn: &mut SqliteConnection, group: &mut Vec<Box<dyn Job>>) {
    let mut outcomes = Vec::with_capacity(group.len());
    // what the transaction itself waits for shows with the job that came first
    let first = group.first().map_or_else(Span::none, |job| job.span());
    let ended = transact(conn, group, &mut outcomes).instrument(first).await;
    if ended.is_err() {
        // after some errors SQLite has rolled back by itself, and this one says that there is nothing to do
        drop(statement(conn, "ROLLBACK").await);
    }
    let mut outcomes = outcomes.into_iter();
    for job in group.drain(..) {
        let own = outcomes.next().unwrap_or(Ok(()));
        job.answer(own.and_then(|()| ended.clone()));
    }
}

async fn transact(
    conn: &mut SqliteConnection,
    group: &mut [Box<dyn Job>],
    outcomes: &mut Vec<StoreResult<()>>,
) -> StoreResult<()> {
    statement(conn, "BEGIN IMMEDIATE").await?;
    if let [job] = group {
        // alone: the transaction is its savepoint
        run_job(conn, job.as_mut()).await?;
        return statement(conn, "COMMIT").await;
    }
    for job in group {
        statement(conn, "SAVEPOINT job").await?;
        let outcome = run_job(conn, job.as_mut()).await;
        if outcome.is_err() {
            statement(conn, "ROLLBACK TO job").await?;
        }
        outcomes.push(outcome);
        statement(conn, "RELEASE job").await?;
    }
    statement(conn, "COMMIT").await
}

/// A panic in a job is that job's error, not the end of the writer.
async fn run_job(conn: &mut SqliteConnection, job: &mut dyn Job) -> StoreResult<()> {
    let mut link = SqliteConn(conn);
    match AssertUnwindSafe(job.run(&mut link)).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(_) => Err(StoreError::BadData("the store met a bug while writing; the log has the details".to_owned())),
    }
}

async fn statement(conn: &mut SqliteConnection, sql: &'static str) -> StoreResult<()> {
    let done = slow::told(SYSTEM, sql, sqlx::query(sql).execute(conn)).await;
    done.map(drop).map_err(|e| errors::store_error(&e))
}
