//! What was paid for, by what it belongs to.

use bench_proto::{
    call::{Ledger, Usage},
    ids::{TaskKey, TaskKind},
    metered::MeteredEnd,
    money::PicoUsd,
};

use super::{
    Conn, JUDGE_OFFSET, Sql, args,
    codes::{LOST, REJECTED, UNCERTAIN, phase_from},
    sums::sum,
};
use crate::{RunRow, RunState, StoreResult};

/// Of questions that have ended, and of banks.
const ENDED: i64 = 0;
/// Of questions that have not ended.
const UNFINISHED: i64 = 1;
/// Of the memory system itself, through the meter: what the provider answered, what came from the call store, and what came to nothing.
const METERED: i64 = 3;
const METERED_STORED: i64 = 4;
const METERED_NOTHING: i64 = 5;

/// See [`crate::Money::ledger`].
pub(super) async fn read(conn: &mut dyn Conn, run: RunRow) -> StoreResult<Ledger> {
    // where all questions have ended nobody looks for their facts
    static SUMS: Sql = Sql::new(|| {
        let (question, judge) = (first_of(TaskKind::Question), first_of(TaskKind::Judge));
        let metered = TaskKey::METERED.0;
        let answered = [false, true].map(|counted_here| MeteredEnd::Answered { counted_here }.to_text()).join("', '");
        let stored = MeteredEnd::Stored.to_text();
        let (overhead, probe, step) = (TaskKey::OVERHEAD.0, TaskKey::PROBE.0, TaskKey::INDEX_STEP);
        format!(
            "SELECT n.part, n.outcome, count(*), {}, {}, {} FROM \
             (SELECT c.outcome, c.prompt_tokens, c.completion_tokens, c.cost, CASE \
             WHEN c.task_key >= {metered} THEN CASE WHEN c.finish IN ('{answered}') THEN {METERED} WHEN c.finish = '{stored}' \
             THEN {METERED_STORED} ELSE {METERED_NOTHING} END WHEN c.task_key IN ({overhead}, {probe}) THEN 2 WHEN c.task_key < {question} OR $2 = 1 THEN {ENDED} \
             WHEN EXISTS (SELECT 1 FROM facts AS f WHERE f.run_no = $1 AND f.task_key = CASE WHEN c.task_key >= {judge} \
             THEN (c.task_key - {JUDGE_OFFSET}) / {step} * {step} ELSE c.task_key END) THEN {ENDED} ELSE {UNFINISHED} END AS part \
             FROM calls AS c WHERE c.run_no = $1 AND c.outcome <= {UNCERTAIN}) AS n GROUP BY n.part, n.outcome",
            sum("n.prompt_tokens"),
            sum("n.completion_tokens"),
            sum("n.cost"),
        )
    });
    // what is reserved of a cap on tokens or calls has no day, and its amount is none of dollars
    static LOST_ONES: Sql = Sql::new(|| {
        format!(
            "SELECT n.phase, count(*), {} FROM (SELECT phase, CASE WHEN day >= 0 THEN amount ELSE 0 END AS amount FROM reservations \
             WHERE run_no = $1 AND state = {LOST}) AS n GROUP BY n.phase",
            sum("n.amount")
        )
    });
    let mut ledger = Ledger { booked: run.counters.spent, overdraft: run.counters.overdraft, ..Ledger::default() };
    for row in conn.fetch(&SUMS, args![run.run_no.0, run.state == RunState::Finished]).await? {
        let (part, outcome, attempts) = (row.int(0)?, row.int(1)?, row.small::<u64>(2)?);
        let of = match part {
            _ if outcome == UNCERTAIN => &mut ledger.uncertain,
            ENDED => &mut ledger.ended,
            UNFINISHED => &mut ledger.unfinished,
            METERED | METERED_STORED | METERED_NOTHING => &mut ledger.metered,
            _ => &mut ledger.overhead,
        };
        // a probe's reply is stored as rejected, so that nobody is served it; it is a call all the same
        let repeated = outcome == REJECTED && part <= UNFINISHED;
        let (calls, retries, cached_calls) = match part {
            // whatever it was for: its dollars and tokens are counted too
            _ if outcome == UNCERTAIN => (attempts, 0, 0),
            METERED_STORED => (0, 0, attempts),
            METERED_NOTHING => (0, 0, 0),
            _ if repeated => (0, attempts, 0),
            _ => (attempts, 0, 0),
        };
        *of += Usage {
            calls,
            retries,
            cached_calls,
            prompt_tokens: row.small(3)?,
            completion_tokens: row.small(4)?,
            cost: PicoUsd(row.int(5)?),
            ..Usage::default()
        };
    }
    for row in conn.fetch(&LOST_ONES, args![run.run_no.0]).await? {
        let (phase, calls, cost) = (phase_from(row.int(0)?)?, row.small::<u64>(1)?, PicoUsd(row.int(2)?));
        ledger.uncertain.calls += calls;
        ledger.lost[phase as usize] = (calls, cost);
    }
    ledger.uncertain.cost = run.counters.uncertain;
    Ok(ledger)
}

fn first_of(kind: TaskKind) -> i64 {
    TaskKey::range_of_kind(kind).0.0
}
