//! The checkpoint transaction (P3, P7, P8): a batch of step records and everything that follows from them.
//!
//! What is stored is decided by the database (first record wins, guards on the task), what follows from it by the list of
//! records that were really inserted. Bank rows are counted down here; whenever a bank reaches a turning point, it is
//! settled from its checkpoints ([`banks::settle`]).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bench_proto::{
    bank::{BankState, planned_generation},
    facts::QuestionFacts,
    ids::{Role, RunNo, TaskKey, TaskKind},
    step::{Effect, Opens, StepFacts, StepNo, StepRecord},
    task::{TaskEvent, TaskState, transition},
};

use super::{
    Batch, Conn, Sql, args, banks,
    calls::{self, NewCall},
    conclude,
    guards::{allowed_in_batch, change},
    incarnations,
    money::{self, LedgerChange},
    task_key,
    tasks::{self, Standings, pairs},
};
use crate::{
    CommitMark, CommitOutcome, Conclusion, StoreError, StoreResult,
    codec::{large_from_json, to_frame, to_json},
};

/// A record ready to be written: serialised and compressed by the caller, not by the one writer.
struct Step {
    /// Its place in the batch.
    at: usize,
    run: RunNo,
    task: TaskKey,
    step: StepNo,
    epoch: i64,
    end: End,
    /// The bank's generation that it belongs to, where a record of an older one must not count.
    generation: Option<i64>,
    facts: String,
    text: Option<Vec<u8>>,
    what: What,
    judges: Vec<TaskKey>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Continues,
    Done,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Retained,
    Recalled,
    Answered,
    Other,
}

/// A batch ready to be written.
pub(super) struct Prepared {
    /// Records by (run, task), those of a task in their order.
    steps: Vec<Step>,
    /// Keys of records that are not tried: a second one under a key, or one after its task's end.
    skipped: Vec<(usize, (RunNo, TaskKey, StepNo))>,
    /// Questions that may be complete afterwards.
    ended: BTreeSet<(RunNo, TaskKey)>,
    calls: Vec<NewCall>,
    runs: BTreeSet<RunNo>,
    /// Facts of questions that end with the records of this batch, by run and headline metric.
    conclusions: Vec<Conclusion>,
}

/// Checks, serialises and compresses a batch.
pub(super) fn prepare(records: &[StepRecord], conclusions: &[Conclusion]) -> StoreResult<Prepared> {
    let mut prepared = Prepared {
        steps: Vec::with_capacity(records.len()),
        skipped: vec![],
        ended: BTreeSet::new(),
        calls: vec![],
        runs: BTreeSet::new(),
        conclusions: conclusions.to_vec(),
    };
    let (mut keys, mut closed) = (HashSet::new(), HashSet::new());
    // what follows a recall in its batch rests on it
    let mut recalled: HashMap<(RunNo, TaskKey), i64> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let (end, judges) = check(record)?;
        let (run, task, step) = (record.run, record.task, record.step);
        prepared.runs.insert(run);
        if end != End::Continues && matches!(task.kind(), TaskKind::Question | TaskKind::Judge) {
            prepared.ended.insert((run, task.question_of()));
        }
        for call in &record.calls {
            prepared.calls.push(calls::prepare(run, task, call)?);
        }
        if closed.contains(&(run, task)) || !keys.insert((run, task, step)) {
            prepared.skipped.push((at, (run, task, step)));
            continue;
        }
        if end != End::Continues {
            closed.insert((run, task));
        }
        let (what, generation) = match &record.facts {
            StepFacts::Retained { generation, .. } => (What::Retained, Some(*generation)),
            StepFacts::Consolidated { generation, .. } => (What::Other, Some(*generation)),
            StepFacts::Listed(part) => (What::Other, Some(part.generation)),
            StepFacts::Ready { .. } => (What::Other, Some(planned_generation(record.epoch))),
            StepFacts::Recalled { generation, .. } => {
                recalled.insert((run, task), *generation);
                (What::Recalled, Some(*generation))
            }
            StepFacts::Searched { generation, .. } => (What::Other, Some(*generation)),
            StepFacts::Answered { .. } => (What::Answered, recalled.get(&(run, task)).copied()),
            StepFacts::Scored { .. } => (What::Other, recalled.get(&(run, task)).copied()),
            StepFacts::Phrased { .. }
            | StepFacts::Judged { .. }
            | StepFacts::JudgedPart { .. }
            | StepFacts::Probed(_)
            | StepFacts::Failed { .. } => (What::Other, None),
        };
        let facts = to_json(&record.facts)?;
        let text = record.text.as_ref().map(to_frame).transpose()?;
        let epoch = record.epoch;
        prepared.steps.push(Step { at, run, task, step, epoch, end, generation, facts, text, what, judges });
    }
    prepared.steps.sort_by_key(|step| (step.run, step.task));
    Ok(prepared)
}

