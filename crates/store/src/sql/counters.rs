//! Counters of runs: a cache for progress, changed by the transaction that changes what they count.

use std::collections::BTreeMap;

use bench_proto::{
    facts::{Outcome, QuestionFacts},
    ids::RunNo,
    money::PicoUsd,
};

use super::{
    Args, Conn, Sql, args, must_exist,
    sums::{bounded, plus, sum},
};
use crate::{StoreError, StoreResult};

/// What a transaction adds to the counters of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Delta {
    pub(super) banks_planned: i64,
    pub(super) banks_ready: i64,
    pub(super) entries_planned: i64,
    pub(super) entries_retained: i64,
    pub(super) scored: i64,
    pub(super) abstained: i64,
    pub(super) infra_error: i64,
    pub(super) answered: i64,
    pub(super) headline_sum: f64,
    pub(super) unmeasured: i64,
    pub(super) spent: PicoUsd,
    pub(super) uncertain: PicoUsd,
    pub(super) reserved: PicoUsd,
    pub(super) overdraft: PicoUsd,
}

impl Delta {
    /// Adds ended questions that were counted apart.
    pub(super) fn add_ended(&mut self, other: Self) {
        self.scored += other.scored;
        self.abstained += other.abstained;
        self.infra_error += other.infra_error;
        self.headline_sum += other.headline_sum;
        self.unmeasured += other.unmeasured;
    }

    /// Counts an ended question.
    pub(super) fn end(&mut self, facts: &QuestionFacts, headline_metric: &str) {
        match facts.outcome {
            Outcome::Scored => self.scored += 1,
            Outcome::Abstained => self.abstained += 1,
            Outcome::InfraError => self.infra_error += 1,
            Outcome::NotRun => {}
        }
        match facts.score(headline_metric) {
            Some(score) => self.headline_sum += score,
            None => self.unmeasured += i64::from(facts.outcome.has_score()),
        }
    }
}

/// Deltas by run.
pub(super) type Deltas = BTreeMap<RunNo, Delta>;

