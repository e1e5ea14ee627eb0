//! The hard caps on spending (P10): reservations, what they become, and what is booked where.
//!
//! Money is booked in the counters of its run and, for the caps beside it, in `budgets`: by phase of the run and by day of
//! the store. Transactions lock in one order: sessions, tasks, reservations, banks, groups, runs, phases, days. A reservation adds
//! first and looks at the sums that come back; what does not fit is taken out again in the same transaction. Groups of runs
//! ([`groups`]) are locked by reservations alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use bench_proto::{
    call::{CallOutcome, Ledger},
    ids::RunNo,
    money::PicoUsd,
    spec::{Limits, ModelSpec},
};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    Backend, Batch, Conn, Row, Sql, SqlStore, args,
    calls::{RELEASED, UNCERTAIN, phase_code, phase_from},
    counters::{self, Delta, Deltas},
    groups, ledger, missing_run,
    runs::change_state,
    sums::{bounded, plus},
};
use crate::{
    BudgetAnswer, BudgetChange, BudgetScope, BudgetState, GroupState, Money, RunRow, RunState, SessionId, StoreError,
    StoreResult, Want, codec::from_json,
};

/// State of a reservation whose attempt may be under way.
pub(super) const OPEN: i64 = 0;
/// State of a reservation that nobody will settle in time: uncertain.
pub(super) const LOST: i64 = 1;

/// `budgets.kind` of a phase of a run.
const PHASE: i64 = 1;
/// `budgets.kind` of a day.
const DAY: i64 = 2;

const DAY_US: i64 = 86_400_000_000;

/// Days since 1970 of a time in microseconds.
pub(super) const fn day_of(at_us: i64) -> i64 {
    at_us.div_euclid(DAY_US)
}

/// Reads the id of an attempt.
pub(super) fn attempt_id(bytes: &[u8]) -> StoreResult<Uuid> {
    Uuid::from_slice(bytes).map_err(|e| StoreError::Corrupt(format!("the id of a call: {e}")))
}

/// An attempt whose record was stored just now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paid {
    pub(super) run: RunNo,
    pub(super) attempt: Uuid,
    /// Stored number of its phase.
    pub(super) phase: i64,
    pub(super) outcome: CallOutcome,
    pub(super) cost: PicoUsd,
    /// The day of its record: that of its reservation counts, if there is one.
    pub(super) day: i64,
}

/// A reservation as stored.
#[derive(Debug, Clone, Copy)]
struct Reserved {
    run: RunNo,
    phase: i64,
    day: i64,
    amount: PicoUsd,
    state: i64,
}

const RESERVED: &str = "run_no, phase, day, amount, state, attempt_id";

fn reserved(row: &mut Row) -> StoreResult<(Uuid, Reserved)> {
    let reserved = Reserved {
        run: RunNo(row.int(0)?),
        phase: row.int(1)?,
        day: row.int(2)?,
        amount: PicoUsd(row.int(3)?),
        state: row.int(4)?,
    };
    Ok((attempt_id(&row.blob(5)?)?, reserved))
}

/// (kind, scope, part) of a row of `budgets`.
type ScopeKey = (i64, i64, i64);

/// What a transaction adds to a row of `budgets`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    spent: i64,
    reserved: i64,
    uncertain: i64,
}

/// What a transaction books: in the counters of runs, and by phase and day.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) runs: Deltas,
    scopes: BTreeMap<ScopeKey, Sums>,
}

impl Books {
    /// Nothing yet, for runs whose counters are written in any case.
    pub(super) fn of(runs: impl IntoIterator<Item = RunNo>) -> Self {
        Self { runs: runs.into_iter().map(|run| (run, Delta::default())).collect(), ..Self::default() }
    }

    /// Books in a run, its phase and a day at once.
    fn book(&mut self, run: RunNo, phase: i64, day: i64, sums: Sums) {
        let delta = self.runs.entry(run).or_default();
        delta.spent = delta.spent.saturating_add(PicoUsd(sums.spent));
        delta.reserved = delta.reserved.saturating_add(PicoUsd(sums.reserved));
        delta.uncertain = delta.uncertain.saturating_add(PicoUsd(sums.uncertain));
        for key in [(PHASE, run.0, phase), (DAY, day, 0)] {
            let scope = self.scopes.entry(key).or_default();
            scope.spent = scope.spent.saturating_add(sums.spent);
            scope.reserved = scope.reserved.saturating_add(sums.reserved);
            scope.uncertain = scope.uncertain.saturating_add(sums.uncertain);
        }
    }