/// Refuses records that contradict themselves; says how the task ends and which judges it opens.
fn check(record: &StepRecord) -> StoreResult<(End, Vec<TaskKey>)> {
    let (task, kind) = (record.task, record.task.kind());
    let refuse = |why: &str| Err(StoreError::BadData(format!("step {} of {task:?} {why}", record.step.0)));
    let failed = matches!(record.facts, StepFacts::Failed { .. });
    if failed != (record.effect == Effect::Failed) || failed != (record.step == StepNo::FAILED) {
        return refuse(
            "says both that it failed and that it succeeded: facts, effect and number of the step have to agree",
        );
    }
    if record.text.is_some() && (failed || matches!(kind, TaskKind::Retain | TaskKind::Ready)) {
        return refuse("brings a text, which only results of questions and judges may have");
    }
    let is_part = matches!(record.facts, StepFacts::JudgedPart { .. });
    if is_part != (kind == TaskKind::Judge && record.step.call_of_vote().is_some())
        || (is_part && record.effect != Effect::Continue)
    {
        return refuse("does not say whether it is a judge's whole vote or one call of it, which ends no task");
    }
    match &record.effect {
        Effect::Continue => Ok((End::Continues, Vec::new())),
        Effect::Failed => Ok((End::Failed, Vec::new())),
        Effect::Done { opens } => match (opens, kind) {
            (Opens::Nothing, TaskKind::Question | TaskKind::Judge)
            | (Opens::ReadyTask, TaskKind::Retain)
            | (Opens::SegmentQuestions, TaskKind::Ready) => Ok((End::Done, Vec::new())),
            (Opens::Judges(keys), TaskKind::Question)
                if keys.iter().all(|key| key.kind() == TaskKind::Judge && key.question_of() == task) =>
            {
                Ok((End::Done, keys.clone()))
            }
            _ => refuse("opens tasks that a task of its kind does not open"),
        },
    }
}

/// What the transaction found out.
pub(super) struct Written {
    /// Places of the records that were stored now.
    stored: HashSet<usize>,
    /// Facts that were there before, by record.
    before: HashMap<usize, StepFacts>,
    to_conclude: Vec<(RunNo, TaskKey)>,
    opened: BTreeSet<(RunNo, Role)>,
}

impl Written {
    /// The answer to the caller.
    pub(super) fn outcome(mut self, records: &[StepRecord]) -> CommitOutcome {
        let mut outcome = CommitOutcome { to_conclude: self.to_conclude, ..CommitOutcome::default() };
        outcome.opened = self.opened.into_iter().collect();
        for (at, record) in records.iter().enumerate() {
            let before = if self.stored.contains(&at) { None } else { self.before.remove(&at) };
            if before.is_none() && !self.stored.contains(&at) {
                outcome.refused.push(at);
                outcome.already.push(Some(record.facts.clone()));
            } else {
                outcome.already.push(before);
            }
        }
        outcome
    }
}

