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
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use uuid::Uuid;

pub use self::backup::{Copied, back_up};
use self::{conn::SqliteConn, writer::Writer};
use crate::{
    Access, Store, StoreError, StoreResult, schema,
    sql::{Backend, Conn, SqlStore, check_schema},
};

/// URL scheme.
pub const SCHEME: &str = "sqlite";
/// OpenTelemetry's name of it.
const SYSTEM: &str = "sqlite";

/// Longest wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const READERS: u32 = 3;
/// The table by which a store is known.
const SCHEMA_TABLE: &str = "bench_schema";
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
    include_str!("../../../../migrations/sqlite/0020_filled_banks.sql"),
    include_str!("../../../../migrations/sqlite/0021_looks.sql"),
    include_str!("../../../../migrations/sqlite/0022_store_numbers.sql"),
    include_str!("../../../../migrations/sqlite/0023_whole_counts.sql"),
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
    open_for(url, Access::Make).await
}

/// Opens the store behind `sqlite:<path>` for what is said. A file that is missing and not to be made is a store without runs, in
/// memory alone.
///
/// # Errors
/// As [`open`].
pub(crate) async fn open_for(url: &str, access: Access) -> StoreResult<Arc<dyn Store>> {
    let path = path_of(url)?;
    let probed = match access {
        Access::Make => prepare_place(&path, access)?,
        Access::Change | Access::Read if is_missing(&path)? => {
            // shared by the connections of this process, gone with the last of them
            let nowhere = "sqlite::memory:".parse().map_err(|e| errors::on_open(&path, &e))?;
            return begin(nowhere, path).await;
        }
        Access::Change => prepare_place(&path, access)?,
        Access::Read => match prepare_place(&path, access) {
            Ok(probed) => probed,
            Err(refusal) => return if path.is_dir() { Err(refusal) } else { only_read(path).await },
        },
    };
    is_a_store(&path).await?;
    // a file of something else keeps its mode
    #[cfg(unix)]
    if access != Access::Read {
        keep_to_its_owner(&path, &probed);
    }
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    begin(options.journal_mode(SqliteJournalMode::Wal), path).await
}

/// Whether there is no store yet: no file, or the empty one of somebody who is about to make it.
fn is_missing(path: &Path) -> StoreResult<bool> {
    match path.metadata() {
        Ok(file) => Ok(file.is_file() && file.len() == 0 && log_of(path).symlink_metadata().is_err()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(true),
        Err(error) => Err(refuse(
            path,
            format!(
                "it cannot be looked at: {error}; name one that can with --store sqlite:PATH, or another home with BENCH_HOME"
            ),
        )
        .because(&error)),
    }
}

/// The write-ahead log of a store.
fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// A file that SQLite keeps beside a store, or without an ending the store itself: where the path is a link, what it leads to.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.canonicalize().unwrap_or_else(|_| path.to_owned()).into_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// Refuses a file of something else before anything of it is changed.
async fn is_a_store(path: &Path) -> StoreResult<()> {
    if !path.metadata().is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    let looking = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT).disable_statement_logging();
    let mut conn = looking.connect().await.map_err(|e| errors::on_open(path, &e))?;
    let found = tables(&mut conn, path).await;
    close_quietly(conn).await;
    let tables = found?;
    match tables.first() {
        Some(table) if !tables.iter().any(|name| name == SCHEMA_TABLE) => Err(of_something_else(path, table)),
        _ => Ok(()),
    }
}

async fn tables(conn: &mut SqliteConnection, path: &Path) -> StoreResult<Vec<String>> {
    sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        .fetch_all(conn)
        .await
        .map_err(|e| errors::on_open(path, &e))
}

fn of_something_else(path: &Path, table: &str) -> StoreError {
    refuse(path, format!("it is a SQLite file of something else (it has the table '{table}'); name another file"))
}

fn refuse(path: &Path, why: String) -> StoreError {
    StoreError::Open(format!("cannot use the store {}: {why}", path.display()).into())
}

/// A store that can only be read: another's file, a folder without a right to write, a medium. Nothing is put beside it.
async fn only_read(path: PathBuf) -> StoreResult<Arc<dyn Store>> {
    let options = reading_only(&path);
    let conn = options.connect().await.map_err(|e| errors::on_open(&path, &e))?;
    with_readers(conn, options, path).await
}