    /// Takes back what a reservation holds.
    fn unbook(&mut self, of: Reserved) {
        let amount = -of.amount.0;
        let sums = if of.state == OPEN {
            Sums { reserved: amount, ..Sums::default() }
        } else {
            Sums { spent: amount, uncertain: amount, ..Sums::default() }
        };
        self.book(of.run, of.phase, of.day, sums);
    }

    /// Writes everything. The last change of a transaction, because all writers of a run meet here.
    pub(super) async fn write(self, conn: &mut dyn Conn) -> StoreResult<()> {
        if !self.runs.is_empty() {
            counters::add(conn, &self.runs).await?;
        }
        add_scopes(conn, &self.scopes).await.map(drop)
    }

    /// The same with the commit; runs that are not there are passed over.
    pub(super) async fn write_at_last(self, conn: &mut dyn Conn) -> StoreResult<()> {
        for (run, delta) in self.runs {
            counters::add_at_last(conn, run, delta).await?;
        }
        match changed(&self.scopes) {
            Some(batch) => conn.at_last(&ADD_SCOPES, args![batch]).await,
            None => Ok(()),
        }
    }
}

static ADD_SCOPES: Sql = Sql::new(|| {
    format!(
        "INSERT INTO budgets (kind, scope, part, spent, reserved, uncertain) \
         SELECT b.kind, b.scope, b.part, b.spent, b.reserved, b.uncertain \
         FROM @rows($1: kind int, scope int, part int, spent int, reserved int, uncertain int) AS b WHERE true \
         ORDER BY b.kind, b.scope, b.part \
         ON CONFLICT (kind, scope, part) DO UPDATE SET spent = {}, reserved = {}, uncertain = {} \
         RETURNING kind, scope, part, spent, reserved",
        plus("budgets.spent", "excluded.spent"),
        plus("budgets.reserved", "excluded.reserved"),
        plus("budgets.uncertain", "excluded.uncertain"),
    )
});

/// Adds to rows of `budgets`; returns (spent, reserved) of each afterwards.
async fn add_scopes(
    conn: &mut dyn Conn,
    scopes: &BTreeMap<ScopeKey, Sums>,
) -> StoreResult<HashMap<ScopeKey, (i64, i64)>> {
    let Some(batch) = changed(scopes) else { return Ok(HashMap::new()) };
    let rows = conn.fetch(&ADD_SCOPES, args![batch]).await?;
    let read = |row: &Row| Ok(((row.int(0)?, row.int(1)?, row.int(2)?), (row.int(3)?, row.int(4)?)));
    rows.iter().map(read).collect()
}

/// The rows that change, if any do.
fn changed(scopes: &BTreeMap<ScopeKey, Sums>) -> Option<Batch> {
    let changed: Vec<_> = scopes.iter().filter(|(_, sums)| **sums != Sums::default()).collect();
    let batch = Batch::default()
        .int(changed.iter().map(|(key, _)| key.0))
        .int(changed.iter().map(|(key, _)| key.1))
        .int(changed.iter().map(|(key, _)| key.2))
        .int(changed.iter().map(|(_, sums)| bounded(sums.spent)))
        .int(changed.iter().map(|(_, sums)| bounded(sums.reserved)))
        .int(changed.iter().map(|(_, sums)| bounded(sums.uncertain)));
    (!changed.is_empty()).then_some(batch)
}

fn ids(attempts: &[Uuid]) -> Batch {
    Batch::default().int(0..attempts.len() as i64).blob(attempts.iter().map(|id| id.as_bytes().to_vec()))
}

