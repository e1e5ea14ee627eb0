//! Bank rows: reading them, and settling them to what [`derive()`] says.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    bank::{BankEvent, BankState, TRANSITIONS, first_epoch},
    ids::{Role, RunNo, TaskKey, TaskKind},
    step::{StepFacts, StepNo},
    task::{TaskEvent, TaskState},
    transition::states_from,
};

use super::{
    Batch, Conn, Row, Sql, args,
    derive::{Evidence, derive},
    events::note_event,
    guards, task_key, tasks,
};
use crate::{
    BankRow, FilledBank, StoreError, StoreResult,
    codec::{escape, hash, large_from_json, to_json, unescape},
};

/// The condition under which `event` is legal on the row of `banks` that changes.
pub(super) fn allowed(event: BankEvent) -> String {
    let codes: Vec<String> = states_from(TRANSITIONS, event).map(|state| state.code().to_string()).collect();
    format!("state IN ({})", codes.join(", "))
}

fn state_of(code: i64) -> StoreResult<BankState> {
    BankState::from_code(code).ok_or_else(|| StoreError::Corrupt(format!("{code} is no state of a bank").into()))
}

const COLUMNS: &str = "k.bank_no, k.bank_id, k.bank_row, k.content, k.questions, k.gold, k.segments, k.generation, k.handle, \
    k.state, k.position, k.segment, k.open_recalls, k.reason, k.namespaces, \
    CASE WHEN k.incarnation = (SELECT i.incarnation FROM incarnations AS i) THEN 0 ELSE 1 END, \
    k.filled_name, k.filled_handle, k.filled_by, k.later";

fn bank_row(mut row: Row) -> StoreResult<BankRow> {
    let bank_no = row.small(0)?;
    let segments = row.text(6)?;
    let (own_handle, generation) = (row.opt_text(8)?.map(unescape), row.int(7)?);
    let (by, later) = (row.opt_int(18)?, row.opt_text(19)?);
    let filled = match (row.opt_text(16)?, row.opt_text(17)?) {
        // a worker of an earlier release has filled it all the same
        _ if generation <= 1 && own_handle.is_some() => None,
        (Some(name), Some(handle)) => Some(FilledBank { name: unescape(name), handle: unescape(handle), by }),
        _ => None,
    };
    let of_filled = filled.as_ref().filter(|filled| filled.holds_in(generation)).map(|filled| filled.handle.clone());
    Ok(BankRow {
        bank_no,
        bank_id: unescape(row.text(1)?),
        bank_row: row.int(2)?,
        content: hash(&row.blob(3)?, "a bank's content")?,
        questions: hash(&row.blob(4)?, "a bank's questions")?,
        gold: hash(&row.blob(5)?, "a bank's gold")?,
        segments: large_from_json(&segments, || format!("the segments of bank {bank_no}"))?,
        generation,
        handle: own_handle.or(of_filled),
        state: state_of(row.int(9)?)?,
        position: row.small(10)?,
        segment: row.small(11)?,
        open_recalls: row.int(12)?,
        reason: row.opt_text(13)?.map(unescape),
        namespaces: row.text(14)?,
        outdated: row.int(15)? == 1,
        later: later
            .map(|later| large_from_json(&later, || format!("the later questions of bank {bank_no}")))
            .transpose()?,
        filled,
    })
}

fn numbers(bank_nos: &[u32]) -> Batch {
    Batch::default().int(bank_nos.iter().map(|no| i64::from(*no)))
}

/// Banks of a run by number; all of them when `bank_nos` is `None`.
pub(super) async fn read(conn: &mut dyn Conn, run: RunNo, bank_nos: Option<&[u32]>) -> StoreResult<Vec<BankRow>> {
    static ALL: Sql = Sql::new(|| format!("SELECT {COLUMNS} FROM banks AS k WHERE k.run_no = $1 ORDER BY k.bank_no"));
    static SOME: Sql = Sql::new(|| {
        format!(
            "SELECT {COLUMNS} FROM @rows($2: bank int) AS b JOIN banks AS k ON k.run_no = @each($1, b.bank) AND k.bank_no = b.bank \
             ORDER BY k.bank_no"
        )
    });
    let rows = match bank_nos {
        None => conn.fetch(&ALL, args![run.0]).await?,
        Some(bank_nos) => conn.fetch(&SOME, args![run.0, numbers(bank_nos)]).await?,
    };
    rows.into_iter().map(bank_row).collect()
}

