//! Handing out tasks (P1 to P4).

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bench_proto::{
    ids::{Role, RunNo, TaskKey, TaskKind},
    task::{TaskEvent, TaskState},
};

use super::{
    Backend, Batch, Conn, Row, Sql, SqlStore, args,
    claims::{self, PUBLISHED_AFTER, claimed_task},
    guards::{allowed, allowed_in_batch, change},
    role_range, task_key,
};
use crate::{
    ClaimedTask, OpenByRole, OpenTasks, ReadyTask, Release, SessionId, StoreError, StoreResult, Tasks,
    codec::{escape, unescape},
};

/// A state that was read.
pub(super) fn task_state(row: &Row, column: usize) -> StoreResult<TaskState> {
    let code = row.small(column)?;
    TaskState::from_code(code).ok_or_else(|| StoreError::Corrupt(format!("{code} is no state of a task").into()))
}

/// A batch of (run, task).
pub(super) fn pairs(tasks: &[(RunNo, TaskKey)]) -> Batch {
    Batch::default().int(tasks.iter().map(|(run, _)| run.0)).int(tasks.iter().map(|(_, task)| task.0))
}

/// Locks task rows in key order.
pub(super) async fn lock(conn: &mut dyn Conn, tasks: &[(RunNo, TaskKey)]) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| {
        "SELECT t.task_key FROM @rows($1: run int, task int) AS b JOIN tasks AS t ON t.run_no = b.run AND t.task_key = b.task \
         ORDER BY t.run_no, t.task_key"
            .to_owned()
    });
    conn.lock(&LOCK, args![pairs(tasks)]).await
}

/// State and lease epoch of tasks that are locked.
pub(super) type Standings = HashMap<(RunNo, TaskKey), (TaskState, i64)>;

/// Locks task rows in key order and reads where they stand.
pub(super) async fn lock_and_read(conn: &mut dyn Conn, tasks: &[(RunNo, TaskKey)]) -> StoreResult<Standings> {
    static LOCK: Sql = Sql::new(|| {
        "SELECT t.run_no, t.task_key, t.state, t.lease_epoch FROM @rows($1: run int, task int) AS b \
         JOIN tasks AS t ON t.run_no = b.run AND t.task_key = b.task ORDER BY t.run_no, t.task_key"
            .to_owned()
    });
    standings(conn.fetch_locked(&LOCK, args![pairs(tasks)]).await?)
}

/// Locks and reads the rows within ranges of keys (run, lowest, highest).
pub(super) async fn lock_and_read_ranges(
    conn: &mut dyn Conn,
    ranges: &[(RunNo, TaskKey, TaskKey)],
) -> StoreResult<Standings> {
    static LOCK: Sql = Sql::new(|| {
        "SELECT t.run_no, t.task_key, t.state, t.lease_epoch FROM @rows($1: run int, low int, high int) AS b \
         JOIN tasks AS t ON t.run_no = b.run AND t.task_key BETWEEN b.low AND b.high ORDER BY t.run_no, t.task_key"
            .to_owned()
    });
    let batch = Batch::default()
        .int(ranges.iter().map(|(run, ..)| run.0))
        .int(ranges.iter().map(|(_, low, _)| low.0))
        .int(ranges.iter().map(|(.., high)| high.0));
    standings(conn.fetch_locked(&LOCK, args![batch]).await?)
}

fn standings(rows: Vec<Row>) -> StoreResult<Standings> {
    let read = |row: &Row| Ok(((RunNo(row.int(0)?), task_key(row, 1)?), (task_state(row, 2)?, row.int(3)?)));
    rows.iter().map(read).collect()
}

