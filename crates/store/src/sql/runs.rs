//! Runs, their states and events.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use bench_proto::{
    call::CacheScope,
    ids::{RunId, RunNo},
    money::PicoUsd,
    spec::{Limits, RunSpec},
    stop::Looks,
    usage_cap::UsageCap,
};
use tracing::warn;

use super::{
    Backend, Batch, Conn, Row, Sql, SqlStore, args, codes::USAGE, events::note_event, groups, missing_run, rounds,
    summaries, sums::sum,
};
use crate::{
    Creation, MEASURED_FIRST, NewRun, RunCounters, RunEvent, RunFilter, RunGroup, RunRow, RunState, Runs, StoreError,
    StoreResult,
    codec::{escape, from_json, shown, spec_from_json, spec_to_json, to_json, unescape},
};

const COLUMNS: &str = "r.run_no, r.run_id, r.name, r.tags, r.user_name, r.spec, r.lineage, r.control_of, r.domain, \
    r.imported, r.code_version, r.state, r.state_version, r.reason, r.created_us, r.finished_us, r.active_us, \
    r.active_since_us, r.resumed_times, r.planned, r.result_version, c.banks_planned, c.banks_ready, c.entries_planned, \
    c.entries_retained, c.scored, c.abstained, c.infra_error, c.answered, c.headline_sum, c.spent, c.uncertain, \
    c.reserved, c.overdraft, r.group_no, g.group_id, g.cap, c.unmeasured, r.looks";

fn select(rest: &str) -> String {
    format!(
        "SELECT {COLUMNS} FROM runs AS r LEFT JOIN run_counters AS c ON c.run_no = r.run_no \
         LEFT JOIN run_groups AS g ON g.group_no = r.group_no {rest}"
    )
}

static BY_ID: Sql = Sql::new(|| select("WHERE r.run_id = $1"));

fn run_row(mut row: Row) -> StoreResult<RunRow> {
    // it is a part of paths and messages, and whoever writes the store wrote it
    let text = row.text(1)?;
    let run_id = RunId::stored(&text)
        .map_err(|_| StoreError::Corrupt(format!("'{}' is no id of a run", shown(&text).escape_debug()).into()))?;
    if row.opt_int(21)?.is_none() {
        return Err(StoreError::Corrupt(format!("run {run_id} has no counters").into()));
    }
    let (tags, spec, state) = (row.text(3)?, row.text(5)?, row.text(11)?);
    let counters = RunCounters {
        banks_planned: row.int(21)?,
        banks_ready: row.int(22)?,
        entries_planned: row.int(23)?,
        entries_retained: row.int(24)?,
        scored: row.int(25)?,
        abstained: row.int(26)?,
        infra_error: row.int(27)?,
        answered: row.int(28)?,
        headline_sum: row.real(29)?,
        unmeasured: row.int(37)?,
        spent: PicoUsd(row.int(30)?),
        uncertain: PicoUsd(row.int(31)?),
        reserved: PicoUsd(row.int(32)?),
        overdraft: PicoUsd(row.int(33)?),
    };
    let mut spec: RunSpec = spec_from_json(&spec, || format!("the spec of run {run_id}"))?;
    let group = match row.opt_int(34)? {
        Some(group_no) => {
            spec.limits.max_cost = row.opt_int(36)?.map(PicoUsd);
            Some(RunGroup { group_no, id: unescape(row.text(35)?) })
        }
        None => None,
    };
    Ok(RunRow {
        run_no: RunNo(row.int(0)?),
        group,
        name: row.opt_text(2)?.map(unescape),
        tags: from_json(&tags, || format!("the tags of run {run_id}"))?,
        user: unescape(row.text(4)?),
        spec,
        lineage: unescape(row.text(6)?),
        control_of: row.opt_int(7)?.map(RunNo),
        domain: unescape(row.text(8)?),
        imported: row.int(9)? != 0,
        code_version: unescape(row.text(10)?),
        state: run_state(&state)?,
        state_version: row.int(12)?,
        reason: row.opt_text(13)?.map(unescape),
        created_ms: row.int(14)? / 1000,
        finished_ms: row.opt_int(15)?.map(|us| us / 1000),
        active_ms: row.int(16)? / 1000,
        active_since_ms: row.opt_int(17)?.map(|us| us / 1000),
        resumed_times: row.int(18)?,
        planned: row.int(19)? != 0,
        result_version: row.int(20)?,
        looks: rounds::read(row.opt_text(38)?, || format!("the looks of run {run_id}"))?,
        counters,
        run_id,
    })
}