/// Writes a batch.
pub(super) async fn write(conn: &mut dyn Conn, prepared: Prepared, mark: Option<CommitMark>) -> StoreResult<Written> {
    let Prepared { mut steps, skipped, ended, calls, runs, mut conclusions } = prepared;
    let mut locked: BTreeSet<(RunNo, TaskKey)> = steps.iter().map(|s| (s.run, s.task)).collect();
    locked.extend(&ended);
    let standings = lock(conn, &steps, locked.into_iter().collect()).await?;

    let inserted = insert_steps(conn, &mut steps, &standings).await?;
    let is_new = |step: &Step| inserted.contains(&(step.run, step.task, step.step));
    // a question of which something was stored before is concluded from the store
    let known: HashSet<_> = steps.iter().filter(|s| !is_new(s)).map(|s| (s.run, s.task)).collect();
    conclusions.retain(|c| ended.contains(&(c.run, c.facts.task)) && !known.contains(&(c.run, c.facts.task)));
    let missed = steps.iter().filter(|s| !is_new(s)).map(|s| (s.at, (s.run, s.task, s.step)));
    let before = stored_before(conn, missed.chain(skipped).collect()).await?;
    steps.retain(is_new);
    let stored = steps.iter().map(|step| step.at).collect();
    insert_texts(conn, &mut steps).await?;

    let mut ledger = LedgerChange::for_runs(runs);
    let paid = calls::insert(conn, calls).await?;
    money::settle(conn, &paid, &mut ledger).await?;
    for step in &steps {
        let delta = ledger.runs.entry(step.run).or_default();
        delta.answered += i64::from(step.what == What::Answered);
        delta.entries_retained += i64::from(step.what == What::Retained);
    }

    let concluded: HashSet<_> = conclusions.iter().map(|c| (c.run, c.facts.task)).collect();
    let Ended { mut opened, complete } = end_tasks(conn, &steps, &concluded).await?;
    let mut to_conclude: BTreeSet<_> =
        complete.iter().filter(|(_, complete)| **complete).map(|(key, _)| *key).collect();
    let mut unknown: BTreeSet<_> = ended.into_iter().filter(|question| !complete.contains_key(question)).collect();
    store_conclusions(conn, conclusions, &mut ledger).await?;
    // from here on writers meet: in the rows of banks, then in the ledger
    for (run, banks) in count_down_banks(conn, &steps).await? {
        let settled = banks::settle(conn, run, &banks.into_iter().collect::<Vec<_>>()).await?;
        opened.extend(settled.opened.into_iter().map(|role| (run, role)));
        unknown.extend(settled.failed.into_iter().map(|task| (run, task)));
        ledger.runs.entry(run).or_default().banks_ready += settled.banks_ready;
    }
    to_conclude.extend(ripe_of(conn, &unknown).await?);
    ledger.write_at_last(conn).await?;
    if let Some(mark) = mark {
        incarnations::mark_at_last(conn, mark).await?;
    }
    Ok(Written { stored, before, to_conclude: to_conclude.into_iter().collect(), opened })
}

/// Stores the facts of questions that the batch has marked as concluded.
async fn store_conclusions(
    conn: &mut dyn Conn,
    conclusions: Vec<Conclusion>,
    ledger: &mut LedgerChange,
) -> StoreResult<()> {
    let mut groups: BTreeMap<(RunNo, String), Vec<QuestionFacts>> = BTreeMap::new();
    for Conclusion { run, headline_metric, facts } in conclusions {
        groups.entry((run, headline_metric)).or_default().push(facts);
    }
    for ((run, headline_metric), facts) in groups {
        let new = conclude::insert(conn, run, &headline_metric, &facts, conclude::rows(&facts)?).await?;
        new.note_traces(conn, run).await?;
        ledger.runs.entry(run).or_default().add_ended(new.delta);
    }
    Ok(())
}