/// Makes tasks (run, key, first lease epoch) ready; those that have a row stay. Returns the new ones.
pub(super) async fn open(conn: &mut dyn Conn, tasks: &[(RunNo, TaskKey, i64)]) -> StoreResult<Vec<(RunNo, TaskKey)>> {
    static OPEN: Sql = Sql::new(|| {
        // the latency probe is no question: it is never concluded
        let (low, high) = (TaskKey::range_of_kind(TaskKind::Question).0, TaskKey(TaskKey::PROBE.0 - 1));
        format!(
            "INSERT INTO tasks (run_no, task_key, state, lease_epoch, ready_at, concluded) \
             SELECT b.run, b.task, {}, b.epoch, @now, CASE WHEN b.task BETWEEN {} AND {} THEN 0 ELSE 1 END \
             FROM @rows($1: run int, task int, epoch int) AS b WHERE true \
             ON CONFLICT (run_no, task_key) DO NOTHING RETURNING run_no, task_key",
            TaskState::Ready.code(),
            low.0,
            high.0
        )
    });
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let batch = Batch::default()
        .int(tasks.iter().map(|(run, ..)| run.0))
        .int(tasks.iter().map(|(_, task, _)| task.0))
        .int(tasks.iter().map(|(.., epoch)| *epoch));
    let rows = conn.fetch(&OPEN, args![batch]).await?;
    rows.iter().map(|row| Ok((RunNo(row.int(0)?), task_key(row, 1)?))).collect()
}

/// The assignments of an event that makes a task ready again, apart from those of the table.
const READY_AGAIN: &str = "session = NULL, published_at = NULL";

fn release_sql(event: TaskEvent) -> String {
    format!(
        "UPDATE tasks AS t SET {change}, {READY_AGAIN}, ready_at = @now + b.delay_us, reason = b.reason, \
         not_before = CASE WHEN b.delay_us > 0 THEN @now + b.delay_us ELSE 0 END \
         FROM @rows($1: run int, task int, epoch int, delay_us int, reason text) AS b \
         WHERE t.run_no = b.run AND t.task_key = b.task AND {allowed}",
        change = change(event),
        allowed = allowed_in_batch(event, "b.epoch"),
    )
}

async fn release(conn: &mut dyn Conn, releases: Vec<Release>) -> StoreResult<()> {
    static RETRY: Sql = Sql::new(|| release_sql(TaskEvent::Retry));
    static PARK: Sql = Sql::new(|| release_sql(TaskEvent::Park));
    let tasks: Vec<_> = releases.iter().map(|r| (r.run, r.task)).collect();
    lock(conn, &tasks).await?;
    for (event, sql) in [(TaskEvent::Retry, &RETRY), (TaskEvent::Park, &PARK)] {
        let of: Vec<&Release> = releases.iter().filter(|r| r.event == event).collect();
        if of.is_empty() {
            continue;
        }
        let delay_us =
            |r: &&Release| i64::try_from(r.delay_ms.saturating_mul(1000)).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        let batch = Batch::default()
            .int(of.iter().map(|r| r.run.0))
            .int(of.iter().map(|r| r.task.0))
            .int(of.iter().map(|r| r.epoch))
            .int(of.iter().map(delay_us))
            .opt_text(of.iter().map(|r| r.reason.as_deref().map(escape)));
        conn.execute(sql, args![batch]).await?;
    }
    Ok(())
}

/// Forgets that ready tasks (`$1`) were published, and delays them by `$2` microseconds for the reason `$3`.
pub(super) static PUT_BACK: Sql = Sql::new(|| {
    format!(
        "UPDATE tasks AS t SET published_at = NULL, reason = COALESCE($3, t.reason), \
         not_before = CASE WHEN $2 > 0 THEN @now + $2 ELSE t.not_before END \
         FROM @locked(tasks $1: run int, task int) AS b \
         WHERE t.run_no = b.run AND t.task_key = b.task AND t.state = @each({}, b.task)",
        TaskState::Ready.code()
    )
});

