//! Summaries of result versions (P36).

use bench_proto::ids::RunNo;

use super::{Conn, Row, Sql, args};
use crate::{
    StoreError, StoreResult,
    codec::{compress, decompress},
};

/// Stores a summary unless one is there; returns the one that is stored.
pub(super) async fn put(conn: &mut dyn Conn, run: RunNo, version: i64, summary: String) -> StoreResult<String> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO summaries (run_no, result_version, body) VALUES ($1, $2, $3) ON CONFLICT (run_no, result_version) DO NOTHING"
            .to_owned()
    });
    static SELECT: Sql = Sql::new(|| "SELECT body FROM summaries WHERE run_no = $1 AND result_version = $2".to_owned());
    if conn.execute(&INSERT, args![run.0, version, compress(summary.as_bytes())?]).await? > 0 {
        return Ok(summary);
    }
    let mut rows = conn.fetch(&SELECT, args![run.0, version]).await?;
    let row = rows.first_mut().ok_or_else(|| StoreError::Missing(format!("the summary of run number {}", run.0)))?;
    text(row, run)
}

/// The summary of a run's current result version.
pub(super) async fn current(conn: &mut dyn Conn, run: RunNo) -> StoreResult<Option<String>> {
    static SELECT: Sql = Sql::new(|| {
        "SELECT s.body FROM summaries s JOIN runs r ON r.run_no = s.run_no AND r.result_version = s.result_version WHERE s.run_no = $1".to_owned()
    });
    let mut rows = conn.fetch(&SELECT, args![run.0]).await?;
    rows.first_mut().map(|row| text(row, run)).transpose()
}

fn text(row: &mut Row, run: RunNo) -> StoreResult<String> {
    let what = format!("the summary of run number {}", run.0);
    let plain = decompress(&row.blob(0)?, &what)?;
    String::from_utf8(plain).map_err(|e| StoreError::Corrupt(format!("{what} is no text: {e}").into()))
}
