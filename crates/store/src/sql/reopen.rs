//! Reopening what failed (`retry`): good steps stay, failed ones go, failed banks start in a new generation (P5, P6, P22).

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    bank::{BankEvent, BankState},
    facts::QuestionFacts,
    failure::code::MEMORIES_LOST,
    ids::{RunNo, TaskKey, TaskKind},
    step::StepNo,
    task::{TaskEvent, TaskState},
};

use super::{
    Batch, CHUNK, Conn, JUDGE_OFFSET, Sql, args, banks,
    counters::{self, Delta},
    events::note_event,
    guards::{allowed_in_batch, change},
    incarnations::raise_generation,
    must_exist,
    runs::change_state,
    task_key, tasks,
};
use crate::{RetryScope, RunState, StoreError, StoreResult};

/// A concluded question that is to be repeated.
struct Candidate {
    task: TaskKey,
    state: TaskState,
    recalled: bool,
    infra_error: bool,
    /// It failed because the memory system has lost what its bank had been filled with.
    lost: bool,
}

/// Reopens; returns the number of questions. A run that has ended is paused with it.
pub(super) async fn reopen(conn: &mut dyn Conn, run: RunNo, scope: RetryScope) -> StoreResult<u64> {
    static RAISE: Sql = Sql::new(|| "UPDATE runs SET result_version = result_version + 1 WHERE run_no = $1".to_owned());
    static LOCK: Sql = Sql::new(|| "SELECT run_no FROM runs WHERE run_no = $1".to_owned());
    counters::require(conn, run).await?;
    // tasks before their run, as everybody locks them
    let seen: BTreeSet<TaskKey> = candidates(conn, run, scope).await?.iter().map(|c| c.task).collect();
    tasks::lock(conn, &seen.iter().map(|task| (run, *task)).collect::<Vec<_>>()).await?;
    // two of them at once would count the same questions twice, and whoever deletes the run leaves none
    conn.lock(&LOCK, args![run.0]).await?;
    let mut candidates = candidates(conn, run, scope).await?;
    candidates.retain(|c| seen.contains(&c.task));
    if candidates.is_empty() {
        return Ok(0);
    }
    let bank_nos: BTreeSet<u32> = candidates.iter().map(|c| c.task.bank()).collect();
    let bank_nos: Vec<u32> = bank_nos.into_iter().collect();
    let (mut anew, mut banks_ready) = (BTreeMap::new(), 0);
    for part in bank_nos.chunks(CHUNK) {
        for bank in banks::read(conn, run, Some(part)).await? {
            // a recall that is missing after its segment closed can only be made in a new generation (P6), unless
            // nothing more is retained since: the segment behind the last question is there for canaries alone
            let until = bank.segments.get(bank.segment as usize).map_or(0, |segment| segment.until);
            let closed = |c: &Candidate| {
                let before = bank.segments.iter().take(bank.segment as usize).filter(|segment| segment.until < until);
                !c.recalled
                    && c.state == TaskState::Failed
                    && before.flat_map(|s| &s.questions).any(|q| *q == c.task.index())
            };
            let of_bank = || candidates.iter().filter(|c| c.task.bank() == bank.bank_no);
            // what is gone has to be stored again
            let lost = |c: &Candidate| c.lost && !c.recalled;
            // of a run that came from an archive or took its recalls over, no memory system holds the bank
            let never_filled =
                bank.position == 0 && until > 0 && bank.filled.is_none() && bank.state == BankState::Ready;
            let needs_it = |c: &Candidate| never_filled && !c.recalled && c.state == TaskState::Failed;
            let needs_another = |c: &Candidate| closed(c) || lost(c) || needs_it(c);
            if bank.state == BankState::Failed || of_bank().any(needs_another) {
                anew.insert(bank.bank_no, bank.position);
                banks_ready -= i64::from(banks::is_complete(&bank));
            }
        }
    }
    let infra_error = candidates.iter().filter(|c| c.infra_error).count() as i64;
    for part in candidates.chunks(CHUNK) {
        forget_ends(conn, run, part).await?;
        reopen_tasks(conn, run, part, &anew).await?;
    }
    forget_probe(conn, run).await?;
    let positions: i64 = anew.values().map(|position| i64::from(*position)).sum();
    for part in anew.keys().copied().collect::<Vec<_>>().chunks(CHUNK) {
        start_anew(conn, run, part).await?;
    }
    for part in bank_nos.chunks(CHUNK) {
        banks_ready += banks::settle(conn, run, part).await?.banks_ready;
    }
    let delta = Delta { infra_error: -infra_error, entries_retained: -positions, banks_ready, ..Delta::default() };
    counters::add_to(conn, run, delta).await?;
    must_exist(conn.execute(&RAISE, args![run.0]).await?, run)?;
    let count = candidates.len() as u64;
    note_event(conn, run, "reopened", &format!("{count} questions")).await?;
    // in this transaction: a run that stayed finished would be over for everybody else, and its questions lost
    let reason = Some("what failed is repeated".to_owned());
    change_state(conn, run, vec![RunState::Finished, RunState::Cancelled], RunState::Paused, reason).await?;
    Ok(count)
}

