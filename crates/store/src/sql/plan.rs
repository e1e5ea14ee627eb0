//! The plan of a run: banks and the tasks they open (P6, P28).

use std::collections::BTreeMap;

use async_trait::async_trait;
use bench_proto::{
    bank::{BankEvent, first_epoch},
    ids::{RunNo, TaskKey, TaskKind},
    step::StepNo,
    task::TaskState,
};

use super::{
    Backend, Batch, CHUNK, Conn, Sql, SqlStore, args, banks,
    counters::{self, Delta},
    incarnations::{CURRENT, NAMESPACES, raise_generation},
    must_exist, tasks,
};
use crate::{
    BankRow, NewBank, Plan, RunState, StoreError, StoreResult,
    codec::{escape, to_json},
    waits_for_a_look,
};

pub(super) fn check(bank: &NewBank) -> StoreResult<()> {
    let refuse = |why: &str| Err(StoreError::BadData(format!("bank {} ({}) {why}", bank.bank_no, bank.bank_id)));
    if bank.bank_no >= TaskKey::MAX_BANKS {
        return refuse("has a number beyond the largest");
    }
    if bank.segments.is_empty() || bank.segments.len() > TaskKey::MAX_INDEX as usize {
        return refuse("has no segment, or too many");
    }
    let later = bank.later.iter().flat_map(|later| &later.rounds).flat_map(|round| &round.questions);
    if bank.segments.iter().flat_map(|s| &s.questions).chain(later).any(|index| *index >= TaskKey::MAX_INDEX) {
        return refuse("has a question index beyond the largest");
    }
    // entries are step numbers, and the number after the last one says why a task failed
    if bank.segments.iter().any(|s| i64::from(s.until) >= i64::from(StepNo::FAILED.0)) {
        return refuse("has too many stream entries");
    }
    Ok(())
}

pub(super) fn rows(banks: &[NewBank]) -> StoreResult<Batch> {
    let filled = || banks.iter().map(|bank| bank.filled.as_ref());
    let segments: Vec<String> = banks.iter().map(|bank| to_json(&bank.segments)).collect::<StoreResult<_>>()?;
    let later: Vec<Option<String>> =
        banks.iter().map(|bank| bank.later.as_ref().map(to_json).transpose()).collect::<StoreResult<_>>()?;
    Ok(Batch::default()
        .int(banks.iter().map(|bank| i64::from(bank.bank_no)))
        .int(banks.iter().map(|bank| bank.segments.len() as i64 - 1))
        .int(banks.iter().map(|bank| bank.segments[0].questions.len() as i64))
        .text(banks.iter().map(|bank| escape(&bank.bank_id)))
        .text(segments)
        .blob(banks.iter().map(|bank| bank.content.0.to_vec()))
        .blob(banks.iter().map(|bank| bank.questions.0.to_vec()))
        .blob(banks.iter().map(|bank| bank.gold.0.to_vec()))
        .opt_text(filled().map(|filled| Some(escape(&filled?.name))))
        .opt_text(filled().map(|filled| Some(escape(&filled?.handle))))
        .int(filled().map(|filled| filled.and_then(|bank| bank.by).unwrap_or_default()))
        .opt_text(later))
}

/// Columns of the rows of [`rows`], as [`super::template`] reads them.
pub(super) const COLUMNS_OF_ROWS: &str = "bank int, last int, open_recalls int, bank_id text, segments text, content blob, \
    questions blob, gold blob, filled_name text, filled_handle text, filled_by int, later text";

/// A bank of a batch that is added: its entries, and whether it is filled at once.
struct Added {
    bank_no: u32,
    entries: i64,
    begins: bool,
}