/// The run of a row; `None` for one that cannot be read, which is named once by each process.
fn readable(row: Row) -> StoreResult<Option<RunRow>> {
    static TOLD: Mutex<BTreeSet<i64>> = Mutex::new(BTreeSet::new());
    let number = row.int(0)?;
    match run_row(row) {
        Ok(run) => Ok(Some(run)),
        Err(StoreError::Corrupt(why)) => {
            if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(number) {
                warn!(code = "damaged_run", "run number {number} is left out: {why}");
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn run_state(word: &str) -> StoreResult<RunState> {
    RunState::from_name(word)
        .ok_or_else(|| StoreError::Corrupt(format!("'{}' is no state of a run", shown(word)).into()))
}

async fn create(conn: &mut dyn Conn, new: NewRun) -> StoreResult<Creation> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO runs (run_id, name, tags, user_name, spec, lineage, control_of, domain, imported, code_version, state, \
         state_version, created_us, active_us, active_since_us, resumed_times, planned, result_version, private_calls, \
         question_limit, retain_limit, group_no, reason) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, @now, 0, CASE WHEN $16 = 0 THEN @now END, 0, 0, 1, $12, $13, \
         $14, $15, $17) \
         ON CONFLICT (run_id) DO NOTHING RETURNING run_no"
            .to_owned()
    });
    static COUNTERS: Sql = Sql::new(|| "INSERT INTO run_counters (run_no) VALUES ($1)".to_owned());
    let group = match &new.group {
        Some(group) => Some(groups::number_of(conn, group).await?),
        None => None,
    };
    let state = if new.waits { RunState::Paused } else { RunState::Running };
    let args = args![
        new.run_id.0.as_str(),
        new.name.as_deref().map(escape),
        to_json(&new.tags)?,
        escape(&new.user),
        spec_to_json(&new.spec)?,
        escape(&new.lineage),
        new.control_of.map(|run| run.0),
        escape(&new.domain),
        new.imported,
        escape(&new.code_version),
        state.name(),
        new.spec.limits.cache == CacheScope::Off,
        new.spec.limits.questions_at_once().map(i64::from),
        new.spec.limits.segments_at_once().map(i64::from),
        group,
        new.waits,
        new.waits.then(|| MEASURED_FIRST.to_owned()),
    ];
    let rows = conn.fetch(&INSERT, args).await?;
    let Some(made) = rows.first() else {
        // whoever was quicker has committed by now: the insert waited for that
        let found = conn.fetch(&BY_ID, args![new.run_id.0.as_str()]).await?.into_iter().next();
        let found =
            found.ok_or_else(|| StoreError::Unavailable(format!("run {} is gone just now", new.run_id).into()))?;
        return Ok(Creation::Found(Box::new(run_row(found)?)));
    };
    let run = RunNo(made.int(0)?);
    conn.execute(&COUNTERS, args![run.0]).await?;
    note_event(conn, run, "created", "").await?;
    for (kind, message) in &new.events {
        note_event(conn, run, kind, message).await?;
    }
    Ok(Creation::Made(run))
}

/// The row of a run that a statement reads, locked until the transaction ends.
async fn locked_run(conn: &mut dyn Conn, sql: &'static Sql, run: RunNo) -> StoreResult<Row> {
    conn.lock(sql, args![run.0]).await?;
    let row = conn.fetch(sql, args![run.0]).await?.into_iter().next();
    row.ok_or_else(|| missing_run(run))
}

