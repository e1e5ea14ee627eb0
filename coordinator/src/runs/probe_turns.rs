//! Latency probes of runs that one process executes at the same time: a probe begins when all of them have put their questions, and
//! one comes after the other (P43). A recall that is timed beside the questions of another run would time these too: a run that begins
//! later joins those that ask, and waits where they are being probed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct ProbeTurns {
    now: Mutex<Now>,
    /// A run is at rest.
    left: Notify,
}

/// Where the runs are.
#[derive(Debug, Default)]
struct Now {
    /// Runs whose questions have not ended.
    asking: usize,
    /// Runs whose questions have ended, and that are to be probed.
    waiting: usize,
    /// Whether a run is being probed, which the others wait for.
    is_probed: bool,
}

impl ProbeTurns {
    /// A run begins: others wait for it with their probes. Where nobody asks any more, all that wait are probed before.
    pub(crate) async fn begin(self: &Arc<Self>) -> ProbeTurn {
        loop {
            let left = self.left.notified();
            if self.joins() {
                return ProbeTurn { turns: Arc::clone(self), stage: Stage::Asking };
            }
            left.await;
        }
    }

    /// Counts a run among those that ask, where that disturbs no probe.
    fn joins(&self) -> bool {
        let mut now = self.now();
        let joins = !now.is_probed && (now.asking > 0 || now.waiting == 0);
        now.asking += usize::from(joins);
        joins
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Asking,
    Waiting,
    Probed,
}

/// A run among those that are executed at the same time; dropped when the run is at rest, and nothing of it in flight.
#[derive(Debug)]
pub(crate) struct ProbeTurn {
    turns: Arc<ProbeTurns>,
    stage: Stage,
}

impl ProbeTurn {
    /// All questions of its run have ended: whether it may be probed now. Once it may, it may until it is dropped.
    pub(crate) fn may_probe(&mut self) -> bool {
        let mut now = self.turns.now();
        if self.stage == Stage::Asking {
            now.asking -= 1;
            now.waiting += 1;
            self.stage = Stage::Waiting;
        }
        if self.stage == Stage::Waiting && now.asking == 0 && !now.is_probed {
            now.waiting -= 1;
            now.is_probed = true;
            self.stage = Stage::Probed;
        }
        self.stage == Stage::Probed
    }
}

impl Drop for ProbeTurn {
    fn drop(&mut self) {
        let mut now = self.turns.now();
        match self.stage {
            Stage::Asking => now.asking -= 1,
            Stage::Waiting => now.waiting -= 1,
            Stage::Probed => now.is_probed = false,
        }
        drop(now);
        self.turns.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn p43_a_probe_waits_for_the_questions_of_all_and_for_the_probe_before_it() {
        let turns = Arc::new(ProbeTurns::default());
        let (mut first, mut second, third) = (turns.begin().await, turns.begin().await, turns.begin().await);
        assert!(!first.may_probe(), "two others still ask");
        // paused, or broken: it asks no more
        drop(third);
        assert!(!first.may_probe());
        assert!(second.may_probe(), "the last to end its questions finds nobody asking");
        assert!(!first.may_probe() && second.may_probe(), "the second is probed");
        drop(second);
        assert!(first.may_probe());
    }

    #[tokio::test]
    async fn p43_a_run_that_begins_later_asks_beside_no_probe() {
        let turns = Arc::new(ProbeTurns::default());
        let (mut first, mut second) = (turns.begin().await, turns.begin().await);
        assert!(!first.may_probe());
        let third = turns.begin().now_or_never();
        assert!(third.is_some() && !first.may_probe(), "it joins the second, which asks");
        drop(third);
        assert!(second.may_probe());
        assert!(turns.begin().now_or_never().is_none(), "its questions would be timed");
        let later = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.begin().await }
        });
        drop(second);
        tokio::task::yield_now().await;
        assert!(!later.is_finished() && first.may_probe(), "the first has waited for longer");
        drop(first);
        let mut later = later.await.expect("it begins");
        assert!(later.may_probe());
    }
}
