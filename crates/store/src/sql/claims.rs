//! Who works on a task (P1), and how many of a run at a time (P25).

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    ids::{RunNo, TaskKey, TaskKind},
    spec::RunSpec,
    task::{TaskEvent, TaskState},
};

use super::{
    Backend, Batch, Conn, Row, Sql, args,
    guards::{allowed_in_batch, change},
    task_key,
    tasks::{PUT_BACK, WAITING, pairs},
};
use crate::{
    ClaimedTask, RunState, SessionId, StoreResult,
    codec::{spec_from_json, unescape},
};

/// When a task that was refused because its run is at its limit may be handed out again.
const BEYOND_LIMIT_DELAY_US: i64 = 250_000;
/// What is said of such a task.
const BEYOND_LIMIT: &str = "as many questions or banks of the run as it allows are being worked on";

/// From ready to published; nothing when the claim was quicker than the note (P2).
pub(super) const PUBLISHED_AFTER: &str = "COALESCE(published_at - ready_at, 0)";

/// A claimed task that was read.
pub(super) fn claimed_task(row: &Row, session: SessionId) -> StoreResult<ClaimedTask> {
    Ok(ClaimedTask {
        run: RunNo(row.int(0)?),
        task: task_key(row, 1)?,
        epoch: row.int(2)?,
        attempts: row.small(3)?,
        losses: row.small(4)?,
        queue_wait_us: row.int(5)?.max(0),
        dispatch_us: row.int(6)?.max(0),
        session,
    })
}

/// Claims what may be claimed. Tasks of runs without a limit take one statement; for what is left of runs with one, their rows
/// are locked and counted, so that workers that claim together do not pass it together.
pub(super) async fn claim<B: Backend>(
    backend: &B,
    session: SessionId,
    tasks: &[(RunNo, TaskKey)],
) -> StoreResult<Vec<ClaimedTask>> {
    let mut tasks = tasks.to_vec();
    tasks.sort_unstable();
    tasks.dedup();
    let wanted = tasks.clone();
    let mut claimed = backend.change(move |conn| Box::pin(claim_free(conn, session, wanted))).await?;
    let got: BTreeSet<(RunNo, TaskKey)> = claimed.iter().map(|task| (task.run, task.task)).collect();
    tasks.retain(|task| !got.contains(task));
    if !tasks.is_empty() {
        claimed.extend(backend.write(move |conn| Box::pin(claim_limited(conn, session, tasks))).await?);
    }
    Ok(claimed)
}

/// A claim of the tasks of a batch that meet a condition on their run `r`.
fn claim_sql(of_run: &str) -> String {
    // a session that a supervisor has ended gets nothing: nobody would ever end it again
    format!(
        "UPDATE tasks AS t SET {change}, session = $2, reason = NULL FROM @locked(tasks $1: run int, task int) AS b \
         WHERE t.run_no = b.run AND t.task_key = b.task AND {allowed} AND t.not_before <= @now \
         AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_id = $2 AND s.ended_us IS NULL @share(s)) \
         AND EXISTS (SELECT 1 FROM runs AS r WHERE r.run_no = b.run AND r.state = '{running}' AND {of_run}) \
         RETURNING run_no, task_key, lease_epoch, attempts, losses, @now - ready_at, {PUBLISHED_AFTER}",
        change = change(TaskEvent::Claim),
        allowed = allowed_in_batch(TaskEvent::Claim, "t.lease_epoch"),
        running = RunState::Running.name(),
    )
}

async fn claim_free(
    conn: &mut dyn Conn,
    session: SessionId,
    tasks: Vec<(RunNo, TaskKey)>,
) -> StoreResult<Vec<ClaimedTask>> {
    static CLAIM: Sql = Sql::new(|| {
        let range = |kind| {
            let (low, high) = TaskKey::range_of_kind(kind);
            format!("b.task BETWEEN {} AND {}", low.0, high.0)
        };
        claim_sql(&format!(
            "(r.question_limit IS NULL OR NOT {}) AND (r.retain_limit IS NULL OR NOT {})",
            range(TaskKind::Question),
            range(TaskKind::Retain)
        ))
    });
    run_claim(conn, &CLAIM, session, &tasks).await
}

