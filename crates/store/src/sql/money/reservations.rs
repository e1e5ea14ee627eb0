//! Reservations: what attempts may cost, until their records say what they cost.

use std::collections::{HashMap, HashSet};

use bench_proto::{call::CallOutcome, ids::RunNo, money::PicoUsd, spec::Limits, usage_cap::UsageUnit};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    super::{
        Batch, Conn, Row, Sql, args,
        codes::{LOST, OPEN, phase_code},
        missing_run,
        sums::bounded,
    },
    ledger_change::{LedgerChange, Reserved, Sums, day_of, day_of_usage, unit_of},
};
use crate::{RunState, SessionId, StoreError, StoreResult, Want, codec::spec_from_json};

/// An attempt whose record was stored just now.
#[derive(Debug, Clone, Copy)]
pub(in crate::sql) struct Paid {
    pub(in crate::sql) run: RunNo,
    pub(in crate::sql) attempt: Uuid,
    /// Stored number of its phase.
    pub(in crate::sql) phase: i64,
    pub(in crate::sql) outcome: CallOutcome,
    pub(in crate::sql) cost: PicoUsd,
    /// Of prompt and completion.
    pub(in crate::sql) tokens: u64,
    /// The day of its record: that of its reservation counts, if there is one.
    pub(in crate::sql) day: i64,
}

pub(super) const RESERVED: &str = "run_no, phase, day, amount, state, attempt_id";

pub(super) fn reserved(row: &mut Row) -> StoreResult<(Uuid, Reserved)> {
    let reserved = Reserved {
        run: RunNo(row.int(0)?),
        phase: row.int(1)?,
        day: row.int(2)?,
        amount: PicoUsd(row.int(3)?),
        state: row.int(4)?,
    };
    Ok((attempt_id(&row.blob(5)?)?, reserved))
}

/// Reads the id of an attempt.
pub(in crate::sql) fn attempt_id(bytes: &[u8]) -> StoreResult<Uuid> {
    Uuid::from_slice(bytes).map_err(|e| StoreError::Corrupt(format!("the id of a call: {e}").into()))
}

pub(super) fn ids(attempts: &[Uuid]) -> Batch {
    Batch::default().int(0..attempts.len() as i64).blob(attempts.iter().map(|id| id.as_bytes().to_vec()))
}

/// A batch of (phase, amount, attempt).
fn amounts(wants: &[Want]) -> Batch {
    Batch::default()
        .int(wants.iter().map(|want| phase_code(want.phase)))
        .int(wants.iter().map(|want| bounded(want.amount.0)))
        .blob(wants.iter().map(|want| want.attempt.as_bytes().to_vec()))
}

/// Inserts reservations that are not there; returns the places of the new ones.
pub(super) async fn insert(
    conn: &mut dyn Conn,
    run: RunNo,
    session: SessionId,
    day: i64,
    wants: &[Want],
) -> StoreResult<HashSet<usize>> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO reservations (attempt_id, run_no, session, day, phase, amount) \
         SELECT b.attempt, $2, $3, $4, b.phase, b.amount FROM @rows($1: phase int, amount int, attempt blob) AS b WHERE true \
         ON CONFLICT (attempt_id) DO NOTHING RETURNING attempt_id"
            .to_owned()
    });
    let mut places: HashMap<Uuid, usize> = HashMap::with_capacity(wants.len());
    for (place, want) in wants.iter().enumerate() {
        places.entry(want.attempt).or_insert(place);
    }
    let rows = conn.fetch(&INSERT, args![amounts(wants), run.0, session.0, day]).await?;
    let mut new = HashSet::with_capacity(rows.len());
    for mut row in rows {
        new.extend(places.get(&attempt_id(&row.blob(0)?)?));
    }
    Ok(new)
}

/// Removes reservations, in the order of their ids: two that settle the same ones wait for each other.
pub(super) async fn take(conn: &mut dyn Conn, attempts: &[Uuid]) -> StoreResult<HashMap<Uuid, Reserved>> {
    static TAKE: Sql = Sql::new(|| {
        format!(
            "DELETE FROM reservations WHERE attempt_id IN \
             (SELECT b.attempt FROM @locked(reservations $1: place int, attempt blob) AS b) RETURNING {RESERVED}"
        )
    });
    if attempts.is_empty() {
        return Ok(HashMap::new());
    }
    let mut rows = conn.fetch(&TAKE, args![ids(attempts)]).await?;
    rows.iter_mut().map(reserved).collect()
}

