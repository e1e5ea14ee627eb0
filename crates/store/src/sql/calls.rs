//! The call store (P9).

use std::collections::HashSet;

use async_trait::async_trait;
use bench_proto::{
    call::{CallOutcome, CallRecord, Phase},
    ids::{RunNo, Sha256Hash, TaskKey},
    metered::MeteredCalls,
    money::PicoUsd,
};

use super::{
    Args, Backend, Batch, CHUNK, Conn, Row, Sql, SqlStore, args,
    codes::{ACCEPTED, outcome_code, outcome_from, phase_code, phase_from},
    counters, metered,
    money::{self, Paid},
    sums::bounded,
};
use crate::{
    CallProfile, Calls, StoreError, StoreResult, StoredCall,
    codec::{compress, decompress, escape, hash, unescape},
};

/// An attempt ready to be written.
pub(super) struct NewCall {
    run: RunNo,
    task: TaskKey,
    /// The record, its reply taken out.
    record: CallRecord,
    reply: Vec<u8>,
}

/// Compresses an attempt.
pub(super) fn prepare(run: RunNo, task: TaskKey, call: &CallRecord) -> StoreResult<NewCall> {
    let reply = compress(call.reply.as_bytes())?;
    let record = CallRecord { reply: String::new(), model: call.model.clone(), finish: call.finish.clone(), ..*call };
    Ok(NewCall { run, task, record, reply })
}

fn tokens(count: u64) -> i64 {
    bounded(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Inserts attempts that are not there; returns the new ones.
pub(super) async fn insert(conn: &mut dyn Conn, mut calls: Vec<NewCall>) -> StoreResult<Vec<Paid>> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO calls (attempt_id, run_no, task_key, call_key, phase, outcome, model, prompt_tokens, completion_tokens, \
         cost, duration_us, at_us, finish, reply) SELECT b.attempt, b.run, b.task, b.call_key, b.phase, b.outcome, b.model, b.prompt, \
         b.completion, b.cost, b.duration, @now, b.finish, b.reply \
         FROM @rows($1: run int, task int, phase int, outcome int, prompt int, completion int, cost int, duration int, model text, finish text, \
         attempt blob, call_key blob, reply blob) AS b WHERE true ON CONFLICT (attempt_id) DO NOTHING \
         RETURNING run_no, outcome, cost, phase, at_us, attempt_id, prompt_tokens, completion_tokens"
            .to_owned()
    });
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    // two writers of the same calls meet in one order
    calls.sort_unstable_by_key(|call| call.record.attempt_id);
    let numbers = |of: fn(&NewCall) -> i64| calls.iter().map(of);
    let batch = Batch::default()
        .int(numbers(|c| c.run.0))
        .int(numbers(|c| c.task.0))
        .int(numbers(|c| phase_code(c.record.phase)))
        .int(numbers(|c| outcome_code(c.record.outcome)))
        .int(numbers(|c| tokens(c.record.prompt_tokens)))
        .int(numbers(|c| tokens(c.record.completion_tokens)))
        .int(numbers(|c| bounded(c.record.cost.0)))
        .int(numbers(|c| tokens(c.record.duration_us)))
        .text(calls.iter().map(|c| escape(&c.record.model)))
        .text(calls.iter().map(|c| escape(&c.record.finish)))
        .blob(calls.iter().map(|c| c.record.attempt_id.as_bytes().to_vec()))
        .blob(calls.iter().map(|c| c.record.key.0.to_vec()))
        .blob(calls.iter_mut().map(|c| std::mem::take(&mut c.reply)));
    let rows = conn.fetch(&INSERT, args![batch]).await?;
    let paid = |mut row: Row| {
        Ok(Paid {
            run: RunNo(row.int(0)?),
            outcome: outcome_from(row.int(1)?)?,
            cost: PicoUsd(row.int(2)?),
            phase: row.int(3)?,
            day: money::day_of(row.int(4)?),
            attempt: money::attempt_id(&row.blob(5)?)?,
            tokens: row.small::<u64>(6)?.saturating_add(row.small(7)?),
        })
    };
    rows.into_iter().map(paid).collect()
}

async fn put(conn: &mut dyn Conn, run: RunNo, calls: Vec<NewCall>) -> StoreResult<()> {
    counters::require(conn, run).await?;
    let paid = insert(conn, calls).await?;
    let mut ledger = money::LedgerChange::default();
    money::settle(conn, &paid, &mut ledger).await?;
    ledger.write_at_last(conn).await
}

fn stored_call(mut row: Row) -> StoreResult<StoredCall> {
    let attempt_id = money::attempt_id(&row.blob(0)?)?;
    let what = format!("the reply of call {attempt_id}");
    let reply = decompress(&row.blob(9)?, &what)?;
    let record = CallRecord {
        attempt_id,
        key: hash(&row.blob(2)?, "the key of a call")?,
        phase: phase_from(row.int(3)?)?,
        outcome: CallOutcome::Accepted,
        reply: String::from_utf8(reply).map_err(|e| StoreError::Corrupt(format!("{what} is no text: {e}").into()))?,
        model: unescape(row.text(4)?),
        finish: unescape(row.text(10)?),
        prompt_tokens: row.small(5)?,
        completion_tokens: row.small(6)?,
        cost: PicoUsd(row.int(7)?),
        duration_us: row.small(8)?,
    };
    Ok(StoredCall { record, run: RunNo(row.int(1)?), task: TaskKey(row.int(11)?) })
}

