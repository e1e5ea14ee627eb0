//! Runs that are deleted: everything of them goes in one transaction. What days have cost stays, and so do dataset items, which `gc`
//! drops when no other run has them. Numbers of runs and banks are never given again. No cap is lifted: that of their group gets lower
//! by what they have cost, and what nobody knows the cost of stays with its day.

use bench_proto::ids::RunNo;

use super::{
    Conn, Sql, args,
    codes::{PHASE, USAGE},
    groups, missing_run,
    money::{lock_all, lose_all},
    runs::lower_usage_cap,
};
use crate::{RunState, StoreError, StoreResult};

fn of_run(table: &str) -> String {
    format!("DELETE FROM {table} WHERE run_no = $1")
}

/// Rows of a run that only those need who work on it: by far the most.
static ROWS: [Sql; 12] = [
    Sql::new(|| of_run("trace_parts")),
    Sql::new(|| of_run("unsent_traces")),
    Sql::new(|| of_run("latencies")),
    Sql::new(|| of_run("attempts")),
    Sql::new(|| of_run("summaries")),
    Sql::new(|| of_run("facts")),
    Sql::new(|| of_run("texts")),
    Sql::new(|| of_run("checkpoints")),
    Sql::new(|| of_run("tasks")),
    Sql::new(|| of_run("banks")),
    Sql::new(|| of_run("calls")),
    Sql::new(|| of_run("run_events")),
];

/// The last ones, which others read too: what of them counts against a cap is booked before.
static LAST_ROWS: [Sql; 3] =
    [Sql::new(|| of_run("reservations")), Sql::new(|| of_run("run_counters")), Sql::new(|| of_run("runs"))];

/// Why nothing is deleted after all.
pub(super) const CHANGED: &str = "a run was resumed or changed while it was deleted";

/// Deletes runs; false, and nothing is deleted, when one of them is running.
///
/// # Errors
/// [`CHANGED`] when one of them did not stay as it was meanwhile; what the database meets.
pub(super) async fn delete(conn: &mut dyn Conn, runs: &[RunNo]) -> StoreResult<bool> {
    static STATE: Sql = Sql::new(|| "SELECT state, state_version FROM runs WHERE run_no = $1".to_owned());
    // days are of all runs
    static OF_RUN: Sql = Sql::new(|| format!("DELETE FROM budgets WHERE kind IN ({PHASE}, {USAGE}) AND scope = $1"));
    static GROUPS: Sql = Sql::new(|| {
        "DELETE FROM run_groups WHERE NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.group_no = run_groups.group_no)"
            .to_owned()
    });
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    runs.dedup();
    let mut versions = Vec::with_capacity(runs.len());
    for run in &runs {
        let mut rows = conn.fetch(&STATE, args![run.0]).await?;
        let row = rows.first_mut().ok_or_else(|| missing_run(*run))?;
        if RunState::from_name(&row.text(0)?) == Some(RunState::Running) {
            return Ok(false);
        }
        versions.push(row.int(1)?);
    }
    // takes its time, so before the rows are locked that others wait for: of their group, of the day, of runs that claims name
    for run in &runs {
        for rows in &ROWS {
            conn.execute(rows, args![run.0]).await?;
        }
    }
    // in the order in which everybody locks them
    for run in &runs {
        lock_all(conn, *run).await?;
    }
    for run in &runs {
        groups::lock_of(conn, *run).await?;
    }
    for (run, version) in runs.iter().zip(versions) {
        let rows = conn.fetch_locked(&STATE, args![run.0]).await?;
        if rows.first().ok_or_else(|| missing_run(*run))?.int(1)? != version {
            // an error takes back what was deleted
            return Err(StoreError::Unavailable(CHANGED.into()));
        }
    }
    for run in &runs {
        lose_all(conn, *run).await?;
        groups::lower_cap(conn, *run).await?;
        lower_usage_cap(conn, *run).await?;
    }
    for run in &runs {
        conn.execute(&OF_RUN, args![run.0]).await?;
        for rows in &LAST_ROWS {
            conn.execute(rows, args![run.0]).await?;
        }
    }
    conn.execute(&GROUPS, args![]).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sqlx::{ConnectOptions as _, sqlite::SqliteConnectOptions};

    use super::*;
    use crate::sql::Dialect;

    /// A table that a later version adds must not keep rows of a run that is gone.
    #[tokio::test]
    async fn every_table_of_a_run_is_emptied() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bench.db");
        let store = crate::open(&format!("sqlite:{}", file.display())).await.expect("opens");
        let mut looking = SqliteConnectOptions::new().filename(&file).connect().await.expect("opens");
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT t.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c \
             WHERE t.type = 'table' AND c.name = 'run_no'",
        )
        .fetch_all(&mut looking)
        .await
        .expect("are listed");
        let emptied = ROWS.iter().chain(&LAST_ROWS).map(|rows| rows.expanded(Dialect::Sqlite).text.clone());
        let expected: BTreeSet<String> =
            tables.iter().map(|table| format!("DELETE FROM {table} WHERE run_no = $1")).collect();
        assert_eq!(emptied.collect::<BTreeSet<_>>(), expected);
        store.close().await;
    }
}
