//! PostgreSQL: one database for many machines (P14).
//!
//! Every change is one transaction in `READ COMMITTED` that locks what it will change before it reads it: tasks in the order
//! of their keys, then banks, then the counters of runs. Transactions that meet wait for each other; should the server
//! still find a deadlock, its victim is [`StoreError::Unavailable`] and is repeated like any other lost call.
//!
//! No state is kept in a session, so a pooler in transaction mode may be in between. Statements are then sent unprepared
//! and every read is a transaction too, because a statement and its arguments could meet different servers.

mod conn;
mod errors;
mod place;
mod pool;
pub mod roles;

use std::{
    sync::{Arc, Once},
    time::Duration,
};

use futures::future::BoxFuture;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, PgConnection, Row as _,
    postgres::{PgConnectOptions, PgSslMode},
};
use tokio::time::timeout;
use tracing::Instrument as _;

use self::{
    conn::{LONGEST, PostgresConn, State},
    place::{Destination, Wanted},
    pool::{CONNECT, Pool},
};
use crate::{
    ConnectionRoom, Right, Store, StoreError, StoreResult, Transport,
    schema::{self, Found},
    sql::{Backend, Conn, Sql, SqlStore, args},
};

/// URL scheme.
pub const SCHEME: &str = "postgres";
/// Another name of the scheme `postgres`.
pub const LONG_SCHEME: &str = "postgresql";

const MIGRATIONS: schema::Migrations = &[
    include_str!("../../../../migrations/postgres/0001_init.sql"),
    include_str!("../../../../migrations/postgres/0002_cluster.sql"),
    include_str!("../../../../migrations/postgres/0003_money.sql"),
    include_str!("../../../../migrations/postgres/0004_calls.sql"),
    include_str!("../../../../migrations/postgres/0005_systems.sql"),
    "UPDATE bench_schema SET version = 6;",
    include_str!("../../../../migrations/postgres/0007_tracing.sql"),
    include_str!("../../../../migrations/postgres/0008_limits.sql"),
    include_str!("../../../../migrations/postgres/0009_unsent_traces.sql"),
    include_str!("../../../../migrations/postgres/0010_waiting.sql"),
    include_str!("../../../../migrations/postgres/0011_outages.sql"),
    include_str!("../../../../migrations/postgres/0012_groups.sql"),
    include_str!("../../../../migrations/postgres/0013_incarnation.sql"),
    include_str!("../../../../migrations/postgres/0014_believed.sql"),
    include_str!("../../../../migrations/postgres/0015_trace_parts.sql"),
    "UPDATE bench_schema SET version = 16;",
    include_str!("../../../../migrations/postgres/0017_roles.sql"),
    include_str!("../../../../migrations/postgres/0018_whole_sums.sql"),
    include_str!("../../../../migrations/postgres/0019_unmeasured.sql"),
    include_str!("../../../../migrations/postgres/0020_filled_banks.sql"),
    include_str!("../../../../migrations/postgres/0021_looks.sql"),
    include_str!("../../../../migrations/postgres/0022_store_numbers.sql"),
    "UPDATE bench_schema SET version = 23;",
];