/// The latency probe belongs to the result that it was made for: another is made when the questions have ended again (P43).
async fn forget_probe(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static STEPS: Sql = Sql::new(|| "DELETE FROM checkpoints WHERE run_no = $1 AND task_key = $2".to_owned());
    static TASK: Sql = Sql::new(|| "DELETE FROM tasks WHERE run_no = $1 AND task_key = $2".to_owned());
    conn.execute(&STEPS, args![run.0, TaskKey::PROBE.0]).await?;
    conn.execute(&TASK, args![run.0, TaskKey::PROBE.0]).await.map(drop)
}

async fn candidates(conn: &mut dyn Conn, run: RunNo, scope: RetryScope) -> StoreResult<Vec<Candidate>> {
    static SELECT: Sql = Sql::new(|| {
        format!(
            "SELECT f.task_key, t.state, CASE WHEN EXISTS (SELECT 1 FROM checkpoints AS c WHERE c.run_no = f.run_no \
             AND c.task_key = f.task_key AND c.step_no = {}) THEN 1 ELSE 0 END, \
             CASE WHEN f.outcome = 'infra_error' THEN f.doc ELSE '' END \
             FROM facts AS f JOIN tasks AS t ON t.run_no = f.run_no AND t.task_key = f.task_key \
             WHERE f.run_no = $1 AND (f.outcome = 'infra_error' OR ($2 = 1 AND f.outcome = 'not_run')) ORDER BY f.task_key",
            StepNo::RECALL.0
        )
    });
    let rows = conn.fetch(&SELECT, args![run.0, scope == RetryScope::ErrorsAndNotRun]).await?;
    let read = |mut row: super::Row| {
        let failed = Some(row.text(3)?).filter(|doc| !doc.is_empty());
        let facts: Option<QuestionFacts> = failed
            .map(|doc| crate::codec::large_from_json(&doc, || "the facts of a question".to_owned()))
            .transpose()?;
        Ok(Candidate {
            task: task_key(&row, 0)?,
            state: tasks::task_state(&row, 1)?,
            recalled: row.int(2)? == 1,
            infra_error: facts.is_some(),
            lost: facts.and_then(|facts| facts.failure).is_some_and(|failure| failure.code == MEMORIES_LOST),
        })
    };
    rows.into_iter().map(read).collect()
}

/// Removes conclusions and stored failures of questions and their judge tasks.
async fn forget_ends(conn: &mut dyn Conn, run: RunNo, candidates: &[Candidate]) -> StoreResult<()> {
    static FACTS: Sql = Sql::new(|| {
        "DELETE FROM facts WHERE (run_no, task_key) IN (SELECT @each($1, b.task), b.task FROM @rows($2: task int) AS b)"
            .to_owned()
    });
    static UNMARK: Sql = Sql::new(|| {
        "UPDATE tasks SET concluded = 0 WHERE (run_no, task_key) IN (SELECT @each($1, b.task), b.task FROM @rows($2: task int) AS b)"
            .to_owned()
    });
    let keys = || Batch::default().int(candidates.iter().map(|c| c.task.0));
    conn.execute(&FACTS, args![run.0, keys()]).await?;
    conn.execute(&UNMARK, args![run.0, keys()]).await.map(drop)
}