/// Adds to the counters of runs and notes the time of the commit. Among the last changes of a transaction, because all writers
/// of a run meet here; one run after the other in the order of their numbers, because each change locks its row.
pub(super) async fn add(conn: &mut dyn Conn, deltas: &Deltas) -> StoreResult<()> {
    for (run, delta) in deltas {
        match add_to(conn, *run, *delta).await {
            // a record of a run that is not there was refused already
            Ok(()) | Err(StoreError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

static ADD: Sql = Sql::new(|| {
    format!(
        "UPDATE run_counters SET banks_planned = banks_planned + $2, banks_ready = banks_ready + $3, \
         entries_planned = entries_planned + $4, entries_retained = entries_retained + $5, scored = scored + $6, \
         abstained = abstained + $7, infra_error = infra_error + $8, answered = answered + $9, spent = {}, \
         uncertain = {}, headline_sum = headline_sum + $12, reserved = {}, overdraft = {}, \
         unmeasured = unmeasured + $15, last_commit_us = @now \
         WHERE run_no = $1",
        plus("spent", "$10"),
        plus("uncertain", "$11"),
        plus("reserved", "$13"),
        plus("overdraft", "$14"),
    )
});

/// Adds to the counters of one run, which must be there.
pub(super) async fn add_to(conn: &mut dyn Conn, run: RunNo, delta: Delta) -> StoreResult<()> {
    must_exist(conn.execute(&ADD, added(run, delta)).await?, run)
}

/// Adds to what is planned of a run, which must be there: all that its planner may change.
pub(super) async fn add_planned(conn: &mut dyn Conn, run: RunNo, banks: i64, entries: i64) -> StoreResult<()> {
    static PLANNED: Sql = Sql::new(|| {
        "UPDATE run_counters SET banks_planned = banks_planned + $2, entries_planned = entries_planned + $3, \
         last_commit_us = @now WHERE run_no = $1"
            .to_owned()
    });
    must_exist(conn.execute(&PLANNED, args![run.0, banks, entries]).await?, run)
}

/// Adds to the counters together with the commit; nothing happens when the run is not there.
pub(super) async fn add_at_last(conn: &mut dyn Conn, run: RunNo, delta: Delta) -> StoreResult<()> {
    conn.at_last(&ADD, added(run, delta)).await
}

fn added(run: RunNo, d: Delta) -> Args {
    args![
        run.0,
        d.banks_planned,
        d.banks_ready,
        d.entries_planned,
        d.entries_retained,
        d.scored,
        d.abstained,
        d.infra_error,
        d.answered,
        bounded(d.spent.0),
        bounded(d.uncertain.0),
        d.headline_sum,
        bounded(d.reserved.0),
        bounded(d.overdraft.0),
        d.unmeasured
    ]
}

/// Fails when a run is not there.
pub(super) async fn require(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static SELECT: Sql = Sql::new(|| "SELECT run_no FROM runs WHERE run_no = $1".to_owned());
    let rows = conn.fetch(&SELECT, args![run.0]).await?;
    must_exist(rows.len() as u64, run)
}

/// Derives all counters of a run again from what they count. Reads the whole run.
pub(super) async fn recount(conn: &mut dyn Conn, run: RunNo, headline_metric: &str) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| "SELECT run_no FROM run_counters WHERE run_no = $1".to_owned());
    static RECOUNT: Sql = Sql::new(|| {
        use bench_proto::ids::{TaskKey, TaskKind};
        let (low, high) = TaskKey::range_of_kind(TaskKind::Question);
        let ready = bench_proto::bank::BankState::Ready.code();
        format!(
            "UPDATE run_counters SET \
             banks_planned = (SELECT count(*) FROM banks WHERE run_no = $1), \
             banks_ready = (SELECT count(*) FROM banks WHERE run_no = $1 AND state = {ready} AND segment = last_segment), \
             entries_retained = (SELECT CAST(COALESCE(sum(position), 0) AS BIGINT) FROM banks WHERE run_no = $1), \
             scored = (SELECT count(*) FROM facts WHERE run_no = $1 AND outcome = 'scored'), \
             abstained = (SELECT count(*) FROM facts WHERE run_no = $1 AND outcome = 'abstained'), \
             infra_error = (SELECT count(*) FROM facts WHERE run_no = $1 AND outcome = 'infra_error'), \
             answered = (SELECT count(*) FROM checkpoints WHERE run_no = $1 AND step_no = 1 AND task_key BETWEEN {} AND {}), \
             spent = (SELECT {sum} FROM (SELECT cost AS n FROM calls WHERE run_no = $1 AND outcome <= {uncertain} {lost}) AS a), \
             uncertain = (SELECT {sum} FROM (SELECT cost AS n FROM calls WHERE run_no = $1 AND outcome = {uncertain} {lost}) AS a), \
             reserved = (SELECT {sum} FROM (SELECT amount AS n FROM reservations WHERE run_no = $1 AND state = {open} AND day >= 0) AS a) \
             WHERE run_no = $1",
            low.0,
            high.0,
            uncertain = super::codes::UNCERTAIN,
            open = super::codes::OPEN,
            sum = sum("n"),
            lost = format_args!(
                "UNION ALL SELECT amount FROM reservations WHERE run_no = $1 AND state = {} AND day >= 0",
                super::codes::LOST
            ),
        )
    });
    static SEGMENTS: Sql = Sql::new(|| "SELECT segments FROM banks WHERE run_no = $1".to_owned());
    static DOCS: Sql =
        Sql::new(|| "SELECT doc FROM facts WHERE run_no = $1 AND task_key > $2 ORDER BY task_key LIMIT $3".to_owned());
    static REST: Sql = Sql::new(|| {
        "UPDATE run_counters SET entries_planned = $2, headline_sum = $3, unmeasured = $4 WHERE run_no = $1".to_owned()
    });
    conn.lock(&LOCK, args![run.0]).await?;
    conn.execute(&RECOUNT, args![run.0]).await?;
    let mut entries = 0;
    for mut row in conn.fetch(&SEGMENTS, args![run.0]).await? {
        let segments: Vec<crate::Segment> =
            crate::codec::large_from_json(&row.text(0)?, || "a bank's segments".to_owned())?;
        entries += segments.last().map_or(0, |segment| i64::from(segment.until));
    }
    let (mut scores, mut after) = (Delta::default(), -1_i64);
    loop {
        let rows = conn.fetch(&DOCS, args![run.0, after, super::CHUNK as i64]).await?;
        let full = rows.len() == super::CHUNK;
        for mut row in rows {
            let facts: QuestionFacts =
                crate::codec::large_from_json(&row.text(0)?, || "the facts of a question".to_owned())?;
            after = facts.task.0;
            scores.end(&facts, headline_metric);
        }
        if !full {
            break;
        }
    }
    conn.execute(&REST, args![run.0, entries, scores.headline_sum, scores.unmeasured]).await.map(drop)
}
