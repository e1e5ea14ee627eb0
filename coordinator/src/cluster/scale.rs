//! The scaling signal (P15): one number per pool and role. Queue length is never the signal, because the window bounds it.

use bench_proto::ids::Role;
use bench_store::OpenByRole;

/// Slots of a worker when none is alive to ask.
const SLOTS_PER_WORKER: f64 = 64.0;
/// Next tasks of a run and role that are counted: more than any pool has slots.
pub(crate) const COUNTED: u32 = 100_000;
/// Head room over what the allowance needs.
const HEAD_ROOM: f64 = 1.2;

/// What the number is made of, for one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RunLoad {
    /// The run's open tasks.
    pub open: OpenByRole,
    /// The run's questions in flight at most.
    pub questions: Option<u32>,
    /// The run's segments in flight at most.
    pub segments: Option<u32>,
    /// Calls per second that its models allow, when a limit is known.
    pub calls_per_second: Option<f64>,
    /// Mean seconds of a call, when some were made.
    pub call_seconds: Option<f64>,
}

/// Workers that a pool and role can keep busy: ceil(min(runnable + leased, limits of the runs) / slots of a worker). 0 only
/// when no run is open.
#[must_use]
pub(crate) fn desired_workers(role: Role, runs: &[RunLoad], slots_per_worker: Option<f64>) -> u64 {
    if runs.is_empty() {
        return 0;
    }
    let busy: f64 = runs.iter().map(|run| useful_slots(role, run)).sum();
    let slots = slots_per_worker.filter(|slots| *slots >= 1.0).unwrap_or(SLOTS_PER_WORKER);
    // an open run may get work of any role at any moment: one worker is there to take it
    ((busy / slots).ceil() as u64).max(1)
}

fn useful_slots(role: Role, run: &RunLoad) -> f64 {
    let tasks = run.open.get(&role).copied().unwrap_or_default();
    let mut useful = (tasks.unpublished + tasks.queued + tasks.leased) as f64;
    let limit = match role {
        Role::Retain => run.segments,
        Role::Question => run.questions,
        Role::Judge => None,
    };
    if let Some(limit) = limit {
        useful = useful.min(f64::from(limit));
    }
    if role != Role::Retain
        && let (Some(rate), Some(seconds)) = (run.calls_per_second, run.call_seconds)
    {
        // Little's law: so many calls are in flight when the allowance is used up
        useful = useful.min((rate * seconds * HEAD_ROOM).max(1.0));
    }
    useful
}

#[cfg(test)]
mod tests {
    use bench_store::OpenTasks;

    use super::*;

    fn load(unpublished: i64, leased: i64) -> RunLoad {
        let tasks = OpenTasks { unpublished, leased, ..OpenTasks::default() };
        RunLoad { open: OpenByRole::from([(Role::Question, tasks)]), ..RunLoad::default() }
    }

    #[test]
    fn p15_the_number_over_a_simulated_run() {
        let desired = |runs: &[RunLoad]| desired_workers(Role::Question, runs, Some(16.0));
        assert_eq!(desired(&[]), 0, "no run is open");
        assert_eq!(desired(&[load(0, 0)]), 1, "a run that is being planned finds a worker");
        assert_eq!(desired(&[load(1900, 86)]), 125);
        assert_eq!(desired(&[load(10, 20)]), 2);
        assert_eq!(desired(&[load(0, 3)]), 1);
        let delayed = OpenTasks { delayed: 500, ..OpenTasks::default() };
        let parked = RunLoad { open: OpenByRole::from([(Role::Question, delayed)]), ..RunLoad::default() };
        assert_eq!(desired(&[parked]), 1, "parked tasks need nobody");
        assert_eq!(desired(&[load(100, 0), load(60, 0)]), 10, "runs add up");
    }

    #[test]
    fn p15_limits_of_the_run_bound_the_number() {
        let desired = |run: RunLoad| desired_workers(Role::Question, &[run], Some(16.0));
        assert_eq!(desired(RunLoad { questions: Some(32), ..load(1900, 86) }), 2);
        // 50 calls a second of 2 s each keep 100 slots busy, 120 with head room
        let limited = RunLoad { calls_per_second: Some(50.0), call_seconds: Some(2.0), ..load(1900, 86) };
        assert_eq!(desired(limited), 8);
        assert_eq!(desired_workers(Role::Question, &[load(640, 0)], None), 10, "64 slots when nobody can be asked");
    }
}
