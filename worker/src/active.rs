//! What this process works on. A lease that the store holds for its session and nobody here knows of would never end: the
//! answer to a claim was lost, or a hand-back did not reach the store (found by the model check, see `proto/tests`).

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bench_proto::ids::{RunNo, TaskKey};
use bench_store::ClaimedTask;

type Holders = HashMap<(RunNo, TaskKey), Holder>;

/// How many hold a task, and the claim that was acknowledged.
#[derive(Debug, Default)]
struct Holder {
    count: u32,
    claim: Option<ClaimedTask>,
    /// The store has forgotten the claim, and another holds the task, perhaps under the same epoch (P44).
    overtaken: bool,
}

/// The tasks that are being claimed or worked on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Active(Arc<Mutex<Holders>>);

/// Keeps a task among the active ones until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    active: Active,
    task: (RunNo, TaskKey),
}

impl Active {
    fn lock(&self) -> MutexGuard<'_, Holders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a task; a second holder of the same one is counted.
    pub(crate) fn hold(&self, task: (RunNo, TaskKey)) -> Held {
        self.lock().entry(task).or_default().count += 1;
        Held { active: self.clone(), task }
    }

    /// Notes the claim of a task that is held.
    pub(crate) fn claimed(&self, claim: ClaimedTask) {
        if let Some(holder) = self.lock().get_mut(&(claim.run, claim.task)) {
            (holder.claim, holder.overtaken) = (Some(claim), false);
        }
    }

    /// Notes which of the claims the store still knows of; the others are somebody else's by now.
    pub(crate) fn overtake(&self, claims: &[ClaimedTask], known: &[ClaimedTask]) {
        let known: BTreeSet<_> = known.iter().map(|lease| (lease.run, lease.task, lease.epoch)).collect();
        let mut holders = self.lock();
        for claim in claims.iter().filter(|claim| !known.contains(&(claim.run, claim.task, claim.epoch))) {
            if let Some(holder) = holders.get_mut(&(claim.run, claim.task)) {
                holder.overtaken |= holder.claim == Some(*claim);
            }
        }
    }

    /// Whether a claim is somebody else's.
    pub(crate) fn is_overtaken(&self, claim: ClaimedTask) -> bool {
        self.lock().get(&(claim.run, claim.task)).is_some_and(|holder| holder.overtaken && holder.claim == Some(claim))
    }

    /// The tasks that are worked on.
    pub(crate) fn claims(&self) -> Vec<ClaimedTask> {
        self.lock().values().filter_map(|holder| holder.claim).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn knows(&self, task: (RunNo, TaskKey)) -> bool {
        self.lock().contains_key(&task)
    }
}

impl Held {
    /// The task that is held.
    pub(crate) fn task(&self) -> (RunNo, TaskKey) {
        self.task
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut holders = self.active.lock();
        if let Some(holder) = holders.get_mut(&self.task) {
            holder.count -= 1;
            if holder.count == 0 {
                holders.remove(&self.task);
            }
        }
    }
}

/// Finds leases that nobody works on: those that were unknown at two looks in a row, under the same epoch. At a single look
/// a task may be between its claim and its start.
#[derive(Debug, Default)]
pub(crate) struct LostLeases(BTreeSet<(RunNo, TaskKey, i64)>);

impl LostLeases {
    /// The lost ones among the leases that the store holds for this session.
    pub(crate) fn see(&mut self, leases: Vec<ClaimedTask>, active: &Active) -> Vec<ClaimedTask> {
        let unknown: Vec<_> = leases.into_iter().filter(|lease| !active.knows((lease.run, lease.task))).collect();
        let key = |lease: &ClaimedTask| (lease.run, lease.task, lease.epoch);
        let before = std::mem::replace(&mut self.0, unknown.iter().map(key).collect());
        unknown.into_iter().filter(|lease| before.contains(&key(lease))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(task: TaskKey, epoch: i64) -> ClaimedTask {
        let session = bench_store::SessionId(1);
        ClaimedTask { run: RunNo(1), task, epoch, attempts: 0, losses: 0, queue_wait_us: 0, dispatch_us: 0, session }
    }

    #[test]
    fn p44_claims_that_the_store_has_forgotten_are_somebody_elses() {
        let active = Active::default();
        let (mine, theirs) = (lease(TaskKey::question(0, 1), 3), lease(TaskKey::question(0, 2), 1));
        let _held = [mine, theirs].map(|claim| active.hold((claim.run, claim.task)));
        assert_eq!(active.claims(), [], "not claimed yet");
        active.claimed(mine);
        active.claimed(theirs);
        active.overtake(&[mine, theirs], &[mine]);
        assert!(!active.is_overtaken(mine) && active.is_overtaken(theirs));
        let again = lease(TaskKey::question(0, 2), 2);
        active.claimed(again);
        assert!(!active.is_overtaken(again) && !active.is_overtaken(theirs));
    }

    #[test]
    fn p4_a_lease_that_nobody_works_on_is_found_at_the_second_look() {
        let (active, mut lost) = (Active::default(), LostLeases::default());
        let (worked_on, forgotten) = (TaskKey::question(0, 1), TaskKey::question(0, 2));
        let held = active.hold((RunNo(1), worked_on));
        let again = active.hold(held.task());
        let leases = || vec![lease(worked_on, 1), lease(forgotten, 1)];
        assert_eq!(lost.see(leases(), &active), []);
        assert_eq!(lost.see(leases(), &active), [lease(forgotten, 1)]);
        assert_eq!(lost.see(vec![lease(forgotten, 2)], &active), [], "it was claimed anew meanwhile");
        drop(held);
        assert_eq!(lost.see(vec![lease(worked_on, 1)], &active), [], "somebody still holds it");
        drop(again);
        assert_eq!(lost.see(vec![lease(worked_on, 1)], &active), []);
        assert_eq!(lost.see(vec![lease(worked_on, 1)], &active), [lease(worked_on, 1)]);
    }
}