pub(super) async fn change_state(
    conn: &mut dyn Conn,
    run: RunNo,
    from: Vec<RunState>,
    to: RunState,
    reason: Option<String>,
) -> StoreResult<bool> {
    static BEFORE: Sql = Sql::new(|| "SELECT state, active_since_us, reason FROM runs WHERE run_no = $1".to_owned());
    // entering `running` opens an interval unless one is open; leaving it closes the open one
    static CHANGE: Sql = Sql::new(|| {
        "UPDATE runs SET state = $2, reason = $3, state_version = state_version + 1, \
         resumed_times = resumed_times + $4, result_version = result_version + $4, \
         finished_us = CASE WHEN $5 = 1 THEN COALESCE(finished_us, @now) END, \
         active_us = active_us + CASE WHEN $6 = 0 AND active_since_us < @now THEN @now - active_since_us ELSE 0 END, \
         active_since_us = CASE WHEN $6 = 1 THEN COALESCE(active_since_us, @now) END \
         WHERE run_no = $1"
            .to_owned()
    });
    let mut row = locked_run(conn, &BEFORE, run).await?;
    let (before, open) = (run_state(&row.text(0)?)?, row.opt_int(1)?.is_some());
    if !from.contains(&before) {
        return Ok(false);
    }
    let runs = to == RunState::Running;
    let begins = row.opt_text(2)?.as_deref() == Some(MEASURED_FIRST);
    let resumes = runs && !begins && (before != RunState::Running || !open);
    let ends = matches!(to, RunState::Finished | RunState::Cancelled);
    let args =
        args![run.0, to.name(), reason.as_deref().map(escape), i64::from(resumes), i64::from(ends), i64::from(runs)];
    conn.execute(&CHANGE, args).await?;
    let kind = if resumes { "resumed" } else { to.name() };
    note_event(conn, run, kind, reason.as_deref().unwrap_or_default()).await?;
    Ok(true)
}

async fn change_labels(conn: &mut dyn Conn, run: RunNo, name: Option<String>, tags: String) -> StoreResult<()> {
    static CHANGE: Sql = Sql::new(|| "UPDATE runs SET name = $2, tags = $3 WHERE run_no = $1".to_owned());
    match conn.execute(&CHANGE, args![run.0, name, tags]).await? {
        0 => Err(missing_run(run)),
        _ => Ok(()),
    }
}

static SPEC: Sql = Sql::new(|| "SELECT spec FROM runs WHERE run_no = $1".to_owned());

/// The spec of a run, locked until the transaction ends.
async fn locked_spec(conn: &mut dyn Conn, run: RunNo) -> StoreResult<RunSpec> {
    let mut row = locked_run(conn, &SPEC, run).await?;
    spec_from_json(&row.text(0)?, || format!("the spec of run number {}", run.0))
}

/// Changes the cap on usage of the other runs of a run's group.
async fn change_usage_of_others(
    conn: &mut dyn Conn,
    run: RunNo,
    change: impl Fn(Option<UsageCap>) -> Option<UsageCap> + Send + Sync,
) -> StoreResult<()> {
    static CHANGE: Sql =
        Sql::new(|| "UPDATE runs SET spec = $2, state_version = state_version + 1 WHERE run_no = $1".to_owned());
    for other in groups::others_of(conn, run).await? {
        let mut spec = match locked_spec(conn, other).await {
            // it uses nothing any more: nobody can work on it
            Err(StoreError::Corrupt(_)) => continue,
            spec => spec?,
        };
        spec.limits.max_usage = change(spec.limits.max_usage);
        conn.execute(&CHANGE, args![other.0, spec_to_json(&spec)?]).await?;
    }
    Ok(())
}

/// Lowers the cap on usage of a run's group by what the run has used: when it is deleted, that counts against the cap no longer.
pub(super) async fn lower_usage_cap(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static USED: Sql = Sql::new(|| format!("SELECT {} FROM budgets WHERE kind = {USAGE} AND scope = $1", sum("spent")));
    let rows = conn.fetch(&USED, args![run.0]).await?;
    let used = rows.first().map_or(Ok(0), |row| row.int(0))?;
    if used == 0 {
        return Ok(());
    }
    let lower = |cap: Option<UsageCap>| {
        let cap = cap?;
        Some(UsageCap { most: cap.most.saturating_sub(used).max(0), ..cap })
    };
    change_usage_of_others(conn, run, lower).await
}

async fn change_limits(conn: &mut dyn Conn, run: RunNo, limits: Limits) -> StoreResult<()> {
    static CHANGE: Sql = Sql::new(|| {
        "UPDATE runs SET spec = $2, question_limit = $3, retain_limit = $4, state_version = state_version + 1 \
         WHERE run_no = $1"
            .to_owned()
    });
    // before its runs, as everywhere
    groups::lock_of(conn, run).await?;
    let mut spec = locked_spec(conn, run).await?;
    if limits.max_usage != spec.limits.max_usage {
        change_usage_of_others(conn, run, |_| limits.max_usage).await?;
    }
    spec.limits = limits;
    let (questions, segments) =
        (spec.limits.questions_at_once().map(i64::from), spec.limits.segments_at_once().map(i64::from));
    conn.execute(&CHANGE, args![run.0, spec_to_json(&spec)?, questions, segments]).await?;
    groups::set_cap(conn, run, spec.limits.max_cost).await
}