/// Removes reservations, in the order of their ids: two that settle the same ones wait for each other.
async fn take(conn: &mut dyn Conn, attempts: &[Uuid]) -> StoreResult<HashMap<Uuid, Reserved>> {
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

/// Books attempts whose records were stored just now: each one's reservation is gone, whatever it had become, and its cost
/// is booked where it was reserved.
pub(super) async fn settle(conn: &mut dyn Conn, paid: &[Paid], books: &mut Books) -> StoreResult<()> {
    let attempts: Vec<Uuid> = paid.iter().map(|paid| paid.attempt).collect();
    let taken = take(conn, &attempts).await?;
    for paid in paid {
        let of = taken.get(&paid.attempt);
        let cost = paid.cost.0;
        let uncertain = if paid.outcome == CallOutcome::Uncertain { cost } else { 0 };
        let day = of.map_or(paid.day, |of| of.day);
        books.book(paid.run, paid.phase, day, Sums { spent: cost, uncertain, reserved: 0 });
        if let Some(of) = of {
            books.unbook(*of);
            let delta = books.runs.entry(paid.run).or_default();
            delta.overdraft = delta.overdraft.saturating_add(PicoUsd((cost - of.amount.0).max(0)));
        }
    }
    Ok(())
}

/// Makes the open reservations of an ended session uncertain.
pub(super) async fn lose_session(conn: &mut dyn Conn, session: SessionId) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| {
        format!("SELECT attempt_id FROM reservations WHERE session = $1 AND state = {OPEN} ORDER BY attempt_id")
    });
    static LOSE: Sql = Sql::new(|| {
        format!("UPDATE reservations SET state = {LOST} WHERE session = $1 AND state = {OPEN} RETURNING {RESERVED}")
    });
    conn.lock(&LOCK, args![session.0]).await?;
    let mut books = Books::default();
    for mut row in conn.fetch(&LOSE, args![session.0]).await? {
        lose(&mut books, reserved(&mut row)?.1);
    }
    books.write(conn).await
}

/// Makes what a session still holds open of a run uncertain.
async fn lose_run(conn: &mut dyn Conn, run: RunNo, session: SessionId) -> StoreResult<()> {
    static LOCK: Sql = Sql::new(|| {
        format!(
            "SELECT attempt_id FROM reservations WHERE session = $1 AND run_no = $2 AND state = {OPEN} ORDER BY attempt_id"
        )
    });
    static LOSE: Sql = Sql::new(|| {
        format!(
            "UPDATE reservations SET state = {LOST} WHERE session = $1 AND run_no = $2 AND state = {OPEN} RETURNING {RESERVED}"
        )
    });
    conn.lock(&LOCK, args![session.0, run.0]).await?;
    let mut books = Books::default();
    for mut row in conn.fetch(&LOSE, args![session.0, run.0]).await? {
        lose(&mut books, reserved(&mut row)?.1);
    }
    books.write(conn).await
}

/// Reserves again what the store has forgotten, whether it fits or not: it is out already. What became uncertain of it is booked
/// as that; how many, and how much. An attempt with a record stays what it is.
pub(super) async fn restore(
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
    let (mut books, mut lost) = (Books::default(), (0, PicoUsd::ZERO));
    if state == LOST {
        let ids = ids(&wants.iter().map(|want| want.attempt).collect::<Vec<_>>());
        for mut row in conn.fetch(&LOSE, args![ids]).await? {
            let (_, of) = reserved(&mut row)?;
            lost = (lost.0 + 1, lost.1.saturating_add(of.amount));
            lose(&mut books, of);
        }
    }
    for mut row in conn.fetch(&RESTORE, args![amounts(&wants), run.0, session.0, day, state]).await? {
        let (_, of) = reserved(&mut row)?;
        let amount = of.amount.0;
        if state == LOST {
            lost = (lost.0 + 1, lost.1.saturating_add(of.amount));
            books.book(of.run, of.phase, of.day, Sums { spent: amount, uncertain: amount, reserved: 0 });
        } else {
            books.book(of.run, of.phase, of.day, Sums { reserved: amount, ..Sums::default() });
        }
    }
    books.write(conn).await?;
    Ok(lost)
}

/// Books that a reservation has become uncertain.
fn lose(books: &mut Books, of: Reserved) {
    let amount = of.amount.0;
    books.book(of.run, of.phase, of.day, Sums { spent: amount, reserved: -amount, uncertain: amount });
}