/// What settling did.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Roles in which tasks became ready.
    pub(super) opened: BTreeSet<Role>,
    /// Questions that failed with their bank.
    pub(super) failed: Vec<TaskKey>,
    /// Change of the number of banks that are ready to the end.
    pub(super) banks_ready: i64,
}

/// Locks the rows of banks (ascending, each once).
pub(super) async fn lock(conn: &mut dyn Conn, run: RunNo, bank_nos: &[u32]) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| {
        "SELECT k.bank_row FROM @rows($2: bank int) AS b JOIN banks AS k ON k.run_no = @each($1, b.bank) AND k.bank_no = b.bank ORDER BY k.bank_no"
            .to_owned()
    });
    conn.lock(&LOCK, args![run.0, numbers(bank_nos)]).await
}

/// Brings banks (ascending, each once) to what their tasks and checkpoints say: row, missing tasks, failed questions.
pub(super) async fn settle(conn: &mut dyn Conn, run: RunNo, bank_nos: &[u32]) -> StoreResult<Settled> {
    static UPDATE: Sql = Sql::new(|| {
        "UPDATE banks AS k SET state = b.state, segment = b.segment, position = b.position, open_recalls = b.open_recalls, \
         reason = b.reason FROM @rows($2: bank int, state int, segment int, position int, open_recalls int, reason text) AS b \
         WHERE k.run_no = @each($1, b.bank) AND k.bank_no = b.bank"
            .to_owned()
    });
    let mut settled = Settled::default();
    if bank_nos.is_empty() {
        return Ok(settled);
    }
    lock(conn, run, bank_nos).await?;
    let banks = read(conn, run, Some(bank_nos)).await?;
    let mut evidence = evidence(conn, run, &banks).await?;
    let (mut changed, mut open) = (Vec::new(), Vec::new());
    for bank in banks {
        let evidence = evidence.remove(&bank.bank_no).unwrap_or_default();
        let target = derive(&bank, &evidence);
        open.extend(target.missing.iter().map(|task| (run, *task, first_epoch(bank.generation))));
        let mut reason = None;
        if let Some(failed_by) = target.failed_by {
            let facts = failure_facts(conn, run, failed_by).await?;
            reason = Some(match &facts {
                StepFacts::Failed { failure, .. } => failure.to_string(),
                _ => "its tasks failed".to_owned(),
            });
            settled.failed.extend(fail_questions(conn, run, &target.fail, first_epoch(bank.generation), &facts).await?);
            if bank.state != BankState::Failed {
                let message = format!("bank {}: {}", bank.bank_id, reason.as_deref().unwrap_or_default());
                note_event(conn, run, "bank_failed", &message).await?;
            }
        }
        let row = BankRow {
            state: target.state,
            segment: target.segment,
            open_recalls: target.open_recalls,
            position: evidence.position,
            reason,
            ..bank.clone()
        };
        settled.banks_ready += i64::from(is_complete(&row)) - i64::from(is_complete(&bank));
        if row != bank {
            changed.push(row);
        }
    }
    if !changed.is_empty() {
        let batch = Batch::default()
            .int(changed.iter().map(|bank| i64::from(bank.bank_no)))
            .int(changed.iter().map(|bank| bank.state.code()))
            .int(changed.iter().map(|bank| i64::from(bank.segment)))
            .int(changed.iter().map(|bank| i64::from(bank.position)))
            .int(changed.iter().map(|bank| bank.open_recalls))
            .opt_text(changed.iter().map(|bank| bank.reason.as_deref().map(escape)));
        conn.execute(&UPDATE, args![run.0, batch]).await?;
    }
    settled.opened = tasks::open(conn, &open).await?.into_iter().map(|(_, task)| task.kind().role()).collect();
    Ok(settled)
}

/// All segments of the bank have been proven ready.
pub(super) fn is_complete(bank: &BankRow) -> bool {
    bank.state == BankState::Ready && bank.segment as usize + 1 == bank.segments.len()
}

