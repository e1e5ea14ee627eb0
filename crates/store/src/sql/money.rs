//! The hard caps on spending (P10): reservations, what they become, and what is booked where.
//!
//! Money is booked in the counters of its run and, for the caps beside it, in `budgets`: by phase of the run and by day of
//! the store. A run with a cap on tokens or calls reserves these in the place of dollars: its reservations have no day, and are booked in
//! a row of `budgets` of their own; the rows of the runs of a group are under one cap. What attempts cost is booked all the same, and
//! capped by nothing. Transactions lock in one order: sessions, tasks, reservations, banks, groups, runs, phases, days. A reservation
//! adds first and looks at the sums that come back; what does not fit is taken out again in the same transaction. Groups of runs
//! ([`groups`]) are locked by reservations, and by who changes their caps or deletes one of their runs.

mod caps;
mod ledger_change;
mod reservations;

use std::collections::HashSet;

use async_trait::async_trait;
use bench_proto::{call::Ledger, ids::RunNo, money::PicoUsd, spec::ModelSpec};
use serde::Deserialize;
use uuid::Uuid;

use self::{
    caps::grant,
    ledger_change::{
        Reserved, Sums, add_in_group, add_scopes, add_to_run, release_usage, scope_key, sums_after, usage_of,
    },
    reservations::{LOSE, RESERVED, ids, insert, lose_run, reserved, standing, take},
};
pub(super) use self::{
    ledger_change::{LedgerChange, day_of},
    reservations::{Paid, attempt_id, lock_all, lose_all, lose_session, restore, settle},
};
use super::{
    Backend, Conn, Sql, SqlStore, args,
    codes::{LOST, RELEASED, UNCERTAIN, phase_code, phase_from},
    counters, groups, ledger,
    runs::change_state,
    sums::bounded,
};
use crate::{
    BudgetAnswer, BudgetChange, BudgetScope, BudgetState, GroupState, Money, RunRow, RunState, SessionId, StoreError,
    StoreResult, Want, codec::spec_from_json,
};

/// The transaction of [`Money::change_budget`].
async fn change(conn: &mut dyn Conn, change: BudgetChange) -> StoreResult<BudgetAnswer> {
    let BudgetChange { run, session, mut release, lose: lost, wants } = change;
    let standing = standing(conn, run, session).await?;
    let mut ledger = LedgerChange::default();
    // one order with all others that change reservations
    release.sort_unstable();
    for of in take(conn, &release).await?.into_values() {
        ledger.unbook(of);
    }
    if !lost.is_empty() {
        for mut row in conn.fetch(&LOSE, args![ids(&lost)]).await? {
            ledger.lose(reserved(&mut row)?.1);
        }
    }
    let new = match standing.open && !wants.is_empty() {
        true => insert(conn, run, session, standing.day, &wants).await?,
        false => HashSet::new(),
    };
    for place in &new {
        let want = &wants[*place];
        let sums = Sums { reserved: bounded(want.amount.0), ..Sums::default() };
        ledger.book(run, phase_code(want.phase), standing.day, sums);
    }
    // a change may settle reservations of another run only if somebody mixes ids up; its counters are written all the same
    let own = ledger.runs.remove(&run).unwrap_or_default();
    if !ledger.runs.is_empty() {
        counters::add(conn, &ledger.runs).await?;
    }
    let (of_run, of_group, group_cap) = match standing.group {
        Some(group) => {
            let cap = groups::lock(conn, group).await?;
            let [of_run, of_group] = add_in_group(conn, run, group, &own).await?;
            (of_run, of_group, Some(cap))
        }
        None => (add_to_run(conn, run, &own).await?, (0, 0), None),
    };
    let caps = caps::of_run(&standing.limits, group_cap);
    for (scope, _) in &caps {
        // read even where nothing was added
        ledger.scopes.entry(scope_key(*scope, run, standing.day)).or_default();
    }
    let mut by_scope = sums_after(conn, &ledger.scopes).await?;
    if let (Some(cap), Some(group)) = (standing.limits.max_usage, standing.group) {
        let key = scope_key(BudgetScope::Usage(cap.unit), run, standing.day);
        let (spent, reserved) = groups::usage_of_others(conn, run, group, key).await?;
        let own = by_scope.entry(key).or_default();
        *own = (own.0.saturating_add(spent), own.1.saturating_add(reserved));
    }
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

/// Takes refused wants out again.
async fn take_back(
    conn: &mut dyn Conn,
    run: RunNo,
    day: i64,
    wants: &[Want],
    refused: &[(usize, BudgetScope)],
) -> StoreResult<()> {
    let attempts: Vec<Uuid> = refused.iter().map(|(place, _)| wants[*place].attempt).collect();
    let mut ledger = LedgerChange::default();
    for of in take(conn, &attempts).await?.into_values() {
        ledger.unbook(Reserved { run, day, ..of });
    }
    if let Some(delta) = ledger.runs.get(&run) {
        add_to_run(conn, run, delta).await?;
    }
    add_scopes(conn, &ledger.scopes).await.map(drop)
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
    // its report has said what was uncertain
    static RAISE: Sql = Sql::new(|| {
        let ended = RunState::Finished.name();
        format!("UPDATE runs SET result_version = result_version + 1 WHERE run_no = $1 AND state = '{ended}'")
    });
    counters::require(conn, run).await?;
    let mut ledger = LedgerChange::default();
    let lost = conn.fetch(&LOST_ONES, args![run.0]).await?;
    let calls = conn.fetch(&CALLS, args![run.0]).await?;
    if !lost.is_empty() || !calls.is_empty() {
        conn.execute(&RAISE, args![run.0]).await?;
    }
    for mut row in lost {
        ledger.unbook(reserved(&mut row)?.1);
    }
    for row in calls {
        let (phase, day, cost) = (row.int(0)?, day_of(row.int(1)?), -row.int(2)?);
        phase_from(phase)?;
        ledger.book(run, phase, day, Sums { spent: cost, uncertain: cost, reserved: 0 });
    }
    let released = ledger.runs.get(&run).map_or(PicoUsd::ZERO, |delta| PicoUsd(-delta.uncertain.0));
    ledger.write(conn).await?;
    release_usage(conn, run).await?;
    Ok(released)
}

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
        let spec: SpecModels = spec_from_json(&row.text(1)?, || format!("the spec of run number {}", found.0))?;
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

    async fn usage(&self, run: &RunRow) -> StoreResult<Option<BudgetState>> {
        let Some(cap) = run.spec.limits.max_usage else { return Ok(None) };
        let run = run.run_no;
        self.backend.read(move |conn| Box::pin(usage_of(conn, run, cap))).await.map(Some)
    }

    async fn ledger(&self, run: &RunRow) -> StoreResult<Ledger> {
        let run = run.clone();
        self.backend.read(move |conn| Box::pin(ledger::read(conn, run))).await
    }
}