/// What stands before a reservation.
struct Standing {
    /// The run runs and the session is open.
    open: bool,
    limits: Limits,
    day: i64,
    /// The number of the run's group.
    group: Option<i64>,
}

#[derive(Deserialize)]
struct SpecLimits {
    limits: Limits,
}

async fn standing(conn: &mut dyn Conn, run: RunNo, session: SessionId) -> StoreResult<Standing> {
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
    let spec: SpecLimits = from_json(&row.text(1)?, || format!("the spec of run number {}", run.0))?;
    Ok(Standing { open, limits: spec.limits, day: day_of(row.int(2)?), group: row.opt_int(3)? })
}

fn add_to_counters() -> String {
    format!(
        "UPDATE run_counters SET spent = {}, uncertain = {}, reserved = {} WHERE run_no = $1 RETURNING spent, reserved",
        plus("spent", "$2"),
        plus("uncertain", "$3"),
        plus("reserved", "$4"),
    )
}

/// Adds a delta to one run; returns (spent, reserved) afterwards.
async fn add_to_run(conn: &mut dyn Conn, run: RunNo, delta: &Delta) -> StoreResult<(i64, i64)> {
    static ADD: Sql = Sql::new(add_to_counters);
    let [spent, uncertain, reserved] = [delta.spent, delta.uncertain, delta.reserved].map(|sum| bounded(sum.0));
    let rows = conn.fetch(&ADD, args![run.0, spent, uncertain, reserved]).await?;
    let row = rows.first().ok_or_else(|| missing_run(run))?;
    Ok((row.int(0)?, row.int(1)?))
}

/// The same for a run of a locked group; returns the sums of the run, and those of its group.
async fn add_in_group(conn: &mut dyn Conn, run: RunNo, group: i64, delta: &Delta) -> StoreResult<[(i64, i64); 2]> {
    static ADD: Sql = Sql::new(|| {
        let others = [groups::others("spent"), groups::others("reserved")].join(", ");
        format!("{}, {others}", add_to_counters())
    });
    let [spent, uncertain, reserved] = [delta.spent, delta.uncertain, delta.reserved].map(|sum| bounded(sum.0));
    let args = args![run.0, spent, uncertain, reserved, group];
    let rows = conn.fetch(&ADD, args).await?;
    let row = rows.first().ok_or_else(|| missing_run(run))?;
    let (spent, reserved) = (row.int(0)?, row.int(1)?);
    Ok([(spent, reserved), (spent.saturating_add(row.int(2)?), reserved.saturating_add(row.int(3)?))])
}

/// Inserts reservations that are not there; returns the places of the new ones.
async fn insert(
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

/// A batch of (phase, amount, attempt).
fn amounts(wants: &[Want]) -> Batch {
    Batch::default()
        .int(wants.iter().map(|want| phase_code(want.phase)))
        .int(wants.iter().map(|want| bounded(want.amount.0)))
        .blob(wants.iter().map(|want| want.attempt.as_bytes().to_vec()))
}

/// The caps of a run, in the order in which they are locked. That of its group takes the place of its own.
fn caps(limits: &Limits, group: Option<Option<PicoUsd>>) -> Vec<(BudgetScope, PicoUsd)> {
    let of_run = match group {
        Some(cap) => cap.map(|cap| (BudgetScope::Group, cap)),
        None => limits.max_cost.map(|cap| (BudgetScope::Run, cap)),
    };
    let phases = limits.max_cost_by_phase.iter().map(|(phase, cap)| (BudgetScope::Phase(*phase), *cap));
    let day = limits.max_cost_per_day.map(|cap| (BudgetScope::Day, cap));
    of_run.into_iter().chain(phases).chain(day).collect()
}

/// Gives what is left under the caps to wants, in their order; returns the places of those that do not fit, with the cap
/// that refuses each. Pure: `states` hold what was there before and come back with what was granted.
fn grant<'w>(states: &mut [BudgetState], wants: impl Iterator<Item = (usize, &'w Want)>) -> Vec<(usize, BudgetScope)> {
    let mut refused = Vec::new();
    for (place, want) in wants {
        let tight = states.iter().find(|state| state.scope.holds(want.phase) && state.left() < want.amount);
        if let Some(state) = tight {
            refused.push((place, state.scope));
            continue;
        }
        for state in states.iter_mut().filter(|state| state.scope.holds(want.phase)) {
            state.reserved = state.reserved.saturating_add(want.amount);
        }
    }
    refused
}