async fn add(conn: &mut dyn Conn, run: RunNo, batch: Batch, banks: Vec<Added>) -> StoreResult<()> {
    static INSERT: Sql = Sql::new(|| {
        format!(
            "INSERT INTO banks (run_no, bank_no, bank_id, content, questions, gold, segments, last_segment, generation, state, \
             position, segment, open_recalls, incarnation, namespaces, filled_name, filled_handle, filled_by, later) \
             SELECT $1, b.bank, b.bank_id, b.content, b.questions, b.gold, b.segments, b.last, 1, {}, 0, 0, b.open_recalls, \
             {CURRENT}, {NAMESPACES}, \
             b.filled_name, b.filled_handle, NULLIF(b.filled_by, 0), b.later FROM @rows($2: {COLUMNS_OF_ROWS}) AS b WHERE true ORDER BY b.bank \
             ON CONFLICT (run_no, bank_no) DO NOTHING RETURNING bank_no",
            BankEvent::Planned.leads_to().code()
        )
    });
    counters::require(conn, run).await?;
    let added = conn.fetch(&INSERT, args![run.0, batch]).await?;
    let added: std::collections::HashSet<u32> = added.iter().map(|row| row.small(0)).collect::<StoreResult<_>>()?;
    let new = || banks.iter().filter(|bank| added.contains(&bank.bank_no));
    let begin = new().filter(|bank| bank.begins);
    let open: Vec<_> = begin.map(|bank| (run, TaskKey::retain(bank.bank_no, 0), first_epoch(1))).collect();
    tasks::open(conn, &open).await?;
    let entries = new().map(|bank| bank.entries).sum();
    if added.is_empty() { Ok(()) } else { counters::add_planned(conn, run, added.len() as i64, entries).await }
}

async fn open_probe(conn: &mut dyn Conn, run: RunNo) -> StoreResult<TaskState> {
    counters::require(conn, run).await?;
    tasks::open(conn, &[(run, TaskKey::PROBE, 0)]).await?;
    let missing = || StoreError::Missing(format!("the latency probe of run number {}", run.0));
    probe_state(conn, run).await?.ok_or_else(missing)
}

async fn probe_state(conn: &mut dyn Conn, run: RunNo) -> StoreResult<Option<TaskState>> {
    static STATE: Sql = Sql::new(|| "SELECT state FROM tasks WHERE run_no = $1 AND task_key = $2".to_owned());
    let rows = conn.fetch(&STATE, args![run.0, TaskKey::PROBE.0]).await?;
    rows.first().map(|row| tasks::task_state(row, 0)).transpose()
}

async fn banks_in_use(conn: &mut dyn Conn, run: RunNo) -> StoreResult<BTreeMap<u32, String>> {
    static IN_USE: Sql = Sql::new(|| {
        format!(
            "SELECT k.bank_no, min(r.run_id) FROM banks AS k JOIN banks AS u ON u.filled_by = k.bank_row \
             JOIN runs AS r ON r.run_no = u.run_no WHERE k.run_no = $1 AND u.generation = 1 AND u.handle IS NULL AND r.state NOT IN ('{}', '{}') \
             GROUP BY k.bank_no",
            RunState::Finished.name(),
            RunState::Cancelled.name()
        )
    });
    let rows = conn.fetch(&IN_USE, args![run.0]).await?;
    rows.into_iter().map(|mut row| Ok((row.small(0)?, row.text(1)?))).collect()
}

async fn set_handle(
    conn: &mut dyn Conn,
    run: RunNo,
    bank: u32,
    generation: i64,
    handle: String,
) -> StoreResult<String> {
    static SET: Sql = Sql::new(|| {
        "UPDATE banks SET handle = COALESCE(handle, $4) WHERE run_no = $1 AND bank_no = $2 AND generation = $3 RETURNING handle"
            .to_owned()
    });
    let mut rows = conn.fetch(&SET, args![run.0, bank, generation, escape(&handle)]).await?;
    let row = rows.first_mut();
    let row = row.ok_or_else(|| {
        StoreError::Missing(format!("generation {generation} of bank {bank} of run number {}", run.0))
    })?;
    row.text(0).map(crate::codec::unescape)
}