/// Locks the tasks of a batch. A bank that fails takes its questions with it: they are locked now, in one order with the
/// others, because tasks are never locked after a bank.
async fn lock(conn: &mut dyn Conn, steps: &[Step], tasks: Vec<(RunNo, TaskKey)>) -> StoreResult<Standings> {
    let fails = |s: &&Step| s.end == End::Failed && matches!(s.task.kind(), TaskKind::Retain | TaskKind::Ready);
    let questions = |s: &Step| {
        let (low, high) = TaskKey::range(TaskKind::Question, s.task.bank());
        (s.run, low, high)
    };
    let mut ranges: Vec<_> = steps.iter().filter(fails).map(questions).collect();
    if ranges.is_empty() {
        return tasks::lock_and_read(conn, &tasks).await;
    }
    ranges.extend(tasks.into_iter().map(|(run, task)| (run, task, task)));
    tasks::lock_and_read_ranges(conn, &ranges).await
}

type StepKey = (RunNo, TaskKey, StepNo);

/// Whether the transition table lets a task in this state and epoch take the record (P27).
fn is_allowed(step: &Step, standings: &Standings) -> bool {
    let event = if step.end == End::Failed { TaskEvent::GiveUp } else { TaskEvent::Finish };
    let standing = standings.get(&(step.run, step.task));
    standing.is_some_and(|(state, epoch)| transition(*state, event, *epoch == step.epoch).is_some())
}

/// Inserts the records that the guards of their tasks and the generations of their banks (P5) allow and that are not there;
/// returns their keys. The tasks are locked, so where they stand need not be looked up for each record again.
async fn insert_steps(conn: &mut dyn Conn, steps: &mut [Step], standings: &Standings) -> StoreResult<HashSet<StepKey>> {
    // the clock is read once, not for each row
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO checkpoints (run_no, task_key, step_no, facts, stored_us) \
         SELECT b.run, b.task, b.step, b.facts, (SELECT @now) \
         FROM @rows($1: run int, task int, step int, facts text) AS b WHERE true \
         ON CONFLICT (run_no, task_key, step_no) DO NOTHING RETURNING run_no, task_key, step_no"
            .to_owned()
    });
    let mut steps: Vec<&mut Step> = steps.iter_mut().filter(|step| is_allowed(step, standings)).collect();
    let generations = generations(conn, &steps).await?;
    steps.retain(|step| step.generation.is_none_or(|own| generations.get(&(step.run, step.task.bank())) == Some(&own)));
    if steps.is_empty() {
        return Ok(HashSet::new());
    }
    let batch = Batch::default()
        .int(steps.iter().map(|s| s.run.0))
        .int(steps.iter().map(|s| s.task.0))
        .int(steps.iter().map(|s| i64::from(s.step.0)))
        .text(steps.iter_mut().map(|s| std::mem::take(&mut s.facts)));
    let rows = conn.fetch(&INSERT, args![batch]).await?;
    rows.iter().map(|row| Ok((RunNo(row.int(0)?), task_key(row, 1)?, StepNo(row.small(2)?)))).collect()
}

/// Where the banks of records stand that must not be of an older generation: a batch has many records and few banks.
async fn generations(conn: &mut dyn Conn, steps: &[&mut Step]) -> StoreResult<HashMap<(RunNo, u32), i64>> {
    static SELECT: Sql = Sql::new(|| {
        "SELECT k.run_no, k.bank_no, k.generation FROM @rows($1: run int, bank int) AS b \
         JOIN banks AS k ON k.run_no = b.run AND k.bank_no = b.bank"
            .to_owned()
    });
    let of_some: BTreeSet<_> =
        steps.iter().filter(|step| step.generation.is_some()).map(|step| (step.run, step.task.bank())).collect();
    if of_some.is_empty() {
        return Ok(HashMap::new());
    }
    let batch = Batch::default()
        .int(of_some.iter().map(|(run, _)| run.0))
        .int(of_some.iter().map(|(_, bank)| i64::from(*bank)));
    let rows = conn.fetch(&SELECT, args![batch]).await?;
    rows.iter().map(|row| Ok(((RunNo(row.int(0)?), row.small(1)?), row.int(2)?))).collect()
}