/// Makes open reservations uncertain.
static LOSE: Sql = Sql::new(|| {
    format!(
        "UPDATE reservations SET state = {LOST} WHERE state = {OPEN} \
         AND attempt_id IN (SELECT b.attempt FROM @locked(reservations $1: place int, attempt blob) AS b) RETURNING {RESERVED}"
    )
});

/// The transaction of [`Money::change_budget`].
async fn change(conn: &mut dyn Conn, change: BudgetChange) -> StoreResult<BudgetAnswer> {
    let BudgetChange { run, session, mut release, lose: lost, wants } = change;
    let standing = standing(conn, run, session).await?;
    let mut books = Books::default();
    // one order with all others that change reservations
    release.sort_unstable();
    for of in take(conn, &release).await?.into_values() {
        books.unbook(of);
    }
    if !lost.is_empty() {
        for mut row in conn.fetch(&LOSE, args![ids(&lost)]).await? {
            lose(&mut books, reserved(&mut row)?.1);
        }
    }
    let new = match standing.open && !wants.is_empty() {
        true => insert(conn, run, session, standing.day, &wants).await?,
        false => HashSet::new(),
    };
    for place in &new {
        let want = &wants[*place];
        let sums = Sums { reserved: bounded(want.amount.0), ..Sums::default() };
        books.book(run, phase_code(want.phase), standing.day, sums);
    }
    // a change may settle reservations of another run only if somebody mixes ids up; its counters are written all the same
    let own = books.runs.remove(&run).unwrap_or_default();
    if !books.runs.is_empty() {
        counters::add(conn, &books.runs).await?;
    }
    let (of_run, of_group, group_cap) = match standing.group {
        Some(group) => {
            let cap = groups::lock(conn, group).await?;
            let [of_run, of_group] = add_in_group(conn, run, group, &own).await?;
            (of_run, of_group, Some(cap))
        }
        None => (add_to_run(conn, run, &own).await?, (0, 0), None),
    };
    let caps = caps(&standing.limits, group_cap);
    for (scope, _) in &caps {
        // read even where nothing was added
        books.scopes.entry(scope_key(*scope, run, standing.day)).or_default();
    }
    let by_scope = sums_after(conn, &books.scopes).await?;
    let mut states: Vec<BudgetState> = caps
        .into_iter()
        .map(|(scope, cap)| {
            let (spent, reserved) = match scope {
                BudgetScope::Run => of_run,
                BudgetScope::Group => of_group,
                scope => by_scope.get(&scope_key(scope, run, standing.day)).copied().unwrap_or_default(),
            };
            let here: PicoUsd =
                new.iter().filter(|at| scope.holds(wants[**at].phase)).map(|at| wants[*at].amount).sum();
            BudgetState { scope, cap, spent: PicoUsd(spent), reserved: PicoUsd(reserved.saturating_sub(here.0)) }
        })
        .collect();
    let asked = wants.iter().enumerate().filter(|(place, _)| new.contains(place));
    let refused = grant(&mut states, asked);
    take_back(conn, run, standing.day, &wants, &refused).await?;
    Ok(BudgetAnswer { refused, caps: states, stopped: !standing.open })
}

fn scope_key(scope: BudgetScope, run: RunNo, day: i64) -> ScopeKey {
    match scope {
        // in the counters of runs
        BudgetScope::Run | BudgetScope::Group => (0, run.0, 0),
        BudgetScope::Phase(phase) => (PHASE, run.0, phase_code(phase)),
        BudgetScope::Day => (DAY, day, 0),
    }
}

