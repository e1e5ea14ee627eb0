//! Statements over a SQLite connection: binding batches, reading rows.

use std::{
    fmt::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use sqlx::{
    Arguments as _, Decode, Sqlite, SqliteConnection,
    error::BoxDynError,
    sqlite::{SqliteArguments, SqliteValueRef},
};

use super::{SYSTEM, errors};
use crate::{
    StoreError, StoreResult, slow,
    sql::{Arg, Args, Batch, Cell, Column, Conn, Dialect, Row, Sql},
};

/// A connection in use.
pub(super) struct SqliteConn<'c>(pub(super) &'c mut SqliteConnection);

#[async_trait]
impl Conn for SqliteConn<'_> {
    async fn fetch(&mut self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>> {
        let (text, arguments) = bind(sql, args)?;
        let asked = sqlx::query_with(text, arguments).fetch_all(&mut *self.0);
        let rows = slow::told(SYSTEM, text, asked).await.map_err(|e| errors::store_error(&e))?;
        rows.iter().map(|row| Row::read(row, cell)).collect()
    }

    async fn execute(&mut self, sql: &'static Sql, args: Args) -> StoreResult<u64> {
        let (text, arguments) = bind(sql, args)?;
        let asked = sqlx::query_with(text, arguments).execute(&mut *self.0);
        let done = slow::told(SYSTEM, text, asked).await.map_err(|e| errors::store_error(&e))?;
        Ok(done.rows_affected())
    }

    async fn lock(&mut self, _: &'static Sql, _: Args) -> StoreResult<()> {
        Ok(()) // BEGIN IMMEDIATE holds the whole file
    }

    async fn fetch_locked(&mut self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>> {
        self.fetch(sql, args).await
    }

    async fn at_last(&mut self, sql: &'static Sql, args: Args) -> StoreResult<()> {
        self.execute(sql, args).await.map(drop)
    }
}

fn bind(sql: &'static Sql, args: Args) -> StoreResult<(&'static str, SqliteArguments)> {
    let expanded = sql.expanded(Dialect::Sqlite);
    let refuse = |e: BoxDynError| StoreError::BadData(e.to_string());
    let mut arguments = SqliteArguments::default();
    for arg in args {
        match arg {
            Arg::Int(value) => arguments.add(value),
            Arg::Real(value) => arguments.add(value),
            Arg::Text(value) => arguments.add(value),
            Arg::Blob(value) => arguments.add(value),
            Arg::Rows(batch) => {
                let (json, bytes) = encode(&batch);
                let bound = arguments.add(json);
                match bytes {
                    Some(bytes) => bound.and_then(|()| arguments.add(bytes)),
                    None => bound,
                }
            }
        }
        .map_err(refuse)?;
    }
    if expanded.binds_now {
        arguments.add(now_us()).map_err(refuse)?;
    }
    Ok((expanded.text.as_str(), arguments))
}

/// The store's clock: that of the machine, which all users of the file share.
fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// A batch as JSON rows, with all bytes in one blob that the rows point into (place from 1, length).
fn encode(batch: &Batch) -> (String, Option<Vec<u8>>) {
    let rows = batch.len();
    let has_bytes = batch.columns.iter().any(|column| !matches!(column, Column::Int(_)));
    let flat = batch.columns.len() == 1 && !has_bytes;
    let mut json = String::with_capacity(2 + rows * batch.columns.len() * 12);
    let mut bytes = Vec::new();
    json.push('[');
    for row in 0..rows {
        if row > 0 {
            json.push(',');
        }
        if !flat {
            json.push('[');
        }
        for (at, column) in batch.columns.iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            match column {
                Column::Int(values) => write!(json, "{}", values[row]).expect("writing to a string cannot fail"),
                Column::Text(values) => push_bytes(&mut json, &mut bytes, values[row].as_ref().map(String::as_bytes)),
                Column::Blob(values) => push_bytes(&mut json, &mut bytes, Some(&values[row])),
            }
        }
        if !flat {
            json.push(']');
        }
    }
    json.push(']');
    (json, has_bytes.then_some(bytes))
}

fn push_bytes(json: &mut String, all: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            write!(json, "{},{}", all.len() + 1, value.len()).expect("writing to a string cannot fail");
            all.extend_from_slice(value);
        }
        None => json.push_str("null,null"),
    }
}

fn cell(kind: &str, value: SqliteValueRef<'_>) -> Result<Option<Cell>, BoxDynError> {
    Ok(Some(match kind {
        "INTEGER" => Cell::Int(Decode::<Sqlite>::decode(value)?),
        "REAL" => Cell::Real(Decode::<Sqlite>::decode(value)?),
        "TEXT" => Cell::Text(Decode::<Sqlite>::decode(value)?),
        "BLOB" => Cell::Blob(Decode::<Sqlite>::decode(value)?),
        _ => return Ok(None),
    }))
}