#[async_trait]
impl<B: Backend> Runs for SqlStore<B> {
    async fn set_looks(&self, run: RunNo, before: &Looks, looks: &Looks) -> StoreResult<bool> {
        let (before, looks) = (before.clone(), looks.clone());
        self.backend.write(move |conn| Box::pin(rounds::write(conn, run, before, looks))).await
    }

    async fn create_or_find(&self, run: &NewRun, others: &[NewRun]) -> StoreResult<Creation> {
        let (run, others) = (run.clone(), others.to_vec());
        self.backend
            .write(move |conn| {
                Box::pin(async move {
                    let creation = create(conn, run).await?;
                    if let Creation::Made(made) = creation {
                        for other in others {
                            let other = NewRun { control_of: other.waits.then_some(made), ..other };
                            if let Creation::Found(existing) = create(conn, other).await? {
                                return Err(StoreError::Exists(format!("run {}", existing.run_id)));
                            }
                        }
                    }
                    Ok(creation)
                })
            })
            .await
    }

    async fn run(&self, run: RunNo) -> StoreResult<RunRow> {
        static SELECT: Sql = Sql::new(|| select("WHERE r.run_no = $1"));
        let rows = self.fetch(&SELECT, args![run.0]).await?;
        rows.into_iter().next().ok_or_else(|| missing_run(run)).and_then(run_row)
    }

    async fn run_by_id(&self, id: &RunId) -> StoreResult<Option<RunRow>> {
        let rows = self.fetch(&BY_ID, args![id.0.as_str()]).await?;
        rows.into_iter().next().map(run_row).transpose()
    }

    async fn list_runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>> {
        static SELECT: Sql = Sql::new(|| {
            select(&format!(
                "WHERE ($1 = 0 OR substr(r.run_id, 1, CAST($1 AS INTEGER)) = $2 \
                 OR substr(r.run_id, length(r.run_id) - CAST($1 AS INTEGER) + 1) = $2) \
                 AND ($3 = 0 OR r.user_name = $4) AND ($5 = 0 OR r.control_of = $6) \
                 AND ($7 = 1 OR r.control_of IS NULL) AND ($9 = 0 OR r.name = $10) \
                 AND ($11 = 0 OR r.state IN ('{}', '{}')) \
                 AND ($12 = 0 OR substr(r.name, 1, CAST($12 AS INTEGER)) = $13) \
                 AND ($14 = 0 OR (r.state = '{}' AND NOT EXISTS (SELECT 1 FROM run_events AS e WHERE e.run_no = r.run_no \
                 AND ((e.kind = $15 AND e.message = $16) OR e.kind = $17)))) \
                 AND ($18 = 0 OR r.run_id LIKE '%-c%-r%') \
                 AND ($19 = 0 OR EXISTS (SELECT 1 FROM run_events AS h WHERE h.run_no = r.run_no AND h.kind = $20)) \
                 ORDER BY r.run_no DESC LIMIT $8",
                RunState::Running.name(),
                RunState::Paused.name(),
                RunState::Finished.name(),
            ))
        });
        let part = filter.id_part.as_deref().unwrap_or_default();
        let name_start = escape(filter.name_start.as_deref().unwrap_or_default());
        let lacks = filter.lacks.clone().unwrap_or_default();
        let control_of = filter.control_of.map_or(0, |run| run.0);
        let wanted = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        let mut most = i64::try_from(wanted).unwrap_or(i64::MAX);
        loop {
            let args = args![
                part.chars().count() as i32,
                part,
                filter.user.is_some() as i64,
                escape(filter.user.as_deref().unwrap_or_default()),
                filter.control_of.is_some() as i64,
                control_of,
                (filter.controls || filter.control_of.is_some()) as i64,
                most,
                filter.name.is_some() as i64,
                escape(filter.name.as_deref().unwrap_or_default()),
                filter.open as i64,
                name_start.chars().count() as i32,
                name_start.as_str(),
                filter.lacks.is_some() as i64,
                escape(&lacks.kind),
                escape(&lacks.message),
                escape(&lacks.or_kind),
                filter.cells as i64,
                filter.has_event.is_some() as i64,
                escape(filter.has_event.as_deref().unwrap_or_default()),
            ];
            let rows = self.fetch(&SELECT, args).await?;
            let all = (rows.len() as i64) < most;
            let read: StoreResult<Vec<Option<RunRow>>> = rows.into_iter().map(readable).collect();
            let mut runs: Vec<RunRow> = read?.into_iter().flatten().collect();
            if all || runs.len() >= wanted {
                runs.truncate(wanted);
                return Ok(runs);
            }
            // those that were left out take nobody's place
            most = most.saturating_mul(2);
        }
    }