/// Facts that are stored under the keys of records, or why their tasks failed.
async fn stored_before(conn: &mut dyn Conn, missed: Vec<(usize, StepKey)>) -> StoreResult<HashMap<usize, StepFacts>> {
    static SELECT: Sql = Sql::new(|| {
        format!(
            "SELECT b.place, c.step_no, c.facts FROM @rows($1: place int, run int, task int, step int) AS b \
             JOIN checkpoints AS c ON c.run_no = b.run AND c.task_key = b.task AND c.step_no IN (b.step, {})",
            StepNo::FAILED.0
        )
    });
    let mut found = HashMap::new();
    if missed.is_empty() {
        return Ok(found);
    }
    let batch = Batch::default()
        .int(missed.iter().map(|(at, _)| *at as i64))
        .int(missed.iter().map(|(_, key)| key.0.0))
        .int(missed.iter().map(|(_, key)| key.1.0))
        .int(missed.iter().map(|(_, key)| i64::from(key.2.0)));
    let mut rows = conn.fetch(&SELECT, args![batch]).await?;
    // the step itself, which has the smaller number, outranks the failure
    rows.sort_by_key(|row| row.int(1).map_or(i64::MAX, |step| -step));
    for mut row in rows {
        let facts = large_from_json(&row.text(2)?, || "a stored step".to_owned())?;
        found.insert(row.small(0)?, facts);
    }
    Ok(found)
}

/// Inserts the texts of records that were stored now, without a look for earlier ones: a text comes with its record, and records
/// that a new generation of the bank deletes have none ([`check`]).
async fn insert_texts(conn: &mut dyn Conn, steps: &mut [Step]) -> StoreResult<()> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO texts (run_no, task_key, step_no, body) SELECT b.run, b.task, b.step, b.body \
         FROM @rows($1: run int, task int, step int, body blob) AS b"
            .to_owned()
    });
    let mut with: Vec<&mut Step> = steps.iter_mut().filter(|step| step.text.is_some()).collect();
    if with.is_empty() {
        return Ok(());
    }
    let batch = Batch::default()
        .int(with.iter().map(|s| s.run.0))
        .int(with.iter().map(|s| s.task.0))
        .int(with.iter().map(|s| i64::from(s.step.0)))
        .blob(with.iter_mut().map(|s| s.text.take().unwrap_or_default()));
    conn.execute(&INSERT, args![batch]).await.map(drop)
}

/// What ending tasks did.
struct Ended {
    /// Runs and roles in which tasks became ready.
    opened: BTreeSet<(RunNo, Role)>,
    /// For the questions that were touched: whether no step of them is missing and they are not concluded.
    complete: HashMap<(RunNo, TaskKey), bool>,
}