async fn claim_limited(
    conn: &mut dyn Conn,
    session: SessionId,
    tasks: Vec<(RunNo, TaskKey)>,
) -> StoreResult<Vec<ClaimedTask>> {
    static CLAIM: Sql = Sql::new(|| claim_sql("true"));
    let mut rooms = rooms(conn, session, &tasks).await?;
    if rooms.is_empty() {
        return Ok(Vec::new()); // duplicates: nothing was refused because of a limit
    }
    let (mut within, mut beyond) = (Vec::new(), Vec::new());
    for (run, task) in claimable(conn, &tasks).await? {
        match rooms.get_mut(&(run, task.kind())) {
            Some(room) if *room > 0 => {
                *room -= 1;
                within.push((run, task));
            }
            Some(_) => beyond.push((run, task)),
            None => {} // of a run without this limit: it was refused for another reason
        }
    }
    if !beyond.is_empty() {
        // their messages are acked and gone: the dispatcher has them again
        conn.execute(&PUT_BACK, args![pairs(&beyond), BEYOND_LIMIT_DELAY_US, BEYOND_LIMIT]).await?;
    }
    if within.is_empty() { Ok(Vec::new()) } else { run_claim(conn, &CLAIM, session, &within).await }
}

async fn run_claim(
    conn: &mut dyn Conn,
    claim: &'static Sql,
    session: SessionId,
    tasks: &[(RunNo, TaskKey)],
) -> StoreResult<Vec<ClaimedTask>> {
    let rows = conn.fetch(claim, args![pairs(tasks), session.0]).await?;
    rows.iter().map(|row| claimed_task(row, session)).collect()
}

/// Places by run and kind of task.
type Rooms = BTreeMap<(RunNo, TaskKind), i64>;

/// How many more questions and segments of each limited run may be worked on. Locks the rows of these runs: who counts next
/// sees what was claimed here.
async fn rooms(conn: &mut dyn Conn, session: SessionId, tasks: &[(RunNo, TaskKey)]) -> StoreResult<Rooms> {
    static LIMITS: Sql = Sql::new(|| {
        "SELECT r.run_no, r.question_limit, r.retain_limit FROM @rows($1: run int) AS b JOIN runs AS r ON r.run_no = b.run \
         WHERE r.question_limit IS NOT NULL OR r.retain_limit IS NOT NULL ORDER BY r.run_no"
            .to_owned()
    });
    let runs: BTreeSet<RunNo> = tasks.iter().map(|(run, _)| *run).collect();
    let runs = Batch::default().int(runs.iter().map(|run| run.0));
    conn.lock(&LIMITS, args![runs.clone()]).await?;
    let mut rooms = Rooms::new();
    for row in &conn.fetch(&LIMITS, args![runs]).await? {
        let run = RunNo(row.int(0)?);
        for (kind, column) in [(TaskKind::Question, 1), (TaskKind::Retain, 2)] {
            if let Some(limit) = row.opt_int(column)? {
                rooms.insert((run, kind), limit);
            }
        }
    }
    let limited: BTreeSet<RunNo> = rooms.keys().map(|(run, _)| *run).collect();
    if limited.is_empty() {
        return Ok(rooms);
    }
    let worked_on = worked_on(conn, &limited).await?;
    for (run, task) in &worked_on {
        if let Some(room) = rooms.get_mut(&(*run, task.kind())) {
            *room -= 1;
        }
    }
    take_places_of_waiting(conn, session, tasks, &mut rooms, &worked_on).await?;
    Ok(rooms)
}

/// Takes away the places of questions of which nothing is left but votes that wait. They keep their places while the votes wait for
/// their turn, and not while they wait for a judge that is away (P39): its outage would stop the answers. When the judge is
/// back they count again, so no question is claimed before all but a limit's worth of them is judged.
async fn take_places_of_waiting(
    conn: &mut dyn Conn,
    session: SessionId,
    tasks: &[(RunNo, TaskKey)],
    rooms: &mut Rooms,
    worked_on: &BTreeSet<(RunNo, TaskKey)>,
) -> StoreResult<()> {
    static WAIT: Sql = Sql::new(|| {
        let (low, high) = TaskKey::range_of_kind(TaskKind::Judge);
        format!(
            "SELECT task_key FROM tasks WHERE run_no = $1 AND task_key BETWEEN {} AND {} AND state = {} \
             AND published_at IS NULL ORDER BY task_key LIMIT $2",
            low.0,
            high.0,
            TaskState::Ready.code(),
        )
    });
    // it matters only where a question could be claimed but for them
    let asking = tasks.iter().filter(|(_, task)| task.kind() == TaskKind::Question).map(|(run, _)| *run);
    let has_room = |run: &RunNo| rooms.get(&(*run, TaskKind::Question)).is_some_and(|room| *room > 0);
    let asking: BTreeSet<RunNo> = asking.filter(has_room).collect();
    for (run, votes) in judged_now(conn, session, &asking).await? {
        let Some(room) = rooms.get_mut(&(run, TaskKind::Question)) else { continue };
        // votes of a question are neighbours, and those of questions that are worked on are among them
        let begun = worked_on.iter().filter(|(of, task)| *of == run && task.kind() == TaskKind::Question).count();
        let most = room.saturating_add(begun as i64).saturating_mul(votes);
        let mut waiting = BTreeSet::new();
        for row in &conn.fetch(&WAIT, args![run.0, most]).await? {
            waiting.insert((run, task_key(row, 0)?.question_of()));
        }
        *room -= waiting.difference(worked_on).count() as i64;
    }
    Ok(())
}