/// Reads what is stored of the banks' work.
async fn evidence(conn: &mut dyn Conn, run: RunNo, banks: &[BankRow]) -> StoreResult<BTreeMap<u32, Evidence>> {
    static TASKS: Sql = Sql::new(|| {
        "SELECT t.task_key, t.state FROM @rows($2: low int, high int) AS b \
         JOIN tasks AS t ON t.run_no = @each($1, b.low) AND t.task_key BETWEEN b.low AND b.high"
            .to_owned()
    });
    static RECALLS: Sql = Sql::new(|| {
        format!(
            "SELECT c.task_key FROM @rows($2: low int, high int) AS b \
             JOIN checkpoints AS c ON c.run_no = @each($1, b.low) AND c.task_key BETWEEN b.low AND b.high AND c.step_no = {}",
            StepNo::RECALL.0
        )
    });
    static POSITIONS: Sql = Sql::new(|| {
        format!(
            "SELECT b.low, max(c.step_no) + 1 FROM @rows($2: low int, high int) AS b \
             JOIN checkpoints AS c ON c.run_no = @each($1, b.low) AND c.task_key BETWEEN b.low AND b.high AND c.step_no < {} GROUP BY b.low",
            StepNo::FAILED.0
        )
    });
    let ranges = |kinds: &[TaskKind]| {
        let all: Vec<_> =
            banks.iter().flat_map(|k| kinds.iter().map(|kind| TaskKey::range(*kind, k.bank_no))).collect();
        Batch::default().int(all.iter().map(|(low, _)| low.0)).int(all.iter().map(|(_, high)| high.0))
    };
    let mut found: BTreeMap<u32, Evidence> = BTreeMap::new();
    for row in
        conn.fetch(&TASKS, args![run.0, ranges(&[TaskKind::Retain, TaskKind::Ready, TaskKind::Question])]).await?
    {
        let task = task_key(&row, 0)?;
        found.entry(task.bank()).or_default().tasks.insert(task, tasks::task_state(&row, 1)?);
    }
    for row in conn.fetch(&RECALLS, args![run.0, ranges(&[TaskKind::Question])]).await? {
        let task = task_key(&row, 0)?;
        found.entry(task.bank()).or_default().recalled.insert(task);
    }
    for row in conn.fetch(&POSITIONS, args![run.0, ranges(&[TaskKind::Retain])]).await? {
        found.entry(task_key(&row, 0)?.bank()).or_default().position = row.small(1)?;
    }
    Ok(found)
}

/// The stored reason of a failed task.
async fn failure_facts(conn: &mut dyn Conn, run: RunNo, task: TaskKey) -> StoreResult<StepFacts> {
    static SELECT: Sql =
        Sql::new(|| "SELECT facts FROM checkpoints WHERE run_no = $1 AND task_key = $2 AND step_no = $3".to_owned());
    let mut rows = conn.fetch(&SELECT, args![run.0, task.0, StepNo::FAILED.0]).await?;
    let what = || format!("the failure of {task:?}");
    let row = rows.first_mut().ok_or_else(|| StoreError::Corrupt(format!("{} is not stored", what()).into()))?;
    large_from_json(&row.text(0)?, what)
}

/// Fails questions with the facts of their bank, whether they have been planned or not; returns those that had not ended.
async fn fail_questions(
    conn: &mut dyn Conn,
    run: RunNo,
    questions: &[TaskKey],
    epoch: i64,
    facts: &StepFacts,
) -> StoreResult<Vec<TaskKey>> {
    static FAIL: Sql = Sql::new(|| {
        format!(
            "INSERT INTO tasks AS t (run_no, task_key, state, lease_epoch, ready_at) \
             SELECT $1, b.task, {failed}, $3, @now FROM @rows($2: task int) AS b WHERE true \
             ON CONFLICT (run_no, task_key) DO UPDATE SET {change}, session = NULL WHERE {allowed} RETURNING task_key",
            failed = TaskState::Failed.code(),
            change = guards::change(TaskEvent::BankFailed),
            allowed = guards::allowed(TaskEvent::BankFailed, "t.lease_epoch"),
        )
    });
    static STORE: Sql = Sql::new(|| {
        "INSERT INTO checkpoints (run_no, task_key, step_no, facts) SELECT $1, b.task, $3, $4 FROM @rows($2: task int) AS b \
         WHERE true ON CONFLICT (run_no, task_key, step_no) DO NOTHING"
            .to_owned()
    });
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    let batch = |tasks: &[TaskKey]| Batch::default().int(tasks.iter().map(|task| task.0));
    let rows = conn.fetch(&FAIL, args![run.0, batch(questions), epoch]).await?;
    let failed: Vec<TaskKey> = rows.iter().map(|row| task_key(row, 0)).collect::<StoreResult<_>>()?;
    conn.execute(&STORE, args![run.0, batch(&failed), StepNo::FAILED.0, to_json(facts)?]).await?;
    Ok(failed)
}
