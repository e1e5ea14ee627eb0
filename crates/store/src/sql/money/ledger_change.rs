//! What a transaction books: in the counters of runs and, for the caps beside them, in `budgets`: by phase of the run and by day of
//! the store.

use std::collections::{BTreeMap, HashMap};

use bench_proto::{
    ids::RunNo,
    money::PicoUsd,
    usage_cap::{UsageCap, UsageUnit},
};

use super::super::{
    Batch, Conn, Row, Sql, args,
    codes::{OPEN, PHASE, ScopeKey, USAGE, phase_code},
    counters::{self, Delta, Deltas},
    groups, missing_run,
    sums::{bounded, plus, sum},
};
use crate::{BudgetScope, BudgetState, StoreError, StoreResult};

/// `budgets.kind` of a day.
const DAY: i64 = 2;

/// A reservation as stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reserved {
    pub(super) run: RunNo,
    pub(super) phase: i64,
    pub(super) day: i64,
    pub(super) amount: PicoUsd,
    pub(super) state: i64,
}

const DAY_US: i64 = 86_400_000_000;

/// Days since 1970 of a time in microseconds.
pub(in crate::sql) const fn day_of(at_us: i64) -> i64 {
    at_us.div_euclid(DAY_US)
}

/// What stands in the place of a day where a reservation is of usage: days are counted from 1970, and are never negative here.
pub(super) const fn day_of_usage(unit: UsageUnit) -> i64 {
    match unit {
        UsageUnit::Tokens => -1,
        UsageUnit::Calls => -2,
    }
}

/// The unit of a reservation, by its day; `None`: dollars.
pub(super) fn unit_of(day: i64) -> Option<UsageUnit> {
    UsageUnit::ALL.into_iter().find(|unit| day_of_usage(*unit) == day)
}

const fn usage_key(run: RunNo, unit: UsageUnit) -> ScopeKey {
    (USAGE, run.0, -day_of_usage(unit))
}

pub(super) fn scope_key(scope: BudgetScope, run: RunNo, day: i64) -> ScopeKey {
    match scope {
        // in the counters of runs
        BudgetScope::Run | BudgetScope::Group => (0, run.0, 0),
        BudgetScope::Phase(phase) => (PHASE, run.0, phase_code(phase)),
        BudgetScope::Day => (DAY, day, 0),
        BudgetScope::Usage(unit) => usage_key(run, unit),
    }
}

/// What a transaction adds to a row of `budgets`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) spent: i64,
    pub(super) reserved: i64,
    pub(super) uncertain: i64,
}

impl Sums {
    const fn add(&mut self, other: Self) {
        self.spent = self.spent.saturating_add(other.spent);
        self.reserved = self.reserved.saturating_add(other.reserved);
        self.uncertain = self.uncertain.saturating_add(other.uncertain);
    }
}

/// What a transaction books: in the counters of runs, and by phase and day.
#[derive(Debug, Default)]
pub(in crate::sql) struct LedgerChange {
    pub(in crate::sql) runs: Deltas,
    pub(super) scopes: BTreeMap<ScopeKey, Sums>,
}

impl LedgerChange {
    /// An empty change, for runs whose counters are written in any case.
    pub(in crate::sql) fn for_runs(runs: impl IntoIterator<Item = RunNo>) -> Self {
        Self { runs: runs.into_iter().map(|run| (run, Delta::default())).collect(), ..Self::default() }
    }

    /// Books in a run, its phase and a day at once; usage apart from all dollars.
    pub(super) fn book(&mut self, run: RunNo, phase: i64, day: i64, sums: Sums) {
        if let Some(unit) = unit_of(day) {
            let scope = self.scopes.entry(usage_key(run, unit)).or_default();
            scope.add(sums);
            return;
        }
        let delta = self.runs.entry(run).or_default();
        delta.spent = delta.spent.saturating_add(PicoUsd(sums.spent));
        delta.reserved = delta.reserved.saturating_add(PicoUsd(sums.reserved));
        delta.uncertain = delta.uncertain.saturating_add(PicoUsd(sums.uncertain));
        for key in [(PHASE, run.0, phase), (DAY, day, 0)] {
            self.scopes.entry(key).or_default().add(sums);
        }
    }

    /// Takes back what a reservation holds.
    pub(super) fn unbook(&mut self, of: Reserved) {
        let amount = -of.amount.0;
        let sums = if of.state == OPEN {
            Sums { reserved: amount, ..Sums::default() }
        } else {
            Sums { spent: amount, uncertain: amount, ..Sums::default() }
        };
        self.book(of.run, of.phase, of.day, sums);
    }