/// Makes open reservations uncertain.
pub(super) static LOSE: Sql = Sql::new(|| {
    format!(
        "UPDATE reservations SET state = {LOST} WHERE state = {OPEN} \
         AND attempt_id IN (SELECT b.attempt FROM @locked(reservations $1: place int, attempt blob) AS b) RETURNING {RESERVED}"
    )
});

/// Books attempts whose records were stored just now: each one's reservation is gone, whatever it had become, and its cost
/// is booked where it was reserved.
pub(in crate::sql) async fn settle(conn: &mut dyn Conn, paid: &[Paid], ledger: &mut LedgerChange) -> StoreResult<()> {
    let attempts: Vec<Uuid> = paid.iter().map(|paid| paid.attempt).collect();
    let taken = take(conn, &attempts).await?;
    for paid in paid {
        let of = taken.get(&paid.attempt);
        let cost = paid.cost.0;
        let uncertain = if paid.outcome == CallOutcome::Uncertain { cost } else { 0 };
        let unit = of.and_then(|of| unit_of(of.day));
        let day = of.filter(|_| unit.is_none()).map_or(paid.day, |of| of.day);
        ledger.book(paid.run, paid.phase, day, Sums { spent: cost, uncertain, reserved: 0 });
        if let Some(of) = of {
            ledger.unbook(*of);
            if let Some(unit) = unit {
                ledger.book(paid.run, paid.phase, of.day, used(paid, unit, *of));
                continue;
            }
            let delta = ledger.runs.entry(paid.run).or_default();
            delta.overdraft = delta.overdraft.saturating_add(PicoUsd((cost - of.amount.0).max(0)));
        }
    }
    Ok(())
}

/// What an attempt of a run with a cap on its usage has used; one of which nobody knows it, its worst case.
fn used(paid: &Paid, unit: UsageUnit, of: Reserved) -> Sums {
    let told = unit.of_attempt(paid.tokens);
    if paid.outcome == CallOutcome::Uncertain {
        let worst = told.max(of.amount.0);
        return Sums { spent: worst, uncertain: worst, reserved: 0 };
    }
    Sums { spent: told, ..Sums::default() }
}

/// Makes the open reservations of an ended session uncertain.
pub(in crate::sql) async fn lose_session(conn: &mut dyn Conn, session: SessionId) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| lock_open("session = $1"));
    static LOSE: Sql = Sql::new(|| lose_open("session = $1"));
    conn.lock(&LOCK, args![session.0]).await?;
    let lost = conn.fetch(&LOSE, args![session.0]).await?;
    book_lost(conn, lost).await
}

/// Makes what a session still holds open of a run uncertain.
pub(super) async fn lose_run(conn: &mut dyn Conn, run: RunNo, session: SessionId) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| lock_open("session = $1 AND run_no = $2"));
    static LOSE: Sql = Sql::new(|| lose_open("session = $1 AND run_no = $2"));
    conn.lock(&LOCK, args![session.0, run.0]).await?;
    let lost = conn.fetch(&LOSE, args![session.0, run.0]).await?;
    book_lost(conn, lost).await
}

/// Locks all that is reserved for a run.
pub(in crate::sql) async fn lock_all(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| lock_open("run_no = $1"));
    conn.lock(&LOCK, args![run.0]).await
}

/// Makes all that is reserved for a run uncertain; it is locked ([`lock_all`]).
pub(in crate::sql) async fn lose_all(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static LOSE: Sql = Sql::new(|| lose_open("run_no = $1"));
    let lost = conn.fetch(&LOSE, args![run.0]).await?;
    book_lost(conn, lost).await
}

fn lock_open(of: &str) -> String {
    format!("SELECT attempt_id FROM reservations WHERE {of} AND state = {OPEN} ORDER BY attempt_id")
}

