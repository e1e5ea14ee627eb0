//! The level-triggered sweep (P7): derives from tasks and checkpoints what the counters should say, repairs them, opens
//! what should be open, and finds questions that are complete.
//!
//! An ordinary sweep looks at the work in flight only: unfinished banks, ended but unconcluded questions, leases of dead
//! sessions. A full one also visits finished banks and recounts the run; it is made when this process meets the run for
//! the first time, and whenever nothing is open (so a counter that hides work can only delay it, never lose it).
//!
//! It is made in several short transactions, each of which leaves a sound run: nobody waits long for its locks, and none
//! of them takes tasks after banks.

use std::collections::BTreeSet;

use bench_proto::{
    bank::BankState,
    ids::{Role, RunNo, TaskKey, TaskKind},
    spec::RunSpec,
    stop::Opened,
    task::TaskState,
};

use super::{
    Backend, Conn, JUDGE_OFFSET, Sql, args, banks, counters, missing_run, rounds, task_key,
    tasks::{Holder, lose_leases},
};
use crate::{CommitOutcome, StoreResult, codec::spec_from_json};

/// Banks of one transaction.
const PART: usize = 500;

/// Sweeps a run; `full` asks for a full one.
pub(super) async fn sweep<B: Backend>(backend: &B, run: RunNo, full: bool) -> StoreResult<CommitOutcome> {
    let scope = backend.write(move |conn| Box::pin(begin(conn, run, full))).await?;
    let mut outcome = CommitOutcome::default();
    for part in scope.banks.chunks(PART) {
        let (part, rounds) = (part.to_vec(), scope.rounds);
        let opened = backend.write(move |conn| Box::pin(settle(conn, run, part, rounds))).await?;
        outcome.opened.extend(opened.into_iter().map(|role| (run, role)));
    }
    outcome.opened.sort_unstable();
    outcome.opened.dedup();
    outcome.to_conclude = backend
        .write(move |conn| {
            Box::pin(async move {
                count_children(conn, run).await?;
                ripe(conn, run).await
            })
        })
        .await?;
    if let Some(headline) = scope.recount {
        backend.write(move |conn| Box::pin(async move { counters::recount(conn, run, &headline).await })).await?;
    }
    Ok(outcome)
}

/// What a sweep visits.
struct Scope {
    banks: Vec<u32>,
    /// Which questions are asked, of a run that may stop early.
    rounds: Option<Opened>,
    /// The headline metric of a run whose counters are counted again.
    recount: Option<String>,
}

/// Takes back the leases of dead sessions and finds out what there is to visit.
async fn begin(conn: &mut dyn Conn, run: RunNo, full: bool) -> StoreResult<Scope> {
    static SPEC: Sql = Sql::new(|| "SELECT spec, looks FROM runs WHERE run_no = $1".to_owned());
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
             OR open_recalls <> 0) OR ($2 = 1 AND run_no = $1) OR (later IS NOT NULL AND run_no = $1) ORDER BY bank_no",
            BankState::Failed.code(),
            BankState::Ready.code()
        )
    });
    let mut rows = conn.fetch(&SPEC, args![run.0]).await?;
    let row = rows.first_mut().ok_or_else(|| missing_run(run))?;
    let spec: RunSpec = spec_from_json(&row.text(0)?, || format!("the spec of run number {}", run.0))?;
    let looks = rounds::read(row.opt_text(1)?, || format!("the looks of run number {}", run.0))?;
    lose_leases(conn, Holder::Ended(run)).await?;
    let full = full || conn.fetch(&OPEN, args![run.0]).await?.is_empty();
    let rows = conn.fetch(&UNFINISHED, args![run.0, full]).await?;
    let banks = rows.iter().map(|row| row.small(0)).collect::<StoreResult<_>>()?;
    Ok(Scope {
        banks,
        rounds: spec.stop.as_ref().map(|rule| rule.opened(&looks)),
        recount: full.then(|| spec.headline_metric()),
    })
}

/// Settles some banks; returns the roles that got work.
async fn settle(
    conn: &mut dyn Conn,
    run: RunNo,
    part: Vec<u32>,
    opened: Option<Opened>,
) -> StoreResult<BTreeSet<Role>> {
    let reopened = match opened {
        Some(opened) => rounds::open(conn, run, &part, opened).await?,
        None => 0,
    };
    let settled = banks::settle(conn, run, &part).await?;
    let banks_ready = settled.banks_ready - reopened;
    if banks_ready != 0 {
        let delta = counters::Delta { banks_ready, ..counters::Delta::default() };
        counters::add_to(conn, run, delta).await?;
    }
    Ok(settled.opened)
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
