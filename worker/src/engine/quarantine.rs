//! A task that has lost workers may be what kills them: it runs alone on its worker (P3). Nothing else is even leased there
//! meanwhile, else its neighbours would be lost with it each time and be given up for nothing.

use std::sync::Arc;

use tokio::sync::watch;

/// What a worker has at hand.
#[derive(Debug, Clone, Copy, Default)]
struct TasksAtHand {
    /// Claimed tasks that are not settled.
    at_hand: usize,
    /// A task runs alone, or waits for the others to end.
    taken: bool,
}

/// Who may run in this process.
#[derive(Debug, Clone, Default)]
pub(super) struct Quarantine(Arc<watch::Sender<TasksAtHand>>);

/// Keeps a task among those at hand until it is dropped, when the task is settled.
#[derive(Debug)]
pub(super) struct AtHand(Quarantine);

/// Keeps others out until it is dropped.
#[derive(Debug)]
pub(super) struct Taken(Quarantine);

impl Quarantine {
    /// Notes a claimed task.
    pub(super) fn at_hand(&self) -> AtHand {
        self.0.send_modify(|state| state.at_hand += 1);
        AtHand(self.clone())
    }

    /// Whether a task runs alone, or is going to.
    pub(super) fn is_taken(&self) -> bool {
        self.0.borrow().taken
    }

    /// Waits until no task is in quarantine.
    pub(super) async fn free(&self) {
        self.wait_for(|state| !state.taken).await;
    }

    /// Begins to keep others out; `None` when another task does.
    pub(super) fn take(&self) -> Option<Taken> {
        self.0.send_if_modified(|state| !std::mem::replace(&mut state.taken, true)).then(|| Taken(self.clone()))
    }

    async fn wait_for(&self, wanted: impl FnMut(&TasksAtHand) -> bool) {
        // the sender lives as long as `self`
        let _ = self.0.subscribe().wait_for(wanted).await;
    }
}

impl Taken {
    /// Waits until the own task is the only one at hand.
    pub(super) async fn others_ended(&self) {
        self.0.wait_for(|state| state.at_hand <= 1).await;
    }
}

impl Drop for AtHand {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.at_hand = state.at_hand.saturating_sub(1));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.taken = false);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn p3_a_dangerous_task_waits_for_the_others_and_keeps_new_ones_out() {
        let quarantine = Quarantine::default();
        let (ordinary, dangerous) = (quarantine.at_hand(), quarantine.at_hand());
        let taken = quarantine.take().expect("nobody was alone");
        assert!(quarantine.is_taken());
        assert!(quarantine.take().is_none(), "one at a time");
        let soon = Duration::from_millis(20);
        assert!(timeout(soon, taken.others_ended()).await.is_err(), "an ordinary task is still at hand");
        drop(ordinary);
        taken.others_ended().await;
        assert!(timeout(soon, quarantine.free()).await.is_err());
        drop((taken, dangerous));
        quarantine.free().await;
        assert!(quarantine.take().is_some());
    }
}