/// Ends tasks, opens judge tasks and counts down the questions of ended votes. Questions in `concluded` are marked so.
async fn end_tasks(conn: &mut dyn Conn, steps: &[Step], concluded: &HashSet<(RunNo, TaskKey)>) -> StoreResult<Ended> {
    static FINISH: Sql = Sql::new(|| {
        format!(
            "UPDATE tasks AS t SET {}, session = NULL, open_children = b.children, \
             concluded = CASE WHEN b.over = 1 THEN 1 ELSE t.concluded END \
             FROM @rows($1: run int, task int, children int, over int) AS b WHERE t.run_no = b.run AND t.task_key = b.task AND {} \
             RETURNING run_no, task_key, {}",
            change(TaskEvent::Finish),
            allowed_in_batch(TaskEvent::Finish, "t.lease_epoch"),
            complete()
        )
    });
    static GIVE_UP: Sql = Sql::new(|| {
        format!(
            "UPDATE tasks AS t SET {}, session = NULL FROM @rows($1: run int, task int, epoch int) AS b \
             WHERE t.run_no = b.run AND t.task_key = b.task AND {} RETURNING run_no, task_key, {}",
            change(TaskEvent::GiveUp),
            allowed_in_batch(TaskEvent::GiveUp, "b.epoch"),
            complete()
        )
    });
    static VOTED: Sql = Sql::new(|| {
        format!(
            "UPDATE tasks AS t SET open_children = t.open_children - b.ended FROM @rows($1: run int, task int, ended int) AS b \
             WHERE t.run_no = b.run AND t.task_key = b.task RETURNING run_no, task_key, {}",
            complete()
        )
    });
    let judges: Vec<_> = steps.iter().flat_map(|s| s.judges.iter().map(|judge| (s.run, *judge, 0))).collect();
    let mut children: HashMap<(RunNo, TaskKey), i64> = HashMap::new();
    let mut ended = Ended { opened: BTreeSet::new(), complete: HashMap::new() };
    for (run, judge) in tasks::open(conn, &judges).await? {
        *children.entry((run, judge.question_of())).or_default() += 1;
        ended.opened.insert((run, Role::Judge));
    }
    let three = |rows: &[(RunNo, TaskKey, i64)]| {
        Batch::default()
            .int(rows.iter().map(|row| row.0.0))
            .int(rows.iter().map(|row| row.1.0))
            .int(rows.iter().map(|row| row.2))
    };
    let mut changed = Vec::new();
    let done = steps.iter().filter(|s| s.end == End::Done);
    let done: Vec<_> = done.map(|s| (s.run, s.task, children.get(&(s.run, s.task)).copied().unwrap_or(0))).collect();
    if !done.is_empty() {
        let over = done.iter().map(|(run, task, _)| i64::from(concluded.contains(&(*run, *task))));
        changed.extend(conn.fetch(&FINISH, args![three(&done).int(over)]).await?);
    }
    let failed: Vec<_> = steps.iter().filter(|s| s.end == End::Failed).map(|s| (s.run, s.task, s.epoch)).collect();
    if !failed.is_empty() {
        changed.extend(conn.fetch(&GIVE_UP, args![three(&failed)]).await?);
    }
    let mut voted: BTreeMap<(RunNo, TaskKey), i64> = BTreeMap::new();
    for step in steps.iter().filter(|s| s.end != End::Continues && s.task.kind() == TaskKind::Judge) {
        *voted.entry((step.run, step.task.question_of())).or_default() += 1;
    }
    if !voted.is_empty() {
        let voted: Vec<_> = voted.into_iter().map(|((run, task), ended)| (run, task, ended)).collect();
        changed.extend(conn.fetch(&VOTED, args![three(&voted)]).await?);
    }
    for row in changed {
        let task = task_key(&row, 1)?;
        if task.kind() == TaskKind::Question {
            ended.complete.insert((RunNo(row.int(0)?), task), row.int(2)? == 1);
        }
    }
    Ok(ended)
}

/// Whether no step of a question is missing and it is not concluded.
fn complete() -> String {
    let (done, failed) = (TaskState::Done.code(), TaskState::Failed.code());
    format!(
        "CASE WHEN concluded = 0 AND (state = {failed} OR (state = {done} AND open_children <= 0)) THEN 1 ELSE 0 END"
    )
}