/// Makes failed questions and failed votes ready again with fresh counters. A question that needs a recall from a bank that
/// starts anew goes back to being planned: it has no row until its segment is ready.
async fn reopen_tasks(
    conn: &mut dyn Conn,
    run: RunNo,
    candidates: &[Candidate],
    anew: &BTreeMap<u32, u32>,
) -> StoreResult<()> {
    static FAILED_VOTES: Sql = Sql::new(|| {
        format!(
            "SELECT j.task_key FROM @rows($2: task int) AS b JOIN tasks AS j ON j.run_no = @each($1, b.task) \
             AND j.task_key BETWEEN b.task + {JUDGE_OFFSET} AND b.task + {} AND j.state = {}",
            JUDGE_OFFSET + TaskKey::INDEX_STEP - 1,
            TaskState::Failed.code()
        )
    });
    static FORGET: Sql = Sql::new(|| {
        format!(
            "DELETE FROM checkpoints WHERE (run_no, task_key) IN (SELECT @each($1, b.task), b.task FROM @rows($2: task int) AS b) AND step_no = {}",
            StepNo::FAILED.0
        )
    });
    static REOPEN: Sql = Sql::new(|| {
        format!(
            "UPDATE tasks AS t SET {}, session = NULL, attempts = 0, losses = 0, not_before = 0, ready_at = @now, \
             published_at = NULL, publish_count = 0, open_children = 0, reason = NULL FROM @rows($2: task int) AS b \
             WHERE t.run_no = @each($1, b.task) AND t.task_key = b.task AND {}",
            change(TaskEvent::Reopen),
            allowed_in_batch(TaskEvent::Reopen, "t.lease_epoch")
        )
    });
    static UNPLAN: Sql = Sql::new(|| {
        "DELETE FROM tasks WHERE (run_no, task_key) IN (SELECT @each($1, b.task), b.task FROM @rows($2: task int) AS b)"
            .to_owned()
    });
    let batch = |keys: &[TaskKey]| Batch::default().int(keys.iter().map(|key| key.0));
    let questions: Vec<TaskKey> = candidates.iter().map(|c| c.task).collect();
    let rows = conn.fetch(&FAILED_VOTES, args![run.0, batch(&questions)]).await?;
    let votes: Vec<TaskKey> = rows.iter().map(|row| task_key(row, 0)).collect::<StoreResult<_>>()?;
    let ends: Vec<TaskKey> = questions.iter().chain(&votes).copied().collect();
    conn.execute(&FORGET, args![run.0, batch(&ends)]).await?;
    forget_strays(conn, run, &questions).await?;
    conn.execute(&REOPEN, args![run.0, batch(&ends)]).await?;
    let unplanned =
        candidates.iter().filter(|c| !c.recalled && c.state == TaskState::Failed && anew.contains_key(&c.task.bank()));
    let unplanned: Vec<TaskKey> = unplanned.map(|c| c.task).collect();
    conn.execute(&UNPLAN, args![run.0, batch(&unplanned)]).await?;
    count_votes(conn, run, batch(&questions)).await
}

/// Removes texts of questions and their votes that belong to no stored step, as of what came from an archive: the step is done again,
/// and brings a text of its own.
async fn forget_strays(conn: &mut dyn Conn, run: RunNo, questions: &[TaskKey]) -> StoreResult<()> {
    static STRAYS: Sql = Sql::new(|| {
        "SELECT x.task_key, x.step_no FROM @rows($2: low int, high int) AS b \
         JOIN texts AS x ON x.run_no = @each($1, b.low) AND x.task_key BETWEEN b.low AND b.high \
         WHERE NOT EXISTS (SELECT 1 FROM checkpoints AS c WHERE c.run_no = x.run_no AND c.task_key = x.task_key \
         AND c.step_no = x.step_no)"
            .to_owned()
    });
    static FORGET: Sql = Sql::new(|| {
        "DELETE FROM texts WHERE (run_no, task_key, step_no) IN \
         (SELECT @each($1, b.task), b.task, b.step FROM @rows($2: task int, step int) AS b)"
            .to_owned()
    });
    let ranges: Vec<(TaskKey, TaskKey)> =
        questions.iter().flat_map(|question| [(*question, *question), question.judges()]).collect();
    let batch = Batch::default().int(ranges.iter().map(|(low, _)| low.0)).int(ranges.iter().map(|(_, high)| high.0));
    let strays = conn.fetch(&STRAYS, args![run.0, batch]).await?;
    if strays.is_empty() {
        return Ok(());
    }
    let column = |at: usize| strays.iter().map(|row| row.int(at)).collect::<StoreResult<Vec<i64>>>();
    let batch = Batch::default().int(column(0)?).int(column(1)?);
    conn.execute(&FORGET, args![run.0, batch]).await.map(drop).map_err(granted_by_migrate)
}

