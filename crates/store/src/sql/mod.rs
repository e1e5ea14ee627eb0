//! The store in SQL: every statement and every decision once, for SQLite and Postgres alike.
//!
//! A backend folder brings connections ([`Backend`], [`Conn`]); this folder brings what is done over them. Statements are
//! written in the common part of both dialects (`template`), take whole batches (`batch`) and get their task guards from
//! the transition table (`guards`). Decisions about banks are made by one pure function (`derive`), used by the commit
//! and by the sweep.
//!
//! In come calls of the traits (`traits`); out come rows (`rows`). Start reading at `claims`, then at `commit`: most of the
//! protocol is in these two.
//!
//! | files | subject |
//! |---|---|
//! | `template`, `batch`, `codes`, `sums`, `guards` | how statements are written, and what goes into and comes out of them |
//! | `runs`, `groups`, `events`, `counters`, `deleting` | runs, what is told of them, and how they go |
//! | `plan`, `items`, `forks`, `imports` | how a run begins: by its plan, from another run, from results made elsewhere |
//! | `tasks`, `claims`, `sessions`, `leaders` | who works on what, and who leads |
//! | `commit`, `banks`, `derive`, `conclude`, `rounds` | a batch of steps, and what follows for banks, questions and rounds |
//! | `sweep`, `reopen`, `incarnations` | what is repaired, done again, or brought back |
//! | `calls`, `metered` | replies that are not paid twice, and what memory systems called themselves |
//! | `money`, `ledger`, `pace`, `outages` | caps, what was booked, send slots, routes without anybody who gets through |
//! | `results`, `summaries`, `traces` | what is read of a run |

mod banks;
mod batch;
mod calls;
mod claims;
mod codes;
mod commit;
mod conclude;
mod counters;
mod deleting;
mod derive;
mod events;
mod forks;
mod groups;
mod guards;
mod imports;
mod incarnations;
mod items;
mod leaders;
mod ledger;
mod metered;
mod money;
mod outages;
mod pace;
mod plan;
mod reopen;
mod results;
mod rounds;
mod runs;
mod sessions;
mod summaries;
mod sums;
mod sweep;
mod tasks;
mod template;
mod traces;

use std::{collections::HashSet, future::Future, sync::Mutex};

use async_trait::async_trait;
use bench_proto::ids::{Role, RunNo, TaskKey, TaskKind};
use futures::future::BoxFuture;

pub(crate) use self::{
    batch::{Arg, Args, Batch, Cell, Column, Row, args},
    template::{Dialect, Sql},
};
use crate::{
    ConnectionRoom, Right, Store, StoreError, StoreResult,
    schema::{Found, must_fit},
};

/// Most rows of one statement; longer lists are cut.
pub(crate) const CHUNK: usize = 5_000;

/// Distance from a question's key to the keys of its judge tasks, which are one block of [`TaskKey::INDEX_STEP`].
pub(crate) const JUDGE_OFFSET: i64 = TaskKey::judge(0, 0, 0, 0).0 - TaskKey::question(0, 0).0;