/// Segments and questions of limited runs that are worked on: those that are leased, and questions of which a vote is leased or on its
/// way. Votes that wait, of which there may be as many as the run has questions, are not among what is read.
async fn worked_on(conn: &mut dyn Conn, limited: &BTreeSet<RunNo>) -> StoreResult<BTreeSet<(RunNo, TaskKey)>> {
    // `+ 0`: leased ones by the index of all leased ones
    static WORKED_ON: Sql = Sql::new(|| {
        let (low, high) = TaskKey::range_of_kind(TaskKind::Judge);
        format!(
            "SELECT t.run_no, t.task_key FROM tasks AS t \
             JOIN @rows($1: run int) AS b ON b.run = t.run_no + 0 WHERE t.state = {leased} UNION ALL \
             SELECT t.run_no, t.task_key FROM @rows($1: run int) AS b JOIN tasks AS t ON t.run_no = b.run \
             AND t.task_key BETWEEN {} AND {} WHERE {WAITING} AND t.published_at IS NOT NULL",
            low.0,
            high.0,
            leased = TaskState::Leased.code(),
        )
    });
    let rows = conn.fetch(&WORKED_ON, args![Batch::default().int(limited.iter().map(|run| run.0))]).await?;
    let read = |row: &Row| {
        let (run, task) = (RunNo(row.int(0)?), task_key(row, 1)?);
        Ok((run, if task.kind() == TaskKind::Judge { task.question_of() } else { task }))
    };
    rows.iter().map(read).collect()
}

/// Those of `runs` that have judges of which none is away, by what the processes of the session's domain have told; each with the most
/// votes of a question.
async fn judged_now(conn: &mut dyn Conn, session: SessionId, runs: &BTreeSet<RunNo>) -> StoreResult<Vec<(RunNo, i64)>> {
    static SPECS: Sql = Sql::new(|| {
        "SELECT r.run_no, r.spec FROM @rows($1: run int) AS b JOIN runs AS r ON r.run_no = b.run".to_owned()
    });
    static AWAY: Sql = Sql::new(|| {
        "SELECT o.route FROM outages AS o JOIN sessions AS s ON s.domain = o.domain WHERE s.session_id = $1 AND o.to_us IS NULL \
         AND o.opening = (SELECT max(n.opening) FROM outages AS n WHERE n.domain = o.domain AND n.route = o.route)"
            .to_owned()
    });
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let mut specs = Vec::new();
    for mut row in conn.fetch(&SPECS, args![Batch::default().int(runs.iter().map(|run| run.0))]).await? {
        let (run, spec) = (RunNo(row.int(0)?), row.text(1)?);
        // of a spec that cannot be read no judge is known; that is for others to say
        let spec = spec_from_json::<RunSpec>(&spec, || format!("the spec of run number {}", run.0));
        specs.extend(spec.ok().filter(|spec| !spec.judges.is_empty()).map(|spec| (run, spec)));
    }
    let routes: BTreeSet<String> =
        specs.iter().flat_map(|(_, spec)| spec.judge_routes()).map(|route| route.to_text()).collect();
    let mut away = BTreeSet::new();
    if !routes.is_empty() {
        for mut row in conn.fetch(&AWAY, args![session.0]).await? {
            away.insert(unescape(row.text(0)?));
        }
    }
    let is_away = |spec: &RunSpec| spec.judge_routes().iter().any(|route| away.contains(&route.to_text()));
    let votes = |spec: &RunSpec| i64::from(spec.judge_plan().most_votes());
    Ok(specs.iter().filter(|(_, spec)| !is_away(spec)).map(|(run, spec)| (*run, votes(spec))).collect())
}

/// Those of `tasks` that could be claimed now but for a limit, in the order of their keys.
async fn claimable(conn: &mut dyn Conn, tasks: &[(RunNo, TaskKey)]) -> StoreResult<Vec<(RunNo, TaskKey)>> {
    static CLAIMABLE: Sql = Sql::new(|| {
        format!(
            "SELECT t.run_no, t.task_key FROM @rows($1: run int, task int) AS b JOIN tasks AS t ON t.run_no = b.run \
             AND t.task_key = b.task JOIN runs AS r ON r.run_no = t.run_no WHERE {} AND t.not_before <= @now \
             AND r.state = '{}' ORDER BY t.run_no, t.task_key",
            allowed_in_batch(TaskEvent::Claim, "t.lease_epoch"),
            RunState::Running.name(),
        )
    });
    let rows = conn.fetch(&CLAIMABLE, args![pairs(tasks)]).await?;
    rows.iter().map(|row| Ok((RunNo(row.int(0)?), task_key(row, 1)?))).collect()
}