/// A store whose roles an older build has named does not let its coordinators delete texts.
fn granted_by_migrate(error: StoreError) -> StoreError {
    match error {
        StoreError::Denied(why) => StoreError::Denied(format!(
            "{why} (texts of a restored run that are made anew are deleted; where an older build has named the roles of this store, \
             `bench-coord migrate` of this one, with the URL of the store's owner, gives the right to `coordinate`)"
        )),
        other => other,
    }
}

/// Sets the counters of questions whose votes were reopened.
async fn count_votes(conn: &mut dyn Conn, run: RunNo, questions: Batch) -> StoreResult<()> {
    static COUNT: Sql = Sql::new(|| {
        format!(
            "UPDATE tasks AS t SET open_children = (SELECT count(*) FROM tasks AS j WHERE j.run_no = t.run_no \
             AND j.task_key BETWEEN t.task_key + {JUDGE_OFFSET} AND t.task_key + {} AND j.state IN ({}, {})) \
             FROM @rows($2: task int) AS b WHERE t.run_no = @each($1, b.task) AND t.task_key = b.task AND t.state = {}",
            JUDGE_OFFSET + TaskKey::INDEX_STEP - 1,
            TaskState::Ready.code(),
            TaskState::Leased.code(),
            TaskState::Done.code()
        )
    });
    conn.execute(&COUNT, args![run.0, questions]).await.map(drop)
}

/// Raises the generation of banks and forgets their retain and ready tasks; settling plans them again.
async fn start_anew(conn: &mut dyn Conn, run: RunNo, bank_nos: &[u32]) -> StoreResult<()> {
    fn within(table: &str) -> String {
        format!("DELETE FROM {table} WHERE run_no = $1 AND task_key BETWEEN $2 AND $3")
    }
    static STEPS: Sql = Sql::new(|| within("checkpoints"));
    static TASKS: Sql = Sql::new(|| within("tasks"));
    static RAISE: Sql = Sql::new(|| {
        format!(
            "UPDATE banks SET {}, state = {}, reason = NULL \
             WHERE (run_no, bank_no) IN (SELECT @each($1, b.bank), b.bank FROM @rows($2: bank int) AS b)",
            raise_generation(),
            BankEvent::Reopened.leads_to().code()
        )
    });
    for bank_no in bank_nos {
        for kind in [TaskKind::Retain, TaskKind::Ready] {
            let (low, high) = TaskKey::range(kind, *bank_no);
            conn.execute(&STEPS, args![run.0, low.0, high.0]).await?;
            conn.execute(&TASKS, args![run.0, low.0, high.0]).await?;
        }
    }
    let numbers = Batch::default().int(bank_nos.iter().map(|no| i64::from(*no)));
    conn.execute(&RAISE, args![run.0, numbers]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_that_roles_of_an_older_build_lack_is_had_by_a_migration() {
        let told = granted_by_migrate(StoreError::Denied("permission denied for table texts".to_owned()));
        assert!(matches!(told, StoreError::Denied(_)), "{told}");
        let told = told.to_string();
        assert!(
            told.starts_with("permission denied for table texts") && told.contains("`bench-coord migrate`"),
            "{told}"
        );
        let full = granted_by_migrate(StoreError::Full("x".to_owned().into())).to_string();
        assert!(!full.contains("migrate"), "{full}");
    }
}