/// What every statement runs under. A client that is gone or frozen loses its locks within seconds: others wait for them, on the
/// connections over which they give their signs of life.
///
/// A plan is made once for a connection, not for each of many small transactions, where planning took more time than the
/// work. So it must be good for ten tasks and for a million: every row of a batch is looked up by an index. All rows of a run
/// have the same `run_no`, so a hash or a merge on it compares every row of a batch with every row of the run, and a
/// scan reads all runs; the planner believes both to be cheap while tables are small.
const SETTINGS: [(&str, &str); 13] = [
    ("statement_timeout", "60000"),
    ("idle_in_transaction_session_timeout", "5000"),
    ("tcp_user_timeout", "10000"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("default_transaction_isolation", "read committed"),
    ("plan_cache_mode", "force_generic_plan"),
    ("random_page_cost", "1.1"),
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// The settings of a session hold for its transactions.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// The same for one transaction, in one message: behind a pooler the next transaction may meet another server.
const BEGIN_POOLED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 60000; \
    SET LOCAL idle_in_transaction_session_timeout = 5000; SET LOCAL random_page_cost = 1.1; SET LOCAL jit = off; \
    SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// A database on a server.
struct Postgres {
    pool: Arc<Pool>,
}

/// Opens the store behind a URL with at most so many connections; its schema must be there ([`migrate`]).
///
/// # Errors
/// [`StoreError::Open`] with what to do, [`StoreError::Schema`] when the schema is missing or does not fit.
pub async fn open(url: &str, connections: usize) -> StoreResult<Arc<dyn Store>> {
    let Reached { place, options, pooled, mut conn, .. } = reach(url).await?;
    let found = version(&mut conn).await.map_err(|e| errors::on_open(&place, &e))?;
    schema::must_fit(found)?;
    let pool = Arc::new(Pool::new(place, options, pooled, conn, connections));
    Ok(Arc::new(SqlStore::new(Postgres { pool })))
}

/// Brings the schema behind a URL up to date, and the grants of its [roles] when it has any, in one transaction; returns its version.
/// A newer schema and its grants are left as they are. Many may do so at once.
///
/// # Errors
/// Like [`open`]; [`StoreError::Open`] too when the role may not make tables.
pub async fn migrate(url: &str) -> StoreResult<i64> {
    let Reached { place, encoding, mut conn, .. } = reach(url).await?;
    if encoding != "UTF8" {
        let name = place.database();
        return Err(StoreError::Open(format!(
            "cannot use the store {place}: its encoding is {encoding}; make it with createdb -E UTF8 -T template0 {name}"
        ).into()));
    }
    let failed = |e: sqlx::Error| errors::on_open(&place, &e);
    roles::begin(&mut conn).await.map_err(failed)?;
    let found = version(&mut conn).await.map_err(failed)?;
    if found.version >= schema::VERSION {
        schema::must_fit(found)?; // dropping the connection ends the transaction
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found.version).unwrap_or(0)) {
        sqlx::raw_sql(AssertSqlSafe(*migration)).execute(&mut conn).await.map_err(failed)?;
    }
    if found.version > schema::VERSION {
        // who goes back to this build still has processes of the newer one, which need what it has granted
        tracing::warn!(
            store = %place,
            code = "newer_schema",
            "the schema of the store is {}, this build knows {}: what the newer build has granted its roles is left as it is",
            found.version,
            schema::VERSION
        );
    } else {
        roles::refresh(&place, &mut conn).await?;
    }
    sqlx::raw_sql("COMMIT").execute(&mut conn).await.map_err(failed)?;
    Ok(found.version.max(schema::VERSION))
}

/// The way to the server of a URL; `None` for a socket of this machine, and for what is no such URL.
pub(crate) fn transport(url: &str) -> Option<Transport> {
    let Wanted { place, options, .. } = place::parse(url).ok()?;
    let (encrypted, verified) = match options.get_ssl_mode() {
        // the server decides
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => (false, false),
        PgSslMode::Require | PgSslMode::VerifyCa => (true, false),
        PgSslMode::VerifyFull => (true, true),
    };
    Some(Transport { host: place.remote_host()?.to_ascii_lowercase(), encrypted, verified })
}

/// A first connection, and what it found out.
struct Reached {
    place: Destination,
    options: PgConnectOptions,
    pooled: bool,
    encoding: String,
    conn: PgConnection,
}

/// Connects, and finds out whether a pooler is in between: it refuses start-up options, or drops them.
async fn reach(url: &str) -> StoreResult<Reached> {
    let Wanted { place, options, pooled, unread } = place::parse(url)?;
    if let Some(unread) = unread {
        // a process that migrates connects twice
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            tracing::warn!(
                store = %place,
                "the store's URL has what nobody reads: {unread}; leave it out, and write & in a password as %26"
            );
        });
    }
    let options = options.application_name("bench-coord").disable_statement_logging();
    let plain = options.clone().extra_float_digits(None).statement_cache_capacity(0);
    if !pooled {
        let direct = options.statement_cache_capacity(256).options(SETTINGS);
        match connect(&place, &direct).await {
            Ok(mut conn) => {
                let (encoding, limit) = look(&mut conn).await.map_err(|e| errors::on_open(&place, &e))?;
                if limit == LONGEST {
                    return Ok(Reached { place, options: direct, pooled: false, encoding, conn });
                }
            }
            Err(Failed::Options) => {}
            Err(Failed::Other(error)) => return Err(error),
        }
        tracing::info!(store = %place, "a pooler is in front of the store: statements are not kept prepared");
    }
    let mut conn = connect(&place, &plain).await.map_err(|failed| match failed {
        Failed::Other(error) => error,
        Failed::Options => StoreError::Open(format!("cannot open the store {place}: it refuses its parameters").into()),
    })?;
    let (encoding, _) = look(&mut conn).await.map_err(|e| errors::on_open(&place, &e))?;
    Ok(Reached { place, options: plain, pooled: true, encoding, conn })
}

enum Failed {
    /// The other end does not take start-up options.
    Options,
    Other(StoreError),
}

async fn connect(place: &Destination, options: &PgConnectOptions) -> Result<PgConnection, Failed> {
    match timeout(CONNECT, options.connect()).await {
        Ok(Ok(conn)) => Ok(conn),
        Ok(Err(sqlx::Error::Database(error))) if error.message().contains("unsupported startup parameter") => {
            Err(Failed::Options)
        }
        Ok(Err(error)) => Err(Failed::Other(errors::on_open(place, &error))),
        Err(_) => {
            let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(Failed::Other(errors::on_open(place, &sqlx::Error::Io(late))))
        }
    }
}

/// Encoding of the database and longest statement of this session. Unprepared, because the mode is not known yet.
async fn look(conn: &mut PgConnection) -> Result<(String, Duration), sqlx::Error> {
    let sql =
        "SELECT current_setting('server_encoding'), setting::int8 FROM pg_settings WHERE name = 'statement_timeout'";
    let row = sqlx::raw_sql(sql).fetch_one(conn).await?;
    let limit: i64 = row.try_get(1)?;
    Ok((row.try_get(0)?, Duration::from_millis(u64::try_from(limit).unwrap_or(0))))
}