/// How such a store is opened.
fn reading_only(path: &Path) -> SqliteConnectOptions {
    let has_log = log_of(path).metadata().is_ok_and(|log| log.len() > 0);
    // without a log nobody writes, and reading needs no files beside it
    let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(!has_log);
    options.busy_timeout(BUSY_TIMEOUT).disable_statement_logging()
}

/// Brings the schema up to date, and begins to work.
async fn begin(options: SqliteConnectOptions, path: PathBuf) -> StoreResult<Arc<dyn Store>> {
    let options = options
        .page_size(8192)
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
    with_readers(writing, options, path).await
}

/// The store over the connection that writes.
async fn with_readers(
    mut writing: SqliteConnection,
    options: SqliteConnectOptions,
    path: PathBuf,
) -> StoreResult<Arc<dyn Store>> {
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
        return Err(StoreError::Open(
            format!("'{url}' names no file: write sqlite:<path>, for example sqlite:.bench/bench.db").into(),
        ));
    }
    if path == ":memory:" || path.contains("mode=memory") {
        return Err(StoreError::Open(format!(
            "'{url}' cannot be used: the store must survive its process, so that a run can be resumed; give a file, for example \
             sqlite:.bench/bench.db"
        ).into()));
    }
    Ok(PathBuf::from(path))
}

/// Makes the parent folder and finds out whether the file and its folder can be written: SQLite itself would only say so
/// in the middle of the work. Out comes what is known of a file that was made there.
fn prepare_place(path: &Path, access: Access) -> StoreResult<std::fs::Metadata> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let refused = |what: String, error: std::io::Error| {
        refuse(path, format!("{what}: {error}; {}", instead(access))).because(&error)
    };
    let place = folder.display();
    folder_options().create(folder).map_err(|e| refused(format!("the folder {place} cannot be made"), e))?;
    if path.is_dir() {
        return Err(refuse(path, "it is a folder, name a file in it".to_owned()));
    }
    // whatever the umask says; the files that SQLite puts beside it take its mode
    private(std::fs::OpenOptions::new().append(true).create(true))
        .open(path)
        .map_err(|e| refused("the file cannot be written".to_owned(), e))?;
    // the write-ahead log is a second file beside it; nobody knows the name before, or has it at the same time, and nothing is written
    // through a link
    let probe = folder.join(format!(".bench-probe-{}", Uuid::new_v4().simple()));
    let probed = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&probe)
        .and_then(|made| made.metadata())
        .map_err(|e| refused(format!("the folder {place} cannot be written"), e))?;
    match std::fs::remove_file(&probe) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(refused(format!("a file in {place} cannot be removed"), error))
        }
        Ok(()) | Err(_) => Ok(probed),
    }
}

/// What to do where a place cannot be written: what begins can begin elsewhere, what is there is elsewhere as a copy alone.
const fn instead(access: Access) -> &'static str {
    match access {
        Access::Make => "name another file with --store sqlite:PATH, or another home with BENCH_HOME",
        Access::Change | Access::Read => {
            "ask for the right to write there, or name a copy of the store with --store sqlite:PATH"
        }
    }
}

/// Takes the right to read the files of a store from others, where an earlier release, which made them for everybody, has left it.
/// Files of somebody else stay as they are: whose `own` is, who works here is.
#[cfg(unix)]
fn keep_to_its_owner(path: &Path, own: &std::fs::Metadata) {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    for file in ["", "-wal", "-shm"].map(|ending| beside(path, ending)) {
        // who may write in the folder names no other file of ours by a link
        let Ok(found) = file.symlink_metadata() else { continue };
        if found.is_file() && found.uid() == own.uid() && found.mode() & 0o077 != 0 {
            // a medium that has no modes is no reason not to work
            let _ = std::fs::set_permissions(&file, std::fs::Permissions::from_mode(found.mode() & 0o700));
        }
    }
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
        let tables = tables(&mut *conn, path).await?;
        let version: i64 = if tables.iter().any(|name| name == SCHEMA_TABLE) {
            sqlx::query_scalar("SELECT version FROM bench_schema")
                .fetch_one(&mut *conn)
                .await
                .map_err(|e| errors::store_error(&e))?
        } else if let Some(table) = tables.first() {
            return Err(of_something_else(path, table));
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