    /// Books that a reservation has become uncertain.
    pub(super) fn lose(&mut self, of: Reserved) {
        let amount = of.amount.0;
        self.book(of.run, of.phase, of.day, Sums { spent: amount, reserved: -amount, uncertain: amount });
    }

    /// Writes everything. Among the last changes of a transaction, because all writers of a run meet here.
    pub(in crate::sql) async fn write(self, conn: &mut dyn Conn) -> StoreResult<()> {
        if !self.runs.is_empty() {
            counters::add(conn, &self.runs).await?;
        }
        add_scopes(conn, &self.scopes).await.map(drop)
    }

    /// Writes the change together with the commit; runs that are not there are passed over.
    pub(in crate::sql) async fn write_at_last(self, conn: &mut dyn Conn) -> StoreResult<()> {
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
pub(super) async fn add_scopes(
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

/// What a run, and the other runs of its group, use of a unit.
pub(super) async fn usage_of(conn: &mut dyn Conn, run: RunNo, cap: UsageCap) -> StoreResult<BudgetState> {
    static OF_ALL: Sql = Sql::new(|| {
        format!(
            "SELECT {}, {} FROM runs AS own JOIN runs AS r ON r.run_no = own.run_no OR r.group_no = own.group_no \
             JOIN budgets AS b ON b.scope = r.run_no WHERE own.run_no = $1 AND b.kind = $2 AND b.part = $3",
            sum("b.spent"),
            sum("b.reserved"),
        )
    });
    let scope = BudgetScope::Usage(cap.unit);
    let (kind, _, part) = scope_key(scope, run, 0);
    let rows = conn.fetch(&OF_ALL, args![run.0, kind, part]).await?;
    let (spent, reserved) = rows.first().map_or(Ok((0, 0)), |row| Ok::<_, StoreError>((row.int(0)?, row.int(1)?)))?;
    Ok(BudgetState { scope, cap: PicoUsd(cap.most), spent: PicoUsd(spent), reserved: PicoUsd(reserved) })
}

/// Forgets what of a run's usage is uncertain.
pub(super) async fn release_usage(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static RELEASE: Sql = Sql::new(|| {
        format!(
            "UPDATE budgets SET spent = spent - uncertain, uncertain = 0 WHERE kind = {USAGE} AND scope = $1 AND uncertain <> 0"
        )
    });
    conn.execute(&RELEASE, args![run.0]).await.map(drop)
}

/// Adds to rows of `budgets` and reads all of the named ones.
pub(super) async fn sums_after(
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

fn add_to_counters() -> String {
    format!(
        "UPDATE run_counters SET spent = {}, uncertain = {}, reserved = {} WHERE run_no = $1 RETURNING spent, reserved",
        plus("spent", "$2"),
        plus("uncertain", "$3"),
        plus("reserved", "$4"),
    )
}

/// Adds a delta to one run; returns (spent, reserved) afterwards.
pub(super) async fn add_to_run(conn: &mut dyn Conn, run: RunNo, delta: &Delta) -> StoreResult<(i64, i64)> {
    static ADD: Sql = Sql::new(add_to_counters);
    let [spent, uncertain, reserved] = [delta.spent, delta.uncertain, delta.reserved].map(|sum| bounded(sum.0));
    let rows = conn.fetch(&ADD, args![run.0, spent, uncertain, reserved]).await?;
    let row = rows.first().ok_or_else(|| missing_run(run))?;
    Ok((row.int(0)?, row.int(1)?))
}

/// The same for a run of a locked group; returns the sums of the run, and those of its group.
pub(super) async fn add_in_group(
    conn: &mut dyn Conn,
    run: RunNo,
    group: i64,
    delta: &Delta,
) -> StoreResult<[(i64, i64); 2]> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_utc() {
        assert_eq!((day_of(0), day_of(DAY_US - 1), day_of(DAY_US), day_of(-1)), (0, 0, 1, -1));
    }

    #[test]
    fn p10_usage_is_booked_apart_from_dollars() {
        let mut ledger = LedgerChange::default();
        let run = RunNo(7);
        for unit in UsageUnit::ALL {
            assert_eq!(unit_of(day_of_usage(unit)), Some(unit));
            ledger.book(run, 1, day_of_usage(unit), Sums { spent: 5, reserved: -2, uncertain: 1 });
            ledger.book(run, 2, day_of_usage(unit), Sums { spent: 5, ..Sums::default() });
            let sums = ledger.scopes[&scope_key(BudgetScope::Usage(unit), run, 0)];
            assert_eq!(sums, Sums { spent: 10, reserved: -2, uncertain: 1 });
        }
        assert_eq!((ledger.runs.len(), ledger.scopes.len()), (0, 2));
        assert_eq!(unit_of(day_of(0)), None);
    }
}