/// The schema row; zeros when there is none.
async fn version(conn: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let there = sqlx::raw_sql("SELECT to_regclass('bench_schema') IS NOT NULL").fetch_one(&mut *conn).await?;
    if !there.try_get::<bool, _>(0)? {
        return Ok(Found { version: 0, min_reader: 0, min_writer: 0 });
    }
    let row = sqlx::raw_sql("SELECT version, min_reader, min_writer FROM bench_schema").fetch_one(conn).await?;
    Ok(Found { version: row.try_get(0)?, min_reader: row.try_get(1)?, min_writer: row.try_get(2)? })
}

/// Does work on a connection, between `begin` and a commit if there is one.
async fn work_on<T, W>(pool: &Pool, begin: Option<&'static str>, work: W) -> StoreResult<T>
where
    W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send,
{
    let mut taken = pool.take().await?;
    let mut link = taken.link();
    let outcome = match begin {
        None => work(&mut link).await,
        Some(begin) => within(&mut link, begin, work).await,
    };
    let clean = match (&outcome, link.state) {
        (_, State::Lost) => {
            pool.forget();
            false
        }
        (Err(_), _) if begin.is_some() => link.raw("ROLLBACK").await.is_ok(),
        _ => true,
    };
    if clean {
        taken.rest();
    }
    outcome
}

async fn within<T, W>(link: &mut PostgresConn<'_>, begin: &'static str, work: W) -> StoreResult<T>
where
    W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send,
{
    link.raw(begin).await?;
    let value = work(link).await?;
    if link.state != State::Sound {
        // committing a transaction in which a statement failed rolls it back without an error
        return Err(StoreError::Unavailable("a statement failed and nobody noticed".into()));
    }
    link.commit().await?;
    Ok(value)
}

impl Postgres {
    /// Does work in a task of its own, which goes on when the caller goes away.
    async fn outlive<T, W>(&self, begin: Option<&'static str>, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        let pool = self.pool.clone();
        match tokio::spawn(async move { work_on(&pool, begin, work).await }.in_current_span()).await {
            Ok(outcome) => outcome,
            Err(ended) if ended.is_panic() => {
                Err(StoreError::BadData("the store met a bug while writing; the log has the details".to_owned()))
            }
            Err(_) => Err(StoreError::Unavailable("the process is ending".into())),
        }
    }
}

impl Backend for Postgres {
    async fn write<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        let begin = if self.pool.pooled { BEGIN_POOLED } else { BEGIN };
        self.outlive(Some(begin), work).await
    }

    async fn change<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        self.outlive(self.pool.pooled.then_some(BEGIN_POOLED), work).await
    }

    async fn read<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        work_on(&self.pool, self.pool.pooled.then_some(BEGIN_POOLED), work).await
    }

    fn describe(&self) -> String {
        self.pool.place.to_string()
    }

    async fn product(&self) -> StoreResult<String> {
        static VERSION: Sql = Sql::new(|| "SELECT current_setting('server_version')".to_owned());
        let mut rows = self.read(|conn| conn.fetch(&VERSION, args![])).await?;
        let version = rows.first_mut().map_or_else(|| Ok(String::new()), |row| row.text(0))?;
        let pooler = if self.pool.pooled { " through a pooler" } else { "" };
        Ok(format!("PostgreSQL {version} at {}{pooler}", self.pool.place))
    }

    fn interruptions(&self) -> u64 {
        self.pool.interruptions()
    }

    async fn connection_room(&self) -> StoreResult<Option<ConnectionRoom>> {
        static ROOM: Sql = Sql::new(|| {
            "SELECT current_setting('max_connections')::int8, (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
                .to_owned()
        });
        let rows = self.read(|conn| conn.fetch(&ROOM, args![])).await?;
        rows.first().map(|row| Ok(ConnectionRoom { most: row.int(0)?, open: row.int(1)? })).transpose()
    }

    async fn may(&self, right: Right) -> StoreResult<()> {
        static MAY: Sql =
            Sql::new(|| "SELECT CASE WHEN has_table_privilege($1, $2) THEN 1::int8 ELSE 0::int8 END".to_owned());
        let (table, privilege, what) = match right {
            Right::Results => ("facts", "INSERT", "results may not be changed"),
            Right::Work => ("calls", "INSERT", "runs may not be worked on"),
            Right::Lead => ("leaders", "INSERT", "runs may not be looked after"),
            Right::Delete => (
                "runs",
                "DELETE",
                "runs may not be deleted but by the owner of the store, with the URL that `migrate` has",
            ),
        };
        let rows = self.read(move |conn| conn.fetch(&MAY, args![table, privilege])).await?;
        match rows.first().map(|row| row.int(0)).transpose()? {
            Some(1) => Ok(()),
            _ => Err(StoreError::Denied(format!("permission denied, {what}"))),
        }
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
