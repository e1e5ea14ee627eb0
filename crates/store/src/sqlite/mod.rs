//! SQLite: one file, one writer (P21).
//!
//! WAL with `synchronous = FULL`: a commit that was answered survives a power cut. All writes of a process go through one
//! task (`writer`) that owns the only writing connection; readers have their own and never wait for it. Other processes
//! may use the same file; they wait for each other at most 5 s.

mod backup;
mod conn;
mod errors;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

pub use self::backup::{Copied, back_up};
use self::{conn::SqliteConn, writer::Writer};
use crate::{
    Store, StoreError, StoreResult, schema,
    sql::{Backend, Conn, SqlStore, check_schema},
};

/// URL scheme.
pub const SCHEME: &str = "sqlite";
/// OpenTelemetry's name of it.
const SYSTEM: &str = "sqlite";

/// Longest wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const READERS: u32 = 3;
const MIGRATIONS: schema::Migrations = &[
    include_str!("../../../../migrations/sqlite/0001_init.sql"),
    include_str!("../../../../migrations/sqlite/0002_cluster.sql"),
    include_str!("../../../../migrations/sqlite/0003_money.sql"),
    include_str!("../../../../migrations/sqlite/0004_calls.sql"),
    include_str!("../../../../migrations/sqlite/0005_systems.sql"),
    "UPDATE bench_schema SET version = 6;",
    include_str!("../../../../migrations/sqlite/0007_tracing.sql"),
    include_str!("../../../../migrations/sqlite/0008_limits.sql"),
    include_str!("../../../../migrations/sqlite/0009_unsent_traces.sql"),
    include_str!("../../../../migrations/sqlite/0010_waiting.sql"),
    include_str!("../../../../migrations/sqlite/0011_outages.sql"),
    include_str!("../../../../migrations/sqlite/0012_groups.sql"),
    include_str!("../../../../migrations/sqlite/0013_incarnation.sql"),
    include_str!("../../../../migrations/sqlite/0014_believed.sql"),
    include_str!("../../../../migrations/sqlite/0015_trace_parts.sql"),
    "UPDATE bench_schema SET version = 16;",
    include_str!("../../../../migrations/sqlite/0017_roles.sql"),
    include_str!("../../../../migrations/sqlite/0018_whole_sums.sql"),
    include_str!("../../../../migrations/sqlite/0019_unmeasured.sql"),
];

/// The store in one file.
struct Sqlite {
    path: PathBuf,
    writer: Writer,
    readers: SqlitePool,
}

/// Opens (and makes) the store behind `sqlite:<path>`, with its schema up to date.
///
/// # Errors
/// [`StoreError::Open`] when the path cannot be used, [`StoreError::Schema`] when a newer build made it.
pub async fn open(url: &str) -> StoreResult<Arc<dyn Store>> {
    let path = path_of(url)?;
    prepare_place(&path)?;
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .page_size(8192)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(false)
        // half a million rows of tasks and checkpoints stay in memory; the file is written back every 32 MB
        .pragma("cache_size", "-65536")
        .pragma("wal_autocheckpoint", "4000")
        .pragma("journal_size_limit", "67108864")
        .row_buffer_size(1024)
        .disable_statement_logging();
    let mut writing = options.connect().await.map_err(|e| errors::on_open(&path, &e))?;
    bring_up_to_date(&mut writing, &path).await?;
    // several readers: each keeps little, the operating system caches the file for all of them
    let reading = options.pragma("query_only", "1").pragma("cache_size", "-8192");
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .connect_with(reading)
        .await
        .map_err(|e| errors::on_open(&path, &e))?;
    check_schema(&mut SqliteConn(&mut writing)).await?;
    Ok(Arc::new(SqlStore::new(Sqlite { path, writer: Writer::start(writing), readers })))
}

/// Brings the schema of a file up to date, as opening does; returns its version.
///
/// # Errors
/// Like [`open`].
pub async fn migrate(url: &str) -> StoreResult<i64> {
    open(url).await?.close().await;
    Ok(schema::VERSION)
}

/// The file that a URL names.
fn path_of(url: &str) -> StoreResult<PathBuf> {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() || path.ends_with('/') {
        return Err(StoreError::Open(format!(
            "'{url}' names no file: write sqlite:<path>, for example sqlite:.bench/bench.db"
        )));
    }
    if path == ":memory:" || path.contains("mode=memory") {
        return Err(StoreError::Open(format!(
            "'{url}' cannot be used: the store must survive its process, so that a run can be resumed; give a file, for example \
             sqlite:.bench/bench.db"
        )));
    }
    Ok(PathBuf::from(path))
}

