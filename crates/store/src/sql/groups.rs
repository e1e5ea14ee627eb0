//! Groups of runs that one command started: one cap for all of them (P41).
//!
//! A group keeps no sums of its own. What it has spent and reserved is what its runs' counters say, so that what settles an
//! attempt touches nothing more, and nothing can drift apart. Only a reservation can raise the sum: each locks the group's row
//! until it is committed, and reads the counters after that. Settlements that commit meanwhile make the sum smaller.

use bench_proto::{ids::RunNo, money::PicoUsd};

use super::{Conn, Sql, args, codes::ScopeKey, sums::sum};
use crate::{
    GroupState, NewGroup, StoreResult,
    codec::{escape, unescape},
};

/// The number of a group, which is created if it is not there.
pub(super) async fn number_of(conn: &mut dyn Conn, group: &NewGroup) -> StoreResult<i64> {
    static INSERT: Sql = Sql::new(|| {
        "INSERT INTO run_groups (group_id, cap) VALUES ($1, $2) ON CONFLICT (group_id) DO NOTHING RETURNING group_no"
            .to_owned()
    });
    static FIND: Sql = Sql::new(|| "SELECT group_no FROM run_groups WHERE group_id = $1".to_owned());
    let id = escape(&group.id);
    let mut rows = conn.fetch(&INSERT, args![id.as_str(), group.cap.map(|cap| cap.0)]).await?;
    if rows.is_empty() {
        rows = conn.fetch(&FIND, args![id.as_str()]).await?;
    }
    let missing = || crate::StoreError::Missing(format!("group {}", group.id));
    rows.first().ok_or_else(missing)?.int(0)
}

/// Locks a group against other reservations; its cap.
pub(super) async fn lock(conn: &mut dyn Conn, group: i64) -> StoreResult<Option<PicoUsd>> {
    static CAP: Sql = Sql::new(|| "SELECT cap FROM run_groups WHERE group_no = $1".to_owned());
    let rows = conn.fetch_locked(&CAP, args![group]).await?;
    Ok(rows.first().map(|row| row.opt_int(0)).transpose()?.flatten().map(PicoUsd))
}

/// Locks the group of a run, if it has one.
pub(super) async fn lock_of(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static GROUP: Sql = Sql::new(|| "SELECT group_no FROM runs WHERE run_no = $1".to_owned());
    let rows = conn.fetch(&GROUP, args![run.0]).await?;
    if let Some(group) = rows.first().map(|row| row.opt_int(0)).transpose()?.flatten() {
        lock(conn, group).await?;
    }
    Ok(())
}

/// The other runs of a run's group, in their order.
pub(super) async fn others_of(conn: &mut dyn Conn, run: RunNo) -> StoreResult<Vec<RunNo>> {
    static OTHERS: Sql = Sql::new(|| {
        "SELECT r.run_no FROM runs AS own JOIN runs AS r ON r.group_no = own.group_no \
         WHERE own.run_no = $1 AND r.run_no <> $1 ORDER BY r.run_no"
            .to_owned()
    });
    let rows = conn.fetch(&OTHERS, args![run.0]).await?;
    rows.iter().map(|row| Ok(RunNo(row.int(0)?))).collect()
}

/// Sets the cap of a run's group, if it has one.
pub(super) async fn set_cap(conn: &mut dyn Conn, run: RunNo, cap: Option<PicoUsd>) -> StoreResult<()> {
    static SET: Sql = Sql::new(|| {
        "UPDATE run_groups SET cap = $2 WHERE group_no = (SELECT r.group_no FROM runs AS r WHERE r.run_no = $1)"
            .to_owned()
    });
    conn.execute(&SET, args![run.0, cap.map(|cap| cap.0)]).await.map(drop)
}

/// Lowers the cap of a run's group by what the run has cost: when it is deleted, that counts against the cap no longer.
pub(super) async fn lower_cap(conn: &mut dyn Conn, run: RunNo) -> StoreResult<()> {
    static LOWER: Sql = Sql::new(|| {
        "UPDATE run_groups SET cap = CASE WHEN run_groups.cap > c.spent THEN run_groups.cap - c.spent ELSE 0 END \
         FROM runs AS r JOIN run_counters AS c ON c.run_no = r.run_no \
         WHERE r.run_no = $1 AND run_groups.group_no = r.group_no AND run_groups.cap IS NOT NULL"
            .to_owned()
    });
    conn.execute(&LOWER, args![run.0]).await.map(drop)
}

/// What the other runs of a group have of a counter, for a statement that changes that of run `$1` in group `$5`.
pub(super) fn others(counter: &str) -> String {
    format!(
        "(SELECT {} FROM runs AS r JOIN run_counters AS c ON c.run_no = r.run_no WHERE r.group_no = $5 AND r.run_no <> $1)",
        sum(&format!("c.{counter}"))
    )
}

/// (spent, reserved) of a unit by the other runs of a locked group: what these use is under one cap, as their dollars are.
pub(super) async fn usage_of_others(
    conn: &mut dyn Conn,
    run: RunNo,
    group: i64,
    (kind, _, part): ScopeKey,
) -> StoreResult<(i64, i64)> {
    static OTHERS: Sql = Sql::new(|| {
        format!(
            "SELECT {}, {} FROM runs AS r JOIN budgets AS b ON b.scope = r.run_no \
             WHERE r.group_no = $1 AND r.run_no <> $2 AND b.kind = $3 AND b.part = $4",
            sum("b.spent"),
            sum("b.reserved"),
        )
    });
    let rows = conn.fetch(&OTHERS, args![group, run.0, kind, part]).await?;
    rows.first().map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
}

/// See [`crate::Money::group`].
pub(super) async fn state(conn: &mut dyn Conn, run: RunNo) -> StoreResult<Option<GroupState>> {
    static STATE: Sql = Sql::new(|| {
        format!(
            "SELECT g.group_id, g.cap, {}, {}, count(*) \
             FROM runs AS own JOIN run_groups AS g ON g.group_no = own.group_no JOIN runs AS r ON r.group_no = g.group_no \
             JOIN run_counters AS c ON c.run_no = r.run_no WHERE own.run_no = $1 GROUP BY g.group_id, g.cap",
            sum("c.spent"),
            sum("c.reserved"),
        )
    });
    let mut rows = conn.fetch(&STATE, args![run.0]).await?;
    let Some(row) = rows.first_mut() else { return Ok(None) };
    Ok(Some(GroupState {
        id: unescape(row.text(0)?),
        cap: row.opt_int(1)?.map(PicoUsd),
        spent: PicoUsd(row.int(2)?),
        reserved: PicoUsd(row.int(3)?),
        runs: row.small(4)?,
    }))
}
