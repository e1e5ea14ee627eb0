//! The few connections of a process.
//!
//! A connection comes back only after work that ended well on it; whatever is dropped half-way (a cut line, a panic, a caller
//! that went away) is closed, which makes the server roll back. So nobody ever inherits an open transaction.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sqlx::{ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{conn::PostgresConn, errors, place::Destination};
use crate::{StoreError, StoreResult};

/// Longest wait for a new connection.
pub(super) const CONNECT: Duration = Duration::from_secs(4);
/// Longest wait for one of the connections.
const TURN: Duration = Duration::from_secs(30);
/// A connection that rested longer is tried before it is used.
const FRESH: Duration = Duration::from_secs(1);

/// Connections to one place.
pub(super) struct Pool {
    pub(super) place: Destination,
    options: PgConnectOptions,
    /// A pooler in transaction mode is in between.
    pub(super) pooled: bool,
    size: usize,
    turns: Semaphore,
    resting: Mutex<Vec<(Connection, Instant)>>,
    /// How often a connection turned out to be dead.
    interruptions: AtomicU64,
}

/// A connection, and what the server keeps for it.
pub(super) struct Connection {
    pub(super) conn: PgConnection,
    /// Statements that were prepared under names of our own ([`PostgresConn`] says which).
    pub(super) prepared: Vec<&'static str>,
}

impl Connection {
    const fn new(conn: PgConnection) -> Self {
        Self { conn, prepared: Vec::new() }
    }
}

/// A connection in use.
pub(super) struct Taken<'p> {
    pool: &'p Pool,
    connection: Connection,
    _turn: SemaphorePermit<'p>,
}

impl Pool {
    /// A pool of at most `size` connections, with its first one.
    pub(super) fn new(
        place: Destination,
        options: PgConnectOptions,
        pooled: bool,
        first: PgConnection,
        size: usize,
    ) -> Self {
        let resting = Mutex::new(vec![(Connection::new(first), Instant::now())]);
        Self { place, options, pooled, size, turns: Semaphore::new(size), resting, interruptions: AtomicU64::new(0) }
    }

    /// A connection that works, as far as one can know.
    pub(super) async fn take(&self) -> StoreResult<Taken<'_>> {
        let turn = timeout(TURN, self.turns.acquire()).await;
        let turn = turn.map_err(|_| StoreError::Unavailable("all connections to the store are busy".into()))?;
        let turn = turn.map_err(|_| StoreError::Unavailable("the store has been closed".into()))?;
        while let Some((mut connection, since)) = self.rested() {
            if since.elapsed() < FRESH || matches!(timeout(FRESH, connection.conn.ping()).await, Ok(Ok(()))) {
                return Ok(Taken { pool: self, connection, _turn: turn });
            }
            self.forget();
        }
        let connected = timeout(CONNECT, self.options.connect()).await;
        let connected =
            connected.map_err(|_| StoreError::Unavailable(format!("{} does not answer", self.place).into()))?;
        let conn = connected.map_err(|e| errors::store_error(&e))?;
        Ok(Taken { pool: self, connection: Connection::new(conn), _turn: turn })
    }

    fn rested(&self) -> Option<(Connection, Instant)> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Closes the resting connections: when one of them turned out to be dead, the others are too.
    pub(super) fn forget(&self) {
        self.interruptions.fetch_add(1, Ordering::SeqCst);
        self.resting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// See [`crate::Store::interruptions`].
    pub(super) fn interruptions(&self) -> u64 {
        self.interruptions.load(Ordering::SeqCst)
    }

    /// Lets work end, then closes.
    pub(super) async fn close(&self) {
        // work that does not end in time is cut off by the end of the process
        drop(timeout(TURN, self.turns.acquire_many(u32::try_from(self.size).unwrap_or(u32::MAX))).await);
        self.turns.close();
        while let Some((connection, _)) = self.rested() {
            if let Err(error) = connection.conn.close().await {
                tracing::debug!(%error, "a connection of the store did not close cleanly");
            }
        }
    }
}

impl Taken<'_> {
    pub(super) fn link(&mut self) -> PostgresConn<'_> {
        PostgresConn::new(&mut self.connection, &self.pool.place, !self.pool.pooled)
    }

    /// Gives the connection back; nothing is open on it.
    pub(super) fn rest(self) {
        let mut resting = self.pool.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.push((self.connection, Instant::now()));
    }
}
