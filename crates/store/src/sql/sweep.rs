//! The level-triggered sweep (P7): derives from tasks and checkpoints what the counters should say, repairs them, opens
//! what should be open, and finds questions that are complete.
//!
//! An ordinary sweep looks at the work in flight only: unfinished banks, ended but unconcluded questions, leases of dead
//! sessions. A full one also visits finished banks and recounts the run; it is made when this process meets the run for
//! the first time, and whenever nothing is open (so a counter that hides work can only delay it, never lose it).

use bench_proto::{
    ids::{RunNo, TaskKey, TaskKind},
    spec::RunSpec,
    task::TaskState,
};

use super::{
    CHUNK, Conn, JUDGE_OFFSET, Sql, args, banks, counters, missing_run, task_key,
    tasks::{Holder, lose_leases},
};
use crate::{CommitOutcome, StoreResult, codec::from_json};

/// Sweeps a run; `full` asks for a full one.
pub(super) async fn sweep(conn: &mut dyn Conn, run: RunNo, full: bool) -> StoreResult<CommitOutcome> {
    static SPEC: Sql = Sql::new(|| "SELECT spec FROM runs WHERE run_no = $1".to_owned());
    static OPEN: Sql = Sql::new(|| {
        format!(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM tasks WHERE run_no = $1 AND state = {}) OR EXISTS \
             (SELECT 1 FROM tasks WHERE run_no = $1 AND state = {})",
            TaskState::Ready.code(),
            TaskState::Leased.code()
        )
    });
    static UNFINISHED: Sql = Sql::new(|| {
        format!(
            "SELECT bank_no FROM banks WHERE run_no = $1 AND state <> {} AND ($2 = 1 OR state <> {} OR segment < last_segment \
             OR open_recalls <> 0) OR ($2 = 1 AND run_no = $1) ORDER BY bank_no",
            banks::FAILED,
            banks::READY
        )
    });
    let mut rows = conn.fetch(&SPEC, args![run.0]).await?;
    let spec = rows.first_mut().ok_or_else(|| missing_run(run))?.text(0)?;
    lose_leases(conn, Holder::Ended(run)).await?;
    let full = full || conn.fetch(&OPEN, args![run.0]).await?.is_empty();

    let rows = conn.fetch(&UNFINISHED, args![run.0, full]).await?;
    let bank_nos: Vec<u32> = rows.iter().map(|row| row.small(0)).collect::<StoreResult<_>>()?;
    let (mut outcome, mut banks_ready) = (CommitOutcome::default(), 0);
    for part in bank_nos.chunks(CHUNK) {
        let settled = banks::settle(conn, run, part).await?;
        outcome.opened.extend(settled.opened.into_iter().map(|role| (run, role)));
        banks_ready += settled.banks_ready;
    }
    outcome.opened.sort_unstable();
    outcome.opened.dedup();

    count_children(conn, run).await?;
    outcome.to_conclude = ripe(conn, run).await?;
    if full {
        let spec: RunSpec = from_json(&spec, || format!("the spec of run number {}", run.0))?;
        counters::recount(conn, run, &spec.headline_metric()).await?;
    } else if banks_ready != 0 {
        counters::add_to(conn, run, counters::Delta { banks_ready, ..counters::Delta::default() }).await?;
    }
    Ok(outcome)
}

/// Counts the open judge tasks of questions that are done but not concluded.
async fn count_children(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    fn unconcluded() -> String {
        let (low, high) = TaskKey::range_of_kind(TaskKind::Question);
        format!(
            "t.run_no = $1 AND t.task_key BETWEEN {} AND {} AND t.state >= 2 AND t.state = {} AND t.concluded = 0",
            low.0,
            high.0,
            TaskState::Done.code()
        )
    }
    static LOCK: Sql =
        Sql::new(|| format!("SELECT t.task_key FROM tasks AS t WHERE {} ORDER BY t.task_key", unconcluded()));
    static COUNT: Sql = Sql::new(|| {
        let open = format!(
            "(SELECT count(*) FROM tasks AS j WHERE j.run_no = t.run_no AND j.task_key BETWEEN t.task_key + {JUDGE_OFFSET} \
             AND t.task_key + {} AND j.state IN ({}, {}))",
            JUDGE_OFFSET + TaskKey::INDEX_STEP - 1,
            TaskState::Ready.code(),
            TaskState::Leased.code()
        );
        format!("UPDATE tasks AS t SET open_children = {open} WHERE {} AND t.open_children <> {open}", unconcluded())
    });
    conn.lock(&LOCK, args![run.0]).await?;
    conn.execute(&COUNT, args![run.0]).await.map(drop)
}

/// Questions of which no step is missing and that are not concluded.
async fn ripe(conn: &mut dyn Conn, run: RunNo) -> StoreResult<Vec<(RunNo, TaskKey)>> {
    static SELECT: Sql = Sql::new(|| {
        format!(
            "SELECT task_key FROM tasks WHERE run_no = $1 AND state >= 2 AND concluded = 0 \
             AND (state = {} OR open_children <= 0) ORDER BY task_key",
            TaskState::Failed.code()
        )
    });
    let rows = conn.fetch(&SELECT, args![run.0]).await?;
    rows.iter().map(|row| Ok((run, task_key(row, 0)?))).collect()
}