    async fn set_run_state(
        &self,
        run: RunNo,
        from: &[RunState],
        to: RunState,
        reason: Option<&str>,
    ) -> StoreResult<bool> {
        let (from, reason) = (from.to_vec(), reason.map(str::to_owned));
        self.backend.write(move |conn| Box::pin(change_state(conn, run, from, to, reason))).await
    }

    async fn set_labels(&self, run: RunNo, name: Option<&str>, tags: &[String]) -> StoreResult<()> {
        let (name, tags) = (name.map(escape), to_json(&tags)?);
        self.backend.write(move |conn| Box::pin(change_labels(conn, run, name, tags))).await
    }

    async fn set_limits(&self, run: RunNo, limits: &Limits) -> StoreResult<()> {
        let limits = limits.clone();
        self.backend.write(move |conn| Box::pin(change_limits(conn, run, limits))).await
    }

    async fn running_runs(&self, domain: &str) -> StoreResult<Vec<(RunNo, i64)>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT run_no, state_version FROM runs WHERE domain = $1 AND state = '{}' ORDER BY run_no",
                RunState::Running.name()
            )
        });
        let rows = self.fetch(&SELECT, args![escape(domain)]).await?;
        rows.iter().map(|row| Ok((RunNo(row.int(0)?), row.int(1)?))).collect()
    }

    async fn run_states(&self, runs: &[RunNo]) -> StoreResult<Vec<(RunNo, RunState, i64)>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT r.run_no, r.state, r.state_version FROM @rows($1: run int) AS b JOIN runs AS r ON r.run_no = b.run"
                .to_owned()
        });
        let rows = self.fetch(&SELECT, args![Batch::default().int(runs.iter().map(|run| run.0))]).await?;
        let read = |mut row: Row| Ok((RunNo(row.int(0)?), run_state(&row.text(1)?)?, row.int(2)?));
        rows.into_iter().map(read).collect()
    }

    async fn close_lost_interval(&self, run: RunNo) -> StoreResult<()> {
        static CLOSE: Sql = Sql::new(|| {
            "UPDATE runs SET active_since_us = NULL, active_us = active_us + COALESCE((SELECT c.last_commit_us - runs.active_since_us \
             FROM run_counters AS c WHERE c.run_no = runs.run_no AND c.last_commit_us > runs.active_since_us), 0) \
             WHERE run_no = $1 AND active_since_us IS NOT NULL"
                .to_owned()
        });
        self.execute(&CLOSE, args![run.0]).await.map(drop)
    }

    async fn put_summary(&self, run: RunNo, result_version: i64, summary_json: &str) -> StoreResult<String> {
        let summary = summary_json.to_owned();
        self.backend.write(move |conn| Box::pin(summaries::put(conn, run, result_version, summary))).await
    }

    async fn summary(&self, run: RunNo) -> StoreResult<Option<String>> {
        self.backend.read(move |conn| Box::pin(summaries::current(conn, run))).await
    }

    async fn add_event(&self, run: RunNo, kind: &str, message: &str) -> StoreResult<()> {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        self.backend.write(move |conn| Box::pin(async move { note_event(conn, run, &kind, &message).await })).await
    }

    async fn events(&self, run: RunNo) -> StoreResult<Vec<RunEvent>> {
        static SELECT: Sql =
            Sql::new(|| "SELECT at_us, kind, message FROM run_events WHERE run_no = $1 ORDER BY event_no".to_owned());
        let read = |mut row: Row| {
            let (kind, message) = (unescape(row.text(1)?), unescape(row.text(2)?));
            Ok(RunEvent { at_ms: row.int(0)? / 1000, kind, message })
        };
        self.fetch(&SELECT, args![run.0]).await?.into_iter().map(read).collect()
    }
}
