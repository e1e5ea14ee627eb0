//! What a run has reached, read from the store's tables beside the processes under test.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, Row as _, postgres::PgConnectOptions};

/// A connection that only looks.
pub(crate) struct Ledger(PgConnection);

/// A run that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    /// From its row to its last state.
    pub(crate) seconds: f64,
    /// Questions that were scored or abstained.
    pub(crate) questions: f64,
}

impl Ledger {
    /// Connects.
    pub(crate) async fn open(store: &str) -> anyhow::Result<Self> {
        let options: PgConnectOptions = store.parse()?;
        Ok(Self(options.disable_statement_logging().connect().await?))
    }

    /// A number that a statement gives; 0 for nothing.
    pub(crate) async fn number(&mut self, sql: &str) -> anyhow::Result<f64> {
        let sql = format!("SELECT COALESCE(({sql}), 0)::float8");
        let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(&mut self.0).await?;
        Ok(row.try_get(0)?)
    }

    /// Waits for a leader and so many workers.
    pub(crate) async fn wait_for_fleet(&mut self, workers: usize) -> anyhow::Result<()> {
        let sql = "SELECT (SELECT count(*) FROM leaders WHERE holder <> '') * 1000 + \
            (SELECT count(*) FROM sessions WHERE domain = 'cluster' AND ended_us IS NULL)";
        while self.number(sql).await? < 1000.0 + workers as f64 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Waits until a run later than `after` has its first answer; returns when that was seen.
    pub(crate) async fn wait_for_first_answer(&mut self, after: i64) -> anyhow::Result<Instant> {
        let sql = format!("SELECT sum(answered) FROM run_counters WHERE run_no > {after}");
        while self.number(&sql).await? == 0.0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(Instant::now())
    }

    /// Number of the latest run; 0 before the first.
    pub(crate) async fn latest_run(&mut self) -> anyhow::Result<i64> {
        Ok(self.number("SELECT max(run_no) FROM runs").await? as i64)
    }

    /// The latest run, which must have finished with all questions.
    pub(crate) async fn finished(&mut self) -> anyhow::Result<Finished> {
        let run = self.latest_run().await?;
        let seconds =
            format!("SELECT (finished_us - created_us) / 1e6 FROM runs WHERE run_no = {run} AND state = 'finished'");
        let ended = format!("SELECT scored + abstained FROM run_counters WHERE run_no = {run}");
        let failed = format!("SELECT infra_error FROM run_counters WHERE run_no = {run}");
        let (seconds, questions) = (self.number(&seconds).await?, self.number(&ended).await?);
        let failed = self.number(&failed).await?;
        ensure!(
            seconds > 0.0 && failed == 0.0,
            "the run did not finish well: {seconds} s, {questions} ended, {failed} failed"
        );
        Ok(Finished { seconds, questions })
    }

    /// Rows of all tables of a run.
    pub(crate) async fn rows(&mut self) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let mut rows = Vec::new();
        for table in ["items", "banks", "tasks", "checkpoints", "texts", "calls", "facts"] {
            let count = self.number(&format!("SELECT count(*) FROM {table}")).await.context(table)?;
            rows.push((table, count));
        }
        Ok(rows)
    }
}