/// Adds to rows of `budgets` and reads all of the named ones.
async fn sums_after(
    conn: &mut dyn Conn,
    scopes: &BTreeMap<ScopeKey, Sums>,
) -> StoreResult<HashMap<ScopeKey, (i64, i64)>> {
    static READ: Sql = Sql::new(|| {
        "SELECT b.kind, b.scope, b.part, t.spent, t.reserved FROM @rows($1: kind int, scope int, part int) AS b \
         JOIN budgets AS t ON t.kind = b.kind AND t.scope = b.scope AND t.part = b.part"
            .to_owned()
    });
    let mut sums = add_scopes(conn, scopes).await?;
    let rest: Vec<&ScopeKey> = scopes.keys().filter(|key| key.0 != 0 && !sums.contains_key(key)).collect();
    if !rest.is_empty() {
        let batch = Batch::default()
            .int(rest.iter().map(|key| key.0))
            .int(rest.iter().map(|key| key.1))
            .int(rest.iter().map(|key| key.2));
        for row in conn.fetch(&READ, args![batch]).await? {
            sums.insert((row.int(0)?, row.int(1)?, row.int(2)?), (row.int(3)?, row.int(4)?));
        }
    }
    Ok(sums)
}

/// Takes refused wants out again.
async fn take_back(
    conn: &mut dyn Conn,
    run: RunNo,
    day: i64,
    wants: &[Want],
    refused: &[(usize, BudgetScope)],
) -> StoreResult<()> {
    let attempts: Vec<Uuid> = refused.iter().map(|(place, _)| wants[*place].attempt).collect();
    let mut books = Books::default();
    for of in take(conn, &attempts).await?.into_values() {
        books.unbook(Reserved { run, day, ..of });
    }
    if let Some(delta) = books.runs.get(&run) {
        add_to_run(conn, run, delta).await?;
    }
    add_scopes(conn, &books.scopes).await.map(drop)
}

/// The transaction of [`Money::release_uncertain`].
async fn release(conn: &mut dyn Conn, run: RunNo) -> StoreResult<PicoUsd> {
    static LOST_ONES: Sql =
        Sql::new(|| format!("DELETE FROM reservations WHERE run_no = $1 AND state = {LOST} RETURNING {RESERVED}"));
    static CALLS: Sql = Sql::new(|| {
        format!(
            "UPDATE calls SET outcome = {RELEASED} WHERE run_no = $1 AND outcome = {UNCERTAIN} RETURNING phase, at_us, cost"
        )
    });
    counters::require(conn, run).await?;
    let mut books = Books::default();
    for mut row in conn.fetch(&LOST_ONES, args![run.0]).await? {
        books.unbook(reserved(&mut row)?.1);
    }
    for row in conn.fetch(&CALLS, args![run.0]).await? {
        let (phase, day, cost) = (row.int(0)?, day_of(row.int(1)?), -row.int(2)?);
        phase_from(phase)?;
        books.book(run, phase, day, Sums { spent: cost, uncertain: cost, reserved: 0 });
    }
    let released = books.runs.get(&run).map_or(PicoUsd::ZERO, |delta| PicoUsd(-delta.uncertain.0));
    books.write(conn).await?;
    Ok(released)
}

/// The models of a spec.
#[derive(Deserialize)]
struct SpecModels {
    answerer: ModelSpec,
    judges: Vec<ModelSpec>,
}

/// The transaction of [`Money::stop_account`].
async fn stop_account(
    conn: &mut dyn Conn,
    run: RunNo,
    account: String,
    model: Option<String>,
    reason: String,
) -> StoreResult<Vec<RunNo>> {
    static SELECT: Sql = Sql::new(|| {
        format!(
            "SELECT r.run_no, r.spec FROM runs AS r JOIN runs AS own ON own.run_no = $1 WHERE r.state = '{}' \
             AND (r.run_no = $1 OR (own.domain = r.domain AND own.domain = $2)) ORDER BY r.run_no",
            RunState::Running.name()
        )
    });
    let mut paused = Vec::new();
    for mut row in conn.fetch(&SELECT, args![run.0, bench_proto::CLUSTER_DOMAIN]).await? {
        let found = RunNo(row.int(0)?);
        let spec: SpecModels = from_json(&row.text(1)?, || format!("the spec of run number {}", found.0))?;
        let uses = |of: &ModelSpec| of.account == account && model.as_ref().is_none_or(|model| of.name == *model);
        let hit = found == run || std::iter::once(&spec.answerer).chain(&spec.judges).any(uses);
        let reason = Some(reason.clone());
        if hit && change_state(conn, found, vec![RunState::Running], RunState::Paused, reason).await? {
            paused.push(found);
        }
    }
    Ok(paused)
}