fn lose_open(of: &str) -> String {
    format!("UPDATE reservations SET state = {LOST} WHERE {of} AND state = {OPEN} RETURNING {RESERVED}")
}

async fn book_lost(conn: &mut dyn Conn, lost: Vec<Row>) -> StoreResult<()> {
    let mut ledger = LedgerChange::default();
    for mut row in lost {
        ledger.lose(reserved(&mut row)?.1);
    }
    ledger.write(conn).await
}

/// Reserves again what the store has forgotten, whether it fits or not: it is out already. What became uncertain of it is booked
/// as that; how many, and how much. An attempt with a record stays what it is.
pub(in crate::sql) async fn restore(
    conn: &mut dyn Conn,
    run: RunNo,
    session: SessionId,
    mut wants: Vec<Want>,
    state: i64,
) -> StoreResult<(u64, PicoUsd)> {
    static RESTORE: Sql = Sql::new(|| {
        format!(
            "INSERT INTO reservations (attempt_id, run_no, session, day, phase, amount, state) \
             SELECT b.attempt, $2, $3, $4, b.phase, b.amount, $5 FROM @rows($1: phase int, amount int, attempt blob) AS b \
             WHERE NOT EXISTS (SELECT 1 FROM calls AS c WHERE c.attempt_id = b.attempt) \
             ON CONFLICT (attempt_id) DO NOTHING RETURNING {RESERVED}"
        )
    });
    wants.sort_unstable_by_key(|want| want.attempt);
    let day = standing(conn, run, session).await?.day;
    let (mut ledger, mut lost) = (LedgerChange::default(), (0, PicoUsd::ZERO));
    if state == LOST {
        let ids = ids(&wants.iter().map(|want| want.attempt).collect::<Vec<_>>());
        for mut row in conn.fetch(&LOSE, args![ids]).await? {
            let (_, of) = reserved(&mut row)?;
            lost = (lost.0 + 1, lost.1.saturating_add(of.amount));
            ledger.lose(of);
        }
    }
    for mut row in conn.fetch(&RESTORE, args![amounts(&wants), run.0, session.0, day, state]).await? {
        let (_, of) = reserved(&mut row)?;
        let amount = of.amount.0;
        if state == LOST {
            lost = (lost.0 + 1, lost.1.saturating_add(of.amount));
            ledger.book(of.run, of.phase, of.day, Sums { spent: amount, uncertain: amount, reserved: 0 });
        } else {
            ledger.book(of.run, of.phase, of.day, Sums { reserved: amount, ..Sums::default() });
        }
    }
    ledger.write(conn).await?;
    Ok(lost)
}

/// What stands before a reservation.
pub(super) struct Standing {
    /// The run runs and the session is open.
    pub(super) open: bool,
    pub(super) limits: Limits,
    /// Where reservations are booked: the day, or what stands in its place.
    pub(super) day: i64,
    /// The number of the run's group.
    pub(super) group: Option<i64>,
}

#[derive(Deserialize)]
struct SpecLimits {
    limits: Limits,
}

pub(super) async fn standing(conn: &mut dyn Conn, run: RunNo, session: SessionId) -> StoreResult<Standing> {
    static SESSION: Sql = Sql::new(|| {
        "SELECT s.session_id FROM sessions AS s WHERE s.session_id = $1 AND s.ended_us IS NULL @share(s)".to_owned()
    });
    static SELECT: Sql =
        Sql::new(|| "SELECT r.state, r.spec, @now, r.group_no FROM runs AS r WHERE r.run_no = $1".to_owned());
    // who ends the session waits, and then finds the new reservations
    let alive = !conn.fetch(&SESSION, args![session.0]).await?.is_empty();
    let mut rows = conn.fetch(&SELECT, args![run.0]).await?;
    let row = rows.first_mut().ok_or_else(|| missing_run(run))?;
    let open = row.text(0)? == RunState::Running.name() && alive;
    let spec: SpecLimits = spec_from_json(&row.text(1)?, || format!("the spec of run number {}", run.0))?;
    let today = day_of(row.int(2)?);
    let day = spec.limits.max_usage.map_or(today, |cap| day_of_usage(cap.unit));
    Ok(Standing { open, limits: spec.limits, day, group: row.opt_int(3)? })
}