/// Makes the parent folder and finds out whether the file and its folder can be written: SQLite itself would only say so
/// in the middle of the work.
fn prepare_place(path: &Path) -> StoreResult<()> {
    let refuse = |what: &Path, why: String| StoreError::Open(format!("cannot use the store {}: {why}", what.display()));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    folder_options()
        .create(folder)
        .map_err(|e| refuse(path, format!("the folder {} cannot be made: {e}", folder.display())))?;
    if path.is_dir() {
        return Err(refuse(path, "it is a folder, name a file in it".to_owned()));
    }
    // whatever the umask says; the files that SQLite puts beside it take its mode
    private(std::fs::OpenOptions::new().append(true).create(true))
        .open(path)
        .map_err(|e| refuse(path, format!("the file cannot be written: {e}")))?;
    // the write-ahead log is a second file beside it
    let probe = folder.join(format!(".bench-probe-{}", std::process::id()));
    std::fs::write(&probe, b"")
        .map_err(|e| refuse(path, format!("the folder {} cannot be written: {e}", folder.display())))?;
    std::fs::remove_file(&probe)
        .map_err(|e| refuse(path, format!("a file in {} cannot be removed: {e}", folder.display())))
}

/// Options for folders that are their owner's alone.
fn folder_options() -> std::fs::DirBuilder {
    let mut options = std::fs::DirBuilder::new();
    options.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut options, 0o700);
    options
}

/// Makes files that are created with these options their owner's alone.
fn private(options: &mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Runs the migrations that are missing, in one transaction.
async fn bring_up_to_date(conn: &mut SqliteConnection, path: &Path) -> StoreResult<()> {
    let run = |sql: &'static str| sqlx::raw_sql(sql);
    run("BEGIN IMMEDIATE").execute(&mut *conn).await.map_err(|e| errors::on_open(path, &e))?;
    let done = async {
        let tables: Vec<String> =
            sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                .fetch_all(&mut *conn)
                .await
                .map_err(|e| errors::on_open(path, &e))?;
        let version: i64 = if tables.iter().any(|name| name == "bench_schema") {
            sqlx::query_scalar("SELECT version FROM bench_schema")
                .fetch_one(&mut *conn)
                .await
                .map_err(|e| errors::store_error(&e))?
        } else if let Some(table) = tables.first() {
            let why = format!("it is a SQLite file of something else (it has the table '{table}'); name another file");
            return Err(StoreError::Open(format!("cannot use the store {}: {why}", path.display())));
        } else {
            0
        };
        for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            sqlx::raw_sql(AssertSqlSafe(*migration)).execute(&mut *conn).await.map_err(|e| errors::store_error(&e))?;
        }
        Ok(())
    }
    .await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = run(end).execute(&mut *conn).await.map_err(|e| errors::store_error(&e));
    done.and(ended.map(drop))?;
    // this connection reads the statistics that the migration has written
    run("ANALYZE sqlite_schema").execute(&mut *conn).await.map(drop).map_err(|e| errors::store_error(&e))
}

impl Backend for Sqlite {
    async fn write<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        self.writer.run(work).await
    }

    async fn change<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        self.writer.run(work).await
    }

    async fn read<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: for<'c> FnOnce(&'c mut dyn Conn) -> BoxFuture<'c, StoreResult<T>> + Send + 'static,
    {
        let mut conn = self.readers.acquire().await.map_err(|e| errors::store_error(&e))?;
        work(&mut SqliteConn(&mut conn)).await
    }

    fn describe(&self) -> String {
        format!("{SCHEME}:{}", self.path.display())
    }

    async fn product(&self) -> StoreResult<String> {
        let version: String = sqlx::query_scalar("SELECT sqlite_version()")
            .fetch_one(&self.readers)
            .await
            .map_err(|e| errors::store_error(&e))?;
        Ok(format!("SQLite {version} in {}", self.path.display()))
    }

    async fn close(&self) {
        // readers first: the writer brings the log back into the file, and the last connection to close removes it
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Closes a connection whose outcome does not matter any more.
async fn close_quietly(conn: SqliteConnection) {
    if let Err(error) = conn.close().await {
        tracing::debug!(%error, "the store's connection did not close cleanly");
    }
}