async fn new_generation(conn: &mut dyn Conn, run: RunNo, bank_no: u32, epoch: i64) -> StoreResult<Option<i64>> {
    static HELD: Sql = Sql::new(|| {
        format!(
            "SELECT t.task_key FROM tasks AS t WHERE t.run_no = $1 AND t.task_key = $2 AND t.state = {} AND t.lease_epoch = $3",
            TaskState::Leased.code()
        )
    });
    static FORGET: Sql = Sql::new(|| {
        "DELETE FROM checkpoints WHERE run_no = $1 AND task_key BETWEEN $2 AND $3 AND step_no < $4".to_owned()
    });
    static RAISE: Sql = Sql::new(|| {
        format!(
            "UPDATE banks SET {}, state = {} WHERE run_no = $1 AND bank_no = $2 AND {} RETURNING generation",
            raise_generation(),
            BankEvent::NewGeneration.leads_to().code(),
            banks::allowed(BankEvent::NewGeneration)
        )
    });
    let missing = || StoreError::Missing(format!("bank {bank_no} of run number {}", run.0));
    let before = banks::read(conn, run, Some(&[bank_no])).await?.pop().ok_or_else(missing)?;
    let retain = TaskKey::retain(bank_no, before.segment);
    tasks::lock(conn, &[(run, retain)]).await?;
    // what was stored until the lock was held counts too
    let bank = banks::read(conn, run, Some(&[bank_no])).await?.pop().ok_or_else(missing)?;
    if conn.fetch(&HELD, args![run.0, retain.0, epoch]).await?.is_empty() {
        return Ok(None);
    }
    let (low, high) = TaskKey::range(TaskKind::Retain, bank_no);
    conn.execute(&FORGET, args![run.0, low.0, high.0, StepNo::FAILED.0]).await?;
    let raised = conn.fetch(&RAISE, args![run.0, bank_no]).await?;
    counters::add_to(conn, run, Delta { entries_retained: -i64::from(bank.position), ..Delta::default() }).await?;
    raised.first().map(|row| row.int(0)).transpose()
}

#[async_trait]
impl<B: Backend> Plan for SqlStore<B> {
    async fn add_banks(&self, run: RunNo, new: &[NewBank]) -> StoreResult<()> {
        new.iter().try_for_each(check)?;
        for part in new.chunks(CHUNK) {
            let batch = rows(part)?;
            let added = |bank: &NewBank| Added {
                bank_no: bank.bank_no,
                entries: bank.segments.last().map_or(0, |segment| i64::from(segment.until)),
                begins: !waits_for_a_look(&bank.segments, bank.later.as_ref()),
            };
            let banks: Vec<Added> = part.iter().map(added).collect();
            self.backend.write(move |conn| Box::pin(add(conn, run, batch, banks))).await?;
        }
        Ok(())
    }

    async fn finish_plan(&self, run: RunNo) -> StoreResult<()> {
        static FINISH: Sql = Sql::new(|| "UPDATE runs SET planned = 1 WHERE run_no = $1".to_owned());
        must_exist(self.execute(&FINISH, args![run.0]).await?, run)
    }

    async fn open_probe(&self, run: RunNo) -> StoreResult<TaskState> {
        // asked again and again until it is over
        match self.backend.read(move |conn| Box::pin(probe_state(conn, run))).await? {
            Some(state) => Ok(state),
            None => self.backend.write(move |conn| Box::pin(open_probe(conn, run))).await,
        }
    }

    async fn banks(&self, run: RunNo, bank_nos: Option<&[u32]>) -> StoreResult<Vec<BankRow>> {
        let bank_nos = bank_nos.map(<[u32]>::to_vec);
        self.backend.read(move |conn| Box::pin(async move { banks::read(conn, run, bank_nos.as_deref()).await })).await
    }

    async fn banks_in_use(&self, run: RunNo) -> StoreResult<BTreeMap<u32, String>> {
        self.backend.read(move |conn| Box::pin(banks_in_use(conn, run))).await
    }

    async fn set_bank_handle(&self, run: RunNo, bank_no: u32, generation: i64, handle: &str) -> StoreResult<String> {
        let handle = handle.to_owned();
        self.backend.write(move |conn| Box::pin(set_handle(conn, run, bank_no, generation, handle))).await
    }

    async fn new_generation(&self, run: RunNo, bank_no: u32, epoch: i64) -> StoreResult<Option<i64>> {
        if bank_no >= TaskKey::MAX_BANKS {
            return Err(StoreError::Missing(format!("bank {bank_no} of run number {}", run.0)));
        }
        self.backend.write(move |conn| Box::pin(new_generation(conn, run, bank_no, epoch))).await
    }
}
