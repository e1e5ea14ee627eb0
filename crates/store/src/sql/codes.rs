//! Numbers under which the store keeps words.

use bench_proto::call::{CallOutcome, Phase};

use crate::{StoreError, StoreResult};

/// Stored number of [`CallOutcome::Accepted`]; the migrations' index names it.
pub(super) const ACCEPTED: i64 = 0;
/// Stored number of [`CallOutcome::Rejected`].
pub(super) const REJECTED: i64 = 1;
/// Stored number of [`CallOutcome::Uncertain`].
pub(super) const UNCERTAIN: i64 = 2;
/// Stored number of an uncertain call that a user has released: kept, but no longer counted.
pub(super) const RELEASED: i64 = 3;

pub(super) const fn outcome_code(outcome: CallOutcome) -> i64 {
    match outcome {
        CallOutcome::Accepted => ACCEPTED,
        CallOutcome::Rejected => REJECTED,
        CallOutcome::Uncertain => UNCERTAIN,
    }
}

pub(super) fn outcome_from(code: i64) -> StoreResult<CallOutcome> {
    match code {
        ACCEPTED => Ok(CallOutcome::Accepted),
        REJECTED => Ok(CallOutcome::Rejected),
        UNCERTAIN | RELEASED => Ok(CallOutcome::Uncertain),
        other => Err(StoreError::Corrupt(format!("{other} is no outcome of a call").into())),
    }
}

pub(super) fn phase_code(phase: Phase) -> i64 {
    Phase::ALL.iter().position(|p| *p == phase).map_or(-1, |at| at as i64)
}

pub(super) fn phase_from(code: i64) -> StoreResult<Phase> {
    let phase = usize::try_from(code).ok().and_then(|at| Phase::ALL.get(at).copied());
    phase.ok_or_else(|| StoreError::Corrupt(format!("{code} is no phase").into()))
}

/// `budgets.kind` of a phase of a run.
pub(super) const PHASE: i64 = 1;

/// `budgets.kind` of what a run uses of a unit, in the place of dollars.
pub(super) const USAGE: i64 = 3;

/// (kind, scope, part) of a row of `budgets`.
pub(super) type ScopeKey = (i64, i64, i64);

/// State of a reservation whose attempt may be under way.
pub(super) const OPEN: i64 = 0;

/// State of a reservation that nobody will settle in time: uncertain.
pub(super) const LOST: i64 = 1;
