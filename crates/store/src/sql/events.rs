//! The events of runs, as a part of the transaction of what happened.

use bench_proto::ids::RunNo;

use super::{Conn, Sql, args};
use crate::{StoreResult, codec::escape};

/// Adds a run event inside a transaction.
pub(super) async fn note_event(conn: &mut dyn Conn, run: RunNo, kind: &str, message: &str) -> StoreResult<()> {
    static ADD: Sql =
        Sql::new(|| "INSERT INTO run_events (run_no, at_us, kind, message) VALUES ($1, @now, $2, $3)".to_owned());
    conn.execute(&ADD, args![run.0, escape(kind), escape(message)]).await.map(drop)
}
