//! A copy of a store that others may be writing.

use std::{
    fs::{File, OpenOptions},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use sqlx::{
    ConnectOptions as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

use super::{BUSY_TIMEOUT, close_quietly, conn::SqliteConn, errors, path_of, prepare_place, reading_only};
use crate::{Access, StoreError, StoreResult, sql::check_schema};

/// A copy that was made and read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Number of runs in the copy.
    pub runs: i64,
    /// Size of the copy.
    pub bytes: u64,
}

/// Copies the store behind `sqlite:<path>` to a new file that only its owner can read: everything that was committed when the
/// copy began, and nothing of what came later. Its readers and writers go on meanwhile, and it may be one that can only be read.
/// The file appears under its name when it is whole and has been read.
///
/// # Errors
/// [`StoreError::Open`] when there is no store, when the new file exists, or when it cannot be made; else what the store meets.
pub async fn back_up(url: &str, to: &Path) -> StoreResult<Copied> {
    let from = path_of(url)?;
    if !from.exists() {
        return Err(StoreError::Open(format!("there is no store {}", from.display()).into()));
    }
    if to.symlink_metadata().is_ok() {
        return Err(there_already(to));
    }
    let part = Part::new(to)?;
    let reading = match prepare_place(&from, Access::Read) {
        Ok(_) => SqliteConnectOptions::new().filename(&from).busy_timeout(BUSY_TIMEOUT).disable_statement_logging(),
        // another's file, a medium: as it is read, it is copied
        Err(_) => reading_only(&from),
    };
    let mut source = reading.connect().await.map_err(|e| errors::on_open(&from, &e))?;
    let name = part.path.to_str().ok_or_else(|| refused(to, "its name is no text"))?.to_owned();
    let copied = sqlx::query("VACUUM INTO ?").bind(name).execute(&mut source).await;
    close_quietly(source).await;
    copied.map_err(|e| errors::on_open(&from, &e))?;
    let runs = read(&part.path).await?;
    let bytes = part.keep(to)?;
    Ok(Copied { runs, bytes })
}

/// Opens a copy, reads all of it, and counts its runs.
async fn read(path: &Path) -> StoreResult<i64> {
    let options = SqliteConnectOptions::new().filename(path).journal_mode(SqliteJournalMode::Delete);
    let mut conn = options.disable_statement_logging().connect().await.map_err(|e| errors::on_open(path, &e))?;
    let found = looked_through(&mut conn).await;
    close_quietly(conn).await;
    found
}

async fn looked_through(conn: &mut SqliteConnection) -> StoreResult<i64> {
    check_schema(&mut SqliteConn(conn)).await?;
    let problem: String =
        sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut *conn).await.map_err(|e| errors::store_error(&e))?;
    if problem != "ok" {
        return Err(StoreError::Corrupt(format!("the copy is damaged, and so may be the store: {problem}").into()));
    }
    sqlx::query_scalar("SELECT count(*) FROM runs").fetch_one(conn).await.map_err(|e| errors::store_error(&e))
}

fn refused(file: &Path, why: impl std::fmt::Display) -> StoreError {
    StoreError::Open(format!("cannot write {}: {why}", file.display()).into())
}

fn there_already(file: &Path) -> StoreError {
    refused(file, "it exists already; name a new file")
}

/// A copy that is not whole yet; gone when nobody keeps it.
struct Part {
    path: PathBuf,
}

impl Part {
    fn new(to: &Path) -> StoreResult<Self> {
        let mut name = to.as_os_str().to_owned();
        name.push(format!(".part-{}", std::process::id()));
        let path = PathBuf::from(name);
        super::private(OpenOptions::new().write(true).create_new(true)).open(&path).map_err(|e| refused(&path, e))?;
        Ok(Self { path })
    }

    /// Gives the copy its name, unless a file has it by now; returns its size.
    fn keep(self, to: &Path) -> StoreResult<u64> {
        let flush = |path: &Path| File::open(path).and_then(|file| file.sync_all());
        let bytes = flush(&self.path).and_then(|()| self.path.metadata()).map_err(|e| refused(to, e))?.len();
        match std::fs::hard_link(&self.path, to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(there_already(to)),
            // no such links on this file system: somebody who makes the file at this very moment loses it
            Err(_) if to.symlink_metadata().is_err() => {
                std::fs::rename(&self.path, to).map_err(|e| refused(to, e))?;
            }
            linked => linked.map_err(|e| refused(to, e))?,
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // not every system can flush a folder
        let _ = flush(folder);
        Ok(bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