impl<B: Backend> SqlStore<B> {
    /// The first call of each key that a statement finds; its arguments are made of a part of the keys.
    async fn calls_by_keys(
        &self,
        find: &'static Sql,
        keys: &[Sha256Hash],
        args: impl Fn(Batch) -> Args + Send + Sync,
    ) -> StoreResult<Vec<StoredCall>> {
        let mut found = Vec::new();
        let mut keys: Vec<Sha256Hash> = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        for part in keys.chunks(CHUNK) {
            let batch = Batch::default().int(0..part.len() as i64).blob(part.iter().map(|key| key.0.to_vec()));
            let mut seen = HashSet::new();
            for row in self.fetch(find, args(batch)).await? {
                let call = stored_call(row)?;
                if seen.insert(call.record.key) {
                    found.push(call);
                }
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl<B: Backend> Calls for SqlStore<B> {
    async fn call_count(&self, lineage: &str) -> StoreResult<u64> {
        static COUNT: Sql = Sql::new(|| {
            format!(
                "SELECT count(*) FROM runs AS r JOIN calls AS c ON c.run_no = r.run_no AND c.outcome = {ACCEPTED} WHERE r.lineage = $1"
            )
        });
        let rows = self.fetch(&COUNT, args![escape(lineage)]).await?;
        rows.first().map_or(Ok(0), |row| row.small(0))
    }

    async fn find_calls(&self, lineage: &str, keys: &[Sha256Hash]) -> StoreResult<Vec<StoredCall>> {
        static FIND: Sql = Sql::new(|| {
            format!(
                "SELECT c.attempt_id, c.run_no, c.call_key, c.phase, c.model, c.prompt_tokens, c.completion_tokens, c.cost, \
                 c.duration_us, c.reply, c.finish, c.task_key FROM runs AS r CROSS JOIN @rows($2: place int, call_key blob) AS b \
                 JOIN calls AS c ON c.run_no = @each(r.run_no, b.place) AND c.call_key = b.call_key AND c.outcome = {ACCEPTED} \
                 WHERE r.lineage = $1 ORDER BY c.at_us, c.attempt_id"
            )
        });
        self.calls_by_keys(&FIND, keys, |batch| args![escape(lineage), batch]).await
    }

    async fn find_shared_calls(&self, keys: &[Sha256Hash]) -> StoreResult<Vec<StoredCall>> {
        static FIND: Sql = Sql::new(|| {
            format!(
                "SELECT c.attempt_id, c.run_no, c.call_key, c.phase, c.model, c.prompt_tokens, c.completion_tokens, c.cost, \
                 c.duration_us, c.reply, c.finish, c.task_key FROM @rows($1: place int, call_key blob) AS b \
                 JOIN calls AS c ON c.call_key = b.call_key AND c.outcome = {ACCEPTED} \
                 JOIN runs AS r ON r.run_no = c.run_no AND r.private_calls = 0 ORDER BY c.at_us DESC, c.attempt_id DESC"
            )
        });
        self.calls_by_keys(&FIND, keys, |batch| args![batch]).await
    }

    async fn call_profile(&self, model: &str, phase: Phase) -> StoreResult<Option<CallProfile>> {
        // the provider's name of a model may have a date behind it
        static PROFILE: Sql = Sql::new(|| {
            format!(
                "SELECT count(*), CAST(avg(n.prompt_tokens) AS double precision), \
                 CAST(avg(n.completion_tokens) AS double precision), CAST(avg(n.duration_us) AS double precision) FROM \
                 (SELECT c.prompt_tokens, c.completion_tokens, c.duration_us FROM calls AS c \
                 WHERE c.run_no IN (SELECT r.run_no FROM runs AS r ORDER BY r.run_no DESC LIMIT 10) \
                 AND c.outcome = {ACCEPTED} AND c.phase = $1 \
                 AND (c.model = $2 OR substr(c.model, 1, length($2) + 1) = $3) ORDER BY c.at_us DESC LIMIT 2000) AS n"
            )
        });
        let (name, dated) = (escape(model), format!("{}-", escape(model)));
        let rows = self.fetch(&PROFILE, args![phase_code(phase), name, dated]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let calls = row.small(0)?;
        if calls == 0 {
            return Ok(None);
        }
        Ok(Some(CallProfile {
            phase,
            calls,
            prompt_tokens: row.real(1)?,
            completion_tokens: row.real(2)?,
            duration_us: row.real(3)?,
        }))
    }

    async fn mean_call_us(&self, run: RunNo, last: u32) -> StoreResult<Option<f64>> {
        static MEAN: Sql = Sql::new(|| {
            format!(
                "SELECT CAST(avg(duration_us) AS double precision) FROM \
                 (SELECT duration_us FROM calls WHERE run_no = $1 AND outcome = {ACCEPTED} LIMIT $2) AS some_calls"
            )
        });
        let rows = self.fetch(&MEAN, args![run.0, last]).await?;
        Ok(rows.first().and_then(|row| row.real(0).ok()))
    }

    async fn put_calls(&self, run: RunNo, task: TaskKey, calls: &[CallRecord]) -> StoreResult<()> {
        for part in calls.chunks(CHUNK) {
            let part: Vec<NewCall> = part.iter().map(|call| prepare(run, task, call)).collect::<StoreResult<_>>()?;
            self.backend.write(move |conn| Box::pin(put(conn, run, part))).await?;
        }
        Ok(())
    }

    async fn metered_calls(&self, run: RunNo) -> StoreResult<Vec<MeteredCalls>> {
        metered::read(self, run).await
    }

    async fn book_calls(&self, run: RunNo, calls: &[(TaskKey, CallRecord)]) -> StoreResult<()> {
        for part in calls.chunks(CHUNK) {
            let part =
                part.iter().map(|(task, call)| prepare(run, *task, call)).collect::<StoreResult<Vec<NewCall>>>()?;
            self.backend.write(move |conn| Box::pin(put(conn, run, part))).await?;
        }
        Ok(())
    }
}