/// Makes tasks ready whose holder is known to be dead, with one more loss each: all of one session, or those of a run that
/// are held by ended sessions.
pub(super) async fn lose_leases(conn: &mut dyn Conn, of: Holder) -> StoreResult<u64> {
    const OF_SESSION: &str = "t.session = $1";
    const OF_ENDED: &str =
        "t.run_no = $1 AND t.session IN (SELECT s.session_id FROM sessions AS s WHERE s.ended_us IS NOT NULL)";
    fn held(whose: &str) -> String {
        format!("{whose} AND {}", allowed(TaskEvent::LoseLease, "t.lease_epoch"))
    }
    fn lose(whose: &str) -> String {
        let change = change(TaskEvent::LoseLease);
        format!("UPDATE tasks AS t SET {change}, {READY_AGAIN}, ready_at = @now, not_before = 0 WHERE {}", held(whose))
    }
    fn in_order(whose: &str) -> String {
        format!("SELECT t.task_key FROM tasks AS t WHERE {} ORDER BY t.run_no, t.task_key", held(whose))
    }
    static LOCK_OF_SESSION: Sql = Sql::new(|| in_order(OF_SESSION));
    static LOSE_OF_SESSION: Sql = Sql::new(|| lose(OF_SESSION));
    static LOCK_OF_ENDED: Sql = Sql::new(|| in_order(OF_ENDED));
    static LOSE_OF_ENDED: Sql = Sql::new(|| lose(OF_ENDED));
    let (lock, lose, whose) = match of {
        Holder::Session(session) => (&LOCK_OF_SESSION, &LOSE_OF_SESSION, session.0),
        Holder::Ended(run) => (&LOCK_OF_ENDED, &LOSE_OF_ENDED, run.0),
    };
    conn.lock(lock, args![whose]).await?;
    conn.execute(lose, args![whose]).await
}

/// Whose leases are lost.
pub(super) enum Holder {
    /// Tasks that one session holds.
    Session(SessionId),
    /// Tasks of a run that are held by sessions that have ended.
    Ended(RunNo),
}