/// Moves positions, counts down open recalls, and names the banks that reached a turning point.
async fn count_down_banks(conn: &mut dyn Conn, steps: &[Step]) -> StoreResult<BTreeMap<RunNo, BTreeSet<u32>>> {
    static LOCK: Sql = Sql::new(|| {
        "SELECT k.bank_row FROM @rows($1: run int, bank int) AS b JOIN banks AS k ON k.run_no = b.run AND k.bank_no = b.bank \
         ORDER BY k.run_no, k.bank_no"
            .to_owned()
    });
    static COUNT: Sql = Sql::new(|| {
        format!(
            "UPDATE banks AS k SET position = CASE WHEN b.reached > k.position THEN b.reached ELSE k.position END, \
             open_recalls = k.open_recalls - b.recalls FROM @locked(banks $1: run int, bank int, reached int, recalls int) AS b \
             WHERE k.run_no = b.run AND k.bank_no = b.bank \
             RETURNING run_no, bank_no, CASE WHEN state = {} AND open_recalls <= 0 AND segment < last_segment THEN 1 ELSE 0 END",
            BankState::Ready.code()
        )
    });
    let mut counts: BTreeMap<(RunNo, u32), (i64, i64)> = BTreeMap::new();
    let mut turning: BTreeMap<RunNo, BTreeSet<u32>> = BTreeMap::new();
    let mut given_up = Vec::new();
    for step in steps {
        let bank = (step.run, step.task.bank());
        match (step.task.kind(), step.what) {
            (TaskKind::Question, What::Recalled) => counts.entry(bank).or_default().1 += 1,
            (TaskKind::Question, _) if step.end == End::Failed => given_up.push((step.run, step.task)),
            (TaskKind::Retain, What::Retained) => {
                let reached = &mut counts.entry(bank).or_default().0;
                *reached = (*reached).max(i64::from(step.step.0) + 1);
            }
            _ => {}
        }
        if step.end != End::Continues && matches!(step.task.kind(), TaskKind::Retain | TaskKind::Ready) {
            turning.entry(step.run).or_default().insert(step.task.bank());
        }
    }
    for (run, question) in without_recall(conn, given_up).await? {
        counts.entry((run, question.bank())).or_default().1 += 1;
    }
    if counts.is_empty() {
        return Ok(turning);
    }
    let settled = turning.iter().flat_map(|(run, of_run)| of_run.iter().map(|bank| (*run, *bank)));
    let mut banks: BTreeSet<(RunNo, u32)> = settled.filter(|bank| !counts.contains_key(bank)).collect();
    if !banks.is_empty() {
        // those that will only be settled come too: all banks of a batch are locked in one order
        banks.extend(counts.keys());
        let locked = Batch::default().int(banks.iter().map(|k| k.0.0)).int(banks.iter().map(|k| i64::from(k.1)));
        conn.lock(&LOCK, args![locked]).await?;
    }
    let batch = Batch::default()
        .int(counts.keys().map(|k| k.0.0))
        .int(counts.keys().map(|k| i64::from(k.1)))
        .int(counts.values().map(|c| c.0))
        .int(counts.values().map(|c| c.1));
    for row in conn.fetch(&COUNT, args![batch]).await? {
        if row.int(2)? == 1 {
            turning.entry(RunNo(row.int(0)?)).or_default().insert(row.small(1)?);
        }
    }
    Ok(turning)
}

/// Of these questions those whose recall is not stored.
async fn without_recall(conn: &mut dyn Conn, questions: Vec<(RunNo, TaskKey)>) -> StoreResult<Vec<(RunNo, TaskKey)>> {
    static SELECT: Sql = Sql::new(|| {
        format!(
            "SELECT c.run_no, c.task_key FROM @rows($1: run int, task int) AS b \
             JOIN checkpoints AS c ON c.run_no = b.run AND c.task_key = b.task AND c.step_no = {}",
            StepNo::RECALL.0
        )
    });
    if questions.is_empty() {
        return Ok(questions);
    }
    let rows = conn.fetch(&SELECT, args![pairs(&questions)]).await?;
    let with = rows.iter().map(|row| Ok((RunNo(row.int(0)?), task_key(row, 1)?)));
    let with: HashSet<(RunNo, TaskKey)> = with.collect::<StoreResult<_>>()?;
    Ok(questions.into_iter().filter(|question| !with.contains(question)).collect())
}

/// Those of the questions of which no step is missing and that are not concluded.
async fn ripe_of(conn: &mut dyn Conn, questions: &BTreeSet<(RunNo, TaskKey)>) -> StoreResult<Vec<(RunNo, TaskKey)>> {
    static SELECT: Sql = Sql::new(|| {
        format!(
            "SELECT t.run_no, t.task_key FROM @rows($1: run int, task int) AS b \
             JOIN tasks AS t ON t.run_no = b.run AND t.task_key = b.task WHERE {} = 1 ORDER BY t.run_no, t.task_key",
            complete()
        )
    });
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    let questions: Vec<_> = questions.iter().copied().collect();
    let rows = conn.fetch(&SELECT, args![pairs(&questions)]).await?;
    rows.iter().map(|row| Ok((RunNo(row.int(0)?), task_key(row, 1)?))).collect()
}
