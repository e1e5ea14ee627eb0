//! Contexts of runs that no new task gets, for as long as tasks are at work under them: their run was stopped, got other limits or was
//! resumed, or the session ended. What happens to their run later still concerns them (P23).

use std::sync::{Arc, Weak};

use bench_proto::ids::RunNo;

/// Former contexts, each until its last task has let go of it.
#[derive(Debug)]
pub(super) struct Former<C>(Vec<(RunNo, Weak<C>)>);

impl<C> Former<C> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Follows a context of a run from now on.
    pub(super) fn add(&mut self, run: RunNo, context: &Arc<C>) {
        self.0.push((run, Arc::downgrade(context)));
    }

    /// The runs that have some.
    pub(super) fn runs(&mut self) -> Vec<RunNo> {
        self.0.retain(|(_, context)| context.strong_count() > 0);
        self.0.iter().map(|(run, _)| *run).collect()
    }

    /// Those of every run that somebody still holds.
    pub(super) fn all(&self) -> Vec<Arc<C>> {
        self.0.iter().filter_map(|(_, context)| context.upgrade()).collect()
    }

    /// Those of a run.
    pub(super) fn of_run(&self, run: RunNo) -> Vec<Arc<C>> {
        self.0.iter().filter(|(of, _)| *of == run).filter_map(|(_, context)| context.upgrade()).collect()
    }

    /// The same; they are followed no longer.
    pub(super) fn take(&mut self, run: RunNo) -> Vec<Arc<C>> {
        let of_run = self.of_run(run);
        self.0.retain(|(of, _)| *of != run);
        of_run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p23_a_context_is_followed_until_its_last_task_has_let_go_of_it() {
        let (mut former, paused, other) = (Former::new(), Arc::new("paused"), Arc::new("other"));
        former.add(RunNo(1), &paused);
        former.add(RunNo(2), &other);
        let in_flight = Arc::clone(&paused);
        drop(paused);
        assert_eq!(former.runs(), [RunNo(1), RunNo(2)], "a task still holds the first");
        assert_eq!(former.of_run(RunNo(1)), [Arc::new("paused")]);
        // cancelled at once: what is in flight is dropped, once
        assert_eq!(former.take(RunNo(1)), [in_flight]);
        assert_eq!((former.runs(), former.take(RunNo(1))), (vec![RunNo(2)], vec![]));
        drop(other);
        assert_eq!(former.runs(), []);
    }

    #[test]
    fn p26_what_is_at_work_under_other_limits_of_its_run_is_told_of_a_stop() {
        let (mut former, before, ended) = (Former::new(), Arc::new("before"), Arc::new("ended"));
        former.add(RunNo(1), &before);
        former.add(RunNo(1), &ended);
        former.add(RunNo(2), &before);
        drop(ended);
        assert_eq!(former.all(), [Arc::clone(&before), before]);
    }
}