#[async_trait]
impl<B: Backend> Tasks for SqlStore<B> {
    async fn ready_tasks(&self, run: RunNo, role: Role, limit: u32) -> StoreResult<Vec<ReadyTask>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT task_key, publish_count, lease_epoch FROM tasks WHERE run_no = $1 AND task_key BETWEEN $2 AND $3 AND state = {} \
                 AND published_at IS NULL AND not_before <= @now ORDER BY task_key LIMIT $4",
                TaskState::Ready.code()
            )
        });
        let mut ready = Vec::new();
        for kind in TaskKind::ALL.into_iter().rev().filter(|kind| kind.role() == role) {
            let left = limit.saturating_sub(u32::try_from(ready.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let (low, high) = TaskKey::range_of_kind(kind);
            for row in self.fetch(&SELECT, args![run.0, low.0, high.0, left]).await? {
                let task = task_key(&row, 0)?;
                ready.push(ReadyTask { task, publish_count: row.small(1)?, epoch: row.int(2)? });
            }
        }
        Ok(ready)
    }

    async fn note_published(&self, run: RunNo, tasks: &[ReadyTask]) -> StoreResult<()> {
        // a task that was claimed and given back meanwhile has no message any more: it must not count as published
        static NOTE: Sql = Sql::new(|| {
            format!(
                "UPDATE tasks AS t SET published_at = @now, publish_count = publish_count + 1 \
                 FROM @locked(tasks $1: run int, task int, epoch int) AS b \
                 WHERE t.run_no = b.run AND t.task_key = b.task AND t.state = @each({}, b.task) \
                 AND t.published_at IS NULL AND t.lease_epoch = b.epoch",
                TaskState::Ready.code()
            )
        });
        let mut tasks = tasks.to_vec();
        tasks.sort_unstable_by_key(|ready| ready.task);
        let batch = Batch::default()
            .int(tasks.iter().map(|_| run.0))
            .int(tasks.iter().map(|ready| ready.task.0))
            .int(tasks.iter().map(|ready| ready.epoch));
        self.execute(&NOTE, args![batch]).await.map(drop)
    }

    async fn forget_published(&self, run: RunNo, role: Option<Role>, older_than_ms: u64) -> StoreResult<u64> {
        static FORGET: Sql = Sql::new(|| {
            format!(
                "UPDATE tasks SET published_at = NULL WHERE run_no = $1 AND state = {} AND published_at <= @now - $2 \
                 AND task_key BETWEEN $3 AND $4",
                TaskState::Ready.code()
            )
        });
        let older_than_us = i64::try_from(older_than_ms.saturating_mul(1000)).unwrap_or(i64::MAX / 4);
        let (low, high) = role.map_or((0, i64::MAX), |role| {
            let (low, high) = role_range(role);
            (low.0, high.0)
        });
        self.execute(&FORGET, args![run.0, older_than_us, low, high]).await
    }

    async fn leases(&self, session: SessionId) -> StoreResult<Vec<ClaimedTask>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT run_no, task_key, lease_epoch, attempts, losses, @now - ready_at, {PUBLISHED_AFTER} FROM tasks \
                 WHERE session = $1 AND state = {} ORDER BY run_no, task_key",
                TaskState::Leased.code()
            )
        });
        self.fetch(&SELECT, args![session.0]).await?.iter().map(|row| claimed_task(row, session)).collect()
    }

    async fn leased(&self, run: RunNo) -> StoreResult<Vec<TaskKey>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT task_key FROM tasks WHERE run_no = $1 AND state = {} ORDER BY task_key",
                TaskState::Leased.code()
            )
        });
        self.fetch(&SELECT, args![run.0]).await?.iter().map(|row| task_key(row, 0)).collect()
    }

    async fn put_back(&self, run: RunNo, tasks: &[TaskKey], delay_ms: u64, reason: Option<&str>) -> StoreResult<u64> {
        let mut keys: Vec<(RunNo, TaskKey)> = tasks.iter().map(|task| (run, *task)).collect();
        keys.sort_unstable();
        let (delay_us, reason) =
            (i64::try_from(delay_ms.saturating_mul(1000)).unwrap_or(i64::MAX / 4), reason.map(escape));
        self.execute(&PUT_BACK, args![pairs(&keys), delay_us, reason]).await
    }

    async fn claim(&self, session: SessionId, tasks: &[(RunNo, TaskKey)]) -> StoreResult<Vec<ClaimedTask>> {
        claims::claim(&self.backend, session, tasks).await
    }

    async fn release(&self, releases: &[Release]) -> StoreResult<()> {
        if let Some(wrong) = releases.iter().find(|r| !matches!(r.event, TaskEvent::Retry | TaskEvent::Park)) {
            return Err(StoreError::BadData(format!("a release is a retry or a park, not {:?}", wrong.event)));
        }
        let releases = releases.to_vec();
        self.backend.write(move |conn| Box::pin(release(conn, releases))).await
    }

    async fn waits_for(&self, run: RunNo) -> StoreResult<Option<String>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT reason FROM tasks WHERE run_no = $1 AND state = {} AND not_before > @now AND reason IS NOT NULL \
                 ORDER BY not_before, task_key LIMIT 1",
                TaskState::Ready.code()
            )
        });
        let mut rows = self.fetch(&SELECT, args![run.0]).await?;
        match rows.first_mut() {
            Some(row) => Ok(row.opt_text(0)?.map(unescape)),
            None => Ok(None),
        }
    }

    async fn open_tasks_of(&self, runs: &[RunNo], at_most: u32) -> StoreResult<BTreeMap<RunNo, OpenByRole>> {
        // What is next is as many as the run has questions, so it is counted to a bound, in the order of the index; all else is
        // found by indexes that hold little. `+ 0`: leased tasks are found by the index of all leased ones, not among all of the run.
        static COUNT: Sql = Sql::new(|| {
            format!(
                "SELECT run_no, role, CAST(sum(next) AS bigint), CAST(sum(queued) AS bigint), CAST(sum(put_off) AS bigint), \
                 CAST(sum(leased) AS bigint), min(due) FROM (\
                 SELECT b.run AS run_no, b.role, (SELECT count(*) FROM (SELECT t.task_key FROM tasks AS t WHERE t.run_no = b.run \
                 AND t.task_key BETWEEN b.low AND b.high AND t.state = {ready} AND t.published_at IS NULL AND t.not_before = 0 \
                 ORDER BY t.task_key LIMIT $2) AS few) AS next, 0 AS queued, 0 AS put_off, 0 AS leased, CAST(NULL AS bigint) AS due \
                 FROM @rows($1: run int, role int, low int, high int) AS b UNION ALL \
                 SELECT b.run, b.role, CASE WHEN t.not_before <= @now AND t.published_at IS NULL THEN 1 ELSE 0 END, \
                 CASE WHEN t.not_before <= @now AND t.published_at IS NOT NULL THEN 1 ELSE 0 END, \
                 CASE WHEN t.not_before > @now THEN 1 ELSE 0 END, 0, CASE WHEN t.not_before > @now THEN t.not_before - @now END \
                 FROM @rows($1: run int, role int, low int, high int) AS b JOIN tasks AS t ON t.run_no = b.run \
                 AND t.task_key BETWEEN b.low AND b.high WHERE {WAITING} UNION ALL \
                 SELECT b.run, b.role, 0, 0, 0, 1, NULL FROM tasks AS t JOIN @rows($1: run int, role int, low int, high int) AS b \
                 ON b.run = t.run_no + 0 AND t.task_key + 0 BETWEEN b.low AND b.high WHERE t.state = {leased}) AS open \
                 GROUP BY run_no, role",
                ready = TaskState::Ready.code(),
                leased = TaskState::Leased.code()
            )
        });
        let rows = self.fetch(&COUNT, args![by_role(runs), at_most]).await?;
        let none: OpenByRole = Role::ALL.into_iter().map(|role| (role, OpenTasks::default())).collect();
        let mut open: BTreeMap<RunNo, OpenByRole> = runs.iter().map(|run| (*run, none.clone())).collect();
        for row in rows {
            let counts = OpenTasks {
                unpublished: row.int(2)?,
                queued: row.int(3)?,
                delayed: row.int(4)?,
                leased: row.int(5)?,
                next_due_ms: row.opt_int(6)?.map(|us| us.div_euclid(1000) + 1),
            };
            open.entry(RunNo(row.int(0)?)).or_default().insert(role_of(&row, 1)?, counts);
        }
        Ok(open)
    }
}

