//! Latency probes of runs that one process executes at the same time: a probe begins when all of them have put their questions, and
//! one comes after the other (P43). A recall that is timed beside the questions of another run would time these too.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct ProbeTurns {
    /// Runs whose questions have not ended.
    asking: AtomicUsize,
    /// Held by the run that is probed.
    turn: Arc<Mutex<()>>,
}

impl ProbeTurns {
    /// A run begins: others wait for it with their probes.
    #[must_use]
    pub(crate) fn begin(self: &Arc<Self>) -> Place {
        self.asking.fetch_add(1, Ordering::SeqCst);
        Place { turns: Arc::clone(self), is_asking: true, turn: None }
    }
}

/// A run among those that are executed at the same time; dropped when the run is at rest.
#[derive(Debug)]
pub(crate) struct Place {
    turns: Arc<ProbeTurns>,
    is_asking: bool,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Place {
    /// All questions of its run have ended: whether it may be probed now. Once it may, it may until it is dropped.
    pub(crate) fn may_probe(&mut self) -> bool {
        self.ends_asking();
        if self.turn.is_none() && self.turns.asking.load(Ordering::SeqCst) == 0 {
            self.turn = Arc::clone(&self.turns.turn).try_lock_owned().ok();
        }
        self.turn.is_some()
    }

    fn ends_asking(&mut self) {
        if std::mem::take(&mut self.is_asking) {
            self.turns.asking.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.ends_asking();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p43_a_probe_waits_for_the_questions_of_all_and_for_the_probe_before_it() {
        let turns = Arc::new(ProbeTurns::default());
        let (mut first, mut second, third) = (turns.begin(), turns.begin(), turns.begin());
        assert!(!first.may_probe(), "two others still ask");
        // paused, or broken: it asks no more
        drop(third);
        assert!(!first.may_probe());
        assert!(second.may_probe(), "the last to end its questions finds nobody asking");
        assert!(!first.may_probe(), "the second is probed");
        let late = turns.begin();
        assert!(second.may_probe(), "what has begun goes on");
        drop(second);
        assert!(!first.may_probe(), "one has begun to ask");
        drop(late);
        assert!(first.may_probe());
    }
}
