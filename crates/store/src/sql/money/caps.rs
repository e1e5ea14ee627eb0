//! The caps of a run, and what fits under them. Pure.

use bench_proto::{money::PicoUsd, spec::Limits};

use crate::{BudgetScope, BudgetState, Want};

/// The caps of a run, in the order in which they are locked. That of its group takes the place of its own, one on its usage the place of
/// all.
pub(super) fn of_run(limits: &Limits, group: Option<Option<PicoUsd>>) -> Vec<(BudgetScope, PicoUsd)> {
    if let Some(cap) = limits.max_usage {
        return vec![(BudgetScope::Usage(cap.unit), PicoUsd(cap.most))];
    }
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
pub(super) fn grant<'w>(
    states: &mut [BudgetState],
    wants: impl Iterator<Item = (usize, &'w Want)>,
) -> Vec<(usize, BudgetScope)> {
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

#[cfg(test)]
mod tests {
    use bench_proto::{
        call::Phase,
        usage_cap::{UsageCap, UsageUnit},
    };
    use uuid::Uuid;

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
        assert_eq!(of_run(&limits, None), [(BudgetScope::Run, PicoUsd(5)), day]);
        assert_eq!(of_run(&limits, Some(Some(PicoUsd(7)))), [(BudgetScope::Group, PicoUsd(7)), day]);
        assert_eq!(of_run(&limits, Some(None)), [day], "a group without a cap");
        let cap = UsageCap { unit: UsageUnit::Calls, most: 8 };
        let limits = Limits { max_usage: Some(cap), ..limits };
        assert_eq!(of_run(&limits, None), [(BudgetScope::Usage(UsageUnit::Calls), PicoUsd(8))]);
    }
}