/// A connection that runs statements.
#[async_trait]
pub(crate) trait Conn: Send {
    /// Runs a statement and returns its rows.
    async fn fetch(&mut self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>>;

    /// Runs a statement and returns the number of rows it changed.
    async fn execute(&mut self, sql: &'static Sql, args: Args) -> StoreResult<u64>;

    /// Locks rows in the order of the statement, so that transactions meet in one order; nothing where there is only one
    /// writer. `FOR UPDATE` is added by the backend.
    async fn lock(&mut self, sql: &'static Sql, args: Args) -> StoreResult<()>;

    /// Reads rows that are wanted: as they are once they are locked.
    async fn fetch_locked(&mut self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>>;

    /// Changes rows on which all writers meet, as the end of a transaction: Postgres gets it in one message with the commit, so
    /// that they are not locked while an answer travels. In the order of the calls; numbers only, and nobody learns what it did.
    async fn at_last(&mut self, sql: &'static Sql, args: Args) -> StoreResult<()>;
}

/// A database: transactions on the one side, reads on the other.
pub(crate) trait Backend: Send + Sync + 'static {
    /// Runs `work` in one transaction; its result is returned after the commit. The work goes on when the caller goes
    /// away, so that a dropped future never leaves a transaction open.
    fn write<T, W>(&self, work: W) -> impl Future<Output = StoreResult<T>> + Send
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static;

    /// The same for work that is a single statement: a transaction by itself, so nothing is said before and after it.
    fn change<T, W>(&self, work: W) -> impl Future<Output = StoreResult<T>> + Send
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static;

    /// Runs `work` on a reading connection.
    fn read<T, W>(&self, work: W) -> impl Future<Output = StoreResult<T>> + Send
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static;

    /// The URL without password.
    fn describe(&self) -> String;

    /// Product and version of the database.
    fn product(&self) -> impl Future<Output = StoreResult<String>> + Send;

    /// See [`Store::interruptions`].
    fn interruptions(&self) -> u64 {
        0
    }

    /// See [`Store::connection_room`].
    fn connection_room(&self) -> impl Future<Output = StoreResult<Option<ConnectionRoom>>> + Send {
        async { Ok(None) }
    }

    /// See [`Store::may`].
    fn may(&self, _right: Right) -> impl Future<Output = StoreResult<()>> + Send {
        async { Ok(()) }
    }

    /// Flushes and closes.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// The store over a [`Backend`].
pub(crate) struct SqlStore<B> {
    backend: B,
    /// Runs that this process has swept in full.
    swept: Mutex<HashSet<RunNo>>,
}

impl<B: Backend> SqlStore<B> {
    /// The store over an opened database whose schema is known to fit.
    pub(crate) fn new(backend: B) -> Self {
        Self { backend, swept: Mutex::default() }
    }

    async fn fetch(&self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>> {
        self.backend.read(move |conn| conn.fetch(sql, args)).await
    }

    async fn execute(&self, sql: &'static Sql, args: Args) -> StoreResult<u64> {
        self.backend.change(move |conn| conn.execute(sql, args)).await
    }
}

#[async_trait]
impl<B: Backend> Store for SqlStore<B> {
    fn describe(&self) -> String {
        self.backend.describe()
    }

    async fn check(&self) -> StoreResult<String> {
        static RUNS: Sql = Sql::new(|| "SELECT count(*) FROM runs".to_owned());
        let product = self.backend.product().await?;
        let version = self.backend.read(|conn| Box::pin(check_schema(conn))).await?;
        let rows = self.fetch(&RUNS, args![]).await?;
        let runs = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(format!("{product}, schema {version}, {runs} runs"))
    }

    fn interruptions(&self) -> u64 {
        self.backend.interruptions()
    }

    async fn connection_room(&self) -> StoreResult<Option<ConnectionRoom>> {
        self.backend.connection_room().await
    }

    async fn may(&self, right: Right) -> StoreResult<()> {
        self.backend.may(right).await
    }

    async fn delete_runs(&self, runs: &[RunNo]) -> StoreResult<bool> {
        let runs = runs.to_vec();
        match self.backend.write(move |conn| Box::pin(async move { deleting::delete(conn, &runs).await })).await {
            Err(StoreError::Unavailable(why)) if *why == *deleting::CHANGED => Ok(false),
            deleted => deleted,
        }
    }

    async fn close(&self) {
        self.backend.close().await;
    }
}

/// Version of the schema of a store, when this build can use it.
pub(crate) async fn check_schema(conn: &mut dyn Conn) -> StoreResult<i64> {
    static ROW: Sql = Sql::new(|| "SELECT version, min_reader, min_writer FROM bench_schema".to_owned());
    let rows = conn.fetch(&ROW, args![]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Broken("the schema row is missing".into()))?;
    let found = Found { version: row.int(0)?, min_reader: row.int(1)?, min_writer: row.int(2)? };
    must_fit(found)?;
    Ok(found.version)
}

/// A key that was read.
fn task_key(row: &Row, column: usize) -> StoreResult<TaskKey> {
    let raw = row.int(column)?;
    TaskKey::from_wire(raw).ok_or_else(|| StoreError::Corrupt(format!("{raw} is no task key").into()))
}

/// Smallest and largest key that a role serves: its kinds are neighbours.
fn role_range(role: Role) -> (TaskKey, TaskKey) {
    let mut kinds = TaskKind::ALL.into_iter().filter(|kind| kind.role() == role);
    let first = kinds.next().map_or((TaskKey(0), TaskKey(-1)), TaskKey::range_of_kind);
    kinds.fold(first, |(low, high), kind| {
        let (next_low, next_high) = TaskKey::range_of_kind(kind);
        (low.min(next_low), high.max(next_high))
    })
}

/// Whether a change of a run that must be there met a row.
fn must_exist(changed: u64, run: RunNo) -> StoreResult<()> {
    if changed == 0 { Err(missing_run(run)) } else { Ok(()) }
}

fn missing_run(run: RunNo) -> StoreError {
    StoreError::Missing(format!("run number {}", run.0))
}