/// The condition of the index `tasks_waiting` on row `t`: ready, and published or put off (perhaps due by now).
pub(super) const WAITING: &str = "t.state = 0 AND (t.published_at IS NOT NULL OR t.not_before > 0)";

/// A batch of (run, number of the role, lowest key, highest key) for each role of each run.
pub(super) fn by_role(runs: &[RunNo]) -> Batch {
    let all: Vec<(RunNo, usize)> =
        runs.iter().flat_map(|run| (0..Role::ALL.len()).map(|number| (*run, number))).collect();
    let ranges: Vec<(TaskKey, TaskKey)> = all.iter().map(|(_, number)| role_range(Role::ALL[*number])).collect();
    Batch::default()
        .int(all.iter().map(|(run, _)| run.0))
        .int(all.iter().map(|(_, number)| *number as i64))
        .int(ranges.iter().map(|(low, _)| low.0))
        .int(ranges.iter().map(|(_, high)| high.0))
}

/// The role behind a number of [`by_role`].
pub(super) fn role_of(row: &Row, column: usize) -> StoreResult<Role> {
    let role = usize::try_from(row.int(column)?).ok().and_then(|number| Role::ALL.get(number).copied());
    role.ok_or_else(|| StoreError::Corrupt("a task belongs to no role".into()))
}