#[async_trait]
impl<B: Backend> Money for SqlStore<B> {
    async fn change_budget(&self, of: &BudgetChange) -> StoreResult<BudgetAnswer> {
        if let Some(want) = of.wants.iter().find(|want| want.amount.0 <= 0) {
            return Err(StoreError::BadData(format!("attempt {} reserves {}", want.attempt, want.amount)));
        }
        let of = of.clone();
        self.backend.write(move |conn| Box::pin(change(conn, of))).await
    }

    async fn lose_open(&self, run: RunNo, session: SessionId) -> StoreResult<()> {
        self.backend.write(move |conn| Box::pin(lose_run(conn, run, session))).await
    }

    async fn stop_account(
        &self,
        run: RunNo,
        account: &str,
        model: Option<&str>,
        reason: &str,
    ) -> StoreResult<Vec<RunNo>> {
        let (account, model, reason) = (account.to_owned(), model.map(str::to_owned), reason.to_owned());
        self.backend.write(move |conn| Box::pin(stop_account(conn, run, account, model, reason))).await
    }

    async fn release_uncertain(&self, run: RunNo) -> StoreResult<PicoUsd> {
        self.backend.write(move |conn| Box::pin(release(conn, run))).await
    }

    async fn group(&self, run: RunNo) -> StoreResult<Option<GroupState>> {
        self.backend.read(move |conn| Box::pin(groups::state(conn, run))).await
    }

    async fn ledger(&self, run: &RunRow) -> StoreResult<Ledger> {
        let run = run.clone();
        self.backend.read(move |conn| Box::pin(ledger::read(conn, run))).await
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::call::Phase;

    use super::*;

    fn want(phase: Phase, amount: i64) -> Want {
        Want { attempt: Uuid::now_v7(), phase, amount: PicoUsd(amount) }
    }

    #[test]
    fn p10_what_fits_is_granted_in_order_under_every_cap() {
        let state =
            |scope, cap, spent| BudgetState { scope, cap: PicoUsd(cap), spent: PicoUsd(spent), reserved: PicoUsd(0) };
        let mut states = [
            state(BudgetScope::Run, 100, 10),
            state(BudgetScope::Phase(Phase::Judge), 20, 0),
            state(BudgetScope::Day, 1000, 950),
        ];
        let wants = [
            want(Phase::Judge, 15),
            want(Phase::Judge, 6),
            want(Phase::Answer, 36),
            want(Phase::Answer, 35),
            want(Phase::Judge, 5),
        ];
        let refused = grant(&mut states, wants.iter().enumerate());
        let scopes = [(1, BudgetScope::Phase(Phase::Judge)), (2, BudgetScope::Day), (4, BudgetScope::Day)];
        assert_eq!(refused, scopes);
        assert_eq!(states.map(|state| state.reserved.0), [50, 15, 50]);
    }

    #[test]
    fn p41_the_cap_of_a_group_takes_the_place_of_the_runs_own() {
        let limits = Limits { max_cost: Some(PicoUsd(5)), max_cost_per_day: Some(PicoUsd(9)), ..Limits::default() };
        let day = (BudgetScope::Day, PicoUsd(9));
        assert_eq!(caps(&limits, None), [(BudgetScope::Run, PicoUsd(5)), day]);
        assert_eq!(caps(&limits, Some(Some(PicoUsd(7)))), [(BudgetScope::Group, PicoUsd(7)), day]);
        assert_eq!(caps(&limits, Some(None)), [day], "a group without a cap");
    }

    #[test]
    fn days_are_utc() {
        assert_eq!((day_of(0), day_of(DAY_US - 1), day_of(DAY_US), day_of(-1)), (0, 0, 1, -1));
    }
}
